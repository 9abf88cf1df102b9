# Hugging Face folders that pare refuses, each with the file and the key; and what it reads with a word.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
mkdir f && $python $PARE_ROOT/tests/peers/families.py refused f >cases || { cat cases; exit 1; }
for name in $(cat cases); do
    pare info f/$name >out 2>said
    echo "$name: exit $?" $(grep -E '^pattern' out)
    sed 's/^/    /' said
done
