/* sparse_kernels.c - the inner loops of sparse attention: AVX-512, AVX2 with FMA, and portable.
 *
 * Dot products with four keys at a time along their width, e^x over the whole list of scores, then
 * weighted sums of rows, 64 columns at a time. The rows that a list selects lie anywhere. */
#include "sparse_small_dim.h"
#include <math.h>
#include "base/vexp.h"
#include <string.h>

enum { GROUP = 4 /* keys at a time */ };

/* ---- portable ------------------------------------------------------------------------------- */

/* Eight partial sums in a fixed order: the compiler may vectorize them without reordering. */
static float dot8(const float *a, const float *b, size_t n)
{
    float part[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++) part[l] += a[i + l] * b[i + l];
    float s =
        ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    for (; i < n; i++) s += a[i] * b[i];
    return s;
}

static void scores_portable(float *s, const float *x, const sparse_rows *rows, float scale,
                            const uint32_t *idx, size_t n)
{
    for (size_t j = 0; j < n; j++) s[j] = scale * dot8(x, rows->v + idx[j] * rows->ld, rows->width);
}

static softmax_state weights_portable(float *s, float *saved, size_t n, softmax_state before)
{
    float row_max = before.row_max, part[GROUP] = {0};
    for (size_t j = 0; j < n; j++)
        if (s[j] > row_max) row_max = s[j];
    const float rescale = pare_exp_scalar(before.row_max - row_max);
    for (size_t j = 0; saved && j < n; j++) saved[j] = s[j];
    for (size_t j = 0; j < n; j++) part[j % GROUP] += s[j] = pare_exp_scalar(s[j] - row_max);
    const float sum = (part[0] + part[1]) + (part[2] + part[3]);
    return (softmax_state){row_max, rescale * before.sum + sum, rescale};
}

static void values_portable(float *y, const float *s, const sparse_rows *rows, const uint32_t *idx,
                            size_t n, float by, float old)
{
    for (size_t c = 0; c < rows->width; c += 8) {
        const size_t width = rows->width - c < 8 ? rows->width - c : 8;
        float part[8] = {0};
        for (size_t j = 0; j < n; j++) {
            const float *const x = rows->v + idx[j] * rows->ld + c;
            for (size_t l = 0; l < width; l++) part[l] += s[j] * x[l];
        }
        for (size_t l = 0; l < width; l++) {
            const float was = old != 0 ? old * y[c + l] : 0;
            y[c + l] = by * part[l] + was;
        }
    }
}

static void weighted_sums_portable(float *y, float *z, const float *pair, const uint32_t *from,
                                   const sparse_rows *rows, const sparse_rows *more,
                                   const uint32_t *idx, size_t n, bool add)
{
    if (!add) memset(y, 0, rows->width * sizeof *y), memset(z, 0, more->width * sizeof *z);
    for (size_t j = 0; j < n; j++) {
        const float *const w = pair + 2 * (size_t)from[j];
        const float *const a = rows->v + idx[j] * rows->ld, *const b = more->v + idx[j] * more->ld;
        for (size_t c = 0; c < rows->width; c++) y[c] += w[0] * a[c];
        for (size_t c = 0; c < more->width; c++) z[c] += w[1] * b[c];
    }
}

static void softmax_backward_portable(float *pair, float *ds, const float *s, const float *t,
                                      float lse, float mean, float scale, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        const float p = pare_exp_scalar(s[j] - lse);
        ds[j] = scale * p * (t[j] - mean);
        pair[2 * j] = p;
        pair[2 * j + 1] = ds[j];
    }
}

#if defined(__x86_64__)
/* ---- AVX-512 -------------------------------------------------------------------------------- */

