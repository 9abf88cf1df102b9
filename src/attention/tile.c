/* tile.c - the inner kernels of dense attention: AVX-512, AVX2 with FMA, and portable.
 *
 * scores and values hold TILE_STEP x v vectors of results in registers and broadcast one number of
 * a key (of a value) to all of them: half a load per product, so that the multiply-adds are the
 * limit. `v` is a constant in each instance: the loops over it are unrolled. The weights of a tile
 * are summed by fours and per tile, so that the rounding error of the sum grows with n / 4, not
 * with n.
 *
 * softmax_backward: a weight is at most 1, but s and lse carry the rounding of numbers as large as
 * the scores: what would come out above 1 is set to 1. A nan passes. */
#include "tile.h"
#include <math.h>
#include "base/vexp.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- portable: four lanes -------------------------------------------------------------------- */

typedef float four __attribute__((vector_size(16), may_alias));

INLINE four spread4(float x)
{
    return (four){x, x, x, x};
}

/* acc (h x v) += a column of h numbers times a row of v vectors, n times; the numbers are
 * `down` apart, their columns `along` apart. */
INLINE void products4(four acc[TILE_STEP][2], const float *x, size_t down, size_t along,
                      const four *row, size_t n, const size_t h, const size_t v)
{
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < h; r++)
            for (size_t e = 0; e < v; e++)
                acc[r][e] += spread4(x[r * down + i * along]) * row[i * v + e];
}

INLINE void scores4(float *s, const float *q, const float *k, size_t keys, size_t dk,
                    const size_t v, bool add)
{
    for (size_t j = 0; j < keys; j += TILE_STEP) {
        four acc[TILE_STEP][2] = {{{0}}};
        for (size_t r = 0; add && r < TILE_STEP; r++)
            for (size_t e = 0; e < v; e++) acc[r][e] = ((four *)s)[(j + r) * v + e];
        products4(acc, k + j * dk, dk, 1, (const four *)q, dk, TILE_STEP, v);
        for (size_t r = 0; r < TILE_STEP; r++)
            for (size_t e = 0; e < v; e++) ((four *)s)[(j + r) * v + e] = acc[r][e];
    }
}

/* h columns from c on. */
INLINE void columns4(float *o, const float *rescale, const float *s, const float *x, size_t keys,
                     size_t dv, size_t c, const size_t h, const size_t v)
{
    four acc[TILE_STEP][2], *const to = (four *)o + c * v;
    for (size_t r = 0; r < h; r++)
        for (size_t e = 0; e < v; e++) acc[r][e] = to[r * v + e] * ((const four *)rescale)[e];
    products4(acc, x + c, 1, dv, (const four *)s, keys, h, v);
    for (size_t r = 0; r < h; r++)
        for (size_t e = 0; e < v; e++) to[r * v + e] = acc[r][e];
}

INLINE void values4(float *o, const float *rescale, const float *s, const float *x, size_t keys,
                    size_t dv, const size_t v)
{
    size_t c = 0;
    for (; c + COLUMN_STEP < dv; c += TILE_STEP)
        columns4(o, rescale, s, x, keys, dv, c, TILE_STEP, v);
    if (c < dv) columns4(o, rescale, s, x, keys, dv, c, COLUMN_STEP, v);
}

static void scores_portable(float *s, const float *q, const float *k, size_t keys, size_t dk,
                            size_t v, bool add)
{
    if (v == 1) scores4(s, q, k, keys, dk, 1, add);
    if (v == 2) scores4(s, q, k, keys, dk, 2, add);
}

static void values_portable(float *o, const float *rescale, const float *s, const float *x,
                            size_t keys, size_t dv, size_t v)
{
    if (v == 1) values4(o, rescale, s, x, keys, dv, 1);
    if (v == 2) values4(o, rescale, s, x, keys, dv, 2);
}

static void weights_portable(float *s, float *m, float *l, float *rescale, size_t keys, size_t v)
{
    const size_t p = 4 * v;
    for (size_t i = 0; i < p; i++) {
        float row_max = m[i], sum = 0;
        for (size_t j = 0; j < keys; j++)
            if (s[j * p + i] > row_max) row_max = s[j * p + i];
        const float base = row_max == -INFINITY ? 0 : row_max;
        for (size_t j = 0; j < keys; j += TILE_STEP) {
            float *const at = s + j * p + i;
            for (size_t r = 0; r < TILE_STEP; r++) at[r * p] = pare_exp_scalar(at[r * p] - base);
            sum += (at[0] + at[p]) + (at[2 * p] + at[3 * p]);
        }
        rescale[i] = pare_exp_scalar(m[i] - base);
        l[i] = l[i] * rescale[i] + sum;
        m[i] = row_max;
    }
}

