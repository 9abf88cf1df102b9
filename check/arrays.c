/* arrays.c - .npy arrays in C order, and .npz: a zip of them, stored or deflated. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST_RATIO = 1040 }; /* deflate does not shrink further: a small file is no bomb */

/* What follows 'KEY': in the header, or "". */
static const char *after_key(const char *header, const char *key)
{
    const char *p = strstr(header, key);
    if (!p) return "";
    p += strlen(key);
    return p + strspn(p, " :");
}

static bool read_shape(const char *p, array *a)
{
    a->count = 1;
    if (*p++ != '(') return false;
    for (;;) {
        p += strspn(p, " ,");
        if (*p == ')') return true;
        if (*p < '0' || *p > '9' || a->ndim == 4) return false;
        char *end;
        const unsigned long long n = strtoull(p, &end, 10);
        if (n > (1ull << 48) || __builtin_mul_overflow(a->count, (size_t)n, &a->count))
            return false;
        a->shape[a->ndim++] = (size_t)n;
        p = end;
    }
}

array read_npy(job *j, const char *name, bytes file)
{
    array a = {0};
    size_t n = 0, size = 0;
    const size_t wide = file.n >= 12 && file.v[6] == 1 ? 2 : 4; /* of the header's length */
    for (size_t i = 0; file.n >= 12 && i < wide; i++) n |= (size_t)file.v[8 + i] << 8 * i;
    must(j,
         file.n >= 12 && memcmp(file.v, "\x93NUMPY", 6) == 0 && file.v[6] >= 1 && file.v[6] <= 3 &&
             n <= file.n - 8 - wide && n <= 100000,
         "%s: is no .npy array", name);
    char *const header = take(j, n + 1, 1);
    memcpy(header, file.v + 8 + wide, n);
    const char *const type = after_key(header, "'descr'");
    must(j,
         strlen(type) >= 5 && strncmp(after_key(header, "'fortran_order'"), "False", 5) == 0 &&
             read_shape(after_key(header, "'shape'"), &a) && type[0] == '\'' &&
             strchr("<|=", type[1]) && strchr("fiub", type[2]) && strchr("1248", type[3]) &&
             type[4] == '\'',
         "%s: a type or a shape that this program does not read", name);
    a.type = type[2];
    a.item = (size_t)(type[3] - '0');
    a.data = file.v + 8 + wide + n;
    must(j,
         (a.type != 'f' || a.item >= 4) && (a.type != 'b' || a.item == 1) &&
             !__builtin_mul_overflow(a.count, a.item, &size) && size == file.n - 8 - wide - n,
         "%s: %zu numbers do not fill the array", name, a.count);
    return a;
}

bool is_integer(const array *a)
{
    return a->type != 'f';
}

int64_t array_integer(const array *a, size_t i)
{
    const unsigned char *const p = a->data + i * a->item;
    uint64_t v = 0;
    for (size_t k = 0; k < a->item; k++) v |= (uint64_t)p[k] << 8 * k;
    if (a->type != 'i' || a->item == 8) return (int64_t)v;
    const uint64_t sign = UINT64_C(1) << (8 * a->item - 1);
    return (int64_t)((v ^ sign) - sign);
}

double array_number(const array *a, size_t i)
{
    const unsigned char *const p = a->data + i * a->item;
    double d;
    float f;
    if (a->type == 'u' && a->item == 8) return (double)(uint64_t)array_integer(a, i);
    if (a->type != 'f') return (double)array_integer(a, i);
    if (a->item == 8) return memcpy(&d, p, 8), d;
    memcpy(&f, p, 4);
    return (double)f;
}

/* ---- .npz ------------------------------------------------------------------------------------ */

static uint32_t u16_at(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32_at(const unsigned char *p)
{
    return u16_at(p) | u16_at(p + 2) << 16;
}

static bool inflate_to(bytes packed, unsigned char *to, uint32_t n)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.v, .next_out = to};
    z.avail_in = (uInt)packed.n;
    z.avail_out = n;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
    const int result = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return result == Z_STREAM_END && z.total_out == n;
}

/* One entry of the central directory, which begins at p; both sizes are below 4 GB. */
static array read_member(job *j, const char *name, bytes file, const unsigned char *p)
{
    const uint32_t packing = u16_at(p + 10), crc = u32_at(p + 16), packed = u32_at(p + 20),
                   size = u32_at(p + 24), at = u32_at(p + 42);
    const size_t length = u16_at(p + 28);
    char *const own = take(j, length + 1, 1);
    memcpy(own, p + 46, length);
    if (length > 4 && strcmp(own + length - 4, ".npy") == 0) own[length - 4] = 0;
    name = words(j, "%s: %.80s", name, own);
    bool good = (size_t)at + 30 <= file.n && u32_at(file.v + at) == 0x04034b50;
    const size_t data =
        good ? (size_t)at + 30 + u16_at(file.v + at + 26) + u16_at(file.v + at + 28) : 0;
    good = good && data <= file.n && packed <= file.n - data && size / MOST_RATIO <= packed &&
           (packing == 8 || (packing == 0 && packed == size));
    bytes content = {file.v + data, packed};
    if (good && packing == 8) {
        unsigned char *const to = take(j, (size_t)size + 1, 1);
        good = inflate_to(content, to, size);
        content = (bytes){to, size};
    }
    must(j, good && crc32(0, content.v, (uInt)content.n) == crc,
         "%s: is damaged (or out of memory)", name);
    array a = read_npy(j, name, content);
    a.name = own;
    return a;
}

npz read_npz(job *j, const char *name, bytes file)
{
    npz z = {0};
    size_t end = file.n >= 22 ? file.n - 22 : 0;
    while (end > 0 && file.n - end < 70000 && u32_at(file.v + end) != 0x06054b50) end--;
    must(j, file.n >= 22 && u32_at(file.v + end) == 0x06054b50, "%s: is no .npz", name);
    const size_t n = u16_at(file.v + end + 10);
    size_t at = u32_at(file.v + end + 16);
    z.list = take(j, n + 1, sizeof *z.list);
    while (z.n < n) {
        must(j,
             at <= file.n && file.n - at >= 46 && u32_at(file.v + at) == 0x02014b50 &&
                 file.n - at - 46 >= u16_at(file.v + at + 28),
             "%s: is a damaged .npz", name);
        z.list[z.n++] = read_member(j, name, file, file.v + at);
        at += 46 + u16_at(file.v + at + 28) + u16_at(file.v + at + 30) + u16_at(file.v + at + 32);
    }
    return z;
}

const array *npz_find(const npz *z, const char *name)
{
    for (size_t i = 0; i < z->n; i++)
        if (strcmp(z->list[i].name, name) == 0) return &z->list[i];
    return NULL;
}
