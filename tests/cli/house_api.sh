# The check of the public face refuses each kind of trespass, and nothing else.
mkdir -p t/src/base t/src/cli t/src/report t/include/pare t/studies t/examples
cd t
cat >include/pare/base.h <<'H'
/* A header; --force in a comment is no message. */
typedef struct pare_cut_opts {
    int (*seven)(int a, int b, int c, int d, int e, int f, int g, int h);
} pare_cut_opts;
#define PARE_CUT_OPTS_DEFAULT {0}
int pare_seven(int a, int b, int c, int d, int e, int f, void (*g)(int x, int y));
typedef int (*pare_many_fn)(int a, int b, int c, int d, int e, int f, int g, int h);
static inline int pare_used(void)
{
    return pare_seven(1, 2, 3, 4, 5, 6, 0);
}
H
echo 'int main(void) { return pare_seven(1, 2, 3, 4, 5, 6, 0); } /* pare_idle */' >src/cli/main.c
echo 'int x = pare_used(); const char *s = "use --force";' >studies/main.c
echo 'const char *a = "width --dim %.0f", *b = "-c", *c = "3 - 2", *d = "A-b"; /* "-f" */' >src/base/good.c
echo 'const char *page = "pare verify --evidence";' >src/report/page.c
python3 "$PARE_ROOT/tools/lint-api" . && echo clean

echo 'int pare_eight(int a, int b, int c, int d, int e, int f, int g, int h);' >>include/pare/base.h
echo 'int pare_idle(void);' >>include/pare/base.h      # in a comment of the command only
printf 'typedef struct pare_bare_opts {\n    int x;\n} pare_bare_opts;\n' >>include/pare/base.h
echo 'cJSON *pare_used_json(void);' >>include/pare/base.h
echo 'int y = pare_eight(1, 2, 3, 4, 5, 6, 7, 8); void *z = pare_used_json();' >examples/01_a.c
echo 'const char *a = "exists; use -f", *b = "more (--all)";' >src/base/bad.c
python3 "$PARE_ROOT/tools/lint-api" . || echo "exit $?"

for i in $(seq 300); do echo "int pare_f$i(void);" >>include/pare/base.h; echo "int a$i = pare_f$i();" >>examples/02_b.c; done
for i in $(seq 20); do echo 'int x;' >include/pare/h$i.h; done
python3 "$PARE_ROOT/tools/lint-api" . | grep 'at most [0-9]*$'