static void softmax_backward_portable(float *s, float *t, const float *lse, const float *mean,
                                      size_t keys, size_t v)
{
    const size_t p = 4 * v;
    for (size_t j = 0; j < keys; j++, s += p, t += p)
        for (size_t i = 0; i < p; i++) {
            const float x = s[i] - lse[i], w = pare_exp_scalar(x > 0 ? 0 : x);
            s[i] = w;
            t[i] = w * (t[i] - mean[i]);
        }
}

#if defined(__x86_64__)
/* ---- AVX-512 -------------------------------------------------------------------------------- */

#define INLINE512 INLINE PARE_AVX512

INLINE512 void products512(__m512 acc[TILE_STEP][4], const float *x, size_t down, size_t along,
                           const float *row, size_t n, const size_t h, const size_t v)
{
    for (size_t i = 0; i < n; i++, x += along, row += 16 * v) {
        __m512 part[4];
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) {
            part[e] = _mm512_load_ps(row + 16 * e);
            __asm__("" : "+v"(part[e])); /* keep it in a register: do not load it again */
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < h; r++) {
            const __m512 b = _mm512_set1_ps(x[r * down]);
#pragma GCC unroll 4
            for (size_t e = 0; e < v; e++) acc[r][e] = _mm512_fmadd_ps(b, part[e], acc[r][e]);
        }
    }
}

INLINE512 void store512(float *to, __m512 acc[TILE_STEP][4], const size_t h, const size_t v)
{
#pragma GCC unroll 4
    for (size_t r = 0; r < h; r++)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) _mm512_store_ps(to + 16 * (r * v + e), acc[r][e]);
}

INLINE512 void scores16(float *s, const float *q, const float *k, size_t keys, size_t dk,
                        const size_t v, bool add)
{
    for (size_t j = 0; j < keys; j += TILE_STEP) {
        __m512 acc[TILE_STEP][4];
#pragma GCC unroll 4
        for (size_t r = 0; r < TILE_STEP; r++)
#pragma GCC unroll 4
            for (size_t e = 0; e < v; e++)
                acc[r][e] = add ? _mm512_load_ps(s + 16 * ((j + r) * v + e)) : _mm512_setzero_ps();
        products512(acc, k + j * dk, dk, 1, q, dk, TILE_STEP, v);
        store512(s + 16 * j * v, acc, TILE_STEP, v);
    }
}

INLINE512 void columns16(float *o, const float *rescale, const float *s, const float *x,
                         size_t keys, size_t dv, size_t c, const size_t h, const size_t v)
{
    __m512 acc[TILE_STEP][4];
    float *const to = o + 16 * c * v;
#pragma GCC unroll 4
    for (size_t r = 0; r < h; r++)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++)
            acc[r][e] = _mm512_mul_ps(_mm512_load_ps(to + 16 * (r * v + e)),
                                      _mm512_load_ps(rescale + 16 * e));
    products512(acc, x + c, 1, dv, s, keys, h, v);
    store512(to, acc, h, v);
}

INLINE512 void values16(float *o, const float *rescale, const float *s, const float *x, size_t keys,
                        size_t dv, const size_t v)
{
    size_t c = 0;
    for (; c + COLUMN_STEP < dv; c += TILE_STEP)
        columns16(o, rescale, s, x, keys, dv, c, TILE_STEP, v);
    if (c < dv) columns16(o, rescale, s, x, keys, dv, c, COLUMN_STEP, v);
}

/* The weights of one vector of queries: `p` floats lie between two keys. */
INLINE512 void weights16(float *s, size_t p, float *m, float *l, float *rescale, size_t keys)
{
    const __m512 none = _mm512_set1_ps(-INFINITY), old = _mm512_load_ps(m);
    __m512 row_max = old, sum = _mm512_setzero_ps();
    for (size_t j = 0; j < keys; j++) row_max = _mm512_max_ps(_mm512_load_ps(s + j * p), row_max);
    const __mmask16 seen = _mm512_cmp_ps_mask(row_max, none, _CMP_NEQ_UQ);
    const __m512 base = _mm512_maskz_mov_ps(seen, row_max);
    for (size_t j = 0; j < keys; j += TILE_STEP) {
        __m512 w[TILE_STEP];
#pragma GCC unroll 4
        for (size_t r = 0; r < TILE_STEP; r++) {
            float *const at = s + (j + r) * p;
            w[r] = pare_exp_avx512(_mm512_sub_ps(_mm512_load_ps(at), base));
            _mm512_store_ps(at, w[r]);
        }
        sum =
            _mm512_add_ps(sum, _mm512_add_ps(_mm512_add_ps(w[0], w[1]), _mm512_add_ps(w[2], w[3])));
    }
    const __m512 f = pare_exp_avx512(_mm512_sub_ps(old, base));
    _mm512_store_ps(rescale, f);
    _mm512_store_ps(l, _mm512_fmadd_ps(_mm512_load_ps(l), f, sum));
    _mm512_store_ps(m, row_max);
}

