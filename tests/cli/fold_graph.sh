# A graph transformer on its own data: batch norms disappear, the metric is told before and after.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind graph -o m.st --dim 16 --heads 2 --layers 1
pare data minesweeper -q --side 6 -o g.npz
mask() { sed -E 's/^(speed +).*/\1N/; s/^(ms[ a-z]*) .*/\1 N/; s/[0-9a-f]{12}\.\.\./H/' | digits; }
mkdir out
pare fold m.st --data g.npz -q -o out/f.st | mask
pare info out/f.st | grep blocks
pare verify out/f.st.cert.json | grep -E '^(verdict|input|data)' | mask
# Paths in the certificate are seen from its folder.
(cd out && pare verify f.st.cert.json | grep -oE '^verdict +[A-Z]+')
mv g.npz h.npz && mv m.st n.st
pare verify out/f.st.cert.json 2>&1; echo "exit $?"
pare verify out/f.st.cert.json --input n.st --data h.npz | grep -oE '^verdict +[A-Z]+'
# Where the f32 engine overflows there is no metric, but the fold is whole.
pare data model -q --kind graph -o wild.st --dim 8 --heads 2 --layers 4 --sigma 1e6
pare fold wild.st --data h.npz -o w.st 2>&1 >/dev/null | sed 's/-nan/nan/'; echo "exit ${PIPESTATUS[0]}"; ls w.st*
# Inputs without targets: a certificate about them, and no metric.
pare data model -q --kind bert -o b.st --dim 8 --heads 1 --layers 1 --context 8 --vocab 9
python3 - <<'PY'
import struct, zipfile
head = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 8), }"
head += " " * (-(10 + len(head) + 1) % 64) + "\n"
npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
npy += struct.pack("<16q", *[i % 9 for i in range(16)])
with zipfile.ZipFile("i.npz", "w") as z:
    z.writestr("inputs.npy", npy)
PY
pare fold b.st --data i.npz -o c.st 2>&1 | grep -E '^(quality|model)|^ +on '; echo "exit ${PIPESTATUS[0]}"; ls c.st*
pare verify c.st.cert.json | grep -oE '^verdict +[A-Z]+'
