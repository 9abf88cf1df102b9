# A model goes through import unchanged, with a vocabulary inside when one is given.
pare data model -q -o m.st --dim 16 --heads 2 --layers 1 --vocab 5 --context 8
pare import m.st -o n.st
cmp m.st n.st
printf '[PAD]\n[CLS]\n[SEP]\ngood\nbad\n' >words.txt
pare import m.st --vocab words.txt -o w.st | sed 's/^wrote .*/wrote/'
pare run w.st --text "good bad" --tokens 0 | head -n 2 | sed 's/from .*/from *.../'
pare info w.st | grep tokenizer
pare import m.st --json -qf -o n.st | grep -oE '"(command|seed|threads|input|output|path|sha256|parameters|bytes|macs)"' | sort | uniq -c
exec 2>&1
printf 'a\nb\nc\nd\ne\nf\n' >six.txt
pare import m.st --vocab six.txt -o x.st; echo "exit $?"
: >empty.txt
pare import m.st --vocab empty.txt -o x.st; echo "exit $?"
pare import m.st --vocab none.txt -o x.st; echo "exit $?"
pare import words.txt -o x.st; echo "exit $?"
ls
