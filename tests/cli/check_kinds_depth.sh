# pare-check agrees with certificates of depth and length, as check_kinds.sh has it of the others.
. "$PARE_ROOT/tests/cli/check_zoo.inc"
certificates=
zoo_models
zoo_depth
check_all