PARE_AVX512 static inline __mmask16 rest16(size_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

#define INLINE PARE_INLINE

/* 64 columns of a row, or the masked rest of it. `whole` is a constant where this is inlined:
 * masking every load costs as much as the products. */
typedef struct cols64 {
    __m512 c[4];
} cols64;
PARE_AVX512 INLINE cols64 load64(const float *x, size_t width, bool whole)
{
    cols64 m;
#pragma GCC unroll 4
    for (size_t b = 0; b < 4; b++)
        m.c[b] =
            whole ? _mm512_loadu_ps(x + 16 * b)
                  : _mm512_maskz_loadu_ps(width > 16 * b ? rest16(width - 16 * b) : 0, x + 16 * b);
    return m;
}

/* Lane-wise products of 64 columns. */
PARE_AVX512 INLINE __m512 products64(const cols64 *x, const float *k, size_t width, bool whole)
{
    const cols64 y = load64(k, width, whole);
    const __m512 a = _mm512_fmadd_ps(x->c[1], y.c[1], _mm512_mul_ps(x->c[0], y.c[0]));
    return _mm512_fmadd_ps(x->c[3], y.c[3], _mm512_fmadd_ps(x->c[2], y.c[2], a));
}

/* Of four keys, the sums within each quarter of the vector: (a0, a1, a2, a3) four times. */
PARE_AVX512 INLINE __m512 quarters(const cols64 *x, const sparse_rows *rows, const uint32_t *idx,
                                   bool whole)
{
    const float *const k = rows->v;
    const size_t ld = rows->ld, width = rows->width;
    const __m512 a0 = products64(x, k + idx[0] * ld, width, whole);
    const __m512 a1 = products64(x, k + idx[1] * ld, width, whole);
    const __m512 a2 = products64(x, k + idx[2] * ld, width, whole);
    const __m512 a3 = products64(x, k + idx[3] * ld, width, whole);
    const __m512 b0 = _mm512_add_ps(_mm512_unpacklo_ps(a0, a1), _mm512_unpackhi_ps(a0, a1));
    const __m512 b1 = _mm512_add_ps(_mm512_unpacklo_ps(a2, a3), _mm512_unpackhi_ps(a2, a3));
    const __m512d c0 = _mm512_castps_pd(b0), c1 = _mm512_castps_pd(b1);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(c0, c1)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(c0, c1)));
}

/* Quarters 0 and 2 of a and of b, plus quarters 1 and 3. */
PARE_AVX512 INLINE __m512 halves(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

PARE_AVX512 INLINE void put_sums(float *s, __m512 sum, float scale, bool add)
{
    const __m512 old = add ? _mm512_loadu_ps(s) : _mm512_setzero_ps();
    _mm512_storeu_ps(s, _mm512_fmadd_ps(sum, _mm512_set1_ps(scale), old));
}

/* The last n < 16 keys. They are stored at once like sixteen: a load of sixteen floats right after
 * several smaller stores would stall. */
PARE_AVX512 INLINE __m512 last_sums(const cols64 *x, const sparse_rows *rows, const uint32_t *idx,
                                    size_t n, bool whole)
{
    uint32_t padded[16]; /* behind the end: the last key again */
    const __m512i all = _mm512_maskz_loadu_epi32(rest16(n), idx);
    _mm512_storeu_si512(padded,
                        _mm512_mask_set1_epi32(all, (__mmask16)~rest16(n), (int)idx[n - 1]));
    __m512 a = quarters(x, rows, padded, whole), b = _mm512_setzero_ps(), c = b, d = b;
    if (n > 4) b = quarters(x, rows, padded + 4, whole);
    if (n > 8) c = quarters(x, rows, padded + 8, whole);
    if (n > 12) d = quarters(x, rows, padded + 12, whole);
    return halves(halves(a, b), halves(c, d));
}

/* s = scale x.rows over `width` columns, or added to s; sixteen keys at a time. */
PARE_AVX512 INLINE void scores64(float *s, const float *x, const sparse_rows *rows, float scale,
                                 const uint32_t *idx, size_t n, bool add, bool whole)
{
    const cols64 q = load64(x, rows->width, whole);
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        const __m512 a = quarters(&q, rows, idx + j, whole);
        const __m512 b = quarters(&q, rows, idx + j + 4, whole);
        const __m512 c = quarters(&q, rows, idx + j + 8, whole);
        const __m512 d = quarters(&q, rows, idx + j + 12, whole);
        put_sums(s + j, halves(halves(a, b), halves(c, d)), scale, add);
    }
    if (j < n) put_sums(s + j, last_sums(&q, rows, idx + j, n - j, whole), scale, add);
}

