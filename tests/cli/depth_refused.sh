# What pare depth does not do: a reason, an exit code, and no file.
. "$PARE_ROOT/tests/cli/digits.inc"
pare data model -q --kind gpt -o m.st --dim 8 --heads 2 --layers 2 --context 8 --vocab 9
pare data random -q --count 4 --tokens 8 --vocab 9 -o t.npy
no() { pare depth "$@" -q -o o.st 2>&1; echo "exit $?"; ls o.st* 2>/dev/null; }
no m.st
no m.st --layers 3 --data t.npy
no m.st --layers 1
no m.st --layers 0 --kind linear
no m.st --layers 0 --kind nonsense --data t.npy
no m.st --layers 0 --kind meanq --data t.npy
no m.st --exact 0,0 --kind zero
no m.st --exact 5 --kind zero
no m.st --exact 0,x --kind zero
no m.st --exact 0,1 --layers 1 --kind zero
no m.st --layers 0 --kind zero --heldout t.npy
no m.st --layers 0 --kind zero --max-error 1e-9 | digits
no m.st --one-layer nonsense
no m.st --one-layer uniform
no m.st --one-layer uniform --layers 0
no missing.st --layers 0 --kind zero
no m.st --layers 0 --kind zero --data missing.npy
pare data random -q --count 2 --tokens 4 --vocab 30 -o far.npy
no m.st --layers 0 --kind linear --data far.npy
# Beside --one-layer nothing is left to choose; a ball and a diameter are finite.
no m.st --one-layer uniform --kind pool
no m.st --one-layer uniform --select loo
no m.st --layers 0 --kind zero --ball inf
no m.st --layers 0 --kind zero --input-diam inf
# A byte of the output changed.
pare depth m.st --layers 0 --kind uniform -q -o o.st >/dev/null
printf 'x' | dd of=o.st bs=1 seek=900 conv=notrunc 2>/dev/null
pare verify o.st.cert.json 2>&1 | sed -E 's/[0-9a-f]{12}\.\.\./H/g'; echo "exit ${PIPESTATUS[0]}"
