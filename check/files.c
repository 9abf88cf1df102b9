/* files.c - memory, failures, statements, files, hashes, JSON and random numbers. */
#include "check.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_KEYS = 30000 };

/* ---- memory and failures --------------------------------------------------------------------- */

struct chunk {
    chunk *next;
    size_t balls; /* that many of them are in data */
    cJSON *json;  /* or a parsed text is kept */
    max_align_t data[];
};

bool attempt(job *j, void (*f)(job *j, void *with), void *with)
{
    jmp_buf here, *const outer = j->escape;
    j->escape = &here;
    if (setjmp(here) == 0) f(j, with);
    j->escape = outer;
    return j->t.code == 0;
}

static _Noreturn void leave(job *j, int code)
{
    j->t.code = code;
    longjmp(*j->escape, 1);
}

void fail(job *j, int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(j->t.text, sizeof j->t.text, format, list);
    va_end(list);
    leave(j, code);
}

void must(job *j, bool holds, const char *format, ...)
{
    va_list list;
    if (holds) return;
    va_start(list, format);
    vsnprintf(j->t.text, sizeof j->t.text, format, list);
    va_end(list);
    leave(j, UNREADABLE);
}

static chunk *take_chunk(job *j, size_t n, size_t size)
{
    size_t total;
    chunk *b = NULL;
    if (!__builtin_mul_overflow(n, size, &total) && total < SIZE_MAX / 2)
        b = calloc(1, sizeof *b + total);
    must(j, b, "out of memory");
    b->next = j->memory;
    return j->memory = b;
}

void *take(job *j, size_t n, size_t size)
{
    return take_chunk(j, n, size)->data;
}

/* Zeros in memory are balls of value 0; arb_clear frees what they have grown to. */
arb_ptr take_balls(job *j, size_t n)
{
    must(j, n <= j->o->most_balls, "%zu balls are too many", n);
    chunk *const b = take_chunk(j, n, sizeof(arb_struct));
    b->balls = n;
    return (arb_ptr)b->data;
}

void release(job *j, chunk *mark, const void *but)
{
    chunk **at = &j->memory;
    while (*at != mark) {
        chunk *const b = *at;
        if (b->data == but) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        for (size_t i = 0; i < b->balls; i++) arb_clear((arb_ptr)b->data + i);
        cJSON_Delete(b->json);
        free(b);
    }
}

void adopt(job *j, job *from)
{
    chunk **end = &from->memory;
    while (*end) end = &(*end)->next;
    *end = j->memory;
    j->memory = from->memory;
    from->memory = NULL;
}

/* ---- statements ------------------------------------------------------------------------------ */

const char *words(job *j, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *const text = take(j, (size_t)(n > 0 ? n : 0) + 1, 1);
    va_start(list, format);
    vsnprintf(text, (size_t)n + 1, format, list);
    va_end(list);
    return text;
}

void state(job *j, verdict v, const char *what, const char *why)
{
    statement *const s = take(j, 1, sizeof *s);
    *s = (statement){v, words(j, "%s%s", j->link, what), why, NULL};
    if (!j->end) j->end = &j->first;
    *j->end = s;
    j->end = &s->next;
    j->count[v]++;
}

void take_back(job *j, const job *before)
{
    j->first = before->first;
    j->end = before->end;
    if (j->end) *j->end = NULL;
    memcpy(j->count, before->count, sizeof j->count);
}

/* ---- files and hashes ------------------------------------------------------------------------ */

bool file_exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

/* Regular files only: pipes and devices may have no end. */
bytes read_file(job *j, const char *path)
{
    bytes out = {NULL, 0};
    struct stat s;
    if (j->o->read) {
        must(j, j->o->read(j->o->self, path, &out), "%s: cannot be read", path);
        return out;
    }
    must(j, stat(path, &s) == 0, "%s: %s", path, strerror(errno));
    must(j, S_ISREG(s.st_mode), "%s: is not a regular file", path);
    out.n = (size_t)s.st_size;
    void *const v = take(j, out.n + 1, 1);
    FILE *const f = fopen(path, "rb");
    must(j, f, "%s: %s", path, strerror(errno));
    const size_t got = fread(v, 1, out.n, f);
    fclose(f);
    must(j, got == out.n, "%s: cannot be read to its end", path);
    out.v = v;
    return out;
}

const char *beside(job *j, const char *folder, const char *path)
{
    return path[0] == '/' || !*folder ? path : words(j, "%s/%s", folder, path);
}

