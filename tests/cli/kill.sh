# kill -9 at 54 moments of `pare fold -f`, `pare quant -f` and `pare import -f`: the model is the old or the new one,
# whole; a certificate that is not its model's is refused; what is left over disturbs nothing.
# (tests/faults/test_killed.c kills at every single call that changes the disk.)
hash() { sha256sum <$1 | cut -c1-64; }
make() { pare $1 -qf $2.st -o o.st >/dev/null 2>&1; }
for s in 1 2; do pare data model -q -o $s.st --dim 8 --heads 2 --layers 1 --context 4 --seed $s; done

check() { # command, whose output is the old or the new file
    pare info o.st >/dev/null || echo "$1: the model is damaged"
    local now=$(hash o.st)
    [ $now = $old ] || [ $now = $new ] || echo "$1: neither the old nor the new model"
    [ $1 != import ] || return
    pare verify -q o.st.cert.json >/dev/null 2>&1
    local verdict=$? named=$(grep -A2 '"output"' o.st.cert.json | grep -o '[0-9a-f]\{64\}')
    case $verdict in
    0) [ $named = $now ] || echo 'a certificate of another model was accepted' ;;
    4) [ $named != $now ] || echo 'the certificate of this model was refused' ;;
    *) echo "verify: exit $verdict" ;;
    esac
}

for work in fold quant import; do
    rm -f o.st*
    make $work 2 && new=$(hash o.st)
    make $work 1 && old=$(hash o.st)
    kills=0
    for i in $(seq 100); do
        [ $kills -lt 18 ] || break
        make $work 1 || echo "$work: the run after a kill fails"
        [ $(hash o.st) = $old ] || echo "$work: the run after a kill does not write"
        pare $work -qf 2.st -o o.st >/dev/null 2>&1 &
        sleep 0.$(printf '%04d' $((i * 37 % 101 * (i % 3 + 1))))
        kill -9 $! 2>/dev/null
        wait $! 2>/dev/null
        [ $? -ne 137 ] || kills=$((kills + 1))
        check $work
    done
    echo "$work: killed $kills times"
done
make fold 1 # which takes away what the killed ones have left
for f in *; do
    case $f in 1.st | 2.st | o.st | o.st.*.json) ;; *) echo "left: $f" ;; esac
done
