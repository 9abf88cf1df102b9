/* tile_lanes.h - the inner kernels of dense attention, written once over a vector (base/vec.h).
 *
 * scores and values hold TILE_STEP x v vectors of results in registers and broadcast one number of
 * a key (of a value) to all of them: half a load per product, so that the multiply-adds are the
 * limit. `v` is a constant in each instance: the loops over it are unrolled. The weights of a tile
 * are summed by fours and per tile, so that the rounding error of the sum grows with n / 4, not
 * with n.
 *
 * softmax_backward: a weight is at most 1, but s and lse carry the rounding of numbers as large as
 * the scores: what would come out above 1 is set to 1. A nan passes. */
#include "base/vec.h"
#include "tile.h"
#include <math.h>

/* Vectors of a panel, at most: TILE_STEP times as many sums fit the registers (16 of AVX2, 32 of
 * AVX-512). */
enum { TILE_VECS = VEC == 16 ? 4 : VEC == 8 ? 3 : 2 };

/* acc (h x v) += a column of h numbers times a row of v vectors, n times; the numbers are
 * `down` apart, their columns `along` apart. */
VEC_INLINE void tile_products(vec acc[TILE_STEP][TILE_VECS], const float *x, size_t down,
                              size_t along, const float *row, size_t n, const size_t h,
                              const size_t v)
{
    for (size_t i = 0; i < n; i++, x += along, row += VEC * v) {
        vec part[TILE_VECS];
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) {
            part[e] = vec_load(row + VEC * e);
#if defined(VEC_AVX512)
            __asm__("" : "+v"(part[e])); /* keep it in a register: do not load it again */
#endif
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < h; r++) {
            const vec b = vec_set(x[r * down]);
#pragma GCC unroll 4
            for (size_t e = 0; e < v; e++) acc[r][e] = vec_fma(b, part[e], acc[r][e]);
        }
    }
}

VEC_INLINE void tile_store(float *to, vec acc[TILE_STEP][TILE_VECS], const size_t h, const size_t v)
{
#pragma GCC unroll 4
    for (size_t r = 0; r < h; r++)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) vec_store(to + VEC * (r * v + e), acc[r][e]);
}

VEC_INLINE void tile_scores_of(float *s, const float *q, const float *k, size_t keys, size_t dk,
                               const size_t v, bool add)
{
    for (size_t j = 0; j < keys; j += TILE_STEP) {
        vec acc[TILE_STEP][TILE_VECS];
#pragma GCC unroll 4
        for (size_t r = 0; r < TILE_STEP; r++)
#pragma GCC unroll 4
            for (size_t e = 0; e < v; e++)
                acc[r][e] = add ? vec_load(s + VEC * ((j + r) * v + e)) : vec_set(0);
        tile_products(acc, k + j * dk, dk, 1, q, dk, TILE_STEP, v);
        tile_store(s + VEC * j * v, acc, TILE_STEP, v);
    }
}

VEC_TARGET static void tile_scores(float *s, const float *q, const float *k, size_t keys, size_t dk,
                                   size_t v, bool add)
{
    if (v == 1) tile_scores_of(s, q, k, keys, dk, 1, add);
    if (v == 2) tile_scores_of(s, q, k, keys, dk, 2, add);
    if (TILE_VECS >= 3 && v == 3) tile_scores_of(s, q, k, keys, dk, 3, add);
    if (TILE_VECS >= 4 && v == 4) tile_scores_of(s, q, k, keys, dk, 4, add);
}

/* h columns from c on. */
VEC_INLINE void tile_columns(float *o, const float *rescale, const float *s, const float *x,
                             size_t keys, size_t dv, size_t c, const size_t h, const size_t v)
{
    vec acc[TILE_STEP][TILE_VECS];
    float *const to = o + VEC * c * v;
#pragma GCC unroll 4
    for (size_t r = 0; r < h; r++)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++)
            acc[r][e] = vec_load(to + VEC * (r * v + e)) * vec_load(rescale + VEC * e);
    tile_products(acc, x + c, 1, dv, s, keys, h, v);
    tile_store(to, acc, h, v);
}

VEC_INLINE void tile_values_of(float *o, const float *rescale, const float *s, const float *x,
                               size_t keys, size_t dv, const size_t v)
{
    size_t c = 0;
    for (; c + COLUMN_STEP < dv; c += TILE_STEP)
        tile_columns(o, rescale, s, x, keys, dv, c, TILE_STEP, v);
    if (c < dv) tile_columns(o, rescale, s, x, keys, dv, c, COLUMN_STEP, v);
}

VEC_TARGET static void tile_values(float *o, const float *rescale, const float *s, const float *x,
                                   size_t keys, size_t dv, size_t v)
{
    if (v == 1) tile_values_of(o, rescale, s, x, keys, dv, 1);
    if (v == 2) tile_values_of(o, rescale, s, x, keys, dv, 2);
    if (TILE_VECS >= 3 && v == 3) tile_values_of(o, rescale, s, x, keys, dv, 3);
    if (TILE_VECS >= 4 && v == 4) tile_values_of(o, rescale, s, x, keys, dv, 4);
}

/* The weights of one vector of queries: `p` floats lie between two keys. */
VEC_INLINE void tile_weights_of(float *s, size_t p, float *m, float *l, float *rescale, size_t keys)
{
    const vec old = vec_load(m);
    vec row_max = old, sum = vec_set(0);
    for (size_t j = 0; j < keys; j++) row_max = vec_max(vec_load(s + j * p), row_max);
    const vec base = vec_above_minus_infinity(row_max);
    for (size_t j = 0; j < keys; j += TILE_STEP) {
        vec w[TILE_STEP];
#pragma GCC unroll 4
        for (size_t r = 0; r < TILE_STEP; r++) {
            float *const at = s + (j + r) * p;
            w[r] = vec_exp(vec_load(at) - base);
            vec_store(at, w[r]);
        }
        sum = sum + ((w[0] + w[1]) + (w[2] + w[3]));
    }
    const vec f = vec_exp(old - base);
    vec_store(rescale, f);
    vec_store(l, vec_fma(vec_load(l), f, sum));
    vec_store(m, row_max);
}

VEC_TARGET static void tile_weights(float *s, float *m, float *l, float *rescale, size_t keys,
                                    size_t v)
{
    for (size_t e = 0; e < VEC * v; e += VEC)
        tile_weights_of(s + e, VEC * v, m + e, l + e, rescale + e, keys);
}

VEC_TARGET static void tile_softmax_backward(float *s, float *t, const float *lse,
                                             const float *mean, size_t keys, size_t v)
{
    const size_t p = VEC * v;
    for (size_t e = 0; e < p; e += VEC) {
        const vec l = vec_load(lse + e), m = vec_load(mean + e);
        for (size_t at = e; at < keys * p; at += p) {
            const vec w = vec_exp(vec_min(vec_set(0), vec_load(s + at) - l));
            vec_store(s + at, w);
            vec_store(t + at, w * (vec_load(t + at) - m));
        }
    }
}
