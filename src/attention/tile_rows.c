/* The weighted values of a tile in rows: a few queries and up to 64 columns at a time in registers.
 *
 * tile_kernel.values keeps queries in the lanes, which suits a panel that meets many tiles: its
 * sums are turned into rows once, in the end. A call of an oracle meets one or two tiles, and
 * turning would cost it a tenth of its time; here the columns are in the lanes, and nothing is
 * turned. Every sum takes the same products in the same order either way. */
#include "tile_rows.h"
#include <pare/vexp.h>

#if defined(__x86_64__)
enum { QUERIES = 4, VECTORS = 4 };
#define INLINE512 static inline __attribute__((always_inline)) PARE_AVX512

typedef struct sums {
    float *y;
    const float *old;
    size_t ldy, ldold;
} sums;

/* n queries from `first` on, v vectors of columns from c on. */
INLINE512 void rows_block(const sums *t, const tile_weights *w, size_t first, const float *x,
                          size_t ldx, size_t c, const size_t n, const size_t v)
{
    __m512 acc[QUERIES][VECTORS], part[VECTORS];
    float *const y = t->y + first * t->ldy + c;
    const float *s = w->s + first, *const old = t->old ? t->old + first * t->ldold + c : NULL;
    x += c;
#pragma GCC unroll 4
    for (size_t r = 0; r < n; r++)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++)
            acc[r][e] = old ? _mm512_mul_ps(_mm512_loadu_ps(old + r * t->ldold + 16 * e),
                                            _mm512_set1_ps(w->fade[first + r]))
                            : _mm512_setzero_ps();
    for (size_t j = 0; j < w->keys; j++, s += w->p, x += ldx) {
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) part[e] = _mm512_loadu_ps(x + 16 * e);
#pragma GCC unroll 4
        for (size_t r = 0; r < n; r++) {
            const __m512 b = _mm512_set1_ps(s[r]);
#pragma GCC unroll 4
            for (size_t e = 0; e < v; e++) acc[r][e] = _mm512_fmadd_ps(b, part[e], acc[r][e]);
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < n; r++)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++)
            _mm512_storeu_ps(y + r * t->ldy + 16 * e,
                             w->by ? _mm512_mul_ps(acc[r][e], _mm512_set1_ps(w->by[first + r]))
                                   : acc[r][e]);
}

INLINE512 void rows_columns(const sums *t, size_t rows, const tile_weights *w, const float *x,
                            size_t ldx, size_t c, const size_t v)
{
    size_t i = 0;
    for (; i + QUERIES <= rows; i += QUERIES) rows_block(t, w, i, x, ldx, c, QUERIES, v);
    for (; i < rows; i++) rows_block(t, w, i, x, ldx, c, 1, v);
}

PARE_AVX512 static void rows_avx512(float *y, size_t ldy, const float *old, size_t rows,
                                    const tile_weights *w, const float *x, size_t ldx, size_t cols)
{
    const sums t = {y, old, ldy, cols};
    size_t c = 0;
    for (; c + 64 <= cols; c += 64) rows_columns(&t, rows, w, x, ldx, c, 4);
    for (; c + 32 <= cols; c += 32) rows_columns(&t, rows, w, x, ldx, c, 2);
    for (; c < cols; c += 16) rows_columns(&t, rows, w, x, ldx, c, 1);
}

/* ---- AVX2: half as many columns, six queries (16 registers) ---------------------------------- */

enum { FEWER_VECTORS = 2, MORE_QUERIES = 6 };
#define INLINE256 static inline __attribute__((always_inline)) PARE_AVX2

INLINE256 void rows_block8(const sums *t, const tile_weights *w, size_t first, const float *x,
                           size_t ldx, const size_t n)
{
    __m256 acc[MORE_QUERIES][FEWER_VECTORS];
    float *const y = t->y + first * t->ldy;
    const float *s = w->s + first, *const old = t->old ? t->old + first * t->ldold : NULL;
#pragma GCC unroll 6
    for (size_t r = 0; r < n; r++)
#pragma GCC unroll 2
        for (size_t e = 0; e < FEWER_VECTORS; e++)
            acc[r][e] = old ? _mm256_mul_ps(_mm256_loadu_ps(old + r * t->ldold + 8 * e),
                                            _mm256_set1_ps(w->fade[first + r]))
                            : _mm256_setzero_ps();
    for (size_t j = 0; j < w->keys; j++, s += w->p, x += ldx) {
        const __m256 left = _mm256_loadu_ps(x), right = _mm256_loadu_ps(x + 8);
#pragma GCC unroll 6
        for (size_t r = 0; r < n; r++) {
            const __m256 b = _mm256_set1_ps(s[r]);
            acc[r][0] = _mm256_fmadd_ps(b, left, acc[r][0]);
            acc[r][1] = _mm256_fmadd_ps(b, right, acc[r][1]);
        }
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < n; r++)
#pragma GCC unroll 2
        for (size_t e = 0; e < FEWER_VECTORS; e++)
            _mm256_storeu_ps(y + r * t->ldy + 8 * e,
                             w->by ? _mm256_mul_ps(acc[r][e], _mm256_set1_ps(w->by[first + r]))
                                   : acc[r][e]);
}

PARE_AVX2 static void rows_avx2(float *y, size_t ldy, const float *old, size_t rows,
                                const tile_weights *w, const float *x, size_t ldx, size_t cols)
{
    for (size_t c = 0; c < cols; c += ROWS_STEP) {
        const sums t = {y + c, old ? old + c : NULL, ldy, cols};
        size_t i = 0;
        for (; i + 6 <= rows; i += 6) rows_block8(&t, w, i, x + c, ldx, 6);
        for (; i + 4 <= rows; i += 4) rows_block8(&t, w, i, x + c, ldx, 4);
        for (; i < rows; i++) rows_block8(&t, w, i, x + c, ldx, 1);
    }
}
#endif

tile_rows_fn *tile_rows_kernel(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return rows_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return rows_avx2;
#endif
    return NULL;
}
