/* wide_dense.c - y = x w^T + b with x and y in double-double, w as stored.
 *
 * Each output is one sum in the order of the inputs, h + x w exactly by two-product and two-sum, the
 * small parts in l (the bound is that of wide_rows.c: h and l are made a pair again after RUN
 * terms). So the bits depend neither on the threads nor on the width of the processor's vectors.
 *
 * A tile of w, OUTS outputs x RUN inputs, is widened and transposed once and serves ROWS_AT_ONCE
 * rows of x; the innermost kernel has STRIP of these rows x OUTS sums in registers (or passes over
 * parts of it). */
#include "wide.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { OUTS = 16, RUN = 256, STRIP = 4, ROWS_AT_ONCE = 64 };

typedef struct strip { /* STRIP rows of x from one input on, and their sums */
    const double *xh[STRIP], *xl[STRIP];
    double h[STRIP * OUTS], l[STRIP * OUTS];
} strip;

/* w: n x OUTS */
typedef void kernel(strip *s, const double *w, size_t n);

static void kernel_plain(strip *s, const double *w, size_t n)
{
    for (size_t r = 0; r < STRIP; r++)
        for (size_t k = 0; k < n; k++)
            for (size_t o = 0; o < OUTS; o++) {
                double *const h = &s->h[r * OUTS + o];
                const dd p = dd_product(s->xh[r][k], w[k * OUTS + o]), t = dd_two_sum(*h, p.hi);
                *h = t.hi;
                s->l[r * OUTS + o] += t.lo + fma(s->xl[r][k], w[k * OUTS + o], p.lo);
            }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"), always_inline)) static inline void
step_avx2(__m256d *h, __m256d *l, __m256d xh, __m256d xl, __m256d w)
{
    const __m256d p = _mm256_mul_pd(xh, w), e = _mm256_fmsub_pd(xh, w, p);
    const __m256d s = _mm256_add_pd(*h, p), t = _mm256_sub_pd(s, *h);
    const __m256d lost = _mm256_add_pd(_mm256_sub_pd(*h, _mm256_sub_pd(s, t)), _mm256_sub_pd(p, t));
    *l = _mm256_add_pd(*l, _mm256_add_pd(lost, _mm256_fmadd_pd(xl, w, e)));
    *h = s;
}

/* Two rows x eight sums at a time: what sixteen registers hold. */
__attribute__((target("avx2,fma"))) static void kernel_avx2(strip *s, const double *w, size_t n)
{
    for (size_t r = 0; r < STRIP; r += 2)
        for (size_t o = 0; o < OUTS; o += 8) {
            double *const h = &s->h[r * OUTS + o], *const l = &s->l[r * OUTS + o];
            const double *const ah = s->xh[r], *const al = s->xl[r];
            const double *const bh = s->xh[r + 1], *const bl = s->xl[r + 1];
            __m256d h0 = _mm256_loadu_pd(h), h1 = _mm256_loadu_pd(h + 4);
            __m256d h2 = _mm256_loadu_pd(h + OUTS), h3 = _mm256_loadu_pd(h + OUTS + 4);
            __m256d l0 = _mm256_loadu_pd(l), l1 = _mm256_loadu_pd(l + 4);
            __m256d l2 = _mm256_loadu_pd(l + OUTS), l3 = _mm256_loadu_pd(l + OUTS + 4);
            for (size_t k = 0; k < n; k++) {
                const __m256d w0 = _mm256_loadu_pd(w + k * OUTS + o);
                const __m256d w1 = _mm256_loadu_pd(w + k * OUTS + o + 4);
                __m256d xh = _mm256_broadcast_sd(ah + k), xl = _mm256_broadcast_sd(al + k);
                step_avx2(&h0, &l0, xh, xl, w0);
                step_avx2(&h1, &l1, xh, xl, w1);
                xh = _mm256_broadcast_sd(bh + k);
                xl = _mm256_broadcast_sd(bl + k);
                step_avx2(&h2, &l2, xh, xl, w0);
                step_avx2(&h3, &l3, xh, xl, w1);
            }
            _mm256_storeu_pd(h, h0);
            _mm256_storeu_pd(h + 4, h1);
            _mm256_storeu_pd(h + OUTS, h2);
            _mm256_storeu_pd(h + OUTS + 4, h3);
            _mm256_storeu_pd(l, l0);
            _mm256_storeu_pd(l + 4, l1);
            _mm256_storeu_pd(l + OUTS, l2);
            _mm256_storeu_pd(l + OUTS + 4, l3);
        }
}

__attribute__((target("avx512f"), always_inline)) static inline void
step_avx512(__m512d *h, __m512d *l, __m512d xh, __m512d xl, __m512d w)
{
    const __m512d p = _mm512_mul_pd(xh, w), e = _mm512_fmsub_pd(xh, w, p);
    const __m512d s = _mm512_add_pd(*h, p), t = _mm512_sub_pd(s, *h);
    const __m512d lost = _mm512_add_pd(_mm512_sub_pd(*h, _mm512_sub_pd(s, t)), _mm512_sub_pd(p, t));
    *l = _mm512_add_pd(*l, _mm512_add_pd(lost, _mm512_fmadd_pd(xl, w, e)));
    *h = s;
}

__attribute__((target("avx512f"))) static void kernel_avx512(strip *s, const double *w, size_t n)
{
    __m512d h[STRIP][2], l[STRIP][2];
    for (size_t r = 0; r < STRIP; r++)
        for (size_t v = 0; v < 2; v++) {
            h[r][v] = _mm512_loadu_pd(s->h + r * OUTS + 8 * v);
            l[r][v] = _mm512_loadu_pd(s->l + r * OUTS + 8 * v);
        }
    for (size_t k = 0; k < n; k++) {
        const __m512d w0 = _mm512_loadu_pd(w + k * OUTS), w1 = _mm512_loadu_pd(w + k * OUTS + 8);
#pragma GCC unroll 4
        for (size_t r = 0; r < STRIP; r++) {
            const __m512d xh = _mm512_set1_pd(s->xh[r][k]), xl = _mm512_set1_pd(s->xl[r][k]);
            step_avx512(&h[r][0], &l[r][0], xh, xl, w0);
            step_avx512(&h[r][1], &l[r][1], xh, xl, w1);
        }
    }
    for (size_t r = 0; r < STRIP; r++)
        for (size_t v = 0; v < 2; v++) {
            _mm512_storeu_pd(s->h + r * OUTS + 8 * v, h[r][v]);
            _mm512_storeu_pd(s->l + r * OUTS + 8 * v, l[r][v]);
        }
}
#endif

static kernel *best_kernel(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return kernel_avx512;
    if (wide_has_fma()) return kernel_avx2;
#endif
    return kernel_plain;
}

/* ---- tiles ------------------------------------------------------------------------------------ */

typedef struct job {
    wide_mat *y;
    const wide_mat *x;
    const pare_weight *w, *b;
    size_t out_tiles;
    kernel *run;
} job;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Inputs [k, k + n) of outputs [o, o + outs), transposed; what is missing of OUTS is 0. */
static void pack(double *to, const pare_weight *w, size_t o, size_t outs, size_t k, size_t n)
{
    for (size_t c = 0; c < n; c++)
        for (size_t r = outs; r < OUTS; r++) to[c * OUTS + r] = 0;
    for (size_t r = 0; r < outs; r++)
        for (size_t c = 0; c < n; c++)
            to[c * OUTS + r] = pare_weight_at(w, (o + r) * w->cols + k + c);
}

/* The sums of rows [i, i + rows) go through the strip and come back as pairs. */
static void one_strip(const job *j, const double *w, size_t i, size_t rows, size_t o, size_t outs,
                      size_t k, size_t n)
{
    strip s;
    for (size_t r = 0; r < STRIP; r++) {
        const size_t row = i + least(r, rows - 1); /* rows that are missing repeat the last */
        s.xh[r] = pare_row(&j->x->hi, row) + k;
        s.xl[r] = pare_row(&j->x->lo, row) + k;
        for (size_t c = 0; c < OUTS; c++) {
            s.h[r * OUTS + c] = c < outs ? pare_row(&j->y->hi, row)[o + c] : 0;
            s.l[r * OUTS + c] = c < outs ? pare_row(&j->y->lo, row)[o + c] : 0;
        }
    }
    j->run(&s, w, n);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < outs; c++) {
            const dd sum = dd_two_sum(s.h[r * OUTS + c], s.l[r * OUTS + c]);
            pare_row_mut(&j->y->hi, i + r)[o + c] = sum.hi;
            pare_row_mut(&j->y->lo, i + r)[o + c] = sum.lo;
        }
}

