/* sparse_small_dim.c - sparse attention for rows of at most SMALL_DIM columns (AVX-512).
 *
 * A register holds two keys of eight columns, or four keys of four, so that no lane is idle. Of
 * rows with few keys two are computed at once, one in each half of a register, from scores to
 * values without going through memory: on a board graph every row has at most eight keys, and the
 * time of a row is then the latency of its sums. */
#include "sparse_small_dim.h"
#include <math.h>
#include "base/vexp.h"

#if defined(__x86_64__)
#define INLINE PARE_INLINE PARE_AVX512

INLINE __mmask16 columns(size_t width)
{
    return (__mmask16)((1u << width) - 1);
}

/* `width` columns, the others 0; `whole` (all eight) is a constant where this is inlined. */
INLINE __m512 row8(const float *x, size_t width, bool whole)
{
    return whole ? _mm512_castps256_ps512(_mm256_loadu_ps(x))
                 : _mm512_maskz_loadu_ps(columns(width), x);
}

/* a in the lower half, b in the upper one */
INLINE __m512 halves(const float *a, const float *b, size_t width, bool whole)
{
    const __m512d upper = _mm512_castps_pd(row8(b, width, whole));
    return _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castps_pd(row8(a, width, whole)),
                                               _mm512_castpd512_pd256(upper), 1));
}

/* ---- sums of products ------------------------------------------------------------------------ */

/* In each quarter: (sum p0, sum p1, sum p2, sum p3). */
INLINE __m512 quarter_sums(const __m512 p[4])
{
    const __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(p[0], p[1]), _mm512_unpackhi_ps(p[0], p[1]));
    const __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(p[2], p[3]), _mm512_unpackhi_ps(p[2], p[3]));
    const __m512d c = _mm512_castps_pd(a), d = _mm512_castps_pd(b);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(c, d)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(c, d)));
}

/* Eight pairs of products, of A below and of B above, become the quarters
 * (A0..A3, B0..B3, A4..A7, B4..B7). */
INLINE __m512 half_sums(const __m512 p[8])
{
    const __m512 a = quarter_sums(p), b = quarter_sums(p + 4);
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* ---- one row --------------------------------------------------------------------------------- */

/* Key j, or the last one behind the end. */
INLINE const float *key(const sparse_rows *rows, const uint32_t *idx, size_t n, size_t j)
{
    return rows->v + idx[j < n ? j : n - 1] * rows->ld;
}

/* 16 keys in the order of their list: A is 0-3 and 8-11, B the others. */
INLINE __m512 scores_by_8(__m512 q, const sparse_rows *rows, const uint32_t *idx, size_t n,
                          bool whole)
{
    __m512 p[8];
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) {
        const size_t a = j < 4 ? j : j + 4;
        p[j] = _mm512_mul_ps(
            q, halves(key(rows, idx, n, a), key(rows, idx, n, a + 4), rows->width, whole));
    }
    return half_sums(p);
}

INLINE __m128 row4(const float *x, size_t width, bool whole)
{
    return whole ? _mm_loadu_ps(x)
                 : _mm512_castps512_ps128(_mm512_maskz_loadu_ps(columns(width), x));
}

/* The same for at most four columns: key 4 l + j is quarter l of p[j]. */
INLINE __m512 scores_by_4(__m512 q, const sparse_rows *rows, const uint32_t *idx, size_t n,
                          bool whole)
{
    __m512 p[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++) {
        __m512 k = _mm512_castps128_ps512(row4(key(rows, idx, n, j), rows->width, whole));
        k = _mm512_insertf32x4(k, row4(key(rows, idx, n, 4 + j), rows->width, whole), 1);
        k = _mm512_insertf32x4(k, row4(key(rows, idx, n, 8 + j), rows->width, whole), 2);
        k = _mm512_insertf32x4(k, row4(key(rows, idx, n, 12 + j), rows->width, whole), 3);
        p[j] = _mm512_mul_ps(q, k);
    }
    return quarter_sums(p);
}

