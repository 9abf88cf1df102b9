# all-MiniLM-L6-v2 in f16 and stories15M through every command, as somebody would who meets them for
# the first time: what each command ends with, and every message on the way.
python=/usr/bin/python3
models=$($PARE_ROOT/tools/get-models minilm stories15M) || { echo "$models" | grep SKIP; exit 77; }
{ read -r minilm; read -r stories; } <<<"$models"
cp -rL "$minilm" minilm
ln -s "$stories" s15.bin
# Lines of our documents: sentences for one, documents for the other.
cat "$PARE_ROOT"/docs/*.md | grep -E '^[A-Za-z][a-z]+ [a-z].{30,120}[a-z.]$' | head -n 160 >lines.txt
awk 'NR % 3 == 1 && NR > 1 {print ""} {print}' lines.txt | head -n 90 >texts.txt
step() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >out.txt 2>err.txt </dev/null
    echo "$name: exit $?"
    grep -vE '^pare plan: .* bytes, .* error|: proving |^ *$' err.txt | sed -E "s/^pare [a-z]+: //; s/[0-9]([0-9.,]*[0-9])?/N/g" >>said.txt
}
said() { # every message once
    sort -u said.txt | sed 's/^/  said: /'
    rm said.txt
}
line() { grep -E "$1" out.txt | sed -E 's/[0-9]([0-9.,]*[0-9])?(e[-+]?[0-9]+)?/N/g'; }
verify() {
    step "verify $1" pare verify "$1"
    sed -nE '1s/^(verdict +[A-Z]+).*/  \1/p' out.txt
}
smaller() { # OUT IN: bytes of the files
    [ "$(du -bsL "$1" | cut -f1)" -lt "$(du -bsL "$2" | cut -f1)" ] && echo "  fewer bytes" || echo "  NOT FEWER BYTES"
}
echo "# all-MiniLM-L6-v2"
how="--pool mean --normalize"
few="$how --data lines.txt --prove 2 --tokens 12"
step info pare info minilm
step import pare import minilm $how -o mini.safetensors
step probe pare probe minilm $how --data lines.txt --part length
step run pare run minilm $how --text "A cat sat on the mat."
line '^embedding' | sed 's/ -*N.*//'
step "eval without a reference" pare eval minilm $how --data lines.txt
step fold pare fold minilm $few -o folded/
step "eval of the fold" pare eval folded $how --data lines.txt --reference minilm
line '^cosine'
step width pare width minilm $few --keep 88% -o narrow/
smaller narrow minilm
$python - <<'P'
import json, os, struct
def tensors(path):
    with open(path, "rb") as f:
        h = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    h.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"]) for k, v in h.items()}
was, now = tensors("minilm/model.fp16.safetensors"), tensors("narrow/model.safetensors")
c, d = json.load(open("minilm/config.json")), json.load(open("narrow/config.json"))
h, g = c.pop("intermediate_size"), d.pop("intermediate_size")
print("  config: other sizes alone", c == d and g < h)
want = {k: (t, [g if n == h else n for n in s]) for k, (t, s) in was.items()}
print("  tensors: as the config implies", want == now, sorted({t for t, _ in now.values()}))
open_ = ["modules.json", "config.json", "model.safetensors", "tokenizer.json", "sentence_bert_config.json", "1_Pooling/config.json"]
print("  missing:", [f for f in open_ if not os.path.isfile("narrow/" + f)])
print("  tokenizer: as it was", open("minilm/tokenizer.json", "rb").read() == open("narrow/tokenizer.json", "rb").read())
P
step "run of the cut" pare run narrow --data lines.txt -o e.npy
step depth pare depth minilm $few --blocks 5 -o short/
smaller short minilm
step "ticket as a folder" pare ticket minilm $few --bits 2 -o ticket/
step ticket pare ticket minilm $few --method feedback --bits 6 --stored 2 -o ticket.safetensors
smaller ticket.safetensors minilm
step quant pare quant minilm $few --bits 8 -o q.safetensors
smaller q.safetensors minilm
step length pare length minilm --tokens 512 --oracle 128 -o plan.json
step "run of the plan, too short a text" pare run minilm $how --plan plan.json --text "A cat sat on the mat."
step plan pare plan minilm $few --max-bytes 42.5M --directions depth --mixtures 0 -o planned/
smaller planned minilm
for of in folded narrow short ticket.safetensors planned; do verify $of; done
step "export to ONNX" pare export narrow -o narrow.onnx
step "export to a folder" pare export narrow -o again/
cmp narrow/model.safetensors again/model.safetensors
step report pare report folded narrow short planned ticket.safetensors.cert.json -o r.html
$python - <<'P'
page = open("r.html").read()
print("  report:", all(w in page for w in ("narrow", "folded", "short", "planned", "ticket")), page.count("<section") > 4, "REFUSED" in page)
P
said
echo "# stories15M"
few="--data texts.txt --prove 1 --tokens 8"
step info pare info s15.bin
step "run without a tokenizer" pare run s15.bin --text "Once upon a time"
tail -c +60816029 "$(dirname "$stories")/dist/llama2.data" >tokenizer.bin
step import pare import s15.bin --vocab tokenizer.bin -o s15.safetensors
step probe pare probe s15.safetensors --data texts.txt --part length
step run pare run s15.safetensors --text "Once upon a time" --tokens 8
step eval pare eval s15.safetensors --data texts.txt
line '^(perplexity|held)'
step fold pare fold s15.safetensors $few -o sf.safetensors
step width pare width s15.safetensors $few --fit-tokens 32 --keep 90% -o sw.safetensors
smaller sw.safetensors s15.safetensors
step "eval of the cut" pare eval sw.safetensors --data texts.txt --reference s15.safetensors
step depth pare depth s15.safetensors $few --fit-tokens 32 --layers 5 --kind zero -o sd.safetensors
smaller sd.safetensors s15.safetensors
step ticket pare ticket s15.safetensors $few --method feedback --bits 6 --stored 2 -o st.safetensors
smaller st.safetensors s15.safetensors
step quant pare quant s15.safetensors $few --bits 8 -o sq.safetensors
step length pare length s15.safetensors --tokens 256 --oracle 64 -o splan.json
step plan pare plan s15.safetensors $few --max-bytes 59M --directions depth --mixtures 0 -o sp.safetensors
for of in sf sw sd st sp; do verify $of.safetensors; done
step "export to ONNX" pare export sw.safetensors -o sw.onnx
step "export to a folder" pare export sf.safetensors -o sfolder/
step report pare report s*.cert.json -o s.html
said
