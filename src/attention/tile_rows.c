/* tile_rows.c - the weighted values of a tile in rows: a few queries and up to 64 columns at a time
 * in registers.
 *
 * tile_kernel.values has queries in the lanes, which suits a panel that meets many tiles: its sums
 * are transposed into rows once, at the end. A call of an oracle meets one or two tiles, and the
 * transposition would take a tenth of its time; here the columns are in the lanes, and nothing is
 * transposed. Every sum takes the same products in the same order either way. Rows that are added
 * to f64 sums are added from the registers (AVX-512; the sums are prefetched before the products),
 * or one by one between the products of the next rows (AVX2). */
#include "tile_rows.h"
#include "base/vexp.h"

void tile_rows_add(const tile_sums *into, const float *x, size_t ldx, const float *times,
                   size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++, x += ldx) {
        double *const sum = into->sum + i * into->ld;
        const double keep = into->keep[i], by = into->by[i];
        const float time = times ? times[i] : 1;
        size_t c = 0;
        for (; c + 4 <= cols; c += 4) {
            const four here = *(const four *)(x + c) * time;
            four_f64 *const to = (four_f64 *)(sum + c);
            *to = keep * *to + by * __builtin_convertvector(here, four_f64);
        }
        for (; c < cols; c++) sum[c] = keep * sum[c] + by * (double)(x[c] * time);
    }
}

#if defined(__x86_64__)
typedef struct row_block {
    float *y;
    const float *old;
    size_t ldy, ldold;
} row_block;

PARE_INLINE void prefetch_sums(const tile_sums *into, size_t first, size_t c, const size_t n,
                               const size_t columns)
{
    enum { LINE = 8 }; /* doubles */
#pragma GCC unroll 4
    for (size_t r = 0; r < n; r++)
#pragma GCC unroll 8
        for (size_t e = 0; e < columns; e += LINE)
            __builtin_prefetch(into->sum + (first + r) * into->ld + c + e, 1);
}

/* ---- AVX-512 -------------------------------------------------------------------------------- */

enum { QUERIES = 4, VECTORS = 4 };
#define INLINE512 PARE_INLINE PARE_AVX512

INLINE512 void add_half512(double *sum, __m256 x, __m512d keep, __m512d by, const bool rescales)
{
    const __m512d more = _mm512_mul_pd(by, _mm512_cvtps_pd(x)), old = _mm512_loadu_pd(sum);
    _mm512_storeu_pd(sum, _mm512_add_pd(rescales ? _mm512_mul_pd(keep, old) : old, more));
}

/* Row `row` of the sums, from column c on. */
INLINE512 void add_row512(const tile_sums *into, size_t row, size_t c, const __m512 *x,
                          const size_t v, const bool rescales)
{
    const __m512d keep = _mm512_set1_pd(into->keep[row]), by = _mm512_set1_pd(into->by[row]);
    double *const sum = into->sum + row * into->ld + c;
#pragma GCC unroll 4
    for (size_t e = 0; e < v; e++) {
        const __m256d high = _mm512_extractf64x4_pd(_mm512_castps_pd(x[e]), 1);
        add_half512(sum + 16 * e, _mm512_castps512_ps256(x[e]), keep, by, rescales);
        add_half512(sum + 16 * e + 8, _mm256_castpd_ps(high), keep, by, rescales);
    }
}

/* n queries from `first` on, v vectors of columns from c on. */
INLINE512 void rows_block(const row_block *t, const tile_weights *w, size_t first, const float *x,
                          size_t ldx, size_t c, const size_t n, const size_t v)
{
    __m512 acc[QUERIES][VECTORS], part[VECTORS];
    float *const y = t->y + first * t->ldy + c;
    const float *s = w->s + first, *const old = t->old ? t->old + first * t->ldold + c : NULL;
    x += c;
    if (w->into) prefetch_sums(w->into, first, c, n, 16 * v);
#pragma GCC unroll 4
    for (size_t r = 0; r < n; r++)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++)
            acc[r][e] = old ? _mm512_mul_ps(_mm512_loadu_ps(old + r * t->ldold + 16 * e),
                                            _mm512_set1_ps(w->rescale[first + r]))
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
    for (size_t r = 0; r < n; r++) {
        if (w->by) {
            const __m512 by = _mm512_set1_ps(w->by[first + r]);
#pragma GCC unroll 4
            for (size_t e = 0; e < v; e++) acc[r][e] = _mm512_mul_ps(acc[r][e], by);
        }
        if (w->into) {
            if (w->into->keep[first + r] == 1)
                add_row512(w->into, first + r, c, acc[r], v, false);
            else
                add_row512(w->into, first + r, c, acc[r], v, true);
            continue;
        }
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) _mm512_storeu_ps(y + r * t->ldy + 16 * e, acc[r][e]);
    }
}