PARE_AVX512 static void scores_avx512(float *s, const float *q, const float *k, size_t keys,
                                      size_t dk, size_t v, bool add)
{
    if (v == 1) scores16(s, q, k, keys, dk, 1, add);
    if (v == 2) scores16(s, q, k, keys, dk, 2, add);
    if (v == 3) scores16(s, q, k, keys, dk, 3, add);
    if (v == 4) scores16(s, q, k, keys, dk, 4, add);
}

PARE_AVX512 static void values_avx512(float *o, const float *rescale, const float *s,
                                      const float *x, size_t keys, size_t dv, size_t v)
{
    if (v == 1) values16(o, rescale, s, x, keys, dv, 1);
    if (v == 2) values16(o, rescale, s, x, keys, dv, 2);
    if (v == 3) values16(o, rescale, s, x, keys, dv, 3);
    if (v == 4) values16(o, rescale, s, x, keys, dv, 4);
}

PARE_AVX512 static void weights_avx512(float *s, float *m, float *l, float *rescale, size_t keys,
                                       size_t v)
{
    for (size_t e = 0; e < 16 * v; e += 16)
        weights16(s + e, 16 * v, m + e, l + e, rescale + e, keys);
}

PARE_AVX512 static void softmax_backward_avx512(float *s, float *t, const float *lse,
                                                const float *mean, size_t keys, size_t v)
{
    const size_t p = 16 * v;
    for (size_t e = 0; e < p; e += 16) {
        const __m512 l = _mm512_load_ps(lse + e), m = _mm512_load_ps(mean + e);
        for (size_t at = e; at < keys * p; at += p) {
            const __m512 x = _mm512_sub_ps(_mm512_load_ps(s + at), l);
            const __m512 w = pare_exp_avx512(_mm512_min_ps(_mm512_setzero_ps(), x));
            _mm512_store_ps(s + at, w);
            _mm512_store_ps(t + at, _mm512_mul_ps(w, _mm512_sub_ps(_mm512_load_ps(t + at), m)));
        }
    }
}

/* ---- AVX2: the same with eight lanes and up to three vectors (16 registers) ------------------ */

#define INLINE256 INLINE PARE_AVX2

INLINE256 void products256(__m256 acc[TILE_STEP][3], const float *x, size_t down, size_t along,
                           const float *row, size_t n, const size_t h, const size_t v)
{
    for (size_t i = 0; i < n; i++, x += along, row += 8 * v) {
        __m256 part[3];
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) part[e] = _mm256_load_ps(row + 8 * e);
#pragma GCC unroll 4
        for (size_t r = 0; r < h; r++) {
            const __m256 b = _mm256_set1_ps(x[r * down]);
#pragma GCC unroll 3
            for (size_t e = 0; e < v; e++) acc[r][e] = _mm256_fmadd_ps(b, part[e], acc[r][e]);
        }
    }
}

INLINE256 void store256(float *to, __m256 acc[TILE_STEP][3], const size_t h, const size_t v)
{
#pragma GCC unroll 4
    for (size_t r = 0; r < h; r++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) _mm256_store_ps(to + 8 * (r * v + e), acc[r][e]);
}

INLINE256 void scores8(float *s, const float *q, const float *k, size_t keys, size_t dk,
                       const size_t v, bool add)
{
    for (size_t j = 0; j < keys; j += TILE_STEP) {
        __m256 acc[TILE_STEP][3];
#pragma GCC unroll 4
        for (size_t r = 0; r < TILE_STEP; r++)
#pragma GCC unroll 3
            for (size_t e = 0; e < v; e++)
                acc[r][e] = add ? _mm256_load_ps(s + 8 * ((j + r) * v + e)) : _mm256_setzero_ps();
        products256(acc, k + j * dk, dk, 1, q, dk, TILE_STEP, v);
        store256(s + 8 * j * v, acc, TILE_STEP, v);
    }
}

