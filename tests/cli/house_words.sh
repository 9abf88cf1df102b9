# The check of words finds what must not be there, in code only, and only where it is banned.
mkdir -p src/base src/model src/cli tools
cat >src/model/bad.c <<'C'
/* atoi( and rand() in a comment are fine, */ const char *s = "and strcpy( in a text";
int a(const char *t) { return atoi(t); }
void b(char *t) { strcpy(t, "x"); sprintf(t, "y"); }
int c(void) { return rand() + (int)time(NULL); }
void d(void) { printf("no"); fprintf(stderr, "no"); exit(1); }
const char *e(void) { return getenv("X"); }
#define JOIN(x, y) x##y
int f(struct s *p) { return p->time(1) + my_rand() + snprintf(0, 0, "z"); }
C
cat >src/cli/good.c <<'C'
int main(void) { printf("yes"); return getenv("NO_COLOR") ? 1 : 0; }
C
flag=fast-math home=home
echo "CFLAGS = -O2 -f$flag" >Makefile
echo "we never use -f$flag" >README.md
echo "cd /$home/somebody && see https://example.org/$home/page and \$ROOT/$home" >tools/x
mkdir -p docs
word=spec
echo "/* Proven elsewhere ($word, 8.3), in shared/$word/x.md; opt_$word stays. */" >src/base/cite.c
echo "As the $word says, ($word) and shared/${word}s" >docs/x.md
mkdir -p src/cert studies
old=lesson
cat >studies/retired.c <<C
/* A ${old} in a comment is a word; on the way ba""ck is a phrase. */
int pare_${old}_text(int turned) { return "${old}"[0] + turned; }
C
sed -i 's/""//' studies/retired.c
cp studies/retired.c src/cert/enclose_old.c # an engine: exempt
head -c 100 /dev/urandom >data.bin
python3 "$PARE_ROOT/tools/lint-words" src/model/bad.c src/cli/good.c Makefile README.md tools/x \
    src/base/cite.c docs/x.md studies/retired.c src/cert/enclose_old.c data.bin missing.c | sed "s|: /$home:|: HOME:|; s|$word|WORD|"
echo "exit ${PIPESTATUS[0]}"