INLINE512 void rows_columns(const row_block *t, size_t rows, const tile_weights *w, const float *x,
                            size_t ldx, size_t c, const size_t v)
{
    size_t i = 0;
    for (; i + QUERIES <= rows; i += QUERIES) rows_block(t, w, i, x, ldx, c, QUERIES, v);
    for (; i < rows; i++) rows_block(t, w, i, x, ldx, c, 1, v);
}

PARE_AVX512 static void rows_avx512(float *y, size_t ldy, const float *old, size_t rows,
                                    const tile_weights *w, const float *x, size_t ldx, size_t cols)
{
    const row_block t = {y, old, ldy, cols};
    const tile_sums into = w->into ? *w->into : (tile_sums){0};
    tile_weights own = *w; /* a local copy: vector stores may alias *w */
    own.into = w->into ? &into : NULL;
    size_t c = 0;
    for (; c + 64 <= cols; c += 64) rows_columns(&t, rows, &own, x, ldx, c, 4);
    for (; c + 32 <= cols; c += 32) rows_columns(&t, rows, &own, x, ldx, c, 2);
    for (; c < cols; c += 16) rows_columns(&t, rows, &own, x, ldx, c, 1);
}

/* ---- AVX2: sixteen columns of up to six queries (16 registers) ------------------------------- */

enum { QUERIES8 = 6 };
#define INLINE256 PARE_INLINE PARE_AVX2

/* Rows of a block that wait to be added to sums. One of them is added after every few keys of the
 * next block, which is limited by its multiplications: conversions, additions and stores are free
 * then. */
typedef struct pending_rows {
    size_t rows; /* still to add */
    const float *x;
    double *sum;
    size_t ld;
    const double *keep, *by;
} pending_rows;

INLINE256 void add_row256(const pending_rows *f, const bool rescales)
{
    const __m256d keep = _mm256_broadcast_sd(f->keep), by = _mm256_broadcast_sd(f->by);
#pragma GCC unroll 4
    for (size_t c = 0; c < ROWS_STEP; c += 4) {
        const __m256d more = _mm256_mul_pd(by, _mm256_cvtps_pd(_mm_load_ps(f->x + c)));
        const __m256d old = _mm256_loadu_pd(f->sum + c);
        _mm256_storeu_pd(f->sum + c,
                         _mm256_add_pd(rescales ? _mm256_mul_pd(keep, old) : old, more));
    }
}

INLINE256 void add_pending_row(pending_rows *f)
{
    if (*f->keep == 1)
        add_row256(f, false);
    else
        add_row256(f, true);
    f->rows--;
    f->x += ROWS_STEP;
    f->sum += f->ld;
    f->keep++;
    f->by++;
}

INLINE256 void begin_block8(__m256 acc[QUERIES8][2], const float *old, size_t ld,
                            const float *rescale, const size_t n)
{
    if (old) {
#pragma GCC unroll 6
        for (size_t r = 0; r < n; r++)
#pragma GCC unroll 2
            for (size_t e = 0; e < 2; e++)
                acc[r][e] = _mm256_mul_ps(_mm256_loadu_ps(old + r * ld + 8 * e),
                                          _mm256_set1_ps(rescale[r]));
    } else {
#pragma GCC unroll 6
        for (size_t r = 0; r < n; r++) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    }
}

