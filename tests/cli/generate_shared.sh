# A real model writes a story: the same for any number of threads, and in words that it knows.
[ -n "$SHARED" ] || { echo "SKIP needs ../shared"; exit 77; }
d=$SHARED/data/models
pare import -q $d/stories260K.bin --vocab $d/stories260K_tok512.bin -o s.st >/dev/null
for t in 1 2; do pare run s.st --text "Once upon a time" --seed 1 -q -t $t >story.$t; done
cmp story.1 story.2
head -n 1 story.1 | cut -c 1-40
# Coherent: many words, nearly all of them of the stories of the training text.
words() { tr -cs "A-Za-z'" '\n' <"$1" | tr 'A-Z' 'a-z' | grep . ; }
[ $(words story.1 | wc -l) -gt 100 ] && echo long enough
[ $(words story.1 | grep -cxE "a|the|and|to|was|he|she|it|they|in|of|said|with|his|her|day|one|not|you|had|is|that|play|little|saw") -gt 40 ] && echo English
# A story ends by itself before 5000 tokens do.
pare run s.st --text "Tom" --tokens 5000 --json -q | grep -oE '"stop": "[a-z]*"'
