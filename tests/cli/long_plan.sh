# Three budgets of each kind on both bundled models.
pare data sort --count 100 --length 6 --symbols 3 --seed 1 -q -o sort.npz >/dev/null
pare data minesweeper --side 24 --seed 1 -q -o board.npz >/dev/null
kept() { # budget file limit: the promise, from the certificate and the file
    python3 - "$@" <<'PY'
import json, os, sys
kind, path, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
chain = path + ".chain.cert.json"
cert = json.load(open(chain if os.path.exists(chain) else path + ".cert.json"))
seen = {"eps": cert["proven"], "bytes": os.path.getsize(path)}[kind]
print(kind, "kept" if seen <= limit else f"broken: {seen}")
PY
}

all() { # name data, then budgets of bytes, eps, ms
    model=$PARE_ROOT/models/$1.safetensors data=$2
    for b in $3; do pare plan $model --data $data --max-bytes $b -q -f -o p.st >/dev/null; echo "exit $?"; kept bytes p.st $b; rm -f p.st*; done
    for e in $4; do pare plan $model --data $data --eps $e -q -f -o p.st >/dev/null; echo "exit $?"; kept eps p.st $e; rm -f p.st*; done
    for t in $5; do pare plan $model --data $data --max-ms $t -q -f -o p.st >/dev/null; echo "exit $?"; rm -f p.st*; done
}
all sort sort.npz "300000 150000 100000" "0.005 0.05 0.5" "100 200 300"
all minesweeper board.npz "200000 50000 20000" "0.01 0.5 2" "100 200 300"
# Tickets alone: bytes that no narrower model of this accuracy reaches.
pare plan $PARE_ROOT/models/sort.safetensors --data sort.npz --ways ticket --max-bytes 180000 -q -o seed.st | grep -oE '^chosen +ticket'
kept bytes seed.st 180000
