# What a model is, for each kind; equal blocks are told once.
m() { pare data model -q -o "$@"; }
m gpt.st --dim 32 --layers 3
m llama.st --kind llama --dim 32
m bert.st --kind bert --dim 32 --classes 3
m graph.st --kind graph --dim 32
for k in gpt llama bert graph; do pare info $k.st | sed '/^bytes/d'; echo; done
pare info graph.st --tokens 10 --edges 30 | tail -n 1
pare info gpt.st --tokens=1 | tail -n 1
pare info -- gpt.st | head -n 1
pare info gpt.st -v | sed -nE '/^tensors/,$s/[0-9a-f]{64}/HASH/p' | head -n 4
pare info gpt.st --json | grep -oE '^.{21}|"(parameters|bytes|macs|tokens|context|vocab)": [0-9]+|"heads": 4'
pare info gpt.st --json -v | grep -o '"name": "[a-z0-9._]*", "dtype": "F32", "shape": [^]]*], "sha256": "[0-9a-f]*"' | wc -l
pare info gpt.st --json | wc -l
[ "$(pare info gpt.st --json | grep -o '[0-9a-f]\{64\}')" = "$(sha256sum <gpt.st | cut -c 1-64)" ] && echo same hash
pare info gpt.st | grep -c "$(printf '\033')"
pare info gpt.st >/dev/full; echo "full disk: exit $?"
