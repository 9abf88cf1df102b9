# Edge-popup: the same bytes for any number of threads, a small file that runs like any model, and
# what does not fit is refused before anything is written.
exec 2>&1
seq 1 3000 | tr '\n' ' ' >t.txt
small="--kind gpt --data t.txt --dim 16 --layers 1 --heads 2 --window 16 --batch 4 --steps 20 --eval-tokens 64"
find_mask() { # name, words: with one thread and with two
    local name=$1
    shift
    pare train $small --popup "$@" -t 1 -q -o $name.1.st >$name.out || cat $name.out
    pare train $small --popup "$@" -t 2 -q -o $name.2.st >/dev/null
    cmp $name.1.st $name.2.st
    # where the ones are depends on the CPU, and with it the last byte
    [ $(stat -c %s $name.1.st) -lt 3300 ] && echo "$name: small, $(grep -c "^result" $name.out) kept"
}
find_mask plain
find_mask all --keep 1
find_mask few --keep 0.05 --qk-scale 1
find_mask signs --source signed --qk-scale 4 --seed 7
find_mask two --runs 2
pare info plain.1.st | grep -E '^(model|parameters|bytes)'

echo "-- a ticket is a model"
pare import plain.1.st -q -o dense.st | grep -E 'wrote|check'
for f in plain.1.st dense.st; do pare eval $f --data t.txt | grep -v model >$f.eval; done
diff <(grep nats plain.1.st.eval) <(grep nats dense.st.eval) && grep -c nats dense.st.eval
python3 - dense.st <<'END'
import json, struct, sys
b = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", b[:8])[0]
for name, t in sorted(json.loads(b[8:8 + n]).items()):
    if name == "__metadata__": continue
    a, z = t["data_offsets"]
    v = struct.unpack(f"<{(z - a) // 4}f", b[8 + n + a:8 + n + z])
    print(name, len(v), sum(x != 0 for x in v))
END
head -c 2000 plain.1.st >cut.st
pare info cut.st 2>&1 >/dev/null | grep -c 'reach beyond'

echo "-- refused"
try() { # the second line says how the command is used
    pare train --kind gpt --data "${data:-t.txt}" -o x.st "$@" 2>&1 >/dev/null | grep -v ^usage
    echo "exit ${PIPESTATUS[0]}"
}
try --popup --keep 0
try --popup --keep 1.5
try --popup --keep 1e-20
try --keep 0.3
try --qk-scale 2
try --source signed
try --popup --qk-scale much
try --popup --from plain.1.st
for o in --popup "--preset gpt2-mini"; do pare train --kind encoder --data t.txt -o x.st $o 2>&1 | head -1; done
try --preset gpt3
: >empty.txt
data=empty.txt try --popup
echo short >short.txt
data=short.txt try --popup
[ -z "$(ls | grep ^x)" ] && echo "nothing is left"