PARE_AVX512 static void scores_avx512(float *s, const float *x, const sparse_rows *rows,
                                      float scale, const uint32_t *idx, size_t n)
{
    if (rows->width <= SMALL_DIM) {
        small_dim_scores_avx512(s, x, rows, scale, idx, n);
        return;
    }
    size_t c = 0;
    for (; c + 64 <= rows->width; c += 64) {
        const sparse_rows part = {rows->v + c, rows->ld, 64};
        scores64(s, x + c, &part, scale, idx, n, c > 0, true);
    }
    const sparse_rows rest = {rows->v + c, rows->ld, rows->width - c};
    if (rest.width || c == 0) scores64(s, x + c, &rest, scale, idx, n, c > 0, false);
}

/* Scores become weights; behind the end, 0. */
PARE_AVX512 static softmax_state weights_avx512(float *s, float *saved, size_t n,
                                                softmax_state before)
{
    const __m512 low = _mm512_set1_ps(-INFINITY), was = _mm512_set1_ps(before.row_max);
    __m512 row_max = was, sum = _mm512_setzero_ps();
    for (size_t j = 0; j < n; j += 16) {
        const __m512 x = _mm512_loadu_ps(s + j);
        row_max = _mm512_mask_max_ps(row_max, rest16(n - j), x, row_max);
        if (saved) _mm512_mask_storeu_ps(saved + j, rest16(n - j), x);
    }
    const float largest = _mm512_reduce_max_ps(row_max);
    const __m512 base = _mm512_set1_ps(largest);
    const float rescale = _mm512_cvtss_f32(pare_exp_avx512(_mm512_sub_ps(was, base)));
    for (size_t j = 0; j < n; j += 16) {
        const __m512 x = _mm512_mask_sub_ps(low, rest16(n - j), _mm512_loadu_ps(s + j), base);
        const __m512 w = pare_exp_avx512(x);
        _mm512_storeu_ps(s + j, w);
        sum = _mm512_add_ps(sum, w);
    }
    return (softmax_state){largest, rescale * before.sum + _mm512_reduce_add_ps(sum), rescale};
}

PARE_AVX512 INLINE void add64(cols64 *acc, float w, const float *x, size_t width, bool whole)
{
    const cols64 y = load64(x, width, whole);
#pragma GCC unroll 4
    for (size_t b = 0; b < 4; b++)
        acc->c[b] = _mm512_fmadd_ps(_mm512_set1_ps(w), y.c[b], acc->c[b]);
}

/* Even and odd keys have their own accumulators: eight independent chains. */
PARE_AVX512 INLINE void values64(float *y, const float *s, const sparse_rows *rows,
                                 const uint32_t *idx, size_t n, float by, float old, bool whole)
{
    const __m512 zero = _mm512_setzero_ps(), f = _mm512_set1_ps(by);
    cols64 even = {{zero, zero, zero, zero}}, odd = even;
    const float *const v = rows->v;
    const size_t ld = rows->ld, width = rows->width;
    for (size_t j = 0; j + 1 < n; j += 2) {
        add64(&even, s[j], v + idx[j] * ld, width, whole);
        add64(&odd, s[j + 1], v + idx[j + 1] * ld, width, whole);
    }
    if (n % 2) add64(&even, s[n - 1], v + idx[n - 1] * ld, width, whole);
#pragma GCC unroll 4
    for (size_t b = 0; b < 4; b++) {
        const __mmask16 on = whole ? 0xffff : width > 16 * b ? rest16(width - 16 * b) : 0;
        const __m512 was = old != 0 ? _mm512_maskz_loadu_ps(on, y + 16 * b) : zero;
        const __m512 sum = _mm512_add_ps(even.c[b], odd.c[b]);
        const __m512 rescaled = _mm512_mul_ps(_mm512_set1_ps(old), was);
        _mm512_mask_storeu_ps(y + 16 * b, on, _mm512_fmadd_ps(sum, f, rescaled));
    }
}

