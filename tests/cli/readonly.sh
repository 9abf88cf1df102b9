# A folder that may not be written to is refused before any work is done, by the name that was given.
without= # what root is told to go without
[ "$(id -u)" != 0 ] || without="setpriv --bounding-set=-all --inh-caps=-all"
mkdir locked && chmod 555 locked
$without touch locked/x 2>/dev/null && { echo "SKIP every folder can be written to"; exit 77; }
exec 2>&1
t() { echo "\$ pare $*"; $without pare "$@"; echo "exit $?"; }
for c in "fold missing.st" "width missing.st --data d.npz --dim 2" "depth missing.st --layers 1" \
    "ticket missing.st --bits 4" "plan missing.st --max-error 1" "import missing.st" "data sort" \
    "train --kind graph --data missing.npz" "compose a.json b.json" "probe missing.st" \
    "length missing.st --oracle 2" "export missing.st" "report missing.json"; do
    t $c -o locked/out
done
cd locked && t fold ../missing.st -o out
chmod 755 . && ls
