# tools/setup on made-up machines: all there, some missing, no root, no network, no Debian.
mkdir fake
for tool in bash env mktemp cat rm; do ln -s "$(command -v $tool)" fake/$tool; done
fake() { printf '#!/bin/bash\n%s\n' "$2" >fake/$1 && chmod +x fake/$1; }
try() { PATH=$PWD/fake bash "$PARE_ROOT/tools/setup" "$@" 2>&1; echo "exit $?"; }

echo '- another system'
fake pkg-config 'exit 0'
try build
fake pkg-config '[ "$2" != zlib ]'
try test

echo '- all there'
fake dpkg-query 'shift 2; for p; do printf "%s=installed " $p; done'
fake apt-get 'echo "apt-get $*" >>apt.log'
fake id 'echo 0'
try build
try test
try bench

echo '- two missing'
fake dpkg-query 'shift 2; for p; do case $p in make|zlib1g-dev) ;; *) printf "%s=installed " $p; esac; done; exit 1'
try build
cat apt.log

echo '- removed but configured is missing, too'
fake dpkg-query 'shift 2; for p; do case $p in make) printf "make=config-files ";; *) printf "%s=installed " $p; esac; done'
try build

echo '- not root, no sudo'
fake id 'echo 1000'
try build

echo '- sudo'
fake sudo '"$@"'
fake apt-get 'echo "$DEBIAN_FRONTEND $1"; echo "$DEBIAN_FRONTEND $1" >>sudo.log'
try build
cat sudo.log

echo '- no network'
fake apt-get 'echo "E: no way to the mirror"; exit 100'
try build

try everything
