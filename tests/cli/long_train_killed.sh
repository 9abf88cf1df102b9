# kill -9 at 20 random moments.
. $PARE_ROOT/tests/cli/train_killed.inc
killed_runs 20
