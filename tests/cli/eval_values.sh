# Mean squared error of values: pare eval on a file finds what pare train said of it.
pare data angular -q --count 200 --tokens 6 --seed 1 -o train.npz
pare data angular -q --count 200 --tokens 6 --seed 2 -o val.npz
pare data angular -q --count 200 --tokens 6 --seed 3 -o test.npz
pare train --kind encoder --data train.npz --val val.npz --test test.npz --dim 8 --heads 2 --layers 1 --steps 30 -q --json -o m.st |
    grep -oE '"test": 0\.[0-9]{5}' | sort -u | sed 's/.* //' >said
pare eval m.st --data test.npz --json >e.json
grep -oE '"name": "mse"' e.json
grep -oE '"value": 0\.[0-9]{5}' e.json | sed 's/.* //' | cmp - said && echo "as it was said"
pare eval m.st --data test.npz --reference m.st | sed -E 's/[0-9.]+ mean/N mean/; s/^time .*/time/'
pare eval m.st --data test.npz --reference m.st --json | grep -cE '"kl"'
pare data model -q -o gpt.st --dim 16 --heads 2 --layers 1 --context 16
pare eval gpt.st --data test.npz 2>&1; echo "exit $?"
