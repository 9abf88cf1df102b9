# Hugging Face folders that pare refuses, each with the file and the key; and what it reads with a word.
python=/usr/bin/python3
$python -c 'import numpy' 2>/dev/null || { echo "SKIP needs numpy"; exit 77; }
mkdir f && $python $PARE_ROOT/tests/peers/families.py refused f >cases || { cat cases; exit 1; }
for name in $(cat cases); do
    pare info f/$name >out 2>said
    echo "$name: exit $?" $(sed -n 's/^attention *//p' out)
    sed 's/^/    /' said
done
# What the caller says goes before what the folder says, and with a word.
pare info f/prompt --pool max 2>&1 | grep -E 'as told|^head'
# Every type that the importer names is on the page for users.
for type in $(sed -nE 's/^    \{"([a-z0-9_-]+)", (NULL,|im_[a-z0-9]+, NULL).*/\1/p' $PARE_ROOT/src/formats/import.c); do
    grep -q "\`$type\`" $PARE_ROOT/docs/huggingface.md || echo "docs/huggingface.md does not name $type"
done
