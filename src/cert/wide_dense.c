/* wide_dense.c - y = x w^T + b with x and y in double-double, w as stored.
 *
 * Numbers are split into slices of so few bits that sums of their products are exact in f64
 * (Ozaki's scheme); what is left after the slices is so small that a plain f64 sum serves. An
 * ordinary product kernel does all the work, on four numbers for each x where w has few bits.
 *
 * Splitting, for RUN = 192 inputs at a time. X is the power of two above the |x_k| of one row, W the
 * one above the |w_k| of one output. Rounded to multiples of 2^-20 X, 2^-41 X, 2^-62 X, and of
 * 2^-25 W, 2^-51 W, 2^-77 W:
 *
 *     x = s1 + s2 + s3 + r3,   |s1| <= X,   |s2| <= 2^-21 X,   |s3| <= 2^-42 (1 + 2^-11) X,
 *                              r1 = x - s1,   r2 = r1 - s2,   |r3| <= 2^-63 X,
 *     w = w1 + w2 + w3 + w4,   |w1| <= W,   |w2| <= 2^-26 W,   |w3| <= 2^-52 W,   |w4| <= 2^-78 W.
 *
 * A slice of x is an integer of at most 2^20 (1 + 2^-11) times its grid, one of w of at most 2^25:
 * all partial sums of 192 products are below 2^53 grids. So in
 *
 *     x w = (s1 + s2 + s3) w1  +  (s1 + s2) w2  +  s1 w3          each sum exact, in any order
 *           + r3 w1 + r2 w2 + r1 w3 + x w4                        plain sums
 *
 * only the second line rounds. Slices of w that are all 0 are left out: f16 weights have no more
 * than w1, f32 weights seldom more than w2.
 *
 * Lemma (products). Let v = 2^-53 and A = |x|_2 |w|_2 + |b|. The result is within one unit, 16 v^2 A,
 * for up to WIDE_TERMS inputs.
 * Proof. For one run, with |.| the euclidean norm of its 192 numbers, X <= 2 |x|, W <= 2 |w| and
 * sum |w_k| <= 14 |w|. A plain sum is off by gamma_192 < 193 v times the sum of its terms' sizes:
 *     r3 w1: 193 v * 2^-63 * 2 |x| * 14 |w| (1 + 2^-20)    <  5.3 v^2 |x| |w|
 *     r2 w2: 193 v * 192 * 2^-42 * 2^-26 * 4 |x| |w| * 1.001 < 4.6 v^2 |x| |w|
 *     r1 w3: 2^-5 of that, x w4: less.
 * r1, r2, r3 are rounded to f64, and x w4 leaves the low half of x out: 2^-8 v^2 |x| |w| at most. By
 * Cauchy and Schwarz the runs add up to |x| |w| of the whole row. The sums of a run enter h, l, m as in
 * the lemma of wide.h: those of s1 w1 into h, the others (together below 2^-20 A) into l; there are 10
 * in each of at most 683 runs, and the terms of m, each below 2^-20 v A (1 + 2^-10), round with less
 * than 0.5 v^2 A. The last step adds v^2 A: together below 12 v^2 A. []
 *
 * Products below 2^-1022 round by 2^-1075 each, far below WIDE_TINY.
 *
 * Every exact sum has one value, and each plain sum is one chain of fused steps in the order of the
 * inputs: the bits depend neither on the threads nor on the width of the processor's vectors. */
#include "base/support.h"
#include "linalg/matrix.h"
#include "wide.h"
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { OUTS = 16, RUN = 192, STRIP = 12, ROWS_AT_ONCE = 128 };
enum { SLICES = 4 /* of w */, PARTS = 6 /* of x: s1, s2, s3, r3, r2, r1; hi is a seventh */ };

/* to[r][o] = sum over k < n of x[r][k] w[k][o], each a chain of fused steps from 0 on. */
typedef void kernel(double to[STRIP][OUTS], const double *const x[STRIP], const double *w,
                    size_t n);

