/* wide_dense.c - y = x w^T + b with x and y in double-double, w as stored.
 *
 * Each output is one sum of the lemma in wide.h, in the order of the inputs. So the bits depend
 * neither on the threads nor on the width of the processor's vectors.
 *
 * A tile of w, OUTS outputs x RUN inputs, is widened and transposed once and serves ROWS_AT_ONCE
 * rows of x; the innermost kernel has STRIP of these rows x OUTS sums (h, l, m) in registers, or
 * passes over parts of it. */
#include "linalg/matrix.h"
#include "wide.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { OUTS = 16, RUN = 256, STRIP = 4, ROWS_AT_ONCE = 64 };

typedef struct strip { /* STRIP rows of x from one input on, and their sums */
    const double *xh[STRIP], *xl[STRIP];
    double *h, *l, *m; /* STRIP x OUTS each */
} strip;

/* w: n x OUTS */
typedef void kernel(const strip *s, const double *w, size_t n);

static void kernel_plain(const strip *s, const double *w, size_t n)
{
    for (size_t r = 0; r < STRIP; r++)
        for (size_t k = 0; k < n; k++)
            for (size_t o = 0; o < OUTS; o++) {
                const size_t at = r * OUTS + o;
                const dd p = dd_product(s->xh[r][k], w[k * OUTS + o]);
                dd_take(&s->h[at], &s->l[at], &s->m[at], p.hi,
                        fma(s->xl[r][k], w[k * OUTS + o], p.lo));
            }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"), always_inline)) static inline __m256d sum_avx2(
    __m256d *a, __m256d b) /* *a + b: the rest */
{
    const __m256d s = _mm256_add_pd(*a, b), t = _mm256_sub_pd(s, *a);
    const __m256d rest = _mm256_add_pd(_mm256_sub_pd(*a, _mm256_sub_pd(s, t)), _mm256_sub_pd(b, t));
    *a = s;
    return rest;
}

__attribute__((target("avx2,fma"), always_inline)) static inline void step_avx2(
    __m256d *h, __m256d *l, __m256d *m, __m256d xh, __m256d xl, __m256d w)
{
    const __m256d p = _mm256_mul_pd(xh, w), e = _mm256_fmsub_pd(xh, w, p);
    const __m256d f = _mm256_fmadd_pd(xl, w, e), a = sum_avx2(h, p);
    const __m256d b = sum_avx2(l, a), c = sum_avx2(l, f);
    *m = _mm256_add_pd(*m, _mm256_add_pd(b, c));
}

/* Two rows x four sums at a time: what sixteen registers hold. */
__attribute__((target("avx2,fma"))) static void kernel_avx2(const strip *s, const double *w,
                                                            size_t n)
{
    for (size_t r = 0; r < STRIP; r += 2)
        for (size_t o = 0; o < OUTS; o += 4) {
            const size_t a = r * OUTS + o, b = a + OUTS;
            __m256d h0 = _mm256_loadu_pd(s->h + a), h1 = _mm256_loadu_pd(s->h + b);
            __m256d l0 = _mm256_loadu_pd(s->l + a), l1 = _mm256_loadu_pd(s->l + b);
            __m256d m0 = _mm256_loadu_pd(s->m + a), m1 = _mm256_loadu_pd(s->m + b);
            for (size_t k = 0; k < n; k++) {
                const __m256d v = _mm256_loadu_pd(w + k * OUTS + o);
                step_avx2(&h0, &l0, &m0, _mm256_broadcast_sd(s->xh[r] + k),
                          _mm256_broadcast_sd(s->xl[r] + k), v);
                step_avx2(&h1, &l1, &m1, _mm256_broadcast_sd(s->xh[r + 1] + k),
                          _mm256_broadcast_sd(s->xl[r + 1] + k), v);
            }
            _mm256_storeu_pd(s->h + a, h0);
            _mm256_storeu_pd(s->h + b, h1);
            _mm256_storeu_pd(s->l + a, l0);
            _mm256_storeu_pd(s->l + b, l1);
            _mm256_storeu_pd(s->m + a, m0);
            _mm256_storeu_pd(s->m + b, m1);
        }
}

__attribute__((target("avx512f"), always_inline)) static inline __m512d sum_avx512(
    __m512d *a, __m512d b) /* *a + b: the rest */
{
    const __m512d s = _mm512_add_pd(*a, b), t = _mm512_sub_pd(s, *a);
    const __m512d rest = _mm512_add_pd(_mm512_sub_pd(*a, _mm512_sub_pd(s, t)), _mm512_sub_pd(b, t));
    *a = s;
    return rest;
}

__attribute__((target("avx512f"), always_inline)) static inline void step_avx512(
    __m512d *h, __m512d *l, __m512d *m, __m512d xh, __m512d xl, __m512d w)
{
    const __m512d p = _mm512_mul_pd(xh, w), e = _mm512_fmsub_pd(xh, w, p);
    const __m512d f = _mm512_fmadd_pd(xl, w, e), a = sum_avx512(h, p);
    const __m512d b = sum_avx512(l, a), c = sum_avx512(l, f);
    *m = _mm512_add_pd(*m, _mm512_add_pd(b, c));
}

