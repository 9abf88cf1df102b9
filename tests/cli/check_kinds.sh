# pare-check agrees with a certificate of every kind: nothing is refuted; how much of each it checks.
. "$PARE_ROOT/tests/cli/check_zoo.inc"
zoo
kinds_of $certificates
for c in $certificates; do
    check $c >out.txt 2>err.txt
    echo "$c: exit $?, $(verdicts out.txt)"
    grep '^REFUTED' out.txt
    head -n 3 err.txt
done
