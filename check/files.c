/* files.c - memory, failures, statements, files, hashes, JSON and random numbers. */
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>

enum { MOST_KEYS = 30000 };

job *now;
slong bits = 128;

/* ---- memory and failures --------------------------------------------------------------------- */

struct chunk {
    chunk *next;
    size_t balls; /* that many of them are in data */
    cJSON *json;  /* or a parsed text is kept */
    max_align_t data[];
};

bool attempt(job *j, void (*f)(void *with), void *with)
{
    job *const outer = now;
    now = j;
    if (setjmp(j->escape) == 0) f(with);
    now = outer;
    return j->code == 0;
}

void fail(int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(now->trouble, sizeof now->trouble, format, list);
    va_end(list);
    now->code = code;
    longjmp(now->escape, 1);
}

void *take(size_t n, size_t size)
{
    size_t total;
    chunk *b = NULL;
    if (!__builtin_mul_overflow(n, size, &total) && total < SIZE_MAX / 2)
        b = calloc(1, sizeof *b + total);
    must(b, "out of memory");
    b->next = now->memory;
    now->memory = b;
    return b->data;
}

/* Zeros in memory are balls of value 0; arb_clear frees what they have grown to. */
arb_ptr take_balls(size_t n)
{
    must(n <= now->o->most_balls, "%zu balls are too many", n);
    arb_ptr v = take(n, sizeof *v);
    now->memory->balls = n;
    return v;
}

arb_ptr ball(double v)
{
    arb_ptr x = take_balls(1);
    arb_set_d(x, v);
    return x;
}

void release(chunk *mark, const void *but, const void *and_but)
{
    chunk **at = &now->memory;
    while (*at != mark) {
        chunk *const b = *at;
        if (b->data == but || b->data == and_but) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        for (size_t i = 0; i < b->balls; i++) arb_clear((arb_ptr)b->data + i);
        cJSON_Delete(b->json);
        free(b);
    }
}

void end_job(job *j)
{
    now = j;
    release(NULL, NULL, NULL);
    now = NULL;
}

/* ---- statements ------------------------------------------------------------------------------ */

const char *words(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *const text = take((size_t)n + 1, 1);
    va_start(list, format);
    vsnprintf(text, (size_t)n + 1, format, list);
    va_end(list);
    return text;
}

void add_statement(verdict v, const char *what, const char *why)
{
    statement *const s = take(1, sizeof *s);
    *s = (statement){v, words("%s%s", now->link, what), why, NULL};
    if (!now->end) now->end = &now->first;
    *now->end = s;
    now->end = &s->next;
}

void state_but(const char *what, const char *good, const char *bad)
{
    state(bad ? REFUTED : CONFIRMED, what, "%s%s%s", good, bad ? ", but for " : "", bad ? bad : "");
}

void check_equal(const char *what, const char *hash, const char *claimed, const char *name)
{
    const bool right = same(hash, claimed);
    state(right ? CONFIRMED : REFUTED, what, "%s %s the certificate's hash", name,
          right ? "has" : "does not have");
}

size_t count_of(const job *j, verdict v)
{
    size_t n = 0;
    for (const statement *s = j->first; s; s = s->next) n += s->verdict == v;
    return n;
}

void show_progress(double work)
{
    const double done = now->work_done += work, spent = difftime(time(NULL), now->started);
    if (now->o->progress && spent >= 1 && done > 0 && done <= now->work_all)
        fprintf(stderr, "\r%3.0f %%, about %.0f s left \033[K", 100 * done / now->work_all,
                spent * (now->work_all - done) / done);
}

/* ---- files and hashes ------------------------------------------------------------------------ */

bool file_exists(const char *path)
{
    struct stat s;
    return now->o->read || stat(path, &s) == 0;
}

/* Regular files only: pipes and devices may have no end. */
bytes read_file(const char *path)
{
    bytes out = {NULL, 0};
    struct stat s;
    if (now->o->read) {
        must(now->o->read(now->o->self, path, &out), "%s: cannot be read", path);
        return out;
    }
    must(stat(path, &s) == 0, "%s: %s", path, strerror(errno));
    must(!S_ISDIR(s.st_mode),
         "%s: is a folder, which pare unpacks: pare verify CERT --unpack DIR, then --unpacked DIR",
         path);
    must(S_ISREG(s.st_mode), "%s: is not a regular file", path);
    out.n = (size_t)s.st_size;
    void *const v = take(out.n + 1, 1);
    FILE *const f = fopen(path, "rb");
    must(f, "%s: %s", path, strerror(errno));
    const size_t got = fread(v, 1, out.n, f);
    fclose(f);
    must(got == out.n, "%s: cannot be read to its end", path);
    out.v = v;
    return out;
}

bytes read_checked(const char *what, const char *path, const cJSON *o)
{
    const bytes file = read_file(path);
    check_equal(words("%s.sha256", what), sha256_of(file.v, file.n), get_text(o, "sha256"), path);
    return file;
}

const char *beside(const char *folder, const char *path)
{
    return path[0] == '/' || !*folder ? path : words("%s/%s", folder, path);
}