PARE_AVX512 static void values_avx512(float *y, const float *s, const sparse_rows *rows,
                                      const uint32_t *idx, size_t n, float by, float old)
{
    if (rows->width <= SMALL_DIM) {
        small_dim_values_avx512(y, s, rows, idx, n, by, old);
        return;
    }
    size_t c = 0;
    for (; c + 64 <= rows->width; c += 64) {
        const sparse_rows part = {rows->v + c, rows->ld, 64};
        values64(y + c, s, &part, idx, n, by, old, true);
    }
    const sparse_rows rest = {rows->v + c, rows->ld, rows->width - c};
    if (rest.width) values64(y + c, s, &rest, idx, n, by, old, false);
}

PARE_AVX512 INLINE void put64(float *y, const cols64 *sum, size_t width, bool add, bool whole)
{
#pragma GCC unroll 4
    for (size_t b = 0; b < 4; b++) {
        const __mmask16 on = whole ? 0xffff : width > 16 * b ? rest16(width - 16 * b) : 0;
        const __m512 old = add ? _mm512_maskz_loadu_ps(on, y + 16 * b) : _mm512_setzero_ps();
        _mm512_mask_storeu_ps(y + 16 * b, on, _mm512_add_ps(old, sum->c[b]));
    }
}

/* 64 columns of each, or the masked rest. The pairs lie anywhere: they are prefetched. */
PARE_AVX512 INLINE void weighted_sums64(float *y, float *z, const float *pair, const uint32_t *from,
                                        const sparse_rows *rows, const sparse_rows *more,
                                        const uint32_t *idx, size_t n, bool add, bool whole)
{
    const __m512 zero = _mm512_setzero_ps();
    cols64 a = {{zero, zero, zero, zero}}, b = a;
    for (size_t j = 0; j < n; j++) {
        const float *const w = pair + 2 * (size_t)from[j];
        __builtin_prefetch(pair + 2 * (size_t)from[j + EDGES_AHEAD]);
        add64(&a, w[0], rows->v + idx[j] * rows->ld, rows->width, whole);
        add64(&b, w[1], more->v + idx[j] * more->ld, more->width, whole);
    }
    put64(y, &a, rows->width, add, whole);
    put64(z, &b, more->width, add, whole);
}

PARE_AVX512 static void weighted_sums_avx512(float *y, float *z, const float *pair,
                                             const uint32_t *from, const sparse_rows *rows,
                                             const sparse_rows *more, const uint32_t *idx, size_t n,
                                             bool add)
{
    const size_t widest = rows->width > more->width ? rows->width : more->width;
    for (size_t c = 0; c < widest; c += 64) {
        const size_t wide = rows->width > c ? rows->width - c : 0;
        const size_t wider = more->width > c ? more->width - c : 0;
        const sparse_rows a = {rows->v + c, rows->ld, wide < 64 ? wide : 64};
        const sparse_rows b = {more->v + c, more->ld, wider < 64 ? wider : 64};
        if (wide >= 64 && wider >= 64)
            weighted_sums64(y + c, z + c, pair, from, &a, &b, idx, n, add, true);
        else
            weighted_sums64(y + c, z + c, pair, from, &a, &b, idx, n, add, false);
    }
}

PARE_AVX512 static void softmax_backward_avx512(float *pair, float *ds, const float *s,
                                                const float *t, float lse, float mean, float scale,
                                                size_t n)
{
    const __m512 high = _mm512_set1_ps(PARE_EXP_HIGH), by = _mm512_set1_ps(scale);
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i eight = _mm512_set1_epi32(8);
    for (size_t j = 0; j < n; j += 16) {
        const __mmask16 on = rest16(n - j);
        const __m512 x = _mm512_sub_ps(_mm512_maskz_loadu_ps(on, s + j), _mm512_set1_ps(lse));
        const __m512 d = _mm512_sub_ps(_mm512_maskz_loadu_ps(on, t + j), _mm512_set1_ps(mean));
        const __m512 p = pare_exp_avx512(_mm512_min_ps(high, x));
        const __m512 ds_j = _mm512_mul_ps(_mm512_mul_ps(by, p), d);
        const size_t left = n - j < 16 ? n - j : 16;
        _mm512_storeu_ps(ds + j, ds_j);
        _mm512_mask_storeu_ps(pair + 2 * j, rest16(2 * left), _mm512_permutex2var_ps(p, low, ds_j));
        _mm512_mask_storeu_ps(pair + 2 * j + 16, left > 8 ? rest16(2 * left - 16) : 0,
                              _mm512_permutex2var_ps(p, _mm512_add_epi32(low, eight), ds_j));
    }
}