static void tile(void *ctx, size_t block)
{
    const job *const j = ctx;
    const size_t i = block / j->out_tiles * ROWS_AT_ONCE, o = block % j->out_tiles * OUTS;
    const size_t end = i + least(ROWS_AT_ONCE, j->x->hi.rows - i);
    const size_t outs = least(OUTS, j->w->rows - o), in = j->w->cols;
    double w[RUN * OUTS];
    for (size_t r = i; r < end; r++)
        for (size_t c = o; c < o + outs; c++) {
            pare_row_mut(&j->y->hi, r)[c] = j->b ? pare_weight_at(j->b, c) : 0;
            pare_row_mut(&j->y->lo, r)[c] = 0;
        }
    for (size_t k = 0; k < in; k += RUN) {
        const size_t n = least(RUN, in - k);
        pack(w, j->w, o, outs, k, n);
        for (size_t r = i; r < end; r += STRIP)
            one_strip(j, w, r, least(STRIP, end - r), o, outs, k, n);
    }
}

void wide_dense(wide_mat *y, const wide_mat *x, const pare_weight *w, const pare_weight *b,
                const pare_exec *exec)
{
    PARE_ASSERT(x->hi.cols == w->cols && y->hi.cols == w->rows && y->hi.rows == x->hi.rows);
    job j = {y, x, w, b && pare_has(b) ? b : NULL, (w->rows + OUTS - 1) / OUTS, best_kernel()};
    const size_t row_tiles = (x->hi.rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    pare_parallel(exec, row_tiles * j.out_tiles, tile, &j);
}