INLINE void all_scores(float *s, const float *x, const sparse_rows *rows, float scale,
                       const uint32_t *idx, size_t n, bool by_4, bool whole)
{
    const __m512 by = _mm512_set1_ps(scale);
    const __m512 q = by_4 ? _mm512_broadcast_f32x4(row4(x, rows->width, whole))
                          : halves(x, x, rows->width, whole);
    for (size_t j = 0; j < n; j += 16) {
        const __m512 sum = by_4 ? scores_by_4(q, rows, idx + j, n - j, whole)
                                : scores_by_8(q, rows, idx + j, n - j, whole);
        _mm512_storeu_ps(s + j, _mm512_mul_ps(by, sum));
    }
}

PARE_AVX512 void small_dim_scores_avx512(float *s, const float *x, const sparse_rows *rows,
                                         float scale, const uint32_t *idx, size_t n)
{
    if (rows->width == 8)
        all_scores(s, x, rows, scale, idx, n, false, true);
    else if (rows->width > 4)
        all_scores(s, x, rows, scale, idx, n, false, false);
    else if (rows->width == 4)
        all_scores(s, x, rows, scale, idx, n, true, true);
    else
        all_scores(s, x, rows, scale, idx, n, true, false);
}

/* Adds the two halves of a sum. */
INLINE __m512 add_halves(__m512 sum)
{
    const __m256d upper = _mm512_extractf64x4_pd(_mm512_castps_pd(sum), 1);
    return _mm512_castps256_ps512(_mm256_add_ps(_mm512_castps512_ps256(sum), //
                                                _mm256_castpd_ps(upper)));
}

/* Two keys at a time, in two independent chains; the rest one by one, in the lower half. */
INLINE __m512 all_values(const float *s, const sparse_rows *rows, const uint32_t *idx, size_t n,
                         bool whole)
{
    const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i next = _mm512_add_epi32(first, _mm512_set1_epi32(2));
    const size_t ld = rows->ld, width = rows->width;
    const float *const v = rows->v;
    __m512 a = _mm512_setzero_ps(), b = a;
    size_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const __m512 w = _mm512_castps128_ps512(_mm_loadu_ps(s + j));
        const __m512 ab = halves(v + idx[j] * ld, v + idx[j + 1] * ld, width, whole);
        const __m512 cd = halves(v + idx[j + 2] * ld, v + idx[j + 3] * ld, width, whole);
        a = _mm512_fmadd_ps(_mm512_permutexvar_ps(first, w), ab, a);
        b = _mm512_fmadd_ps(_mm512_permutexvar_ps(next, w), cd, b);
    }
    for (; j < n; j++)
        a = _mm512_mask3_fmadd_ps(_mm512_set1_ps(s[j]), row8(v + idx[j] * ld, width, whole), a,
                                  0x00ff);
    return add_halves(_mm512_add_ps(a, b));
}

PARE_AVX512 void small_dim_values_avx512(float *y, const float *s, const sparse_rows *rows,
                                         const uint32_t *idx, size_t n, float by, float old)
{
    const __mmask16 on = columns(rows->width);
    const __m512 was = old == 0 ? _mm512_setzero_ps()
                                : _mm512_mul_ps(_mm512_set1_ps(old), _mm512_maskz_loadu_ps(on, y));
    const __m512 sum = rows->width == SMALL_DIM ? all_values(s, rows, idx, n, true)
                                                : all_values(s, rows, idx, n, false);
    _mm512_mask_storeu_ps(y, on, _mm512_fmadd_ps(sum, _mm512_set1_ps(by), was));
}

/* ---- two rows -------------------------------------------------------------------------------- */

/* Row A is quarters 0 and 2, row B quarters 1 and 3: the maximum of a row in each of its lanes. */
INLINE __m512 row_max(__m512 s)
{
    s = _mm512_max_ps(s, _mm512_shuffle_f32x4(s, s, 0x4e));
    s = _mm512_max_ps(s, _mm512_permute_ps(s, 0x4e));
    return _mm512_max_ps(s, _mm512_permute_ps(s, 0xb1));
}

INLINE __m512 row_sum(__m512 s)
{
    s = _mm512_add_ps(s, _mm512_shuffle_f32x4(s, s, 0x4e));
    s = _mm512_add_ps(s, _mm512_permute_ps(s, 0x4e));
    return _mm512_add_ps(s, _mm512_permute_ps(s, 0xb1));
}

