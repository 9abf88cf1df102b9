/* What the results of a call do to the sums of their rows, four rows at a time (with vectors wider
 * than the CPU's, compilers go through memory). Of calls with a reference: they are divided by what
 * the reference weighs. Of partial results: the larger of two maxima stays, and what belongs to the
 * smaller one fades by e^-|m - top|.
 *
 *     n = round(x / ln 2),  r = x - n ln 2  (ln 2 in two parts, n times the first is exact),
 *     e^x = 2^n (1 + r + r^2 (1/2! + r/3! + ... + r^11/13!)),
 *
 * whose series is cut at 4e-18 for |r| <= ln 2 / 2: with the roundings within 1.5 ulp. It is added
 * up in pairs, then pairs of these, which wait for one another less than its terms one by one. What
 * would be subnormal is 0. No operation is fused: the same bits on every CPU. */
#include "rounds.h"
#include <math.h>
#include <pare/vexp.h>

#define INLINE static inline __attribute__((always_inline))

typedef double quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef float quad32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int64_t whole __attribute__((vector_size(32), aligned(8), may_alias));

/* *x <= 0, or a nan, which stays one. */
INLINE void exponential(quad *x)
{
    static const double series[6][2] = {{1. / 2, 1. / 6},
                                        {1. / 24, 1. / 120},
                                        {1. / 720, 1. / 5040},
                                        {1. / 40320, 1. / 362880},
                                        {1. / 3628800, 1. / 39916800},
                                        {1. / 479001600, 1. / 6227020800}};
    const quad round = (quad){0} + 0x1.8p52;
    const whole lost = *x < -708.0;
    const quad c = (quad)((whole)*x & ~lost);
    const quad z = c * 0x1.71547652b82fep0 + round, n = z - round;
    const quad r = (c - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    const quad r2 = r * r, r4 = r2 * r2;
    quad p[6];
#pragma GCC unroll 6
    for (size_t i = 0; i < 6; i++) p[i] = series[i][1] * r + series[i][0];
#pragma GCC unroll 3
    for (size_t i = 0; i < 6; i += 2) p[i] += p[i + 1] * r2;
    const quad sum = (p[0] + p[2] * r4) + p[4] * (r4 * r4);
    const quad e = 1.0 + (r + r2 * sum);
    const whole power = (((whole)z - (whole)round) + 1023) << 52; /* the low bits of z are n */
    *x = (quad)((whole)(e * (quad)power) & ~lost);
}

/* when ? a : b. A macro, since functions cannot hand vectors on: how they would differs by CPU. */
#define CHOOSE(when, a, b) ((quad)(((whole)(a) & (when)) | ((whole)(b) & ~(when))))

INLINE void load(quad *out, const void *v, size_t i, const bool f32)
{
    *out = f32 ? __builtin_convertvector(*(const quad32 *)((const float *)v + i), quad)
               : *(const quad *)((const double *)v + i);
}

INLINE void load_few(double *out, const void *v, size_t i, size_t n, const bool f32)
{
    for (size_t p = 0; p < n; p++)
        out[p] = f32 ? (double)((const float *)v)[i + p] : ((const double *)v)[i + p];
}

INLINE void fade_four(const fading *f, size_t i, const bool f32)
{
    const quad one = (quad){0} + 1.0, none = (quad){0} + (double)NAN;
    quad m, l, top = *(const quad *)(f->top + i);
    load(&m, f->m, i, f32);
    load(&l, f->l, i, f32);
    quad fade = (quad)((whole)(m - top) | (whole) - (quad){0}); /* -|m - top| */
    const whole higher = m > top, some = l > 0.0;
    l += m - m; /* 0, or nan */
    exponential(&fade);
    const quad keep = CHOOSE(higher, fade, one), by = CHOOSE(higher, one, fade);
    *(quad *)(f->top + i) = CHOOSE(higher, m, top);
    *(quad *)(f->keep + i) = keep;
    *(quad *)(f->by + i) = by;
    *(quad *)(f->den + i) = keep * *(const quad *)(f->den + i) + by * CHOOSE(some, l, none);
}

/* The last few rows, among others that say nothing. */
INLINE void fade_few(const fading *f, size_t i, size_t n, const bool f32)
{
    double m[4] = {0}, l[4] = {0}, top[4] = {0}, den[4] = {0}, keep[4], by[4];
    const fading few = {m, l, top, den, keep, by};
    const size_t bytes = n * sizeof(double);
    load_few(m, f->m, i, n, f32);
    load_few(l, f->l, i, n, f32);
    memcpy(top, f->top + i, bytes);
    memcpy(den, f->den + i, bytes);
    fade_four(&few, 0, false);
    memcpy(f->top + i, top, bytes);
    memcpy(f->den + i, den, bytes);
    memcpy(f->keep + i, keep, bytes);
    memcpy(f->by + i, by, bytes);
}

INLINE void fade_all(const fading *f, size_t n, bool f32)
{
    size_t i = 0;
    for (; f32 && i + 4 <= n; i += 4) fade_four(f, i, true);
    for (; i + 4 <= n; i += 4) fade_four(f, i, false);
    if (i < n) fade_few(f, i, n - i, f32);
}

/* ---- calls with a reference ------------------------------------------------------------------ */

INLINE void share_four(const sharing *s, size_t i, const bool f32)
{
    const quad none = (quad){0} + (double)NAN;
    quad mass, w;
    load(&mass, s->keys, i, f32);
    load(&w, s->reference, i, f32);
    /* Signs tell whether w >= least, mass >= 0 and w + mass <= most (compilers take `and` of three
     * comparisons apart); a nan is none of it: it stays one. */
    const whole signs = (whole)(w - s->least) | (whole)(mass + 0.0) | (whole)(s->most - (w + mass));
    const whole low_or_high = signs < 0;
    const quad times = 1.0 / CHOOSE(low_or_high, none, w + mass * 0.0);
    const whole sound = times > 0.0;
    *(quad *)(s->keep + i) = (quad){0} + 1.0;
    *(quad *)(s->by + i) = (quad)((whole)times & sound);
    *(quad *)(s->den + i) += mass * times;
}

/* The last few rows, among others that say nothing. */
INLINE void share_few(const sharing *s, size_t i, size_t n, const bool f32)
{
    double keys[4] = {0}, reference[4] = {0}, den[4] = {0}, keep[4], by[4];
    const sharing few = {keys, reference, den, keep, by, s->least, s->most};
    load_few(keys, s->keys, i, n, f32);
    load_few(reference, s->reference, i, n, f32);
    memcpy(den, s->den + i, n * sizeof *den);
    share_four(&few, 0, false);
    memcpy(s->den + i, den, n * sizeof *den);
    memcpy(s->keep + i, keep, n * sizeof *keep);
    memcpy(s->by + i, by, n * sizeof *by);
}

INLINE void share_all(const sharing *s, size_t n, bool f32)
{
    size_t i = 0;
    for (; f32 && i + 4 <= n; i += 4) share_four(s, i, true);
    for (; i + 4 <= n; i += 4) share_four(s, i, false);
    if (i < n) share_few(s, i, n - i, f32);
}

/* ---- for this CPU ---------------------------------------------------------------------------- */

static void fade_portable(const fading *f, size_t n, bool f32)
{
    fade_all(f, n, f32);
}

static void share_portable(const sharing *s, size_t n, bool f32)
{
    share_all(s, n, f32);
}

#if defined(__x86_64__)
PARE_AVX2 static void share_avx2(const sharing *s, size_t n, bool f32)
{
    share_all(s, n, f32);
}

PARE_AVX2 static void fade_avx2(const fading *f, size_t n, bool f32)
{
    fade_all(f, n, f32);
}

#endif

size_t fade_variants(fade_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = fade_avx2;
#endif
    out[n++] = fade_portable;
    return n;
}

size_t share_variants(share_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = share_avx2;
#endif
    out[n++] = share_portable;
    return n;
}

void share_rows(const sharing *s, size_t n, bool f32)
{
    share_fn *v[3];
    share_variants(v);
    v[0](s, n, f32);
}

void fade_rows(const fading *f, size_t n, bool f32)
{
    fade_fn *v[3];
    fade_variants(v);
    v[0](f, n, f32);
}
