# --max-error is compared with the proven bound; a promise that cannot be kept writes nothing.
pare data model -q -o m.st --dim 16 --heads 2 --layers 1 --context 4
pare fold m.st -o f.st --max-error 0; echo "exit $?"
ls
pare fold m.st -q -o f.st --max-error 1e-3 >/dev/null; echo "exit $?"
ls
