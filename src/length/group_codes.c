/* group_codes.c - group codes, position codes, and the penalty between groups
 * (docs/theory/length.md "Codes"). */
#include "group_codes.h"
#include "numbers.h"
#include <float.h>
#include <math.h>

static uint64_t binomial(uint32_t n, uint32_t k)
{
    uint64_t c = 1;
    for (uint32_t i = 1; i <= k; i++) c = c * (n - k + i) / i;
    return c;
}

uint32_t group_width(size_t groups)
{
    if (groups <= 1) return 0;
    uint32_t w = 2;
    while (binomial(w, w / 2) < groups) w += 2;
    return w;
}

uint64_t group_bits(uint32_t width, size_t g)
{
    uint64_t bits = 0, left = g;
    uint32_t take = width / 2;
    for (uint32_t i = 0; i < width && take; i++) {
        const uint64_t with = binomial(width - 1 - i, take - 1); /* subsets that hold i */
        if (left < with) {
            bits |= (uint64_t)1 << i;
            take--;
        } else {
            left -= with;
        }
    }
    return bits;
}

void put_query_code(pare_dtype t, void *row, size_t at, uint32_t width, uint64_t bits, double p)
{
    for (uint32_t b = 0; b < width; b++) num_put(t, row, at + b, bits >> b & 1 ? 0 : -p);
}

void put_key_code(pare_dtype t, void *row, size_t at, uint32_t width, uint64_t bits)
{
    for (uint32_t b = 0; b < width; b++) num_put(t, row, at + b, bits >> b & 1 ? 1 : 0);
}

uint32_t position_width(size_t n)
{
    uint32_t b = 1;
    while (((uint64_t)1 << b) < n) b++;
    return b;
}

double position_bit(size_t i, uint32_t bit)
{
    return (i >> bit & 1) ? 1 : -1;
}

double position_beta(pare_dtype t)
{
    return t == PARE_F32 ? 64 : 512;
}

double penalty(pare_dtype t, double exp_flush, double lmax)
{
    const bool f32 = t == PARE_F32;
    const double flush = isfinite(exp_flush) ? exp_flush : f32 ? 104 : 746;
    const double need = fmax(2 * lmax + 2 * flush + 32, f32 ? 0x1p13 : 0x1p16);
    double p = 1;
    while (p < need && p < 0x1p1000) p *= 2;
    return p < need || (f32 && p > 0x1p120) ? INFINITY : p;
}