void hash_text(SHA256_CTX *h, const char *text)
{
    SHA256_Update(h, text, strlen(text));
}

const char *hash_end(SHA256_CTX *h)
{
    unsigned char sum[32];
    char *const hex = take(65, 1);
    SHA256_Final(sum, h);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    return hex;
}

const char *sha256_of(const void *data, size_t n)
{
    SHA256_CTX h;
    SHA256_Init(&h);
    SHA256_Update(&h, data, n);
    return hash_end(&h);
}

/* ---- texts and order ------------------------------------------------------------------------- */

bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool is_one_of(const char *word, const char *list)
{
    return !strchr(word, ' ') && strstr(list, words(" %s ", word));
}

int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

bool is_text(const cJSON *v, const char *text)
{
    return cJSON_IsString(v) && same(v->valuestring, text);
}

/* No key twice: of each, the first of that name is the key itself. */
static void refuse_duplicates(const char *name, const cJSON *o)
{
    const bool keys = cJSON_IsObject(o);
    must(!keys || length_of(o) <= MOST_KEYS, "%s: too many keys", name);
    for (const cJSON *c = o->child; c; c = c->next) {
        must(!keys || find(o, c->string) == c, "%s: the key %.60s twice", name, c->string);
        refuse_duplicates(name, c);
    }
}

cJSON *parse_json(const char *name, const void *text, size_t n)
{
    const char *end = NULL;
    must(!memchr(text, 0, n) && !memmem(text, n, "\\u0000", 6), "%s: a NUL in JSON text", name);
    take(0, 0);
    cJSON *const root = now->memory->json = cJSON_ParseWithLengthOpts(text, n, &end, false);
    must(root, "%s: is not JSON (or out of memory)", name);
    for (; end < (const char *)text + n; end++)
        must(strchr(" \t\r\n", *end), "%s: text after the JSON value", name);
    refuse_duplicates(name, root);
    return root;
}

const cJSON *get(const cJSON *o, const char *key)
{
    const cJSON *const v = find(o, key);
    must(v, "%s: is missing", key);
    return v;
}

const cJSON *get_list(const cJSON *o, const char *key)
{
    must(cJSON_IsArray(get(o, key)), "%s: is not an array", key);
    return find(o, key);
}

const char *get_text(const cJSON *o, const char *key)
{
    must(cJSON_IsString(get(o, key)) && *find(o, key)->valuestring, "%s: is not a text", key);
    return find(o, key)->valuestring;
}

double get_number(const cJSON *o, const char *key)
{
    const cJSON *const v = get(o, key);
    if (is_text(v, "inf")) return INFINITY;
    must(cJSON_IsNumber(v) && isfinite(v->valuedouble), "%s: is not a number", key);
    return v->valuedouble;
}

size_t whole_number(const cJSON *v)
{
    const double x = cJSON_GetNumberValue(v);
    return x >= 0 && x < 0x1p48 && x == floor(x) ? (size_t)x : NO_NUMBER;
}

size_t get_count(const cJSON *o, const char *key)
{
    must(whole_number(get(o, key)) != NO_NUMBER, "%s: is not a whole number below 2^48", key);
    return whole_number(find(o, key));
}

uint64_t get_seed(const cJSON *o, const char *key)
{
    const char *const s = get_text(o, key);
    const uint64_t v = strtoull(s, NULL, 10);
    must(same(s, words("%llu", (unsigned long long)v)), "%s: is not 64 bits in digits", key);
    return v;
}

/* ---- Philox4x32-10 --------------------------------------------------------------------------- */

static uint32_t philox_u32(philox *p)
{
    const uint64_t block = p->next / 4;
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)p->stream,
                     (uint32_t)(p->stream >> 32)};
    uint32_t k0 = (uint32_t)p->seed, k1 = (uint32_t)(p->seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
        c[3] = (uint32_t)a;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    return c[p->next++ % 4];
}

uint64_t philox_u64(philox *p)
{
    const uint64_t low = philox_u32(p);
    return low | (uint64_t)philox_u32(p) << 32;
}

uint64_t philox_below(philox *p, uint64_t n)
{
    const uint64_t again = (0 - n) % n; /* 2^64 mod n */
    for (;;) {
        __extension__ const unsigned __int128 product = (unsigned __int128)philox_u64(p) * n;
        if ((uint64_t)product >= again) return (uint64_t)(product >> 64);
    }
}

double philox_uniform(philox *p)
{
    return (double)(philox_u64(p) >> 11) * 0x1p-53;
}

void philox_shuffle(philox *p, size_t *v, size_t n, bool from_the_end)
{
    for (size_t left = n; left > 1; left--) {
        const size_t drawn = (size_t)philox_below(p, left);
        const size_t i = from_the_end ? left - 1 : n - left, k = from_the_end ? drawn : i + drawn;
        const size_t swapped = v[i];
        v[i] = v[k];
        v[k] = swapped;
    }
}

size_t *whole_numbers(size_t n)
{
    size_t *const v = take(n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = i;
    return v;
}