static void kernel_plain(double to[STRIP][OUTS], const double *const x[STRIP], const double *w,
                         size_t n)
{
    memset(to, 0, STRIP * sizeof *to);
    for (size_t k = 0; k < n; k++)
        for (size_t r = 0; r < STRIP; r++)
            for (size_t o = 0; o < OUTS; o++) to[r][o] = fma(x[r][k], w[k * OUTS + o], to[r][o]);
}

#if defined(__x86_64__)
/* Six rows x eight outputs at a time: twelve of sixteen registers. */
PARE_AVX2 static void kernel_avx2(double to[STRIP][OUTS], const double *const x[STRIP],
                                  const double *w, size_t n)
{
    for (size_t r = 0; r < STRIP; r += 6)
        for (size_t o = 0; o < OUTS; o += 8) {
            __m256d c[6][2];
#pragma GCC unroll 6
            for (size_t i = 0; i < 6; i++) c[i][0] = c[i][1] = _mm256_setzero_pd();
            for (size_t k = 0; k < n; k++) {
                const __m256d a = _mm256_loadu_pd(w + k * OUTS + o);
                const __m256d b = _mm256_loadu_pd(w + k * OUTS + o + 4);
#pragma GCC unroll 6
                for (size_t i = 0; i < 6; i++) {
                    const __m256d at = _mm256_broadcast_sd(x[r + i] + k);
                    c[i][0] = _mm256_fmadd_pd(at, a, c[i][0]);
                    c[i][1] = _mm256_fmadd_pd(at, b, c[i][1]);
                }
            }
#pragma GCC unroll 6
            for (size_t i = 0; i < 6; i++) {
                _mm256_storeu_pd(to[r + i] + o, c[i][0]);
                _mm256_storeu_pd(to[r + i] + o + 4, c[i][1]);
            }
        }
}

/* Twelve rows x sixteen outputs: 24 of 32 registers. */
PARE_AVX512 static void kernel_avx512(double to[STRIP][OUTS], const double *const x[STRIP],
                                      const double *w, size_t n)
{
    __m512d c[STRIP][2];
#pragma GCC unroll 12
    for (size_t i = 0; i < STRIP; i++) c[i][0] = c[i][1] = _mm512_setzero_pd();
    for (size_t k = 0; k < n; k++) {
        const __m512d a = _mm512_loadu_pd(w + k * OUTS), b = _mm512_loadu_pd(w + k * OUTS + 8);
#pragma GCC unroll 12
        for (size_t i = 0; i < STRIP; i++) {
            const __m512d at = _mm512_set1_pd(x[i][k]);
            c[i][0] = _mm512_fmadd_pd(at, a, c[i][0]);
            c[i][1] = _mm512_fmadd_pd(at, b, c[i][1]);
        }
    }
#pragma GCC unroll 12
    for (size_t i = 0; i < STRIP; i++) {
        _mm512_storeu_pd(to[i], c[i][0]);
        _mm512_storeu_pd(to[i] + 8, c[i][1]);
    }
}
#endif

/* ---- slices ---------------------------------------------------------------------------------- */

/* Eight numbers, in whatever registers the function is compiled for. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t eight_bits __attribute__((vector_size(64), aligned(8), may_alias));
typedef float eight_floats __attribute__((vector_size(32), aligned(4), may_alias));
enum { EIGHT = 8 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t whole_eights(size_t n)
{
    return (n + EIGHT - 1) / EIGHT * EIGHT;
}

/* The power of two above n numbers, whole eights; 0 if they are all 0. Above 2^1000 nan, which all
 * slices become: no radius is claimed there, nor of numbers that are none. */
