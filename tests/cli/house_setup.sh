# tools/setup on made-up machines: all there, some missing, no root, no network, no Debian. What it will
# install is said before it does.
mkdir fake
for tool in bash env mktemp cat rm sed; do ln -s "$(command -v $tool)" fake/$tool; done
fake() { printf '#!/bin/bash\n%s\n' "$2" >fake/$1 && chmod +x fake/$1; }
try() {
    PATH=$PWD/fake bash "$PARE_ROOT/tools/setup" "$@" >said 2>&1
    local code=$?
    cat said
    echo "exit $code"
}

echo '- another system'
fake pkg-config 'exit 0'
fake make 'exit 0'
fake python3 'exit 0'
try build
fake pkg-config '[ "$2" != zlib ]'
try test 'make test'
rm fake/make
try --check check 'make check'

echo '- all there'
fake dpkg-query 'shift 2; for p; do printf "%s=installed " $p; done'
fake apt-get 'mapfile -t l <said; echo "after ${#l[@]} lines: apt-get $*" >>apt.log'
fake id 'echo 0'
try build
try test
try bench

echo '- two missing'
fake dpkg-query 'shift 2; for p; do case $p in make|zlib1g-dev) ;; *) printf "%s=installed " $p; esac; done; exit 1'
try --check build
ls apt.log 2>&1
try build 'make demo'
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

echo '- the quick tests install nothing'
fake dpkg-query 'shift 2; for p; do case $p in libcmocka-dev) ;; *) printf "%s=installed " $p; esac; done; exit 1'
fake apt-get 'echo "$1" >>check.log'
try --check check 'make check'
ls check.log 2>&1
fake make 'exit 0'
fake pkg-config 'exit 0' # there, but not from Debian
try --check check 'make check'

try everything
fake apt-get 'echo "apt-get was started"'
try --help
