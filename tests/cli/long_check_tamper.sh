# Every change of a field of some certificates, and many of the bytes of their files, through pare-check.
STEP=1
. "$PARE_ROOT/tests/cli/check_tamper.sh"
