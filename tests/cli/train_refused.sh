# What cannot be trained is refused before the first step, by name; nothing is written.
exec 2>&1
t() { echo "\$ pare train $*"; pare train "$@" 2>&1 | sed -E 's/^(result|model|data|schedule) .*/\1/; s/the loss is [0-9.e+-]+/the loss is X/'; echo "exit ${PIPESTATUS[0]}"; }
small="--dim 4 --layers 1 --heads 1 --epochs 2"
pare data minesweeper --side 10 -q -o b.npz
pare data sort --count 40 -q -o s.npz
python3 - <<'END'
import zipfile, io, struct
def npy(dtype, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
def graph(path, labels=None, feature=None, val=None, n=12):
    labels = labels or [i // 4 % 2 for i in range(n)]
    x = [float(i % 5) for i in range(2 * n)]
    if feature: x[feature[0]] = feature[1]
    masks = [[i % 4 < 2 for i in range(n)], val or [i % 4 == 2 for i in range(n)],
             [i % 4 == 3 for i in range(n)]]
    edges = [v for i in range(n - 1) for v in (i, i + 1)]
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("node_features.npy", npy("<f8", (n, 2), struct.pack("<%dd" % len(x), *x)))
        z.writestr("node_labels.npy", npy("<i8", (n,), struct.pack("<%dq" % n, *labels)))
        z.writestr("edges.npy", npy("<i8", (n - 1, 2), struct.pack("<%dq" % len(edges), *edges)))
        for name, m in zip(("train", "val", "test"), masks):
            z.writestr(name + "_masks.npy", npy("|b1", (1, n), bytes(m)))
graph("good.npz")
graph("nan.npz", feature=(9, float("nan")))
graph("label.npz", labels=[0, 1] * 5 + [1, 77])
graph("minus.npz", labels=[0, 1] * 5 + [1, -2])
graph("empty.npz", val=[False] * 12)
graph("single.npz", labels=[0, 0, 0, 1] * 3)
graph("same.npz", labels=[0] * 12)
END
echo "-- usage"
t --data b.npz -o m.st
t --kind banana --data b.npz -o m.st
t --kind graph -o m.st
t --kind graph --data b.npz
t --kind graph --data b.npz -o m.st --epochs 3 --steps 3
t --kind graph --data b.npz -o m.st --dim 6 --heads 4
t --kind graph --data b.npz -o m.st --expander 3
t --kind graph --data b.npz -o m.st --split 99
t --kind graph --data b.npz -o m.st --val b.npz
t --kind graph --data b.npz -o m.st --grid lr=fast
t --kind graph --data b.npz -o m.st --grid 'lr=1;lr=2'
t --kind graph --data b.npz -o m.st --epochs 3 --grid 'epochs=2'
t --kind graph --data b.npz -o m.st --hidden 1
t --kind gpt --data s.npz -o m.st --self-loops --steps 2
t --kind graph --data b.npz -o b.npz -f
t --kind graph --data b.npz -o m.st --log m.st
t --kind graph --data b.npz -o m.st --log ./m.st
t --kind graph --data b.npz -o ./m.st --log m.st.checkpoint-0-1
echo "-- data"
t --kind graph --data none.npz -o m.st
t --kind graph --data s.npz -o m.st
t --kind gpt --data b.npz -o m.st
t --kind encoder --data t.tsv -o m.st
head -c 50 /dev/zero >t.txt; cp t.txt t.pdf
printf 'sentence\tlabel\ngood\t1\nbad\n' >t.tsv
t --kind encoder --data t.tsv -o m.st
printf 'sentence\tlabel\ngood\t1\nbad\t0\n' >t.tsv
t --kind encoder --data t.tsv -o m.st
t --kind gpt --data t.tsv -o m.st
t --kind encoder --data t.txt -o m.st
t --kind encoder --data t.pdf -o m.st
for f in nan label minus empty single same; do t --kind graph --data $f.npz $small -o m.st; done
head -c 50 /dev/zero >t.txt
t --kind gpt --data t.txt -o m.st
t --kind gpt --data t.txt --window 8 --steps 5 --warmup 6 -o m.st
t --kind gpt --data t.txt --window 8 --steps 15 --warmup 20 -o m.st
echo "-- models"
pare data model --kind graph --features 2 --classes 3 --dim 4 --heads 1 -q -o three.st
pare data model --kind graph --features 5 --classes 2 --dim 4 --heads 1 -q -o five.st
t --kind graph --data good.npz --from five.st --epochs 1 -o m.st
t --kind graph --data good.npz --from three.st --dim 9 -o m.st
t --kind graph --data good.npz --teacher three.st $small -o m.st
echo "-- a run that diverges writes nothing, and spares what is there"
t --kind graph --data b.npz $small --lr 1e6 -o m.st
echo old >old.st
t --kind graph --data b.npz $small -o old.st
t --kind graph --data b.npz $small --lr 1e6 -f -o old.st
cat old.st
echo "-- a checkpoint is not lost by forgetting --resume"
echo x >m.st.checkpoint
t --kind graph --data b.npz $small -o m.st
t --kind graph --data b.npz $small --resume -o m.st
rm m.st.checkpoint
echo "-- nor is it taken for that of another run, which is told by what was said"
pare train --kind graph --data b.npz --dim 4 --layers 1 --epochs 9999999 --keep-every 1 -q -o m.st >/dev/null &
for _ in $(seq 6000); do [ -e m.st.checkpoint ] && break; sleep 0.01; done
{ kill -9 $!; wait $!; } 2>/dev/null # bash may speak of it in either
for w in "--seed 3" "--lr 0.5" "--epochs 5" "--dim 8" "--layers 2" "--ffn 3" "--split 1"; do
    as_before=$(echo "--dim 4 --layers 1 --epochs 9999999" | sed "s/${w% *} [0-9]*//")
    t --kind graph --data b.npz $as_before $w --resume -o m.st
done
rm m.st.checkpoint*
echo "-- a log of something else is not gone on with"
echo notes >notes.csv
printf 'more' >>notes.csv
t --kind graph --data b.npz $small --resume -o m.st --log notes.csv
cat notes.csv; echo
ls
