/* arrays.c - numbers of every type become doubles: .npy arrays in C order, and .npz, a zip of them,
 * stored or deflated. */
#include "check.h"

#include <zlib.h>

enum { MOST_RATIO = 1040 }; /* deflate does not shrink further: a small file is no bomb */

/* f16 has 5 bits of exponent, bf16 is the upper half of an f32. */
double number_at(const unsigned char *p, char type, size_t item)
{
    uint64_t v = 0;
    const uint64_t sign = UINT64_C(1) << (8 * item - 1);
    for (size_t k = 0; k < item; k++) v |= (uint64_t)p[k] << 8 * k;
    if (type == 'i') return (double)(int64_t)((v ^ sign) - sign);
    if (type != 'f' && type != 'h') return (double)v;
    if (type == 'f' && item == 2) {
        const int e = (int)(v >> 10 & 31), m = (int)(v & 1023);
        const double x = e == 31 ? INFINITY : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
        return v & sign ? -x : x;
    }
    const uint32_t word = (uint32_t)(type == 'h' ? v << 16 : v);
    float single;
    double d;
    memcpy(&single, &word, sizeof single);
    memcpy(&d, &v, sizeof d);
    return item == 8 ? d : (double)single;
}

/* The header is what numpy writes: its keys in this order. */
array read_npy(const char *name, bytes file)
{
    array a = {.name = name, .count = 1};
    const size_t wide = file.n >= 12 && file.v[6] == 1 ? 2 : 4; /* of the header's length */
    const size_t n = file.n >= 12 ? (size_t)number_at(file.v + 8, 'u', wide) : 0;
    must(file.n >= 12 && memcmp(file.v, "\x93NUMPY", 6) == 0 && file.v[6] >= 1 && file.v[6] <= 3 &&
             n <= file.n - 8 - wide && n <= 100000,
         "%s: is no .npy array", name);
    const unsigned char *const data = file.v + 8 + wide + n;
    char *const header = take(n + 1, 1), *end, type = 0, digit = 0;
    int at = 0;
    memcpy(header, file.v + 8 + wide, n);
    sscanf(header, "{'descr': '%*1[<|=]%c%c', 'fortran_order': False, 'shape': (%n", &type, &digit,
           &at);
    const size_t item = (size_t)digit - '0';
    must(at && (type == 'f'
                    ? item == 4 || item == 8
                    : (strchr("iu", type) && strchr("1248", digit)) || (type == 'b' && item == 1)),
         "%s: a type or an order that this program does not read", name);
    for (const char *p = header + at; *(p += strspn(p, " ,")) != ')'; p = end) {
        const unsigned long long size = strtoull(p, &end, 10);
        must(end != p && size <= (1ull << 48) && a.ndim < 4 &&
                 !__builtin_mul_overflow(a.count, (size_t)size, &a.count),
             "%s: a shape that this program does not read", name);
        a.shape[a.ndim++] = (size_t)size;
    }
    must(a.count <= file.n && a.count * item == file.n - 8 - wide - n,
         "%s: %zu numbers do not fill the array", name, a.count);
    double *const v = take(a.count + 1, sizeof *v);
    for (size_t i = 0; i < a.count; i++) v[i] = number_at(data + i * item, type, item);
    a.whole = type != 'f';
    a.v = v;
    return a;
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
static array read_member(const char *name, bytes file, const unsigned char *p)
{
    const uint32_t packing = u16_at(p + 10), packed = u32_at(p + 20), size = u32_at(p + 24);
    const size_t at = u32_at(p + 42);
    char *const own = take((size_t)u16_at(p + 28) + 1, 1);
    memcpy(own, p + 46, u16_at(p + 28));
    char *const suffix = strstr(own, ".npy");
    if (suffix) *suffix = 0;
    name = words("%s: %.80s", name, own);
    bool good = at + 30 <= file.n && u32_at(file.v + at) == 0x04034b50;
    const size_t data = good ? at + 30 + u16_at(file.v + at + 26) + u16_at(file.v + at + 28) : 0;
    good = good && data <= file.n && packed <= file.n - data && size / MOST_RATIO <= packed &&
           (packing == 8 || (packing == 0 && packed == size));
    bytes content = {file.v + data, packed};
    if (good && packing == 8) {
        unsigned char *const to = take((size_t)size + 1, 1);
        good = inflate_to(content, to, size);
        content = (bytes){to, size};
    }
    must(good && crc32(0, content.v, (uInt)content.n) == u32_at(p + 16),
         "%s: is damaged (or out of memory)", name);
    array a = read_npy(name, content);
    a.name = own;
    return a;
}

arrays read_npz(const char *name, bytes file)
{
    arrays z = {0};
    size_t end = file.n >= 22 ? file.n - 22 : 0;
    while (end > 0 && file.n - end < 70000 && u32_at(file.v + end) != 0x06054b50) end--;
    must(file.n >= 22 && u32_at(file.v + end) == 0x06054b50, "%s: is no .npz", name);
    const size_t n = u16_at(file.v + end + 10);
    size_t at = u32_at(file.v + end + 16);
    z.list = take(n + 1, sizeof *z.list);
    while (z.n < n) {
        must(at <= file.n && file.n - at >= 46 && u32_at(file.v + at) == 0x02014b50 &&
                 file.n - at - 46 >= u16_at(file.v + at + 28),
             "%s: is a damaged .npz", name);
        z.list[z.n++] = read_member(name, file, file.v + at);
        at += 46 + u16_at(file.v + at + 28) + u16_at(file.v + at + 30) + u16_at(file.v + at + 32);
    }
    return z;
}

array *find_array(arrays a, const char *name)
{
    for (size_t i = 0; i < a.n; i++)
        if (same(a.list[i].name, name)) return &a.list[i];
    return NULL;
}

const array *get_array(arrays a, const char *name, size_t ndim, size_t rows, size_t cols,
                       bool whole)
{
    const array *const x = find_array(a, name);
    must(x && x->ndim == ndim && (!rows || x->shape[0] == rows) &&
             (!cols || x->shape[ndim - 1] == cols) && (!whole || x->whole),
         "the array %s is missing or does not fit; perhaps: pare verify CERT --unpack DIR", name);
    return x;
}
