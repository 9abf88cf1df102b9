/* files.c - memory, failures, messages, files, hashes, JSON and random numbers. */
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

_Noreturn void fail(job *j, int code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(j->t.text, sizeof j->t.text, format, list);
    va_end(list);
    j->t.code = code;
    longjmp(*j->escape, 1);
}

static chunk *take_block(job *j, size_t n, size_t size)
{
    size_t total;
    chunk *b = NULL;
    if (!__builtin_mul_overflow(n, size, &total) && total < SIZE_MAX / 2)
        b = calloc(1, sizeof *b + total);
    if (!b) fail(j, UNREADABLE, "out of memory");
    b->next = j->memory;
    return j->memory = b;
}

void *take(job *j, size_t n, size_t size)
{
    return take_block(j, n, size)->data;
}

/* Zeros in memory are balls of value 0; arb_clear frees what they have grown to. */
arb_ptr take_balls(job *j, size_t n)
{
    if (n > j->o->most_balls) fail(j, UNREADABLE, "%zu balls are too many", n);
    chunk *const b = take_block(j, n, sizeof(arb_struct));
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

static const char *words_of(job *j, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *const text = take(j, (size_t)(n > 0 ? n : 0) + 1, 1);
    vsnprintf(text, (size_t)n + 1, format, list);
    return text;
}

const char *words(job *j, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *const text = words_of(j, format, list);
    va_end(list);
    return text;
}

void state(job *j, verdict v, const char *what, const char *format, ...)
{
    statement *const s = take(j, 1, sizeof *s);
    va_list list;
    va_start(list, format);
    *s = (statement){v, words(j, "%s%s", j->link, what), words_of(j, format, list), NULL};
    va_end(list);
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

/* ---- files ----------------------------------------------------------------------------------- */

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
        if (!j->o->read(j->o->self, path, &out, &j->t)) longjmp(*j->escape, 1);
        return out;
    }
    if (stat(path, &s)) fail(j, UNREADABLE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) fail(j, UNREADABLE, "%s: is not a regular file", path);
    out.n = (size_t)s.st_size;
    void *const v = take(j, out.n + 1, 1);
    FILE *const f = fopen(path, "rb");
    if (!f) fail(j, UNREADABLE, "%s: %s", path, strerror(errno));
    const size_t got = fread(v, 1, out.n, f);
    fclose(f);
    if (got != out.n) fail(j, UNREADABLE, "%s: cannot be read to its end", path);
    out.v = v;
    return out;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

void hash_u64(SHA256_CTX *h, uint64_t v)
{
    unsigned char b[8];
    for (int i = 0; i < 8; i++) b[i] = (unsigned char)(v >> 8 * i);
    SHA256_Update(h, b, 8);
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

bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

const cJSON *find(const cJSON *o, const char *key)
{
    return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

bool is_text(const cJSON *v, const char *text)
{
    return cJSON_IsString(v) && strcmp(v->valuestring, text) == 0;
}

/* No key twice: of each, the first of that name is the key itself. */
static void refuse_duplicates(job *j, const char *name, const cJSON *o)
{
    if (cJSON_IsObject(o) && cJSON_GetArraySize(o) > MOST_KEYS)
        fail(j, UNREADABLE, "%s: more than %d keys", name, MOST_KEYS);
    for (const cJSON *c = o->child; c; c = c->next) {
        if (cJSON_IsObject(o) && find(o, c->string) != c)
            fail(j, UNREADABLE, "%s: the key \"%.60s\" is there twice", name, c->string);
        refuse_duplicates(j, name, c);
    }
}

cJSON *parse_json(job *j, const char *name, const void *text, size_t n)
{
    const char *end = NULL;
    chunk *const kept = take_block(j, 0, 0);
    if (memchr(text, 0, n) || memmem(text, n, "\\u0000", 6))
        fail(j, UNREADABLE, "%s: a NUL in JSON text", name);
    kept->json = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (!kept->json) fail(j, UNREADABLE, "%s: is not JSON (or out of memory)", name);
    for (; end < (const char *)text + n; end++)
        if (!strchr(" \t\r\n", *end)) fail(j, UNREADABLE, "%s: text after the JSON value", name);
    refuse_duplicates(j, name, kept->json);
    return kept->json;
}

const cJSON *get(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = find(o, key);
    if (!v) fail(j, UNREADABLE, "%s: is missing", key);
    return v;
}

const cJSON *get_list(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    if (!cJSON_IsArray(v)) fail(j, UNREADABLE, "%s: is not an array", key);
    return v;
}

size_t get_count(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    const double x = cJSON_IsNumber(v) ? v->valuedouble : -1;
    if (!(x >= 0 && x <= 0x1p48 && x == floor(x)))
        fail(j, UNREADABLE, "%s: is not a whole number from 0 to 2^48", key);
    return (size_t)x;
}

const char *get_text(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    if (!cJSON_IsString(v) || !*v->valuestring) fail(j, UNREADABLE, "%s: is not a text", key);
    return v->valuestring;
}

const char *get_hash(job *j, const cJSON *o, const char *key)
{
    const char *const s = get_text(j, o, key);
    if (strlen(s) != 64 || strspn(s, "0123456789abcdef") != 64)
        fail(j, UNREADABLE, "%s: is not 64 lower-case hex digits", key);
    return s;
}

double get_number(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    if (is_text(v, "inf")) return INFINITY;
    if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
        fail(j, UNREADABLE, "%s: is not a number", key);
    return v->valuedouble;
}

uint64_t get_seed(job *j, const cJSON *o, const char *key)
{
    const char *const s = get_text(j, o, key);
    uint64_t v = 0;
    bool good = s[0] != '0' || !s[1];
    for (const char *p = s; good && *p; p++)
        good = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(v, 10u, &v) &&
               !__builtin_add_overflow(v, (uint64_t)(*p - '0'), &v);
    if (!good) fail(j, UNREADABLE, "%s: is not a number of 64 bits in digits", key);
    return v;
}

/* ---- Philox4x32-10 --------------------------------------------------------------------------- */

philox philox_at(uint64_t seed, uint64_t stream)
{
    return (philox){.seed = seed, .stream = stream, .used = 4};
}

static uint32_t philox_u32(philox *p)
{
    if (p->used == 4) {
        uint32_t c[4] = {(uint32_t)p->block, (uint32_t)(p->block >> 32), (uint32_t)p->stream,
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
        memcpy(p->word, c, sizeof c);
        p->block++;
        p->used = 0;
    }
    return p->word[p->used++];
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

double philox_normal(philox *p)
{
    const double radius = sqrt(-2 * log(1 - philox_uniform(p)));
    return radius * cos(6.283185307179586476925 * philox_uniform(p));
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
