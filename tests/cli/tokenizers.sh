# Fourteen tokenizers on 100 kB each of five texts against the reference.
. $PARE_ROOT/tests/cli/tokenizers.inc
compare_tokenizers 100000