PARE_DD_INLINE double power_above(const double *x, size_t n)
{
    eight_bits top = {0}; /* without their signs, numbers are ordered like their bits */
    for (size_t k = 0; k < n; k += EIGHT) {
        const eight numbers = *(const eight *)(x + k);
        const eight_bits bits = (eight_bits)numbers & INT64_MAX;
        const eight_bits more = bits > top;
        top = (bits & more) | (top & ~more);
    }
    int64_t most = 0;
    double size;
    int e;
    for (size_t k = 0; k < EIGHT; k++) most = top[k] > most ? top[k] : most;
    memcpy(&size, &most, sizeof size);
    if (!(size <= 0x1p1000)) return NAN;
    frexp(size, &e);
    return size > 0 ? ldexp(1, e) : 0;
}

/* What is added to a number and taken away again to round it to a multiple of `grid`. */
static double rounder(double grid)
{
    return 0x1.8p52 * grid;
}

/* hi and lo of one row, n <= RUN numbers, into parts that lie `apart` from one another. */
PARE_DD_INLINE void split_run(double *to, size_t apart, const double *hi, const double *lo,
                              size_t n)
{
    double part[PARTS][RUN], h[RUN], l[RUN];
    const size_t padded = whole_eights(n);
    for (size_t k = n; k < padded; k++) h[k] = l[k] = 0;
    memcpy(h, hi, n * sizeof *h);
    memcpy(l, lo, n * sizeof *l);
    const double x = power_above(h, padded);
    const double by1 = rounder(0x1p-20 * x), by2 = rounder(0x1p-41 * x);
    const double by3 = rounder(0x1p-62 * x);
    for (size_t k = 0; k < padded; k += EIGHT) {
        const eight a = *(const eight *)(h + k), low = *(const eight *)(l + k);
        const eight s1 = (a + by1) - by1, r1 = a - s1;
        const eight s2 = (r1 + by2) - by2, r2 = r1 - s2;
        const eight sum = r2 + low, t = sum - r2, rest = (r2 - (sum - t)) + (low - t);
        const eight s3 = (sum + by3) - by3;
        *(eight *)(part[0] + k) = s1;
        *(eight *)(part[1] + k) = s2;
        *(eight *)(part[2] + k) = s3;
        *(eight *)(part[3] + k) = (sum - s3) + rest;
        *(eight *)(part[4] + k) = sum;
        *(eight *)(part[5] + k) = r1 + low;
    }
    for (size_t p = 0; p < PARTS; p++) memcpy(to + p * apart, part[p], n * sizeof *to);
}

/* Slices of n numbers of one output, filled up with zeros to whole eights: w[0] becomes w1, what is
 * left w[1], and so on. The number of slices. */
