/* poly_center.c - rows around a center: ranges, norms, centered rows; O(n d), over the threads.
 *
 * softmax_j(scale q.k_j) does not change when a constant is added to a row of scores, so keys may
 * be moved by any kc; and scale q.k' = scale qc.k' + scale (q - qc).k', whose first part is a
 * weight of the key. Both steps are exact for every center; midranges make the second part
 * small. */
#include "poly.h"
#include <math.h>
#include "base/vexp.h"
#include <pare/attention.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2048 }; /* of a block: fixed, so that bits do not depend on threads */

typedef int32_t four_bits __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

static size_t blocks_of(size_t n)
{
    return (n + ROWS - 1) / ROWS;
}

/* ---- ranges of columns ----------------------------------------------------------------------- */

typedef struct ranges_job {
    const pare_mat32 *x;
    float *low, *high; /* blocks x cols */
    atomic_bool nonfinite;
} ranges_job;

/* a < b ? a : b, lane by lane, and a > b ? a : b. */
#if defined(__SSE__)
INLINE four lesser(four a, four b)
{
    return (four)_mm_min_ps((__m128)a, (__m128)b);
}

INLINE four greater(four a, four b)
{
    return (four)_mm_max_ps((__m128)a, (__m128)b);
}
#else
INLINE four choose(four_bits when, four a, four b)
{
    return (four)(((four_bits)a & when) | ((four_bits)b & ~when));
}

INLINE four lesser(four a, four b)
{
    return choose(a < b, a, b);
}

INLINE four greater(four a, four b)
{
    return choose(a > b, a, b);
}
#endif

typedef struct four_columns {
    four low, high, zero; /* zero: 0, but nan where a number was not finite */
} four_columns;

INLINE void include_row(four_columns *e, const float *x)
{
    const four v = *(const four *)x;
    e->zero += v * (four){0};
    e->low = lesser(v, e->low);
    e->high = greater(v, e->high);
}

/* Four columns from c on, which stay in registers: two rows at a time, in chains of their own. */
static four ranges_of_four(const ranges_job *w, size_t from, size_t to, size_t c, float *low,
                           float *high)
{
    const size_t ld = w->x->ld;
    const float *x = w->x->v + from * ld + c;
    four_columns a = {*(const four *)x, *(const four *)x, {0}}, b = a;
    for (size_t i = from; i + 2 <= to; i += 2, x += 2 * ld)
        include_row(&a, x), include_row(&b, x + ld);
    if ((to - from) % 2) include_row(&a, x);
    *(four *)low = lesser(b.low, a.low);
    *(four *)high = greater(b.high, a.high);
    return a.zero + b.zero;
}

static void ranges_block(void *ctx, size_t b)
{
    ranges_job *const w = ctx;
    const size_t d = w->x->cols, d4 = d / 4 * 4, from = b * ROWS;
    const size_t to = w->x->rows - from < ROWS ? w->x->rows : from + ROWS;
    float *const low = w->low + b * d, *const high = w->high + b * d;
    four zero = {0};
    float rest = 0;
    for (size_t c = 0; c < d4; c += 4) zero += ranges_of_four(w, from, to, c, low + c, high + c);
    for (size_t c = d4; c < d; c++) low[c] = INFINITY, high[c] = -INFINITY;
    for (size_t i = from; d4 < d && i < to; i++) {
        const float *const x = w->x->v + i * w->x->ld;
        for (size_t c = d4; c < d; c++) {
            rest += x[c] * 0;
            if (x[c] < low[c]) low[c] = x[c];
            if (x[c] > high[c]) high[c] = x[c];
        }
    }
    rest += zero[0] + zero[1] + zero[2] + zero[3];
    if (!(rest == 0)) atomic_store(&w->nonfinite, true); /* 0 inf and 0 nan are nan */
}

pare_status poly_column_ranges(float *low, float *high, const pare_mat32 *x, const char *what,
                               const pare_exec *exec, pare_err *err)
{
    const size_t blocks = blocks_of(x->rows), d = x->cols;
    float *const both = malloc((2 * blocks * d + 1) * sizeof *both);
    if (!both) return pare_no_memory(err);
    ranges_job w = {.x = x, .low = both, .high = both + blocks * d};
    pare_parallel(exec, blocks, ranges_block, &w);
    for (size_t c = 0; c < d; c++) low[c] = INFINITY, high[c] = -INFINITY;
    for (size_t b = 0; b < blocks; b++)
        for (size_t c = 0; c < d; c++) {
            if (w.low[b * d + c] < low[c]) low[c] = w.low[b * d + c];
            if (w.high[b * d + c] > high[c]) high[c] = w.high[b * d + c];
        }
    free(both);
    for (size_t i = 0; atomic_load(&w.nonfinite) && i < x->rows; i++)
        for (size_t c = 0; c < d; c++) {
            const float v = x->v[i * x->ld + c];
            if (!isfinite(v))
                return pare_fail(err, PARE_ERR_NONFINITE, "%s: row %zu, column %zu is %s", what, i,
                                 c, isnan(v) ? "nan" : "infinite");
        }
    return PARE_OK;
}

/* ---- centered rows --------------------------------------------------------------------------- */

