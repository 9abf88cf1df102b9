# --attention poly: what it does in each layer is on stderr, and the result is within its tolerance.
s='s/[0-9.]* ms/* ms/; s/from .* to .*/from * to */; s/, [0-9]* threads/, * threads/'
t='s/proven error [0-9.e-]*/proven error */; s/[0-9]* of 8000 rows/* of 8000 rows/; s/up to [0-9.]*/up to */'
pare data model -q -o bert.st --kind bert --dim 16 --heads 2 --layers 2 --context 4000 --sigma 0.06
pare data random -q -o long.npy --count 1 --tokens 4000
pare data random -q -o short.npy --count 1 --tokens 40
pare run bert.st --input long.npy --attention poly --tol 1e-2 -o y.npy 2>&1 | sed "$s; $t"
pare run bert.st --input long.npy --attention poly --tol 1e-2 -q --json | grep -o '"polynomial": 2' | wc -l
pare run bert.st --input short.npy --attention poly 2>&1 | sed "$s"
pare run bert.st --input short.npy --attention exact 2>&1 | sed "$s"
pare run bert.st --input short.npy --attention poly --f64; echo "exit $?"
pare run bert.st --input short.npy --attention poly --tol 0; echo "exit $?"
pare run bert.st --input short.npy --attention linear; echo "exit $?"
