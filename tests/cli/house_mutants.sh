# tools/mutants on a project of one file: a term that no test needs survives, and is named.
mkdir -p p/tools p/src/m p/tests/m p/tests/mutants p/build/obj/tests/m && cd p
cp "$PARE_ROOT"/tools/{mutants,mutation.py,harness.py} tools/
cat >src/m/sum.c <<'C'
double sum(double a, double b);
/* a + b in a comment, and "a < b" in a string: no mutants */
double sum(double a, double b)
{
    return a < 0 ? 0 : a + b;
}
C
weak='#include <math.h>
double sum(double, double);
int main(void) { return !(fabs(sum(3, 1e-9) - 3) < 1e-6); }'
strong='double sum(double, double);
int main(void) { return !(sum(3, 1) == 4 && sum(-1, 8) == 0 && sum(0, 1) == 1 && sum(-0.5, 8) == 0); }'
build() { # TEST: compile the test, and a library of the file
    echo "$1" >tests/m/test_sum.c
    gcc -c -o build/obj/tests/m/test_sum.o tests/m/test_sum.c
    gcc -c -o build/sum.o src/m/sum.c && rm -f build/libpare-internal.a && ar qc build/libpare-internal.a build/sum.o
}
mutants() { MUTANT_CC="gcc -O2" MUTANT_LINK=gcc MUTANT_LIBS=-lm MUTANT_SUPPORT= python3 tools/mutants "$@"; echo "exit $?"; }
echo "-- all of them"
mutants --list src/m/sum.c
echo "-- a test that needs one term only"
build "$weak"
mutants src/m/sum.c
echo "-- a test that needs all"
build "$strong"
mutants src/m/sum.c
echo "-- the same, kept: nothing is compiled again"
mutants src/m/sum.c >/dev/null; wc -l <build/mutants/src+m+sum.c.jsonl
echo "-- listed with a reason; an entry that matches nothing"
build "$weak"
mutants src/m/sum.c | awk '/SURVIVES/ {print $2, $3} /^    [-+]/' | awk 'NR % 3 == 1 {split($1, f, ":"); print f[1], $2} NR % 3 != 1 {print substr($0, 5)} NR % 3 == 0 {print "= small"}' >tests/mutants/equivalent.txt
mutants src/m/sum.c
printf 'src/m/sum.c sum\n- return a;\n+ return b;\n= none\n' >>tests/mutants/equivalent.txt
mutants src/m/sum.c | tail -n 5
echo "-- refused"
mutants src/m/none.c 2>&1
echo "src/m/sum.c" >tests/mutants/equivalent.txt
mutants src/m/sum.c 2>&1
