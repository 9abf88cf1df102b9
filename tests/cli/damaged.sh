# Damaged files: exit 2, the message names file and tensor, and nothing crashes.
pare data model -q -o m.st --dim 8 --heads 2 --layers 1 --context 8 --vocab 16
size=$(stat -c %s m.st)
bad=0
for cut in 0 1 7 8 9 100 1000 2000 $((size / 2)) $((size - 1)); do
    head -c $cut m.st >cut.st
    pare info cut.st >/dev/null 2>err
    [ $? = 2 ] && grep -q 'cut.st' err || { echo "cut at $cut: not refused"; bad=1; }
done
for at in 0 3 7 8 9 20 60 200 500 999; do
    cp m.st hit.st
    printf '\377' | dd of=hit.st bs=1 seek=$at conv=notrunc status=none
    pare info hit.st >/dev/null 2>err
    [ $? = 2 ] && grep -q 'hit.st' err || { echo "byte $at: not refused"; bad=1; }
done
echo "bad $bad"
exec 2>&1
# The last tensor gets a nan, an infinity.
cp m.st nan.st && printf '\0\0\300\177' | dd of=nan.st bs=1 seek=$((size - 4)) conv=notrunc status=none
cp m.st inf.st && printf '\0\0\200\377' | dd of=inf.st bs=1 seek=$((size - 4)) conv=notrunc status=none
for f in nan inf; do
    for c in info "fold -o x.st" "import -o x.st" "run --text a"; do pare $c $f.st; echo "exit $?"; done
done
# A header that claims 100 GB.
printf '\0\350\166\110\027\0\0\0{}' >claim.st
pare info claim.st; echo "exit $?"
pare info .; echo "exit $?"
pare info /dev/null; echo "exit $?"
# Files of other programs are called by their names.
printf 'GGUF\3\0\0\0' >a.gguf
printf '\200\002\212\012' >old.pt
python3 -c 'import zipfile; zipfile.ZipFile("new.pt", "w").writestr("archive/data.pkl", b"x")'
mkdir hf && cp new.pt hf/pytorch_model.bin
for f in a.gguf old.pt new.pt hf; do pare info $f; echo "exit $?"; done
ls
