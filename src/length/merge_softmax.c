/* merge_softmax.c - add one block's partial softmax to the running one, four rows at a time.
 *
 * What is known of a row after some keys is (m, l, acc):
 *
 *     m = max_j s_j,   l = sum_j exp(s_j - m),   acc = sum_j exp(s_j - m) v_j.
 *
 * A new block (m', l', acc') is merged by rescaling the side with the smaller maximum
 * (FlashAttention's update):
 *
 *     M = max(m, m'),   l <- exp(m - M) l + exp(m' - M) l',   acc likewise (accumulate.c).
 *
 * A call with a reference answers the softmax weights r of its keys and w of the reference:
 *
 *     l <- l + r / w,   acc <- acc + acc' / w.
 *
 * exp for x <= 0: with n = round(x / ln 2) and r = x - n ln 2 (ln 2 in two parts; n times the first
 * is exact)
 *
 *     e^x = 2^n (1 + r + r^2 (1/2! + r/3! + ... + r^11/13!)),
 *
 * cut at 4e-18 for |r| <= ln 2 / 2; with the roundings within 1.5 ulp
 * (tests/length/test_merge_softmax.c). The series is summed in pairs, then pairs of these: shorter
 * chains of dependent operations than term by term. Subnormal results are 0. Nothing is fused, so
 * every CPU gives the same bits. Four doubles at a time: with vectors wider than the CPU's,
 * compilers go through memory. */
#include "merge_softmax.h"
#include "numbers.h"
#include <math.h>
#include "base/vexp.h"

#define INLINE static inline __attribute__((always_inline))

typedef int64_t int4 __attribute__((vector_size(32), aligned(8), may_alias));

