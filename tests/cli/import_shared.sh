# Real foreign models become pare files; llama2.c's .bin and the safetensors of one model agree.
[ -n "$SHARED" ] || { echo "SKIP needs ../shared"; exit 77; }
d=$SHARED/data/models
for m in gpt_nano_sort stories260K bert_sst_3layer indhead_attn_only gt_minesweeper_d64_L4; do
    pare import -q $d/$m.safetensors -o $m.st >/dev/null || echo "$m: exit $?"
    pare info $m.st | grep -E '^(blocks|head|parameters)'
done
pare import -q $d/stories260K.bin --vocab $d/stories260K_tok512.bin -o bin.st >/dev/null
pare run -q bin.st --text "Once upon a" --tokens 0 | sed -n 4p
pare data random -q --vocab 512 --tokens 20 --count 2 -o x.npy
pare run -q bin.st --input x.npy -o a.npy >/dev/null
pare run -q stories260K.st --input x.npy -o b.npy >/dev/null
cmp a.npy b.npy && echo the same bits
pare eval gt_minesweeper_d64_L4.st --data $SHARED/data/graph/minesweeper.npz | grep auc
