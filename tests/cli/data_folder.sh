# A folder of data is the files that are read from it: no file beside one takes it out of the hash.
exec 2>&1
pare data model -q --kind graph -o m.st --dim 8 --heads 2
mkdir boards
for i in 1 2; do pare data minesweeper -q --side 8 --seed $i -o boards/b$i.npz; done
pare fold m.st --data boards -q -o f.st >/dev/null
pare verify f.st.cert.json -q | grep -oE '^verdict +[A-Z]+'
# What was not read does not matter.
echo '{}' >boards/b1.npz.cert.json
echo notes >boards/notes.txt
pare verify f.st.cert.json -q | grep -oE '^verdict +[A-Z]+'
# What was read does: labels of one board flipped, features and edges as before.
python3 - <<'PY'
import zipfile
with zipfile.ZipFile("boards/b1.npz") as z:
    parts = {n: bytearray(z.read(n)) for n in z.namelist()}
labels = parts["node_labels.npy"]
labels[-8] ^= 1
with zipfile.ZipFile("boards/b1.npz", "w") as z:
    for n, b in parts.items(): z.writestr(n, bytes(b))
PY
pare verify f.st.cert.json -q 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'; echo "exit ${PIPESTATUS[0]}"
pare data minesweeper -q -f --side 8 --seed 1 -o boards/b1.npz
pare verify f.st.cert.json -q | grep -oE '^verdict +[A-Z]+'
pare data minesweeper -q --side 8 --seed 3 -o boards/b3.npz
pare verify f.st.cert.json -q 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'; echo "exit ${PIPESTATUS[0]}"
