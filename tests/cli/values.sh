# Sizes take k, M and G; shares are 0.75 or 75%; what is not one of these is refused by name.
exec 2>&1
pare data model --dim 16 --heads 2 --context 8 -q -o m.st
t() { echo "\$ pare $*"; pare "$@"; echo "exit $?"; }
pare info m.st --tokens 2k | grep ^MACs
pare info m.st --tokens 1.5k | grep ^MACs
pare info m.st --tokens 1M | grep ^MACs
t info m.st --tokens 1.5
t info m.st --tokens 1.0005k
t info m.st --tokens 2000G
t info m.st --tokens k
t info m.st --tokens .k
t info m.st --tokens 1kk
t info m.st --tokens 1..5k
t info m.st --tokens -2k
for share in 75 0 0% 101% -5% x% % 1e-9 nan; do t width m.st --data m.npy --keep=$share -o x; done
ls x* 2>/dev/null
