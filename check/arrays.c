/* arrays.c - numbers of every type become doubles: .npy arrays in C order, and .npz, a zip of them,
 * stored or deflated. */
#include "check.h"

#include <zlib.h>

enum { MOST_RATIO = 1040 }; /* deflate does not shrink further: a small file is no bomb */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers of files are copied as they are");

uint64_t whole_at(const unsigned char *p, size_t item)
{
    uint64_t v = 0;
    memcpy(&v, p, item);
    return v;
}

/* f16 has 5 bits of exponent, bf16 is the upper half of an f32. */
static double number_at(const unsigned char *p, char type, size_t item)
{
    const uint64_t v = whole_at(p, item), sign = UINT64_C(1) << (8 * item - 1);
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

void fill_array(array *a, bytes data, char type, size_t item)
{
    size_t size = item;
    bool fits = true;
    for (size_t i = 0; i < a->ndim; i++)
        fits = fits && !__builtin_mul_overflow(size, a->shape[i], &size);
    must(fits && size == data.n, "%s: its shape does not fit its %zu bytes", a->name, data.n);
    a->count = size / item;
    a->whole = strchr("iub", type);
    double *const v = take(a->count + 1, sizeof *v);
    for (size_t i = 0; i < a->count; i++) v[i] = number_at(data.v + i * item, type, item);
    a->v = v;
}

/* The header is what numpy writes: its keys in this order. */
array read_npy(const char *name, bytes file)
{
    array a = {.name = name};
    const size_t wide = file.n >= 12 && file.v[6] == 1 ? 2 : 4; /* of the header's length */
    const size_t n = file.n >= 12 ? whole_at(file.v + 8, wide) : 0;
    must(file.n >= 12 && memcmp(file.v, "\x93NUMPY", 6) == 0 && file.v[6] >= 1 && file.v[6] <= 3 &&
             n <= file.n - 8 - wide && n <= 100000,
         "%s: is no .npy array", name);
    const bytes data = {file.v + 8 + wide + n, file.n - 8 - wide - n};
    char *const header = take(n + 1, 1), *end, type = 0, digit = 0;
    int at = 0;
    memcpy(header, data.v - n, n);
    sscanf(header, "{'descr': '%*1[<|=]%c%c', 'fortran_order': False, 'shape': (%n", &type, &digit,
           &at);
    const size_t item = (size_t)digit - '0';
    const char *const sizes = type == 'f' ? "248" : type == 'b' ? "1" : "1248";
    must(at && strchr("fiub", type) && strchr(sizes, digit), "%s: another type or order", name);
    for (const char *p = header + at; *(p += strspn(p, " ,")) != ')'; p = end) {
        const unsigned long long size = strtoull(p, &end, 10);
        must(end != p && a.ndim < 4, "%s: more than four dimensions", name);
        a.shape[a.ndim++] = size;
    }
    fill_array(&a, data, type, item);
    return a;
}

/* ---- .npz ------------------------------------------------------------------------------------ */

static bool inflate_to(bytes packed, unsigned char *to, size_t n)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.v,
                  .avail_in = (uInt)packed.n,
                  .next_out = to,
                  .avail_out = (uInt)n};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
    const int result = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return result == Z_STREAM_END && z.total_out == n;
}

/* One entry of the central directory, which begins at p; both sizes are below 4 GB. */
static array read_member(const char *name, bytes file, const unsigned char *p)
{
    const size_t packing = whole_at(p + 10, 2), packed = whole_at(p + 20, 4),
                 size = whole_at(p + 24, 4);
    const size_t at = whole_at(p + 42, 4);
    char *const own = take(whole_at(p + 28, 2) + 1, 1);
    memcpy(own, p + 46, whole_at(p + 28, 2));
    char *const suffix = strstr(own, ".npy");
    if (suffix) *suffix = 0;
    name = words("%s: %.80s", name, own);
    bool good = at + 30 <= file.n && whole_at(file.v + at, 4) == 0x04034b50;
    const size_t data =
        good ? at + 30 + whole_at(file.v + at + 26, 2) + whole_at(file.v + at + 28, 2) : 0;
    good = good && data <= file.n && packed <= file.n - data && size / MOST_RATIO <= packed &&
           (packing == 8 || (packing == 0 && packed == size));
    bytes content = {file.v + data, packed};
    if (good && packing == 8) {
        unsigned char *const to = take(size + 1, 1);
        good = inflate_to(content, to, size);
        content = (bytes){to, size};
    }
    must(good && crc32(0, content.v, (uInt)content.n) == whole_at(p + 16, 4),
         "%s: is damaged (or out of memory)", name);
    array a = read_npy(name, content);
    a.name = own;
    return a;
}

arrays read_npz(const char *name, bytes file)
{
    arrays z = {0};
    size_t end = file.n >= 22 ? file.n - 22 : 0;
    while (end > 0 && file.n - end < 70000 && whole_at(file.v + end, 4) != 0x06054b50) end--;
    must(file.n >= 22 && whole_at(file.v + end, 4) == 0x06054b50, "%s: is no .npz", name);
    const size_t n = whole_at(file.v + end + 10, 2);
    size_t at = whole_at(file.v + end + 16, 4);
    z.list = take(n + 1, sizeof *z.list);
    while (z.n < n) {
        must(at <= file.n && file.n - at >= 46 && whole_at(file.v + at, 4) == 0x02014b50 &&
                 file.n - at - 46 >= whole_at(file.v + at + 28, 2),
             "%s: is a damaged .npz", name);
        z.list[z.n++] = read_member(name, file, file.v + at);
        at += 46 + whole_at(file.v + at + 28, 2) + whole_at(file.v + at + 30, 2) +
              whole_at(file.v + at + 32, 2);
    }
    return z;
}

array *find_array(arrays a, const char *name)
{
    for (size_t i = 0; i < a.n; i++)
        if (same(a.list[i].name, name)) return a.list + i;
    return NULL;
}

const array *get_array(arrays a, const char *name, size_t ndim, size_t rows, size_t cols,
                       bool whole)
{
    const array *const x = find_array(a, name);
    must(x && x->ndim == ndim && (!rows || x->shape[0] == rows) &&
             (!cols || x->shape[ndim - 1] == cols) && (!whole || x->whole),
         "the array %s is missing or does not fit" UNPACK, name);
    return x;
}
