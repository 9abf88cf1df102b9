# The check of documents finds what they name and is not there, and what has no comment.
mkdir -p include/pare src tests/x docs/tutorials examples
cat >include/pare/a.h <<'C'
/* pare/a.h - a header. */
#ifndef PARE_A_H
#define PARE_A_H

/* What it does. */
int pare_told(int x);
int pare_with_it(int x);

int pare_behind(int x); /* this */
int pare_untold(int x);
/* The same, and
 * more. */
typedef struct pare_thing {
    int x; /* a field */
} pare_thing;
#endif
C
echo 'static void a_claim_of_a_paper(void **state) { (void)state; }' >tests/x/test_x.c
printf 'int main(void)\n{\n    return pare_told(1);\n}\n' >examples/01_a.c
cat >docs/api.md <<'MD'
`a.h`, `b.h`
MD
cat >docs/errata.md <<'MD'
| paper | statement | class | what holds | test |
|---|---|---|---|---|
| x | one | false as printed | two | `a_claim_of_a_paper` |
| x | one | loose or imprecise | two | `no_claim_of_a_paper` |
| x | one | false as printed | two | none |
| x | one | proof step false, statement may hold | two | `a_claim_of_a_paper` |
| x | one | false | two | `a_claim_of_a_paper` |
MD
cat >README.md <<'MD'
`src/missing.c` and `tests/x/test_x.c`, `gone.c`, `test_x.c`, `pare_told`, `pare_forgotten()`,
`a_test_that_is_not`, `tests/ROOM/test_STEM.c`; make test TESTFLAGS=x/test_x, TESTFLAGS=nothing.
MD
mkdir -p docs/theory
printf '# Page\n\n## 3 Third\n\n## A long heading (of two)\n' >docs/theory/p.md
cat >src/cite.c <<'C'
/* docs/theory/p.md "A long heading
 * (of two)", docs/theory/p.md section 3, docs/theory/p.md
 * section 3, docs/theory/p.md#3-third: all there. */
/* docs/theory/q.md; docs/theory/p.md "3 Third", "No heading"; docs/theory/p.md section 4;
 * docs/theory/p.md#third; docs/theory/p.md
 * "A long
 * walk" */
C
printf '```c\nreturn pare_told(1);\n```\n```c\nreturn pare_told(2);\n```\n' >docs/tutorials/t.md
python3 "$PARE_ROOT/tools/lint-docs"
echo "exit $?"
python3 "$PARE_ROOT/tools/api-docs" -o api.html
grep -c 'id="pare_told"' api.html