/* ---- AVX2 ----------------------------------------------------------------------------------- */

PARE_AVX2 static inline __m256i rest8(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? (int)n : 8), lane);
}

PARE_AVX2 static inline __m128 sums8(__m256 a0, __m256 a1, __m256 a2, __m256 a3)
{
    const __m256 c = _mm256_hadd_ps(_mm256_hadd_ps(a0, a1), _mm256_hadd_ps(a2, a3));
    return _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
}

PARE_AVX2 static void scores_avx2(float *s, const float *x, const sparse_rows *rows, float scale,
                                  const uint32_t *idx, size_t n)
{
    for (size_t j = 0; j < n; j += GROUP) {
        const float *k[GROUP];
        __m256 acc[GROUP];
        for (size_t r = 0; r < GROUP; r++) {
            const size_t at = idx[j + r < n ? j + r : n - 1];
            k[r] = rows->v + at * rows->ld;
            acc[r] = _mm256_setzero_ps();
        }
        for (size_t c = 0; c < rows->width; c += 8) {
            const __m256i on = rest8(rows->width - c);
            const __m256 xc = _mm256_maskload_ps(x + c, on);
#pragma GCC unroll 4
            for (size_t r = 0; r < GROUP; r++)
                acc[r] = _mm256_fmadd_ps(xc, _mm256_maskload_ps(k[r] + c, on), acc[r]);
        }
        _mm_storeu_ps(s + j, _mm_mul_ps(_mm_set1_ps(scale), sums8(acc[0], acc[1], acc[2], acc[3])));
    }
}

PARE_AVX2 static softmax_state weights_avx2(float *s, float *saved, size_t n, softmax_state before)
{
    __m256 sum = _mm256_setzero_ps();
    float row_max = before.row_max, part[8];
    for (size_t j = 0; j < n; j++)
        if (s[j] > row_max) row_max = s[j];
    const float rescale = pare_exp_scalar(before.row_max - row_max);
    for (size_t j = 0; saved && j < n; j++) saved[j] = s[j];
    for (size_t i = n; i < n + SCORE_PAD; i++) s[i] = -INFINITY;
    for (size_t j = 0; j < n; j += 8) {
        const __m256 w =
            pare_exp_avx2(_mm256_sub_ps(_mm256_loadu_ps(s + j), _mm256_set1_ps(row_max)));
        _mm256_storeu_ps(s + j, w);
        sum = _mm256_add_ps(sum, w);
    }
    _mm256_storeu_ps(part, sum);
    const float all =
        ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    return (softmax_state){row_max, rescale * before.sum + all, rescale};
}

/* 64 columns at a time: eight independent chains. */
PARE_AVX2 static void values_avx2(float *y, const float *s, const sparse_rows *rows,
                                  const uint32_t *idx, size_t n, float by, float old)
{
    for (size_t c = 0; c < rows->width; c += 64) {
        __m256 acc[8];
        const size_t whole = rows->width - c < 64 ? (rows->width - c) / 8 : 8;
        const bool more = whole < 8 && 8 * whole < rows->width - c;
        const __m256i on = rest8(rows->width - c - 8 * whole);
        for (size_t b = 0; b < 8; b++) acc[b] = _mm256_setzero_ps();
        for (size_t j = 0; j < n; j++) {
            const float *const v = rows->v + idx[j] * rows->ld + c;
            const __m256 w = _mm256_set1_ps(s[j]);
            for (size_t b = 0; b < whole; b++)
                acc[b] = _mm256_fmadd_ps(w, _mm256_loadu_ps(v + 8 * b), acc[b]);
            if (more)
                acc[whole] = _mm256_fmadd_ps(w, _mm256_maskload_ps(v + 8 * whole, on), acc[whole]);
        }
        const __m256 f = _mm256_set1_ps(by), keep = _mm256_set1_ps(old);
        for (size_t b = 0; b < whole; b++) {
            float *const to = y + c + 8 * b;
            const __m256 was = old != 0 ? _mm256_loadu_ps(to) : _mm256_setzero_ps();
            _mm256_storeu_ps(to, _mm256_fmadd_ps(acc[b], f, _mm256_mul_ps(keep, was)));
        }
        if (more) { /* alone: a masked store is slow on some CPUs */
            float *const to = y + c + 8 * whole;
            const __m256 was = old != 0 ? _mm256_maskload_ps(to, on) : _mm256_setzero_ps();
            _mm256_maskstore_ps(to, on, _mm256_fmadd_ps(acc[whole], f, _mm256_mul_ps(keep, was)));
        }
    }
}

