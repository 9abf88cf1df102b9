# pare bench: the shape of its CSV and JSON, not the speed. Every figure is there, is a number, and
# is about a result that was checked.
pare bench --quick >all.csv
sed -n 's/^\(# [a-z]*:\).*/\1/p' all.csv
grep -c "^# command: pare bench --quick$" all.csv
grep -cE '^# date: [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$' all.csv
grep -qF "$(uname -n)" all.csv && echo "the host's name is in it"
grep -v '^#' all.csv | head -n 1
python3 - <<'EOF'
import csv, itertools
rows = list(csv.DictReader(l for l in open("all.csv") if not l.startswith("#")))
number = ["ours", "ours_median", "sgemm_gflops", "error"]
for r in rows:
    assert None not in r and None not in r.values(), r  # no column more, none less
    assert all(float(r[k]) >= 0 for k in number), r
    assert float(r["ours"]) > 0 and float(r["error"]) < 1e-3, r
    best, middle = float(r["ours"]), float(r["ours_median"])
    assert best <= middle if r["unit"] == "ms" else best >= middle, r
    assert not any(r[k] for k in ("peer", "peer_value", "peer_median", "ratio", "ratio_median")), r
    if r["unit"] == "Gflop/s":  # the share is that of the figures beside it, up to their digits
        share, sgemm = float(r["of_sgemm"]), float(r["sgemm_gflops"])
        assert abs(share * sgemm - best) <= 0.06 * share + 0.001 * sgemm, r
for name, some in itertools.groupby(rows, lambda r: r["name"]):
    some = list(some)
    if name == "generate": continue  # not in every build
    print(name, *sorted({r["unit"] for r in some}), "one thread first:", some[0]["threads"])
EOF

echo '- one name, one thread'
pare bench --quick -t 1 dense | grep -v '^#' | cut -d, -f1-4
echo '- three threads: one and three'
pare bench --quick -t 3 dense spectral | grep -v '^#' | cut -d, -f1-4
echo '- JSON has the same keys'
pare bench --quick --json dense -t 1 >d.json
python3 - <<'EOF'
import json
d = json.load(open("d.json"))
print(*d), print(*d["machine"]), print(*d["rows"][0])
print(d["rows"][0]["peer"], d["rows"][0]["ratio"], d["rows"][0]["ours"] > 0)
EOF
echo '- a graph of the user, whatever its size'
pare data minesweeper --side 5 -o board.npz -q
pare bench --quick -t 1 --graph board.npz forward | tail -n 1 | cut -d, -f1-4
pare bench --quick -t 1 --graph board.npz hash 2>&1 | head -n 1
pare bench --quick -t 1 --graph none.npz forward 2>&1 >/dev/null; echo "exit $?"
echo '- nothing is left behind'
mkdir tmp && TMPDIR=$PWD/tmp pare bench --quick forward >/dev/null && ls tmp

echo '- nor when it is told to stop'
TMPDIR=$PWD/tmp pare bench --full attention >told.csv 2>told.err &
for i in $(seq 600); do [ -n "$(ls tmp)" ] && grep -q ^name told.csv && break; sleep 0.1; done
kill -TERM $! && wait $!
echo "exit $?: $(cat told.err)" && ls tmp
exec 2>&1
pare bench nothing; echo "exit $?"
pare bench --quick --full; echo "exit $?"
TMPDIR=/nowhere pare bench --quick hash; echo "exit $?"