void hash_u64(SHA256_CTX *h, uint64_t v)
{
    unsigned char b[8];
    for (int i = 0; i < 8; i++) b[i] = (unsigned char)(v >> 8 * i);
    SHA256_Update(h, b, 8);
}

void hash_text(SHA256_CTX *h, const char *text)
{
    SHA256_Update(h, text, strlen(text));
}

void hash_end(SHA256_CTX *h, char hex[65])
{
    unsigned char sum[32];
    SHA256_Final(sum, h);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

void sha256_of(char hex[65], const void *data, size_t n)
{
    SHA256_CTX h;
    SHA256_Init(&h);
    SHA256_Update(&h, data, n);
    hash_end(&h, hex);
}

void check_equal(job *j, const char *what, const char *hash, const char *claimed, const char *name)
{
    const bool right = same(hash, claimed);
    state(j, right ? CONFIRMED : REFUTED, what,
          words(j, "%s %s the certificate's hash", name, right ? "has" : "does not have"));
}

bytes read_checked(job *j, const char *what, const char *path, const cJSON *o)
{
    const bytes file = read_file(j, path);
    char hex[65];
    sha256_of(hex, file.v, file.n);
    check_equal(j, words(j, "%s.sha256", what), hex, get_text(j, o, "sha256"), path);
    return file;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const cJSON *find(const cJSON *o, const char *key)
{
    return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

bool is_text(const cJSON *v, const char *text)
{
    return cJSON_IsString(v) && same(v->valuestring, text);
}

/* No key twice: of each, the first of that name is the key itself. */
static void refuse_duplicates(job *j, const char *name, const cJSON *o)
{
    const bool keys = cJSON_IsObject(o);
    must(j, !keys || cJSON_GetArraySize(o) <= MOST_KEYS, "%s: too many keys", name);
    for (const cJSON *c = o->child; c; c = c->next) {
        must(j, !keys || find(o, c->string) == c, "%s: the key \"%.60s\" is there twice", name,
             keys ? c->string : "");
        refuse_duplicates(j, name, c);
    }
}

cJSON *parse_json(job *j, const char *name, const void *text, size_t n)
{
    const char *end = NULL;
    chunk *const kept = take_chunk(j, 0, 0);
    must(j, !memchr(text, 0, n) && !memmem(text, n, "\\u0000", 6), "%s: a NUL in JSON text", name);
    kept->json = cJSON_ParseWithLengthOpts(text, n, &end, false);
    must(j, kept->json, "%s: is not JSON (or out of memory)", name);
    for (; end < (const char *)text + n; end++)
        must(j, strchr(" \t\r\n", *end), "%s: text after the JSON value", name);
    refuse_duplicates(j, name, kept->json);
    return kept->json;
}

const cJSON *get(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = find(o, key);
    must(j, v, "%s: is missing", key);
    return v;
}

const cJSON *get_list(job *j, const cJSON *o, const char *key)
{
    must(j, cJSON_IsArray(get(j, o, key)), "%s: is not an array", key);
    return find(o, key);
}

const char *get_text(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    must(j, cJSON_IsString(v) && *v->valuestring, "%s: is not a text", key);
    return v->valuestring;
}

double get_number(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    if (is_text(v, "inf")) return INFINITY;
    must(j, cJSON_IsNumber(v) && isfinite(v->valuedouble), "%s: is not a number", key);
    return v->valuedouble;
}

size_t get_count(job *j, const cJSON *o, const char *key)
{
    const double x = get_number(j, o, key);
    must(j, x >= 0 && x <= 0x1p48 && x == floor(x), "%s: is not a whole number to 2^48", key);
    return (size_t)x;
}

size_t count_or_0(job *j, const cJSON *o, const char *key)
{
    return find(o, key) ? get_count(j, o, key) : 0;
}

bool flag(const cJSON *o, const char *key)
{
    return cJSON_IsTrue(find(o, key));
}

uint64_t get_seed(job *j, const cJSON *o, const char *key)
{
    const char *const s = get_text(j, o, key);
    const uint64_t v = strtoull(s, NULL, 10);
    must(j, same(s, words(j, "%llu", (unsigned long long)v)), "%s: is not 64 bits in digits", key);
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

uint32_t *philox_order(job *j, philox *p, size_t n, bool shuffled)
{
    uint32_t *const v = take(j, n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = (uint32_t)i;
    for (size_t i = n; shuffled && i > 1; i--) {
        const size_t k = (size_t)philox_below(p, i);
        const uint32_t swapped = v[i - 1];
        v[i - 1] = v[k];
        v[k] = swapped;
    }
    return v;
}