/* *x <= 0, or a nan, which stays one. */
INLINE void exp_nonpositive(double4 *x)
{
    static const double series[6][2] = {{1. / 2, 1. / 6},
                                        {1. / 24, 1. / 120},
                                        {1. / 720, 1. / 5040},
                                        {1. / 40320, 1. / 362880},
                                        {1. / 3628800, 1. / 39916800},
                                        {1. / 479001600, 1. / 6227020800}};
    const double4 round = (double4){0} + 0x1.8p52;
    const int4 lost = *x < -708.0;
    const double4 c = (double4)((int4)*x & ~lost);
    const double4 z = c * 0x1.71547652b82fep0 + round, n = z - round;
    const double4 r = (c - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
    const double4 r2 = r * r, r4 = r2 * r2;
    double4 p[6];
#pragma GCC unroll 6
    for (size_t i = 0; i < 6; i++) p[i] = series[i][1] * r + series[i][0];
#pragma GCC unroll 3
    for (size_t i = 0; i < 6; i += 2) p[i] += p[i + 1] * r2;
    const double4 sum = (p[0] + p[2] * r4) + p[4] * (r4 * r4);
    const double4 e = 1.0 + (r + r2 * sum);
    const int4 power = (((int4)z - (int4)round) + 1023) << 52; /* the low bits of z are n */
    *x = (double4)((int4)(e * (double4)power) & ~lost);
}

/* when ? a : b. A macro, since functions cannot hand vectors on: how they would differs by CPU. */
#define SELECT(when, a, b) ((double4)(((int4)(a) & (when)) | ((int4)(b) & ~(when))))

INLINE void load(double4 *out, const void *v, size_t i, const bool f32)
{
    *out = f32 ? __builtin_convertvector(*(const float4 *)((const float *)v + i), double4)
               : *(const double4 *)((const double *)v + i);
}

INLINE void load_tail(double *out, const void *v, size_t i, size_t n, const bool f32)
{
    for (size_t p = 0; p < n; p++)
        out[p] = f32 ? (double)((const float *)v)[i + p] : ((const double *)v)[i + p];
}

INLINE void merge_partial4(const partial_merge *f, size_t i, const bool f32)
{
    const double4 one = (double4){0} + 1.0, not_a_number = (double4){0} + (double)NAN;
    double4 m, l, row_max = *(const double4 *)(f->row_max + i);
    load(&m, f->m, i, f32);
    load(&l, f->l, i, f32);
    double4 rescale = (double4)((int4)(m - row_max) | (int4) - (double4){0}); /* -|m - row_max| */
    const int4 higher = m > row_max, positive = l > 0.0;
    l += m - m; /* 0, or nan */
    exp_nonpositive(&rescale);
    const double4 scale_old = SELECT(higher, rescale, one),
                  scale_new = SELECT(higher, one, rescale);
    *(double4 *)(f->row_max + i) = SELECT(higher, m, row_max);
    *(double4 *)(f->scale_old + i) = scale_old;
    *(double4 *)(f->scale_new + i) = scale_new;
    *(double4 *)(f->weight_sum + i) = scale_old * *(const double4 *)(f->weight_sum + i) +
                                      scale_new * SELECT(positive, l, not_a_number);
}

/* The last few rows, among others that say nothing. */
INLINE void merge_partial_tail(const partial_merge *f, size_t i, size_t n, const bool f32)
{
    double m[4] = {0}, l[4] = {0}, row_max[4] = {0}, weight_sum[4] = {0}, scale_old[4],
           scale_new[4];
    const partial_merge few = {m, l, row_max, weight_sum, scale_old, scale_new};
    const size_t bytes = n * sizeof(double);
    load_tail(m, f->m, i, n, f32);
    load_tail(l, f->l, i, n, f32);
    memcpy(row_max, f->row_max + i, bytes);
    memcpy(weight_sum, f->weight_sum + i, bytes);
    merge_partial4(&few, 0, false);
    memcpy(f->row_max + i, row_max, bytes);
    memcpy(f->weight_sum + i, weight_sum, bytes);
    memcpy(f->scale_old + i, scale_old, bytes);
    memcpy(f->scale_new + i, scale_new, bytes);
}

INLINE void merge_partial(const partial_merge *f, size_t n, bool f32)
{
    size_t i = 0;
    for (; f32 && i + 4 <= n; i += 4) merge_partial4(f, i, true);
    for (; i + 4 <= n; i += 4) merge_partial4(f, i, false);
    if (i < n) merge_partial_tail(f, i, n - i, f32);
}

/* ---- calls with a reference ------------------------------------------------------------------ */

INLINE void merge_reference4(const reference_merge *s, size_t i, const bool f32)
{
    const double4 not_a_number = (double4){0} + (double)NAN;
    double4 mass, w;
    load(&mass, s->keys, i, f32);
    load(&w, s->reference, i, f32);
    /* Signs tell whether w >= least, mass >= 0 and w + mass <= most (compilers take `and` of three
     * comparisons apart); a nan is not_a_number of it: it stays one. */
    const int4 signs = (int4)(w - s->least) | (int4)(mass + 0.0) | (int4)(s->most - (w + mass));
    const int4 low_or_high = signs < 0;
    const double4 times = 1.0 / SELECT(low_or_high, not_a_number, w + mass * 0.0);
    const int4 sound = times > 0.0;
    *(double4 *)(s->scale_old + i) = (double4){0} + 1.0;
    *(double4 *)(s->scale_new + i) = (double4)((int4)times & sound);
    *(double4 *)(s->weight_sum + i) += mass * times;
}

/* The last few rows, among others that say nothing. */
INLINE void merge_reference_tail(const reference_merge *s, size_t i, size_t n, const bool f32)
{
    double keys[4] = {0}, reference[4] = {0}, weight_sum[4] = {0}, scale_old[4], scale_new[4];
    const reference_merge few = {keys,      reference, weight_sum, scale_old,
                                 scale_new, s->least,  s->most};
    load_tail(keys, s->keys, i, n, f32);
    load_tail(reference, s->reference, i, n, f32);
    memcpy(weight_sum, s->weight_sum + i, n * sizeof *weight_sum);
    merge_reference4(&few, 0, false);
    memcpy(s->weight_sum + i, weight_sum, n * sizeof *weight_sum);
    memcpy(s->scale_old + i, scale_old, n * sizeof *scale_old);
    memcpy(s->scale_new + i, scale_new, n * sizeof *scale_new);
}

INLINE void merge_reference(const reference_merge *s, size_t n, bool f32)
{
    size_t i = 0;
    for (; f32 && i + 4 <= n; i += 4) merge_reference4(s, i, true);
    for (; i + 4 <= n; i += 4) merge_reference4(s, i, false);
    if (i < n) merge_reference_tail(s, i, n - i, f32);
}

/* ---- for this CPU ---------------------------------------------------------------------------- */

static void merge_partial_portable(const partial_merge *f, size_t n, bool f32)
{
    merge_partial(f, n, f32);
}

static void merge_reference_portable(const reference_merge *s, size_t n, bool f32)
{
    merge_reference(s, n, f32);
}

#if defined(__x86_64__)
PARE_AVX2 static void merge_reference_avx2(const reference_merge *s, size_t n, bool f32)
{
    merge_reference(s, n, f32);
}

PARE_AVX2 static void merge_partial_avx2(const partial_merge *f, size_t n, bool f32)
{
    merge_partial(f, n, f32);
}

#endif

size_t merge_partial_variants(merge_partial_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX2) out[n++] = merge_partial_avx2;
#endif
    out[n++] = merge_partial_portable;
    return n;
}

size_t merge_reference_variants(merge_reference_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX2) out[n++] = merge_reference_avx2;
#endif
    out[n++] = merge_reference_portable;
    return n;
}

void merge_reference_rows(const reference_merge *s, size_t n, bool f32)
{
    merge_reference_fn *v[3];
    merge_reference_variants(v);
    v[0](s, n, f32);
}

void merge_partial_rows(const partial_merge *f, size_t n, bool f32)
{
    merge_partial_fn *v[3];
    merge_partial_variants(v);
    v[0](f, n, f32);
}