INLINE256 void add_keys8(__m256 acc[QUERIES8][2], const float **s, size_t p, const float **x,
                         size_t ldx, size_t keys, const size_t n)
{
    const float *const end = *x + keys * ldx;
#pragma GCC unroll 1
    for (; *x != end; *s += p, *x += ldx) {
        const __m256 part[2] = {_mm256_loadu_ps(*x), _mm256_loadu_ps(*x + 8)};
#pragma GCC unroll 6
        for (size_t r = 0; r < n; r++) {
            const __m256 b = _mm256_set1_ps((*s)[r]);
#pragma GCC unroll 2
            for (size_t e = 0; e < 2; e++) acc[r][e] = _mm256_fmadd_ps(b, part[e], acc[r][e]);
        }
    }
}

INLINE256 void end_block8(float *y, size_t ldy, __m256 acc[QUERIES8][2], const float *by,
                          const size_t n)
{
#pragma GCC unroll 6
    for (size_t r = 0; r < n; r++)
#pragma GCC unroll 2
        for (size_t e = 0; e < 2; e++)
            _mm256_storeu_ps(y + r * ldy + 8 * e,
                             by ? _mm256_mul_ps(acc[r][e], _mm256_set1_ps(by[r])) : acc[r][e]);
}

/* n queries from `first` on, sixteen columns from c on; y: the output, or where rows wait to
 * be added up. The rows that wait when it begins are added when it ends. */
INLINE256 void rows_block8(float *y, size_t ldy, const row_block *t, const tile_weights *w,
                           size_t first, const float *x, size_t ldx, size_t c, const size_t n,
                           pending_rows *f)
{
    enum { AT_A_TIME = 10 }; /* so that six rows are added along the 64 keys of a tile */
    __m256 acc[QUERIES8][2];
    const float *s = w->s + first;
    x += c;
    begin_block8(acc, t->old ? t->old + first * t->ldold + c : NULL, t->ldold, w->rescale + first,
                 n);
    for (size_t left = w->keys, some; left; left -= some) {
        some = left < AT_A_TIME || !f->rows ? left : AT_A_TIME;
        add_keys8(acc, &s, w->p, &x, ldx, some, n);
        if (f->rows) add_pending_row(f);
    }
    while (f->rows) add_pending_row(f);
    if (w->by)
        end_block8(y, ldy, acc, w->by + first, n);
    else
        end_block8(y, ldy, acc, NULL, n);
}

INLINE256 void rows_columns8(const row_block *t, const tile_weights *w, size_t first,
                             const float *x, size_t ldx, size_t cols, const size_t n,
                             pending_rows *f, float *waiting)
{
    const tile_sums *const into = w->into;
    for (size_t c = 0; c < cols; c += ROWS_STEP) {
        if (!into) {
            rows_block8(t->y + first * t->ldy + c, t->ldy, t, w, first, x, ldx, c, n, f);
            continue;
        }
        rows_block8(waiting, ROWS_STEP, t, w, first, x, ldx, c, n, f);
        *f = (pending_rows){.rows = n,
                            .x = waiting,
                            .sum = into->sum + first * into->ld + c,
                            .ld = into->ld,
                            .keep = into->keep + first,
                            .by = into->by + first};
    }
}

PARE_AVX2 static void rows_avx2(float *y, size_t ldy, const float *old, size_t rows,
                                const tile_weights *w, const float *x, size_t ldx, size_t cols)
{
    const row_block t = {y, old, ldy, cols};
    _Alignas(32) float waiting[QUERIES8 * ROWS_STEP];
    pending_rows f = {0};
    size_t i = 0;
    for (; i + 6 <= rows; i += 6) rows_columns8(&t, w, i, x, ldx, cols, 6, &f, waiting);
    for (; i + 4 <= rows; i += 4) rows_columns8(&t, w, i, x, ldx, cols, 4, &f, waiting);
    for (; i < rows; i++) rows_columns8(&t, w, i, x, ldx, cols, 1, &f, waiting);
    while (f.rows) add_pending_row(&f);
}
#endif

tile_rows_fn *tile_rows_kernel(void)
{
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX512) return rows_avx512;
    if (simd_best() >= SIMD_AVX2) return rows_avx2;
#endif
    return NULL;
}