/* The lanes of the keys that exist. */
INLINE __mmask16 key_lanes(const size_t n[2])
{
    const unsigned a = (1u << n[0]) - 1, b = (1u << n[1]) - 1;
    return (__mmask16)((a & 15) | (b & 15) << 4 | (a >> 4) << 8 | (b >> 4) << 12);
}

INLINE __m512 pair_scores(const row_pair *p, bool whole)
{
    const __m512 q = halves(p->q[0], p->q[1], p->k.width, whole);
    __m512 prod[FEW_KEYS];
#pragma GCC unroll 8
    for (size_t j = 0; j < FEW_KEYS; j++) {
        const float *const a = key(&p->k, p->idx[0], p->n[0], j);
        prod[j] = _mm512_mul_ps(q, halves(a, key(&p->k, p->idx[1], p->n[1], j), p->k.width, whole));
    }
    return _mm512_mul_ps(_mm512_set1_ps(p->scale), half_sums(prod));
}

/* `full`: both rows have all eight keys. A key that does not exist must not be multiplied by a
 * weight of 0: its copy may be infinite. */
INLINE __m512 pair_values(const row_pair *p, __m512 w, bool whole, bool full)
{
    const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4);
    __m512 acc[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
#pragma GCC unroll 8
    for (size_t j = 0; j < FEW_KEYS; j++) {
        const int at = (int)(j < 4 ? j : j + 4);
        const __m512 weight =
            _mm512_permutexvar_ps(_mm512_add_epi32(first, _mm512_set1_epi32(at)), w);
        const float *const a = key(&p->v, p->idx[0], p->n[0], j);
        const __m512 v = halves(a, key(&p->v, p->idx[1], p->n[1], j), p->v.width, whole);
        const unsigned on = (j < p->n[0] ? 0x00ff : 0) | (j < p->n[1] ? 0xff00 : 0);
        acc[j % 2] = full ? _mm512_fmadd_ps(weight, v, acc[j % 2])
                          : _mm512_mask3_fmadd_ps(weight, v, acc[j % 2], (__mmask16)on);
    }
    return _mm512_add_ps(acc[0], acc[1]);
}

INLINE void two_rows(const row_pair *p, softmax_state state[2], bool whole, bool full)
{
    const __mmask16 exists = full ? 0xffff : key_lanes(p->n);
    const __m512 none = _mm512_set1_ps(-INFINITY);
    const __m512 s = _mm512_mask_mov_ps(none, exists, pair_scores(p, whole)), largest = row_max(s);
    const __m512 w = pare_exp_avx512(_mm512_sub_ps(s, largest)), total = row_sum(w);
    const __m512i rows = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4);
    const __m256 by = _mm256_div_ps(_mm256_set1_ps(1), _mm512_castps512_ps256(total));
    const __m512 y = _mm512_mul_ps(_mm512_permutexvar_ps(rows, _mm512_castps256_ps512(by)),
                                   pair_values(p, w, whole, full));
    const __mmask16 on = columns(p->v.width);
    _mm512_mask_storeu_ps(p->y[0], on, y);
    _mm512_mask_storeu_ps(p->y[1], on, _mm512_shuffle_f32x4(y, y, 0x4e));
    if (!state) return;
    state[0] = (softmax_state){_mm512_cvtss_f32(largest), _mm512_cvtss_f32(total), 0};
    state[1] = (softmax_state){_mm512_cvtss_f32(_mm512_shuffle_f32x4(largest, largest, 0x55)),
                               _mm512_cvtss_f32(_mm512_shuffle_f32x4(total, total, 0x55)), 0};
}

PARE_AVX512 void small_dim_two_rows_avx512(const row_pair *p, softmax_state state[2])
{
    const bool whole = p->k.width == SMALL_DIM && p->v.width == SMALL_DIM;
    if (whole && p->n[0] == FEW_KEYS && p->n[1] == FEW_KEYS)
        two_rows(p, state, true, true);
    else
        two_rows(p, state, false, false);
}
#endif
