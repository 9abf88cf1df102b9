# The man page knows every command, every option and every default that help prints.
page=$PARE_ROOT/docs/pare.1
plain() { sed -E 's/\\f[A-Z]//g; s/\\-/-/g; s/\\&//g' "$page"; }
plain >page
for c in info probe run eval train fold width depth ticket verify compose import export "data minesweeper" "data angular" "data sort" "data random" "data model" repro bench; do
    pare $c --help | grep -oE -- '--[a-z0-9-]+ ' | sort -u | while read -r o; do
        grep -qE -- "$o( |$|\")" page || echo "$c: $o is not in the man page"
    done
    pare $c --help | grep -oE '\[[0-9]+\]$' | tr -d '[]' | while read -r d; do
        grep -q "\b$d\b" page || echo "$c: default $d is not in the man page"
    done
done
grep -c '^\.SS pare' page
grep -q "pare $(pare --version | cut -d' ' -f2)" page && echo same version