/* Gathers one weight of each pair, then sums. */
PARE_AVX2 static void weighted_sums_avx2(float *y, float *z, const float *pair,
                                         const uint32_t *from, const sparse_rows *rows,
                                         const sparse_rows *more, const uint32_t *idx, size_t n,
                                         bool add)
{
    enum { PAIRS_AT_A_TIME = 64 };
    float a[PAIRS_AT_A_TIME], b[PAIRS_AT_A_TIME];
    for (size_t first = 0; first < n; first += PAIRS_AT_A_TIME) {
        const size_t count = n - first < PAIRS_AT_A_TIME ? n - first : PAIRS_AT_A_TIME;
        for (size_t j = 0; j < count; j++) {
            const float *const w = pair + 2 * (size_t)from[first + j];
            a[j] = w[0], b[j] = w[1];
        }
        const float old = add || first ? 1 : 0;
        values_avx2(y, a, rows, idx + first, count, 1, old);
        values_avx2(z, b, more, idx + first, count, 1, old);
    }
}

PARE_AVX2 static void softmax_backward_avx2(float *pair, float *ds, const float *s, const float *t,
                                            float lse, float mean, float scale, size_t n)
{
    const __m256 high = _mm256_set1_ps(PARE_EXP_HIGH), by = _mm256_set1_ps(scale);
    for (size_t j = 0; j < n; j += 8) {
        const size_t left = n - j < 8 ? n - j : 8;
        const __m256i on = rest8(left);
        const __m256 x = _mm256_sub_ps(_mm256_maskload_ps(s + j, on), _mm256_set1_ps(lse));
        const __m256 d = _mm256_sub_ps(_mm256_maskload_ps(t + j, on), _mm256_set1_ps(mean));
        const __m256 p = pare_exp_avx2(_mm256_min_ps(high, x));
        const __m256 ds_j = _mm256_mul_ps(_mm256_mul_ps(by, p), d);
        const __m256 a = _mm256_unpacklo_ps(p, ds_j), b = _mm256_unpackhi_ps(p, ds_j);
        _mm256_storeu_ps(ds + j, ds_j);
        _mm256_maskstore_ps(pair + 2 * j, rest8(2 * left), _mm256_permute2f128_ps(a, b, 0x20));
        _mm256_maskstore_ps(pair + 2 * j + 8, rest8(left > 4 ? 2 * left - 8 : 0),
                            _mm256_permute2f128_ps(a, b, 0x31));
    }
}
#endif

size_t sparse_kernels(sparse_kernel out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX512)
        out[n++] = (sparse_kernel){"avx512",
                                   scores_avx512,
                                   weights_avx512,
                                   values_avx512,
                                   weighted_sums_avx512,
                                   softmax_backward_avx512,
                                   small_dim_two_rows_avx512};
    if (simd_best() >= SIMD_AVX2)
        out[n++] = (sparse_kernel){"avx2",      scores_avx2,        weights_avx2,
                                   values_avx2, weighted_sums_avx2, softmax_backward_avx2,
                                   NULL};
#endif
    out[n++] = (sparse_kernel){"portable",
                               scores_portable,
                               weights_portable,
                               values_portable,
                               weighted_sums_portable,
                               softmax_backward_portable,
                               NULL};
    return n;
}
