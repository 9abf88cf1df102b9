# CMake finds what `make install` puts somewhere, also after the folder was moved: both libraries, pare::pare is
# the one that is asked for, and a version of another series is refused.
[ -z "$PARE_SANITIZED" ] || { echo "SKIP a plain build is needed"; exit 77; }
[ -x "$PARE_BUILD/pare" ] || { echo "SKIP nothing is built in $PARE_BUILD"; exit 77; }
command -v cmake >/dev/null || { echo "SKIP needs cmake"; exit 77; }
set -eu
build=$(realpath --relative-to="$PARE_ROOT" "$PARE_BUILD") # as the tests were built: nothing is made anew
make -s -C "$PARE_ROOT" BUILD="$build" PREFIX="$PWD/dest" install >log
mv dest moved
cc=${CC:-gcc}
export CC=${cc#ccache }
sed -n '/^ \*     #include/,/^ \*     }$/s/^ \*     \{0,1\}//p' "$PARE_ROOT/include/pare/pare.h" >first.c
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(first C)
set(CMAKE_C_STANDARD 17)
find_package(pare ${ASK} REQUIRED)
foreach(kind pare shared static)
  add_executable(with_${kind} first.c)
  target_link_libraries(with_${kind} pare::${kind})
endforeach()
CMAKE
version=$(moved/bin/pare --version | cut -d' ' -f2)
for static in OFF ON; do
    cmake -S . -B cm-$static -DCMAKE_PREFIX_PATH="$PWD/moved" -DASK="$version" -Dpare_USE_STATIC_LIBS=$static >log
    cmake --build cm-$static >log
    for kind in pare shared static; do
        needs=$(ldd cm-$static/with_$kind | grep -c 'libpare\.so') || true
        code=0
        cm-$static/with_$kind no-such-model data out 2>/dev/null || code=$?
        echo "CMake, pare_USE_STATIC_LIBS=$static, pare::$kind: $needs libpare.so, exit $code"
    done
done
for ask in ${version%.*} 0.0 0.99 99; do
    cmake -S . -B cm-$ask -DCMAKE_PREFIX_PATH="$PWD/moved" -DASK=$ask >log 2>&1 && echo "found" || echo "refused"
done
