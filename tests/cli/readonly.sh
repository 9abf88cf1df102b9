# A folder that may not be written to is refused before any work is done, by the name that was given.
without= # what root is told to go without
[ "$(id -u)" != 0 ] || without="setpriv --bounding-set=-all --inh-caps=-all"
mkdir locked && chmod 555 locked
$without touch locked/x 2>/dev/null && { echo "SKIP every folder can be written to"; exit 77; }
exec 2>&1
touch empty.st empty.npz empty.json # what is there; it is not read
t() { echo "\$ pare $*"; $without pare "$@"; echo "exit $?"; }
for c in "fold empty.st" "width empty.st --data empty.npz --dim 2" "depth empty.st --layers 1" \
    "ticket empty.st --bits 4" "plan empty.st --max-error 1" "import empty.st" "data sort" \
    "train --kind graph --data empty.npz" "compose empty.json empty.json" "probe empty.st" \
    "length empty.st --oracle 2" "export empty.st" "report empty.json"; do
    t $c -o locked/out
done
cd locked && t fold ../empty.st -o out
chmod 755 . && ls
