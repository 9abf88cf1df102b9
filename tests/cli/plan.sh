# One budget over the directions: bytes, proven error, time; what cannot be met is exit 3 and leaves
# nothing; a chain of cuts has one certificate that verifies.
pare data random --count 24 --tokens 12 --vocab 8 --seed 1 -q -o ids.npy >/dev/null
pare data model --dim 16 --heads 2 --layers 2 --vocab 8 --context 12 --seed 1 -q -o m.st >/dev/null
plan() { pare plan m.st --data ids.npy --directions width,depth --mixtures 3 -q "$@"; }
kept() { # budget file limit: the promise, from the certificate and the file
    python3 - "$@" <<'PY'
import json, os, sys
kind, path, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
chain = path + ".chain.cert.json"
cert = json.load(open(chain if os.path.exists(chain) else path + ".cert.json"))
seen = {"eps": cert["headline"]["proven"], "bytes": os.path.getsize(path)}[kind]
print(kind, "kept" if seen <= limit else f"broken: {seen}")
PY
}
# Both at once, and a certificate of the result that verifies.
plan --max-error 3 --max-bytes 24000 --json -o both.st >plan.json
kept bytes both.st 24000
kept eps both.st 3
pare verify both.st.cert.json -q | grep -oE '^verdict +[A-Z]+'
# What was chosen is the smallest of all that keep the promise.
python3 - <<'PY'
import json
p = json.load(open("plan.json"))
fits = [t for t in p["tries"] if t.get("fits")]
best = next(t for t in p["tries"] if t["cut"] == p["chosen"])
print("smallest of all" if best["bytes"] == min(t["bytes"] for t in fits) else (best, fits))
print(len([t for t in p["tries"] if "," in t["cut"]]), "mixtures")
PY
plan --directions height -o x.st --max-error 1; echo "exit $?"
# Impossible: exit 3, the nearest is told, nothing is left behind.
mkdir none
plan --max-error 1e-12 --max-bytes 1000 -o none/x.st >/dev/null; echo "exit $?"
ls none | wc -l
plan -o none/x.st; echo "exit $?"
plan --max-bytes 20000 -o both.st >/dev/null; echo "exit $?"
# Of a bundled model, by one direction: a budget of each kind.
. $PARE_ROOT/tests/cli/plan_budgets.inc
pare data minesweeper --side 10 --seed 1 -q -o board.npz >/dev/null
budgets $PARE_ROOT/models/minesweeper.safetensors board.npz 50000 0.5 0.5 --directions width --mixtures 0
# What is measured in place of what is proven.
plan --max-error 3 --measured -f -o seen.st --json >seen.json
python3 -c '
import json
p = json.load(open("seen.json"))
print(p["certificate"]["measured"] <= 3)'
# Beside the model everything that it would write over is asked about first.
touch other.st.chain.cert.json
plan --max-error 3 -o other.st; echo "exit $?"
ls other.st*
# -f: what cannot be met leaves what was there, also where a cut was made whose proof is a little
# more than what was measured; what can be met replaces it.
mkdir old && for t in "" .cert.json .run.json; do cp both.st$t old/b.st$t; done && cp -r old new
tight=$(python3 -c 'import json
t = min((t for t in json.load(open("plan.json"))["tries"] if t.get("fits")), key=lambda t: t["bytes"])
print("--max-error", t["error"] * (1 + 1e-9), "--max-bytes", t["bytes"] + 200)')
plan $tight --mixtures 0 -f -o new/b.st 2>/dev/null | grep -c " met"; echo "exit ${PIPESTATUS[0]}"
plan --max-error 1e-12 --max-bytes 1000 -f -o new/b.st >/dev/null 2>&1; echo "exit $?"
diff -r old new && echo "as it was"
plan --max-bytes 20000 -f -o new/b.st >/dev/null 2>&1; echo "exit $?"
ls new | sed 's/[0-9]*-[0-9]*.tmp/left/'
cmp -s old/b.st new/b.st || echo "another one"
# What a killed run has set aside goes with the next one that comes true; of a living one it stays.
touch new/b.st.chain.cert.json.999999999-1000.tmp new/b.st.step1.$$-1000.tmp
plan --max-bytes 20000 --mixtures 0 -f -o new/b.st >/dev/null 2>&1; echo "exit $?"
ls new | sed 's/[0-9]*-[0-9]*.tmp/left/'
