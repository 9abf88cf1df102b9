# The man page is made from the tables of options: it knows every command, every option and every
# default that help prints, and roff takes it without a complaint.
pare help --man >pare.1
sed -E 's/\\f[A-Z]//g; s/\\-/-/g; s/\\&//g; s/\\e/\\/g' pare.1 >page
count=0
for c in info probe run eval train fold width depth ticket length plan verify compose report import export "data minesweeper" "data angular" "data sort" "data random" "data model" repro bench; do
    # the part of the page that speaks of this command
    awk -v c=".SS \"pare $c\"" '$0 == c { on = 1; next } /^\.S[SH]/ { on = 0 } on' page >part
    [ -s part ] || echo "$c is not in the man page"
    pare $c --help all | grep -oE -- '^  (-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | grep -v '^--help$' >options
    while read -r o; do
        count=$((count + 1))
        grep -qE -- "^(-[a-z], )?$o( |$)" part || echo "$c: $o is not in the man page"
    done <options
    pare $c --help all | tr '\n' ' ' | tr -s ' ' | grep -oE '\[[0-9a-z.]+\]' | while read -r d; do
        grep -qF -- "$d" part || [ "$d" = '[all]' ] || echo "$c: default $d is not in the man page"
    done
done
[ $count -gt 200 ] && echo more than 200 options
grep -c '^\.SS "pare' page
grep -q "pare $(pare --version | cut -d' ' -f2)" page && echo same version
if command -v groff >/dev/null; then groff -man -Tutf8 -ww pare.1 2>&1 >/dev/null | head -n 3; fi
# bash can complete from the same tables
pare help --completion >pare.bash
bash -n pare.bash && echo the completion is a script
cat >ask <<'END'
. ./pare.bash
ask() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); COMPREPLY=(); _pare; echo "${COMPREPLY[*]}"; }
ask pare wi
ask pare width --kee
ask pare width --method lev
ask pare data mi
ask pare data model --kind gr
ask pare help ver
END
bash ask
