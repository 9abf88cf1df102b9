/* What partial results do to the sums of their rows, eight rows at a time: the larger of two maxima
 * stays, and what belongs to the smaller one fades by e^-|m - top|.
 *
 *     n = round(x / ln 2),  r = x - n ln 2  (ln 2 in two parts, n times the first is exact),
 *     e^x = 2^n (1 + r + r^2 (1/2! + r/3! + ... + r^11/13!)),
 *
 * whose series is cut at 4e-18 for |r| <= ln 2 / 2: with the roundings within 1.5 ulp. What would
 * be subnormal is 0. No operation is fused: the same bits on every CPU. */
#include "rounds.h"
#include <math.h>
#include <pare/vexp.h>

#define INLINE static inline __attribute__((always_inline))

typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef float eight32 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int64_t whole __attribute__((vector_size(64), aligned(8), may_alias));

/* *x <= 0, or a nan, which stays one. */
INLINE void exponential(eight *x)
{
    static const double series[] = {1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800,
                                    1. / 362880,     1. / 40320,     1. / 5040,     1. / 720,
                                    1. / 120,        1. / 24,        1. / 6,        1. / 2};
    const eight round = (eight){0} + 0x1.8p52;
    const whole lost = *x < -708.0;
    const eight c = (eight)((whole)*x & ~lost);
    const eight z = c * 0x1.71547652b82fep0 + round, n = z - round;
    const eight r = (c - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    eight p = {0};
#pragma GCC unroll 12
    for (size_t i = 0; i < sizeof series / sizeof *series; i++) p = p * r + series[i];
    const eight e = 1.0 + (r + r * r * p);
    const whole power = (((whole)z - (whole)round) + 1023) << 52; /* the low bits of z are n */
    *x = (eight)((whole)(e * (eight)power) & ~lost);
}

/* when ? a : b. A macro, since functions cannot hand vectors on: how they would differs by CPU. */
#define CHOOSE(when, a, b) ((eight)(((whole)(a) & (when)) | ((whole)(b) & ~(when))))

INLINE void load(eight *out, const void *v, size_t i, const bool f32)
{
    *out = f32 ? __builtin_convertvector(*(const eight32 *)((const float *)v + i), eight)
               : *(const eight *)((const double *)v + i);
}

INLINE void fade_eight(const fading *f, size_t i, const bool f32)
{
    const eight one = (eight){0} + 1.0, none = (eight){0} + (double)NAN;
    eight m, l, top = *(const eight *)(f->top + i);
    load(&m, f->m, i, f32);
    load(&l, f->l, i, f32);
    eight fade = (eight)((whole)(m - top) | (whole) - (eight){0}); /* -|m - top| */
    const whole higher = m > top, some = l > 0.0;
    l += m - m; /* 0, or nan */
    exponential(&fade);
    const eight keep = CHOOSE(higher, fade, one), by = CHOOSE(higher, one, fade);
    *(eight *)(f->top + i) = CHOOSE(higher, m, top);
    *(eight *)(f->keep + i) = keep;
    *(eight *)(f->by + i) = by;
    *(eight *)(f->den + i) = keep * *(const eight *)(f->den + i) + by * CHOOSE(some, l, none);
}

/* The last few rows, among others that say nothing. */
INLINE void fade_few(const fading *f, size_t i, size_t n, const bool f32)
{
    double m[8] = {0}, l[8] = {0}, top[8] = {0}, den[8] = {0}, keep[8], by[8];
    const fading few = {m, l, top, den, keep, by};
    const size_t bytes = n * sizeof(double);
    for (size_t p = 0; p < n; p++) {
        m[p] = f32 ? (double)((const float *)f->m)[i + p] : ((const double *)f->m)[i + p];
        l[p] = f32 ? (double)((const float *)f->l)[i + p] : ((const double *)f->l)[i + p];
    }
    memcpy(top, f->top + i, bytes);
    memcpy(den, f->den + i, bytes);
    fade_eight(&few, 0, false);
    memcpy(f->top + i, top, bytes);
    memcpy(f->den + i, den, bytes);
    memcpy(f->keep + i, keep, bytes);
    memcpy(f->by + i, by, bytes);
}

INLINE void fade_all(const fading *f, size_t n, bool f32)
{
    size_t i = 0;
    for (; f32 && i + 8 <= n; i += 8) fade_eight(f, i, true);
    for (; i + 8 <= n; i += 8) fade_eight(f, i, false);
    if (i < n) fade_few(f, i, n - i, f32);
}

static void fade_portable(const fading *f, size_t n, bool f32)
{
    fade_all(f, n, f32);
}

#if defined(__x86_64__)
PARE_AVX2 static void fade_avx2(const fading *f, size_t n, bool f32)
{
    fade_all(f, n, f32);
}

PARE_AVX512 static void fade_avx512(const fading *f, size_t n, bool f32)
{
    fade_all(f, n, f32);
}
#endif

size_t fade_variants(fade_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) out[n++] = fade_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = fade_avx2;
#endif
    out[n++] = fade_portable;
    return n;
}

void fade_rows(const fading *f, size_t n, bool f32)
{
    fade_fn *v[3];
    fade_variants(v);
    v[0](f, n, f32);
}
