# Faults in the provers of pare, one at a time: each makes a bound smaller than the true error, pare verifies its own
# false certificate, and pare-check refutes it (tests/mutants/faults.txt).
. "$PARE_ROOT/tests/cli/check_zoo.inc"
[ -e "$PARE_BUILD/libpare-internal.a" ] || { echo "SKIP there is no $PARE_BUILD/libpare-internal.a"; exit 77; }
zoo_models
"$PARE_ROOT/tools/check-faults" --build "$PARE_BUILD" | sed -E 's/(REFUTED [a-z_.]+).*/\1/'