INLINE256 void columns8(float *o, const float *rescale, const float *s, const float *x, size_t keys,
                        size_t dv, size_t c, const size_t h, const size_t v)
{
    __m256 acc[TILE_STEP][3];
    float *const to = o + 8 * c * v;
#pragma GCC unroll 4
    for (size_t r = 0; r < h; r++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++)
            acc[r][e] = _mm256_mul_ps(_mm256_load_ps(to + 8 * (r * v + e)),
                                      _mm256_load_ps(rescale + 8 * e));
    products256(acc, x + c, 1, dv, s, keys, h, v);
    store256(to, acc, h, v);
}

INLINE256 void values8(float *o, const float *rescale, const float *s, const float *x, size_t keys,
                       size_t dv, const size_t v)
{
    size_t c = 0;
    for (; c + COLUMN_STEP < dv; c += TILE_STEP)
        columns8(o, rescale, s, x, keys, dv, c, TILE_STEP, v);
    if (c < dv) columns8(o, rescale, s, x, keys, dv, c, COLUMN_STEP, v);
}

INLINE256 void weights8(float *s, size_t p, float *m, float *l, float *rescale, size_t keys)
{
    const __m256 none = _mm256_set1_ps(-INFINITY), old = _mm256_load_ps(m);
    __m256 row_max = old, sum = _mm256_setzero_ps();
    for (size_t j = 0; j < keys; j++) row_max = _mm256_max_ps(_mm256_load_ps(s + j * p), row_max);
    const __m256 base = _mm256_and_ps(row_max, _mm256_cmp_ps(row_max, none, _CMP_NEQ_UQ));
    for (size_t j = 0; j < keys; j += TILE_STEP) {
        __m256 w[TILE_STEP];
#pragma GCC unroll 4
        for (size_t r = 0; r < TILE_STEP; r++) {
            float *const at = s + (j + r) * p;
            w[r] = pare_exp_avx2(_mm256_sub_ps(_mm256_load_ps(at), base));
            _mm256_store_ps(at, w[r]);
        }
        sum =
            _mm256_add_ps(sum, _mm256_add_ps(_mm256_add_ps(w[0], w[1]), _mm256_add_ps(w[2], w[3])));
    }
    const __m256 f = pare_exp_avx2(_mm256_sub_ps(old, base));
    _mm256_store_ps(rescale, f);
    _mm256_store_ps(l, _mm256_fmadd_ps(_mm256_load_ps(l), f, sum));
    _mm256_store_ps(m, row_max);
}

PARE_AVX2 static void scores_avx2(float *s, const float *q, const float *k, size_t keys, size_t dk,
                                  size_t v, bool add)
{
    if (v == 1) scores8(s, q, k, keys, dk, 1, add);
    if (v == 2) scores8(s, q, k, keys, dk, 2, add);
    if (v == 3) scores8(s, q, k, keys, dk, 3, add);
}

PARE_AVX2 static void values_avx2(float *o, const float *rescale, const float *s, const float *x,
                                  size_t keys, size_t dv, size_t v)
{
    if (v == 1) values8(o, rescale, s, x, keys, dv, 1);
    if (v == 2) values8(o, rescale, s, x, keys, dv, 2);
    if (v == 3) values8(o, rescale, s, x, keys, dv, 3);
}

PARE_AVX2 static void weights_avx2(float *s, float *m, float *l, float *rescale, size_t keys,
                                   size_t v)
{
    for (size_t e = 0; e < 8 * v; e += 8) weights8(s + e, 8 * v, m + e, l + e, rescale + e, keys);
}

PARE_AVX2 static void softmax_backward_avx2(float *s, float *t, const float *lse, const float *mean,
                                            size_t keys, size_t v)
{
    const size_t p = 8 * v;
    for (size_t e = 0; e < p; e += 8) {
        const __m256 l = _mm256_load_ps(lse + e), m = _mm256_load_ps(mean + e);
        for (size_t at = e; at < keys * p; at += p) {
            const __m256 x = _mm256_sub_ps(_mm256_load_ps(s + at), l);
            const __m256 w = pare_exp_avx2(_mm256_min_ps(_mm256_setzero_ps(), x));
            _mm256_store_ps(s + at, w);
            _mm256_store_ps(t + at, _mm256_mul_ps(w, _mm256_sub_ps(_mm256_load_ps(t + at), m)));
        }
    }
}
#endif

size_t tile_kernels(tile_kernel out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        out[n++] = (tile_kernel){
            "avx512", 16, 4, scores_avx512, weights_avx512, values_avx512, softmax_backward_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[n++] = (tile_kernel){
            "avx2", 8, 3, scores_avx2, weights_avx2, values_avx2, softmax_backward_avx2};
#endif
    out[n++] = (tile_kernel){"portable",
                             4,
                             2,
                             scores_portable,
                             weights_portable,
                             values_portable,
                             softmax_backward_portable};
    return n;
}