PARE_DD_INLINE size_t split_weights(double w[SLICES][RUN], size_t n)
{
    double grid = 0x1p-25 * power_above(w[0], n);
    for (size_t s = 0; s + 1 < SLICES; s++, grid *= 0x1p-26) {
        const double by = rounder(grid);
        eight any = {0};
        for (size_t k = 0; k < n; k += EIGHT) {
            eight *const at = (eight *)(w[s] + k);
            const eight slice = (*at + by) - by, left = *at - slice;
            *at = slice;
            *(eight *)(w[s + 1] + k) = left;
            any += left * left;
        }
        double left = 0;
        for (size_t e = 0; e < EIGHT; e++) left += any[e];
        if (left == 0) return s + 1;
    }
    return SLICES;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

typedef struct job {
    wide_mat *y;
    const wide_mat *x;
    const pare_weight *w, *b;
    double *parts; /* PARTS times the rows of x */
    size_t out_tiles;
} job;

PARE_DD_INLINE void split_row(const job *j, size_t i)
{
    const size_t in = j->w->cols, apart = j->x->hi.rows * in;
    const double *const hi = pare_row(&j->x->hi, i), *const lo = pare_row(&j->x->lo, i);
    for (size_t k = 0; k < in; k += RUN)
        split_run(j->parts + i * in + k, apart, hi + k, lo + k, least(RUN, in - k));
}

PARE_DD_INLINE void widen(double *to, const float *from, size_t n)
{
    size_t k = 0;
    for (; k + EIGHT <= n; k += EIGHT)
        *(eight *)(to + k) = __builtin_convertvector(*(const eight_floats *)(from + k), eight);
    for (; k < n; k++) to[k] = (double)from[k];
}

/* Inputs [k, k + n) of outputs [o, o + outs), sliced and transposed; what is missing of OUTS is 0.
 * The number of slices. */
PARE_DD_INLINE size_t pack(double to[SLICES][RUN * OUTS], const pare_weight *w, size_t o,
                           size_t outs, size_t k, size_t n)
{
    const size_t padded = whole_eights(n);
    double row[SLICES][RUN];
    size_t most = 0;
    for (size_t r = 0; r < outs; r++) {
        const size_t at = (o + r) * w->cols + k;
        if (w->dtype == PARE_F32)
            widen(row[0], (const float *)w->data + at, n);
        else
            memcpy(row[0], (const double *)w->data + at, n * sizeof(double));
        for (size_t c = n; c < padded; c++) row[0][c] = 0;
        const size_t slices = split_weights(row, padded);
        for (; most < slices; most++) memset(to[most], 0, n * OUTS * sizeof(double));
        for (size_t s = 0; s < slices; s++)
            for (size_t c = 0; c < n; c++) to[s][c * OUTS + r] = row[s][c];
    }
    return most;
}

/* The sums of up to ROWS_AT_ONCE rows x OUTS outputs. */
typedef struct sums {
    double h[ROWS_AT_ONCE][OUTS], l[ROWS_AT_ONCE][OUTS], m[ROWS_AT_ONCE][OUTS];
} sums;

/* Sums of a run into l and m of a row; those of s1 w1 first into h. */
PARE_DD_INLINE void take(sums *t, size_t row, const double s[OUTS], bool high)
{
    for (size_t o = 0; o < OUTS; o += EIGHT) {
        eight *const h = (eight *)(t->h[row] + o), *const l = (eight *)(t->l[row] + o);
        eight *const m = (eight *)(t->m[row] + o), add = *(const eight *)(s + o);
        if (high) {
            const eight sum = *h + add, b = sum - *h;
            add = (*h - (sum - b)) + (add - b);
            *h = sum;
        }
        const eight sum = *l + add, b = sum - *l;
        *m += (*l - (sum - b)) + (add - b);
        *l = sum;
    }
}

/* Which parts of x meet each slice of w: s1, s2, s3 and r3 meet w1, ... and x itself meets w4. */
static const size_t met[SLICES][SLICES] = {{0, 1, 2, 3}, {0, 1, 4}, {0, 5}, {PARTS}};

/* One slice of w and the parts of `rows` rows that it meets. */
PARE_DD_INLINE void one_slice(const job *j, kernel *run, sums *t, size_t i, size_t rows, size_t k,
                              size_t n, const double *w, size_t slice)
{
    const size_t in = j->w->cols, parts = SLICES - slice, at_once = STRIP / parts;
    double sum[STRIP][OUTS];
    for (size_t r = 0; r < rows; r += at_once) {
        const double *x[STRIP];
        for (size_t e = 0; e < STRIP; e++) { /* rows beyond the last repeat it, and are not read */
            const size_t row = i + least(r + e / parts, rows - 1), part = met[slice][e % parts];
            x[e] = part == PARTS ? pare_row(&j->x->hi, row) + k
                                 : j->parts + (part * j->x->hi.rows + row) * in + k;
        }
        run(sum, x, w, n);
        for (size_t e = 0; e < STRIP && r + e / parts < rows; e++)
            take(t, r + e / parts, sum[e], slice == 0 && e % parts == 0);
    }
}

PARE_DD_INLINE void tile(const job *j, kernel *run, size_t block)
{
    const size_t i = block / j->out_tiles * ROWS_AT_ONCE, o = block % j->out_tiles * OUTS;
    const size_t rows = least(ROWS_AT_ONCE, j->x->hi.rows - i), in = j->w->cols;
    const size_t outs = least(OUTS, j->w->rows - o);
    double w[SLICES][RUN * OUTS];
    sums t;
    memset(t.h, 0, rows * sizeof *t.h);
    memset(t.l, 0, rows * sizeof *t.l);
    memset(t.m, 0, rows * sizeof *t.m);
    for (size_t k = 0; k < in; k += RUN) {
        const size_t n = least(RUN, in - k), slices = pack(w, j->w, o, outs, k, n);
        for (size_t s = 0; s < slices; s++) one_slice(j, run, &t, i, rows, k, n, w[s], s);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < outs; c++) {
            dd_take(&t.h[r][c], &t.l[r][c], &t.m[r][c], j->b ? pare_weight_at(j->b, o + c) : 0, 0);
            const dd y = dd_settle(t.h[r][c], t.l[r][c], t.m[r][c]);
            pare_row_mut(&j->y->hi, i + r)[o + c] = y.hi;
            pare_row_mut(&j->y->lo, i + r)[o + c] = y.lo;
        }
}

/* ---- levels of the processor ------------------------------------------------------------------ */

static void split_plain(void *ctx, size_t i)
{
    split_row(ctx, i);
}
static void tile_plain(void *ctx, size_t block)
{
    tile(ctx, kernel_plain, block);
}
#if defined(__x86_64__)
PARE_AVX2 static void split_avx2(void *ctx, size_t i)
{
    split_row(ctx, i);
}
PARE_AVX2 static void tile_avx2(void *ctx, size_t block)
{
    tile(ctx, kernel_avx2, block);
}
PARE_AVX512 static void split_avx512(void *ctx, size_t i)
{
    split_row(ctx, i);
}
PARE_AVX512 static void tile_avx512(void *ctx, size_t block)
{
    tile(ctx, kernel_avx512, block);
}
#endif

static const struct level {
    void (*split)(void *ctx, size_t i), (*tile)(void *ctx, size_t block);
} levels[] = {
    [WIDE_PLAIN] = {split_plain, tile_plain},
#if defined(__x86_64__)
    [WIDE_AVX2] = {split_avx2, tile_avx2},
    [WIDE_AVX512] = {split_avx512, tile_avx512},
#else
    [WIDE_AVX2] = {split_plain, tile_plain},
    [WIDE_AVX512] = {split_plain, tile_plain},
#endif
};

wide_level wide_best_level(void)
{
    const simd_isa best = simd_best();
    return best >= SIMD_AVX512 ? WIDE_AVX512 : best >= SIMD_AVX2 ? WIDE_AVX2 : WIDE_PLAIN;
}

pare_status wide_dense(wide_mat *y, const wide_mat *x, const pare_weight *w, const pare_weight *b,
                       const pare_exec *exec, pare_err *err)
{
    return wide_dense_on(wide_best_level(), y, x, w, b, exec, err);
}

pare_status wide_dense_on(wide_level level, wide_mat *y, const wide_mat *x, const pare_weight *w,
                          const pare_weight *b, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(x->hi.cols == w->cols && y->hi.cols == w->rows && y->hi.rows == x->hi.rows);
    job j = {.y = y, .x = x, .w = w, .b = b && pare_has(b) ? b : NULL};
    const size_t rows = x->hi.rows, row_tiles = (rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    size_t numbers, bytes;
    if (!pare_mul(&numbers, rows, w->cols) || !pare_mul(&bytes, numbers, PARTS * sizeof *j.parts))
        return pare_no_memory(err);
    j.parts = malloc(bytes ? bytes : 1);
    if (!j.parts) return pare_no_memory(err);
    j.out_tiles = (w->rows + OUTS - 1) / OUTS;
    pare_parallel(exec, rows, levels[level].split, &j);
    pare_parallel(exec, row_tiles * j.out_tiles, levels[level].tile, &j);
    free(j.parts);
    return PARE_OK;
}