typedef struct row_sums {
    float squares, with;
} row_sums;

/* (a0 + a1) + (a2 + a3), and likewise of b, c and d */
static four sums_of(const four x[4])
{
    const four ab = __builtin_shufflevector(x[0], x[1], 0, 2, 4, 6) +
                    __builtin_shufflevector(x[0], x[1], 1, 3, 5, 7);
    const four cd = __builtin_shufflevector(x[2], x[3], 0, 2, 4, 6) +
                    __builtin_shufflevector(x[2], x[3], 1, 3, 5, 7);
    return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) +
           __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

/* Columns from d4 on, which are fewer than four. */
static row_sums center_rest(float *x, const float *from, const float *c, float by,
                            const float *with, size_t d4, size_t d)
{
    row_sums rest = {0, 0};
    for (size_t e = d4; e < d; e++) {
        const float t = (from[e] - c[e]) * by;
        rest.squares += t * t;
        if (with) rest.with += t * with[e];
        if (x) x[e] = t;
    }
    return rest;
}

/* What is wanted of centered rows: known where the loops are inlined. */
typedef struct wanted {
    bool x, squares, with;
} wanted;

/* Row i and the next, at most four, whose sums are taken side by side. */
INLINE void center_rows(row_sums out[4], const poly_side *s, size_t i, const size_t rows,
                        const wanted is)
{
    const size_t d = s->from->cols, d4 = d / 4 * 4, ld = s->from->ld;
    const four by = {s->by, s->by, s->by, s->by};
    const float *const from = s->from->v + i * ld;
    float *const x = is.x ? s->x + i * d : NULL;
    four sum[4] = {{0}, {0}, {0}, {0}}, dot[4] = {{0}, {0}, {0}, {0}};
    for (size_t e = 0; e < d4; e += 4) {
        const four c = *(const four *)(s->center + e);
        const four with = is.with ? *(const four *)(s->with32 + e) : (four){0};
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++) {
            const four t = (*(const four *)(from + r * ld + e) - c) * by;
            if (is.squares) sum[r] += t * t;
            if (is.with) dot[r] += t * with;
            if (is.x) *(four *)(x + r * d + e) = t;
        }
    }
    const four squares = sums_of(sum), dots = sums_of(dot);
    for (size_t r = 0; r < rows; r++) {
        out[r] = (row_sums){0, 0};
        if (d4 < d)
            out[r] = center_rest(x ? x + r * d : NULL, from + r * ld, s->center, s->by,
                                 is.with ? s->with32 : NULL, d4, d);
        out[r].squares += squares[r];
        out[r].with += dots[r];
    }
}

static double centered_dot(const double *with, const float *x, const float *c, size_t d)
{
    const size_t d4 = d / 4 * 4;
    four_f64 sum = {0};
    double rest = 0;
    for (size_t e = 0; e < d4; e += 4)
        sum += *(const four_f64 *)(with + e) *
               (__builtin_convertvector(*(const four *)(x + e), four_f64) -
                __builtin_convertvector(*(const four *)(c + e), four_f64));
    for (size_t e = d4; e < d; e++) rest += with[e] * ((double)x[e] - (double)c[e]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]) + rest;
}

INLINE void center_some(const poly_side *s, size_t i, const size_t rows, const wanted is)
{
    row_sums sums[4];
    center_rows(sums, s, i, rows, is);
    for (size_t r = 0; r < rows; r++) {
        const float *const from = s->from->v + (i + r) * s->from->ld;
        if (is.squares) /* raised by what d + 4 roundings may have taken from it */
            s->norm[i + r] =
                sqrtf(sums[r].squares) * (1 + (float)(s->from->cols + 6) * 0x1p-23f) + 0x1p-70f;
        if (s->a)
            s->a[i + r] = is.with ? (double)sums[r].with
                                  : centered_dot(s->with, from, s->center, s->from->cols);
    }
}

INLINE void center_span(const poly_side *s, size_t first, size_t end, const wanted is)
{
    size_t i = first;
    for (; i + 4 <= end; i += 4) center_some(s, i, 4, is);
    for (; i < end; i++) center_some(s, i, 1, is);
}

static void center_block(void *ctx, size_t b)
{
    const poly_side *const s = ctx;
    const size_t n = s->from->rows, first = b * ROWS, end = n - first < ROWS ? n : first + ROWS;
    const wanted is = {s->x, s->norm, s->with32};
    if (!is.x && is.squares && !is.with)
        center_span(s, first, end, (wanted){.squares = true});
    else if (!is.x && !is.squares && is.with)
        center_span(s, first, end, (wanted){.with = true});
    else
        center_span(s, first, end, is);
}

void poly_center(const poly_side *s, const pare_exec *exec)
{
    poly_side w = *s;
    pare_parallel(exec, blocks_of(s->from->rows), center_block, &w);
}

void poly_centered_rows(float *x, const poly_side *s, size_t first, size_t rows)
{
    const pare_mat32 from = {rows, s->from->cols, s->from->ld, s->from->v + first * s->from->ld};
    const poly_side part = {.from = &from, .center = s->center, .by = s->by, .x = x};
    center_span(&part, 0, rows, (wanted){.x = true});
}
