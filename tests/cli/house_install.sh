# What `make install` puts somewhere serves a stranger: pkg-config, shared, static, the program at
# the top of pare.h, the man page, the completion; and uninstall leaves nothing.
[ -z "$PARE_SANITIZED" ] || { echo "SKIP a plain build is needed"; exit 77; }
[ -x "$PARE_BUILD/pare" ] || { echo "SKIP nothing is built in $PARE_BUILD"; exit 77; }
set -eu
dest=$PWD/dest
build=$(realpath --relative-to="$PARE_ROOT" "$PARE_BUILD") # as the tests were built: nothing is made anew
make -s -C "$PARE_ROOT" BUILD="$build" PREFIX="$dest" install >log
grep STRIP log
(cd dest && find . -type f -o -type l | grep -v -e /include/ -e libpare-mpi -e /pare-check | sort)
# pare-check is optional: it is installed where it was built.
[ "$([ -x "$PARE_BUILD/pare-check" ] && echo yes)" = "$([ -x dest/bin/pare-check ] && echo yes)" ] && echo "pare-check as built"
cmp "$PARE_ROOT/include/pare/pare.h" dest/include/pare/pare.h
dest/bin/pare --version >/dev/null && echo "the command runs"
head -n 2 dest/share/man/man1/pare.1 | grep -c '^.TH PARE 1'
(. dest/share/bash-completion/completions/pare
 COMP_WORDS=(pare wid) COMP_CWORD=1 && _pare && echo "completion: ${COMPREPLY[*]}")
sections() { readelf -S "$1" | grep -c '\.debug_info' || true; }
for f in bin/pare lib/libpare.so lib/libpare.a; do echo "$f: $(sections dest/$f) sections of debug information"; done
make -s -C "$PARE_ROOT" BUILD="$build" PREFIX="$PWD/full" STRIP= install
[ "$(sections full/lib/libpare.so)" -gt 0 ] && rm -r full && echo "STRIP= keeps it"

export PKG_CONFIG_PATH=$dest/lib/pkgconfig
cc=${CC:-gcc}
cc=${cc#ccache }
sed -n '/^ \*     #include/,/^ \*     }$/s/^ \*     \{0,1\}//p' "$PARE_ROOT/include/pare/pare.h" |
    sed 's/^    //' >first.c
grep -c 'int main' first.c
$cc -std=c17 first.c $(pkg-config --cflags --libs pare) -o shared
$cc -std=c17 first.c $(pkg-config --cflags pare) dest/lib/libpare.a \
    $(pkg-config --static --libs pare | sed 's/-lpare//') -o static
code=0
LD_LIBRARY_PATH=$dest/lib ./shared no-such-model data out 2>/dev/null || code=$?
echo "shared: exit $code"
code=0
LD_LIBRARY_PATH=$dest/lib ./shared 2>&1 || code=$?
echo "without a model: exit $code"
code=0
./static no-such-model data out 2>/dev/null || code=$?
echo "static: exit $code"

# It is the product: load, cut, verify.
dest/bin/pare data minesweeper --side 12 --seed 1 -q -o board.npz >/dev/null
LD_LIBRARY_PATH=$dest/lib ./shared "$PARE_ROOT/models/minesweeper.safetensors" board.npz small.st | grep -c 'bytes; no output moves by more than'
dest/bin/pare verify small.st -q | grep -o '^verdict *HOLDS'

# The course compiles by the line of the tutorial, without our own flags.
for f in "$PARE_ROOT"/examples/*.c; do
    $cc -std=c17 -Wall -Wextra -Werror -fsyntax-only "$f" $(pkg-config --cflags pare)
done
$cc -std=c17 "$PARE_ROOT/examples/02_run.c" $(pkg-config --cflags --libs pare) -o run

# C++ sees the same names.
cat >first.cpp <<'CPP'
#include <pare/pare.h>
int main(int argc, char **argv)
{
    pare_err err{};
    pare_model *m = nullptr;
    if (argc < 2 || pare_model_load(&m, argv[1], &err)) return pare_exit_code(err.code);
    pare_model_free(m);
    return 0;
}
CPP
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    $cxx -std=c++17 -Wall -Wextra -pedantic -Werror first.cpp $(pkg-config --cflags --libs pare) -o plus
    LD_LIBRARY_PATH=$dest/lib ./plus no-such-model || [ $? = 2 ] || echo "$cxx: exit $?"
done

# Only our own names are visible.
nm -g --defined-only dest/lib/libpare.a | awk 'NF == 3 && $3 !~ /^pare_/ { print "stray name in libpare.a: " $3 }'
nm -D --defined-only dest/lib/libpare.so | awk '$3 !~ /^pare_/ { print "stray name: " $3 }'
make -s -C "$PARE_ROOT" BUILD="$build" PREFIX="$dest" uninstall
find dest -type f -o -type l
