# Weights as a path through a random table: the same file from ticket and quant, for any number of threads; verify; what
# is refused.
pare data model --kind gpt --dim 24 --heads 2 --layers 1 --vocab 40 --ffn 48 --seed 3 -q -o m.st >/dev/null
yes 'abcabdab' | head -n 30 | tr -d '\n' | fold -w 20 > t.txt

pare ticket m.st --method trellis --bits 2.625 -q -t 1 -o a.st | grep -E '^cut|bits a weight'
pare quant m.st --method trellis --bits 2.625 -q -t 2 -o b.st >/dev/null
cmp a.st b.st && echo same file
pare verify a.st -q | head -n 1 | cut -c 1-18
pare quant m.st --method trellis --bits 2.625 --seed 1 -q -o c.st >/dev/null
cmp -s a.st c.st || echo another seed, another file

# with fewer states, and under a budget: the file keeps it
pare quant m.st --method trellis --state-bits 11 --max-bytes 8k -q -o d.st | grep '^cut'
test $(wc -c < d.st) -le 8000 && echo within 8000 bytes
pare verify d.st -q | head -n 1 | cut -c 1-18

# weights as numbers again: the same model
pare import a.st -q -o plain.st | grep '^check'

# refused
pare quant m.st --method trellis --bits 2.6 -o x.st; echo $?
pare quant m.st --method trellis --bits 7 -o x.st; echo $?
pare quant m.st --method trellis --bits 3 --group 32 -o x.st; echo $?
pare quant m.st --method gptq --bits 3 --state-bits 12 -o x.st; echo $?
pare ticket m.st --method trellis -o x.st; echo $?
pare ticket m.st --method trellis --bits 3 --stored 2 -o x.st; echo $?
pare ticket m.st --bits 2.5 -o x.st; echo $?
pare quant m.st --method trellis --max-bytes 2k -o x.st; echo $?

# a bit of the path that is turned has another checksum; with a true one it is another model
python3 - <<'PY'
import json, struct, zlib
d = bytearray(open("a.st", "rb").read())
n = struct.unpack("<Q", d[:8])[0]
t = json.loads(d[8:8 + n])["blocks.0.attn.wq.ticket"]["data_offsets"]
at, end = 8 + n + t[0], 8 + n + t[1]
d[end - 8] ^= 1
open("bit.st", "wb").write(d)
d[end - 4:end] = struct.pack("<I", zlib.crc32(d[at:end - 4]))
open("turned.st", "wb").write(d)
PY
pare info bit.st 2>&1 | sed -E "s/(says|bytes) [0-9a-f]{8}/\1 H/g"
pare verify a.st.cert.json --output turned.st -q 2>&1 | head -n 1 | sed -E "s/[0-9a-f]{12}\.\.\./H/g"
ls x.st* 2>/dev/null || echo nothing written
