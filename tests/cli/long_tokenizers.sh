# Fourteen tokenizers on 1 MB each of five texts against the reference.
. $PARE_ROOT/tests/cli/tokenizers.inc
compare_tokenizers 1000000
