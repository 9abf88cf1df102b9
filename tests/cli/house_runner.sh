# The test runner on a made-up project: what fails is counted, whatever way it fails.
mkdir -p p/tests/base p/tests/cli p/examples p/docs p/models p/build/tests/base p/build/examples
cd p
cp -r "$PARE_ROOT/tools" . && cp "$PARE_ROOT/tests/cli/run" tests/cli/
program() { # FOLDER/NAME, its text
    touch $1.c && printf '#!/bin/bash\n%s\n' "$2" >build/$1 && chmod +x build/$1
}
program tests/base/test_good 'printf "1..2\nok 1 - a\nnoise"; echo "ok 2 - b"; echo "# ok - tests"'
program tests/base/test_bad 'printf "1..2\nok 1 - a\nnot ok 2 - b\n"; exit 1'
program tests/base/test_skip 'printf "1..1\nSKIP c: needs a moon\nnot ok 1 # SKIP c\n"'
program tests/base/test_dies 'printf "1..3\nok 1 - a\n"; kill -SEGV $$'
program tests/base/test_none 'exit 0'
program tests/base/test_code 'printf "1..1\nok 1 - a\n"; exit 3'
program tests/base/test_slow 'printf "1..1\n"; sleep 60'
touch tests/base/test_unbuilt.c
program examples/01_good 'echo "took 12 ms"; echo "[1]"'
printf 'took * ms\n[1]\n' >examples/01_good.expected
program examples/02_other 'echo two'
echo one >examples/02_other.expected
program examples/03_exit 'exit 2'

echo 'echo hello; echo oh >&2; exit 3' >tests/cli/fine.sh
printf 'hello\n' >tests/cli/fine.stdout
printf '?h\n' >tests/cli/fine.stderr.glob
echo 3 >tests/cli/fine.exit
cp tests/cli/fine.sh tests/cli/code.sh && cp tests/cli/fine.stdout tests/cli/code.stdout
cp tests/cli/fine.sh tests/cli/more.sh && echo 3 >tests/cli/more.exit
echo 'echo SKIP no moon; exit 77' >tests/cli/moon.sh

cat >README.md <<'MD'
# One
[good](docs/x.md#a-heading) [bad](docs/y.md) [worse](docs/x.md#none)
```console
$ mkdir d && cd d && export X=5
$ basename $PWD; echo $X; seq 3 9
d
5
...
9
```
```console
$ echo one; echo two
one
three
```
```console
$ false
```
```console no-run
$ reboot
```
MD
printf '## A heading\n' >docs/x.md
python3 tools/run-tests --build build --jobs 1 --timeout 5 |
    sed -e 's/ *[0-9.]* s$//' -e '/^[0-9]* programs/d'
echo "exit ${PIPESTATUS[0]}"
rm -r tests examples/0[23]* && sed -i '/^\[good/d' README.md && sed -i '/^```console$/,$d' README.md
python3 tools/run-tests --build build | tail -n 1
echo "exit ${PIPESTATUS[0]}"
# What a document marks as long is left to the long tests.
printf '# One\n```console long\n$ false\n```\n' >README.md
for how in "" --long; do
    python3 tools/run-tests --build build $how README >/dev/null
    echo "exit $?"
done
# The quick tests: in every folder the most tests per second within its time, and what is new; a module without
# one is said.
mkdir -p src/base src/model tests/base tests/model tests/cli build/tests/base build/tests/model
touch src/base/a.c src/model/a.c tests/base/test_slow.c tests/base/test_x_mpfr.c
program tests/base/test_many 'printf "1..1\nok 1 - a\n"'
program tests/base/test_few 'printf "1..1\nok 1 - a\n"'
program tests/base/test_new 'printf "1..1\nnot ok 1 - a\n"; exit 1'
cp "$PARE_ROOT/tests/cli/run" tests/cli/
echo 'echo hello' >tests/cli/quick.sh && echo hello >tests/cli/quick.stdout
cp tests/cli/quick.sh tests/cli/slow.sh
{ echo '# a comment'; printf '%s\n' 'tests/base/test_many 1.5 30' 'tests/base/test_few 1.2 2' 'tests/base/test_slow 2 4' \
    'tests/cli/quick 0.1 1' 'tests/cli/slow 20.1 1' 'examples/01_good 0.1 1'; } >tests/seconds.tsv
python3 tools/run-tests --build build --quick 2>&1
program tests/model/test_model 'printf "1..1\nok 1 - a\n"'
python3 tools/run-tests --quick --list
python3 tools/run-tests --build build --quick --jobs 1 | sed -e 's/ *[0-9.]* s$//' -e '/^[0-9]* programs/d'
echo "exit ${PIPESTATUS[0]}"
rm tests/base/test_new.c tests/base/test_slow.c tests/cli/slow.sh
python3 tools/run-tests --build build --record-seconds | sed 's/^ *[0-9.]* s/S s/'
sed 's/\t0\.[0-9]*\t/ S /' tests/seconds.tsv
