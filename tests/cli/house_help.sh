# Every program of tools/ and its like answers --help with an explanation and does nothing else: no file changes,
# no other program that would build, install or measure is started.
mkdir -p p/fuzz p/tests/cli p/.ci p/out fake
cp -r "$PARE_ROOT/tools" p/
cp "$PARE_ROOT/fuzz/make-corpus" p/fuzz/
cp "$PARE_ROOT/tests/cli/run" p/tests/cli/
cp "$PARE_ROOT/.ci/run" p/.ci/
echo kept >p/out/report.html
for tool in apt-get sudo npm make pare clang clang-format cppcheck git node; do
    printf '#!/bin/sh\necho "%s $*" >>%s/started\n' $tool "$PWD" >fake/$tool && chmod +x fake/$tool
done
export PATH=$PWD/fake:$PATH BUILD=build
(cd p && find . -type f | sort | xargs sha256sum) >before
count=0
for f in p/tools/* p/fuzz/make-corpus p/tests/cli/run p/.ci/run; do
    [ -x $f ] || continue
    name=${f#p/}
    for how in --help -h; do
        timeout 20 $f $how >text 2>err </dev/null || echo "$name $how: exit $?"
        [ ! -s err ] || echo "$name $how: something on stderr"
        grep -q "$name" text || echo "$name $how: does not say its name"
        [ "$(wc -w <text)" -ge 15 ] || echo "$name $how: explains nothing"
    done
    count=$((count + 1))
done
[ $count -ge 15 ] && echo "more than 14 programs"
(cd p && find . -type f | sort | xargs sha256sum) | diff before - && echo "nothing has changed"
[ ! -e started ] || cat started