/* Four rows x eight sums: twelve of 32 registers, and four chains to overlap. */
__attribute__((target("avx512f"))) static void kernel_avx512(const strip *s, const double *w,
                                                             size_t n)
{
    for (size_t o = 0; o < OUTS; o += 8) {
        __m512d h[STRIP], l[STRIP], m[STRIP];
        for (size_t r = 0; r < STRIP; r++) {
            h[r] = _mm512_loadu_pd(s->h + r * OUTS + o);
            l[r] = _mm512_loadu_pd(s->l + r * OUTS + o);
            m[r] = _mm512_loadu_pd(s->m + r * OUTS + o);
        }
        for (size_t k = 0; k < n; k++) {
            const __m512d v = _mm512_loadu_pd(w + k * OUTS + o);
            for (size_t r = 0; r < STRIP; r++)
                step_avx512(&h[r], &l[r], &m[r], _mm512_set1_pd(s->xh[r][k]),
                            _mm512_set1_pd(s->xl[r][k]), v);
        }
        for (size_t r = 0; r < STRIP; r++) {
            _mm512_storeu_pd(s->h + r * OUTS + o, h[r]);
            _mm512_storeu_pd(s->l + r * OUTS + o, l[r]);
            _mm512_storeu_pd(s->m + r * OUTS + o, m[r]);
        }
    }
}
#endif

wide_level wide_best_level(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return WIDE_AVX512;
#endif
    return pare_has_fma() ? WIDE_AVX2 : WIDE_PLAIN;
}

static kernel *kernel_of(wide_level level)
{
#if defined(__x86_64__)
    if (level == WIDE_AVX512) return kernel_avx512;
    if (level == WIDE_AVX2) return kernel_avx2;
#endif
    (void)level;
    return kernel_plain;
}

/* ---- tiles ------------------------------------------------------------------------------------
 */

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

/* The sums of up to ROWS_AT_ONCE rows x OUTS outputs. */
typedef struct sums {
    double h[ROWS_AT_ONCE * OUTS], l[ROWS_AT_ONCE * OUTS], m[ROWS_AT_ONCE * OUTS];
} sums;

/* Inputs [k, k + n) of STRIP rows from i + at on; rows beyond `end` repeat the last, and nobody
 * looks at their sums. */
static void one_strip(const job *j, sums *t, const double *w, size_t i, size_t at, size_t end,
                      size_t k, size_t n)
{
    strip s = {.h = t->h + at * OUTS, .l = t->l + at * OUTS, .m = t->m + at * OUTS};
    for (size_t r = 0; r < STRIP; r++) {
        const size_t row = least(i + at + r, end - 1);
        s.xh[r] = pare_row(&j->x->hi, row) + k;
        s.xl[r] = pare_row(&j->x->lo, row) + k;
    }
    j->run(&s, w, n);
}

static void tile(void *ctx, size_t block)
{
    const job *const j = ctx;
    const size_t i = block / j->out_tiles * ROWS_AT_ONCE, o = block % j->out_tiles * OUTS;
    const size_t rows = least(ROWS_AT_ONCE, j->x->hi.rows - i), in = j->w->cols;
    const size_t outs = least(OUTS, j->w->rows - o);
    double w[RUN * OUTS];
    sums t = {{0}, {0}, {0}};
    for (size_t k = 0; k < in; k += RUN) {
        const size_t n = least(RUN, in - k);
        pack(w, j->w, o, outs, k, n);
        for (size_t r = 0; r < rows; r += STRIP) one_strip(j, &t, w, i, r, i + rows, k, n);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < outs; c++) {
            const size_t at = r * OUTS + c;
            dd_take(&t.h[at], &t.l[at], &t.m[at], j->b ? pare_weight_at(j->b, o + c) : 0, 0);
            const dd y = dd_settle(t.h[at], t.l[at], t.m[at]);
            pare_row_mut(&j->y->hi, i + r)[o + c] = y.hi;
            pare_row_mut(&j->y->lo, i + r)[o + c] = y.lo;
        }
}

void wide_dense(wide_mat *y, const wide_mat *x, const pare_weight *w, const pare_weight *b,
                const pare_exec *exec)
{
    wide_dense_on(wide_best_level(), y, x, w, b, exec);
}

void wide_dense_on(wide_level level, wide_mat *y, const wide_mat *x, const pare_weight *w,
                   const pare_weight *b, const pare_exec *exec)
{
    PARE_ASSERT(x->hi.cols == w->cols && y->hi.cols == w->rows && y->hi.rows == x->hi.rows);
    job j = {y, x, w, b && pare_has(b) ? b : NULL, (w->rows + OUTS - 1) / OUTS, kernel_of(level)};
    const size_t row_tiles = (x->hi.rows + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
    pare_parallel(exec, row_tiles * j.out_tiles, tile, &j);
}
