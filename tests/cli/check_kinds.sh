# pare-check agrees with certificates of every kind of claim: nothing is refuted; how much of each it checks. Those
# of depth and length are in check_kinds_depth.sh.
. "$PARE_ROOT/tests/cli/check_zoo.inc"
zoo
kinds_of $certificates
certificates=${certificates%% embed_mean*}
check_all
