# A language model goes on with a text: options, stops, several texts, JSON.
r='s/[0-9,]* tokens\/s/* tokens\/s/g'
pare data model -q -o gpt.st --dim 32 --heads 2 --layers 2 --context 24
pare data model -q -o llama.st --kind llama --dim 32 --heads 4 --layers 2 --context 24
pare data model -q -o bert.st --kind bert --dim 16 --heads 2 --layers 1
# What is asked for, and no more; then the speed on stderr.
pare run gpt.st --text hello --tokens 5 >out 2>err; head -c 5 out; echo; sed "$r" err
pare run gpt.st --text hello --tokens 30 2>&1 >/dev/null | sed "$r"
# Same seed, same text, any number of threads; another seed, another text.
for m in gpt llama; do
    for t in 1 2; do pare run $m.st --text hello -q --seed 3 -t $t >$m.$t; done
    cmp $m.1 $m.2
    pare run $m.st --text hello -q --seed 4 | cmp -s - $m.1 || echo differs
done
# Greedy is the top of the table of one pass, and takes no seed.
pare run gpt.st --text hello -q --temperature 0 --tokens 1 --json --seed 1 | grep -o '"ids": [^]]*]'
pare run gpt.st --text hello -q --temperature 0 --tokens 1 --json --seed 2 | grep -o '"ids": [^]]*]'
pare run gpt.st --text hello -q --top-p 1e-6 --tokens 1 --json --seed 9 | grep -o '"ids": [^]]*]'
pare run gpt.st --text hello --tokens 0 --json | grep -o '"next": .{"id": [0-9]*'
# Several texts: each as it would be alone, in order.
printf 'hello\r\n\nworld' >two.txt
for p in hello world; do pare run gpt.st --text $p -q --json | grep -o '"ids": [^]]*]'; done >alone
pare run gpt.st --text hello --text world -q --json | grep -o '"ids": [^]]*]' | cmp - alone
pare run gpt.st --prompts two.txt -q --json | grep -o '"ids": [^]]*]' | cmp - alone
printf hello | pare run gpt.st --text - -q --json | grep -o '"ids": [^]]*]' | cmp - <(head -n 1 alone)
# More texts than go together, of all lengths: none depends on the others or on the threads.
for i in $(seq 60); do printf '%.*s\n' $((i % 19 + 1)) "text $i and other words"; done >many.txt
tac many.txt >back.txt
ids() { pare run llama.st "$@" -q --json | grep -o '"ids": [^]]*]'; }
ids --prompts many.txt -t 1 >many.ids
wc -l <many.ids
ids --prompts back.txt -t 2 | tac | cmp - many.ids
for i in 1 24 25 60; do ids --text "$(sed -n ${i}p many.txt)" | cmp - <(sed -n ${i}p many.ids); done
pare run llama.st --prompts many.txt -q --tokens 2 | grep -c '^text'
pare run gpt.st --prompts two.txt -q --tokens 3 | grep -cE '^(hello|world)'
pare run gpt.st --prompts two.txt -q --json | grep -oE '"[a-z_]+":|"stop": "[a-z]*"' | tr '\n' ' '; echo
# Always UTF-8 without control characters, whatever the model says.
pare run gpt.st --text hello -q --temperature 5 --top-p 1 | iconv -f utf-8 -t utf-8 | tr -d '\t\n' | grep -cP '[\x00-\x1f\x7f]'
pare run bert.st --text hello | head -n 3 | tail -n 1
exec 2>&1
t() { echo "\$ pare $*"; pare "$@"; echo "exit $?"; }
t run bert.st --text hello --tokens 5
t run bert.st --text hello --text world
t run gpt.st --text hello --tokens 5 -o y.npy
t run gpt.st --prompts two.txt --tokens 0
t run gpt.st --prompts two.txt --text a
t run gpt.st --prompts none.txt
t run gpt.st --input x.npy --tokens 5
t run gpt.st --text hello --top-p 0
t run gpt.st --text hello --temperature -1
t run gpt.st --text "a text that is longer than the context of the model"
pare run gpt.st --text hello -q >/dev/full; echo "exit $?"
