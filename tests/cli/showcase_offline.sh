# make showcase without the network: it says what is missing, exits 2, and has made and removed nothing.
mkdir bin there
printf '#!/bin/sh\nexit 1\n' >bin/npm
chmod +x bin/npm
export PATH=$PWD/bin:$PATH XDG_CACHE_HOME=$PWD/cache BUILD=$PARE_BUILD
echo kept >there/file
"$PARE_ROOT/tools/showcase" "$PWD/out" 2>&1; echo "exit $?"
"$PARE_ROOT/tools/showcase" "$PWD/there" >/dev/null; echo "exit $?"
cat there/file
ls
find cache -type f
