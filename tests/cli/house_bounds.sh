# The table of bounds names what became worse, and what is gone, and nothing else.
row() { printf '%s\t%s\t%s\t%s\t%s\t%s\n' "width a.st --dim 8" "${4:-11111111}" 22222222 "$1" "$2" "$3"; }
{ row headline upper 2; row entry upper 1; row cosine.least lower .9; row kl upper inf; row label upper 3; } >before
{ row headline upper 2.01; row entry upper .5; row cosine.least lower .95; row kl upper 7; row label upper 3; } >after
python3 "$PARE_ROOT/tools/bounds" --compare before after && echo fine
{ row headline upper 2.03; row entry upper nan; row cosine.least lower .8; row kl upper inf; } >after
python3 "$PARE_ROOT/tools/bounds" --compare before after || echo "exit $?"
row headline upper 1 33333333 >after
python3 "$PARE_ROOT/tools/bounds" --compare before after || echo "exit $?"
