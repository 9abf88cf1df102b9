# What pare width does not do: a reason, an exit code, and no file.
pare data minesweeper -q --side 8 -o g.npz
pare data model -q --kind graph -o m.st --dim 8 --heads 2
pare data model -q --kind bert -o b.st --dim 8 --heads 1 --layers 1 --context 8 --vocab 9
no() { pare width "$@" -q -o o.st 2>&1; echo "exit $?"; ls o.st* 2>/dev/null; }
no m.st --dim 4
no m.st --data g.npz
no m.st --data g.npz --dim 9
no m.st --data g.npz --dim 0
no m.st --data g.npz --method jl --dim 4
no m.st --data g.npz --method exact --dim 4
no m.st --data g.npz --method cluster --dim 4
no m.st --data g.npz --method nonsense --dim 4
no m.st --data g.npz --dim 4 --trials 0
no m.st --data g.npz --dim 4 --method lowrank --distill 5
no m.st --data g.npz --keep 1e-3
no m.st --data g.npz --dim 4 --keep 0
no m.st --data g.npz --dim 2 --max-error 1e-6
no m.st --data g.npz --max-error 1e-30
pare data random -q --count 2 --tokens 8 --vocab 9 -o i.npy
no b.st --data i.npy --dim 4
no m.st --data missing.npz --dim 4
# An output file that a certificate speaks of, changed in one byte.
pare width m.st --data g.npz --dim 4 -q -o o.st >/dev/null
printf 'x' | dd of=o.st bs=1 seek=900 conv=notrunc 2>/dev/null
pare verify o.st.cert.json 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'; echo "exit ${PIPESTATUS[0]}"
