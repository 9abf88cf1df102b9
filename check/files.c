/* files.c - memory, messages, files, hashes, JSON and random numbers. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const verdict_words[VERDICTS] = {"confirmed", "REFUTED", "not refuted", "not checked"};

/* ---- memory and messages --------------------------------------------------------------------- */

struct block {
    block *next;
    max_align_t data[];
};

bool fail(job *j, int code, const char *format, ...)
{
    if (j->t.code) return false;
    va_list list;
    va_start(list, format);
    vsnprintf(j->t.text, sizeof j->t.text, format, list);
    va_end(list);
    j->t.code = code;
    return false;
}

void *take(job *j, size_t n, size_t size)
{
    size_t total;
    block *b = NULL;
    if (!__builtin_mul_overflow(n, size, &total) && total < SIZE_MAX / 2)
        b = calloc(1, sizeof *b + total);
    if (!b) {
        fail(j, UNREADABLE, "out of memory");
        return NULL;
    }
    b->next = j->blocks;
    j->blocks = b;
    return b->data;
}

void give_back(job *j)
{
    while (j->blocks) {
        block *const next = j->blocks->next;
        free(j->blocks);
        j->blocks = next;
    }
    free(j->report.list);
    j->report = (report){0};
}

static const char *words_of(job *j, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *const text = take(j, (size_t)(n > 0 ? n : 0) + 1, 1);
    if (text) vsnprintf(text, (size_t)n + 1, format, list);
    return text ? text : "";
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
    report *const r = &j->report;
    if (j->t.code) return;
    if (r->n == r->capacity) {
        const size_t capacity = r->capacity ? 2 * r->capacity : 32;
        statement *const list = realloc(r->list, capacity * sizeof *list);
        if (!list) {
            fail(j, UNREADABLE, "out of memory");
            return;
        }
        r->list = list;
        r->capacity = capacity;
    }
    va_list list;
    va_start(list, format);
    const char *const why = words_of(j, format, list);
    va_end(list);
    const char *const full = words(j, "%s%s", j->link ? j->link : "", what);
    if (j->t.code) return;
    r->list[r->n++] = (statement){v, full, why};
    r->count[v]++;
}

/* ---- files ----------------------------------------------------------------------------------- */

bool file_exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

static bool read_all(job *j, const char *path, int fd, bytes *out)
{
    struct stat s;
    if (fstat(fd, &s) != 0) return fail(j, UNREADABLE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return fail(j, UNREADABLE, "%s: is not a regular file", path);
    unsigned char *const v = take(j, (size_t)s.st_size + 1, 1);
    size_t n = 0;
    while (v && n < (size_t)s.st_size) {
        const ssize_t got = read(fd, v + n, (size_t)s.st_size - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return fail(j, UNREADABLE, "%s: cannot be read to its end", path);
        n += (size_t)got;
    }
    *out = (bytes){v, n};
    return v != NULL;
}

bool read_file(job *j, const char *path, bytes *out)
{
    if (j->t.code) return false;
    if (j->o->read) return j->o->read(j->o->self, path, out, &j->t);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail(j, UNREADABLE, "%s: %s", path, strerror(errno));
    const bool good = read_all(j, path, fd, out);
    close(fd);
    return good;
}

const char *beside(job *j, const char *folder, const char *path)
{
    if (path[0] == '/' || !*folder) return path;
    return words(j, "%s/%s", folder, path);
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

/* ---- JSON ------------------------------------------------------------------------------------ */

static int by_string(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* No key twice: in every object the sorted keys are compared. cJSON limits the depth to 1000. */
static bool no_duplicates(job *j, const char *name, const cJSON *o)
{
    const size_t n = cJSON_IsObject(o) ? (size_t)cJSON_GetArraySize(o) : 0;
    const char **const keys = n > 1 ? malloc(n * sizeof *keys) : NULL;
    if (n > 1 && !keys) return fail(j, UNREADABLE, "out of memory");
    size_t i = 0;
    for (const cJSON *c = o->child; keys && c; c = c->next) keys[i++] = c->string;
    if (keys) qsort(keys, n, sizeof *keys, by_string);
    for (i = 1; keys && i < n; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            fail(j, UNREADABLE, "%s: the key \"%.60s\" is there twice", name, keys[i]);
    free(keys);
    for (const cJSON *c = o->child; c && !j->t.code; c = c->next)
        if (cJSON_IsObject(c) || cJSON_IsArray(c)) no_duplicates(j, name, c);
    return j->t.code == 0;
}

cJSON *parse_json(job *j, const char *name, const void *text, size_t n)
{
    const char *end = NULL;
    if (j->t.code) return NULL;
    if (memchr(text, 0, n) || memmem(text, n, "\\u0000", 6)) {
        fail(j, UNREADABLE, "%s: a NUL in JSON text", name);
        return NULL;
    }
    cJSON *const root = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (!root) {
        fail(j, UNREADABLE, "%s: is not JSON (or out of memory)", name);
        return NULL;
    }
    for (const char *p = end; p < (const char *)text + n; p++)
        if (!strchr(" \t\r\n", *p)) fail(j, UNREADABLE, "%s: text after the JSON value", name);
    if (j->t.code || !no_duplicates(j, name, root)) {
        cJSON_Delete(root);
        return NULL;
    }
    return root;
}

const cJSON *find(const cJSON *o, const char *key)
{
    return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

bool is_text(const cJSON *v, const char *text)
{
    return cJSON_IsString(v) && strcmp(v->valuestring, text) == 0;
}

const cJSON *get(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = j->t.code ? NULL : find(o, key);
    if (!v) fail(j, UNREADABLE, "%s: is missing", key);
    return v;
}

const cJSON *get_list(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    if (cJSON_IsArray(v)) return v;
    fail(j, UNREADABLE, "%s: is not an array", key);
    return NULL;
}

size_t get_count(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    const double x = cJSON_IsNumber(v) ? v->valuedouble : -1;
    if (x >= 0 && x <= 0x1p48 && x == floor(x)) return (size_t)x;
    fail(j, UNREADABLE, "%s: is not a whole number from 0 to 2^48", key);
    return 0;
}

const char *get_text(job *j, const cJSON *o, const char *key)
{
    const cJSON *const v = get(j, o, key);
    if (cJSON_IsString(v) && *v->valuestring) return v->valuestring;
    fail(j, UNREADABLE, "%s: is not a text", key);
    return "";
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
    if (cJSON_IsNumber(v) && isfinite(v->valuedouble)) return v->valuedouble;
    if (is_text(v, "inf")) return INFINITY;
    fail(j, UNREADABLE, "%s: is not a number", key);
    return NAN;
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

void philox_shuffle(philox *p, uint32_t *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const size_t k = (size_t)philox_below(p, i);
        const uint32_t swapped = v[i - 1];
        v[i - 1] = v[k];
        v[k] = swapped;
    }
}
