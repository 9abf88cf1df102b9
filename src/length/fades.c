/* e^x in f64 for x <= 0, eight at a time: what a merge multiplies by when a row's largest logit
 * moves.
 *
 *     n = round(x / ln 2),  r = x - n ln 2  (ln 2 in two parts, n times the first is exact),
 *     e^x = 2^n (1 + r + r^2 (1/2! + r/3! + ... + r^11/13!)),
 *
 * whose series is cut at 4e-18 for |r| <= ln 2 / 2: with the roundings within 1.5 ulp. No operation
 * is fused: the same bits on every CPU. What would be subnormal is 0. */
#include "rounds.h"
#include <pare/vexp.h>

#define INLINE static inline __attribute__((always_inline))

typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t whole __attribute__((vector_size(64), aligned(8), may_alias));

INLINE void fade(double *at)
{
    static const double series[] = {1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800,
                                    1. / 362880,     1. / 40320,     1. / 5040,     1. / 720,
                                    1. / 120,        1. / 24,        1. / 6,        1. / 2};
    const eight round = (eight){0} + 0x1.8p52, none = {0};
    const eight x = *(const eight *)at;
    const whole lost = x < -708.0;
    const eight c = (eight)((whole)x & ~lost);
    const eight z = c * 0x1.71547652b82fep0 + round, n = z - round;
    const eight r = (c - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    eight p = none;
#pragma GCC unroll 12
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) p = p * r + series[i];
    const eight e = 1.0 + (r + r * r * p);
    const whole power = (((whole)z - (whole)round) + 1023) << 52; /* the low bits of z are n */
    *(eight *)at = (eight)((whole)(e * (eight)power) & ~lost);
}

INLINE void fade_all(double *x, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) fade(x + i);
    if (i == n) return;
    double last[8] = {0};
    memcpy(last, x + i, (n - i) * sizeof *x);
    fade(last);
    memcpy(x + i, last, (n - i) * sizeof *x);
}

static void fades_portable(double *x, size_t n)
{
    fade_all(x, n);
}

#if defined(__x86_64__)
PARE_AVX2 static void fades_avx2(double *x, size_t n)
{
    fade_all(x, n);
}

PARE_AVX512 static void fades_avx512(double *x, size_t n)
{
    fade_all(x, n);
}
#endif

size_t fades_variants(fades_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) out[n++] = fades_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = fades_avx2;
#endif
    out[n++] = fades_portable;
    return n;
}

void fades(double *x, size_t n)
{
    fades_fn *v[3];
    fades_variants(v);
    v[0](x, n);
}
