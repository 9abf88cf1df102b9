# What is seen is called so and not made smaller; what is printed of a bound is on its safe side.
pare data minesweeper -q --side 8 -o g.npz
pare data model -q --kind graph -o m.st --dim 8 --heads 2
# A numerical rank is an observation with its tolerance, not a hypothesis that holds.
pare width m.st --data g.npz --method exact -q -o e.st >/dev/null
python3 - <<'PY'
import json
c = json.load(open("e.st.cert.json"))
ranks = [o for o in c["observations"] if o["kind"] == "stream.rank"]
print(len(ranks) > 0, all(o["parameters"]["rank_tolerance"] == 1e-9 for o in ranks),
      any("rank" in h["kind"] for h in c["hypotheses"]))
PY
# An output bias of 1e10 hides no error of a row.
pare data model -q --kind bert -o p.st --dim 8 --heads 2 --layers 1 --context 4 --vocab 9 --classes 3
python3 - <<'PY'
import json, struct
data = bytearray(open("p.st", "rb").read())
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + n])
a, b = head["head.out.bias"]["data_offsets"]
data[8 + n + a:8 + n + b] = struct.pack("<f", 1e10) * ((b - a) // 4)
open("b.st", "wb").write(data)
PY
pare depth b.st --kind uniform --layers 0 -q -o d.st >/dev/null; echo "exit $?"
python3 - <<'PY'
import json
c = json.load(open("d.st.cert.json"))
row = [o["value"] for o in c["observations"] if o["kind"] == "row_error"][0]
print(c["headline"]["measured"] > 1e-6, row >= c["headline"]["measured"] * 0.5)
PY
pare verify d.st.cert.json -q | grep -oE '^verdict +[A-Z]+'
# Every bound that verify prints is on the safe side of the one in the file.
pare width m.st --data g.npz --dim 4 -q -o w.st >/dev/null
for i in 1 2 3; do pare data minesweeper -q --side 8 --seed $i -o h$i.npz; done
mkdir boards && mv h?.npz boards
pare width m.st --data g.npz --heldout boards --dim 4 -q -o n.st >/dev/null
python3 - <<'PY'
import json, re, subprocess
seen = 0
for name in ("w.st", "n.st"):
    c = json.load(open(name + ".cert.json"))
    said = subprocess.run(["pare", "verify", name + ".cert.json", "-q", "-v"], capture_output=True, text=True).stdout
    for t in c["theorems"]:
        side = "least" if t["side"] == "lower" else "most"
        for line in said.splitlines():
            m = re.fullmatch(r"theorem +holds +" + re.escape(t["sentence"]) + ": at " + side + r" ([^ ,]+)(, with probability ([0-9.]+))?", line)
            if not m: continue
            x = float(m[1])
            safe = x <= t["bound"] if t["side"] == "lower" else x >= t["bound"]
            if not safe or (m[3] and float(m[3]) > t["probability"]): print("unsafe:", line, t)
            seen += 1
print(seen > 10)
PY
