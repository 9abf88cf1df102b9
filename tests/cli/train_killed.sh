# kill -9 at random moments, then --resume: the same bytes as a run that was never killed, and the
# same log but for lines that stand twice. (long_train_killed.sh: 20 moments.)
. $PARE_ROOT/tests/cli/train_killed.inc
killed_runs 3
