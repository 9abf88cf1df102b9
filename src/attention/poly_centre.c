/* Centres of queries and keys, and what is measured around them: O(n d), over the threads.
 *
 * softmax_j(scale q.k_j) does not change when a constant is added to a row of scores, so keys may
 * be moved by any kc; and scale q.k' = scale qc.k' + scale (q - qc).k', whose first part is a
 * weight of the key. Both steps are exact for every centre; midranges make the second part small.
 */
#include "poly.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2048 }; /* of a block: fixed, so that bits do not depend on threads */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_bits __attribute__((vector_size(16), aligned(4), may_alias));
typedef double four_wide __attribute__((vector_size(32), aligned(8), may_alias));

static size_t blocks_of(size_t n)
{
    return (n + ROWS - 1) / ROWS;
}

/* ---- extremes ------------------------------------------------------------------------------- */

typedef struct extremes_job {
    const pare_mat32 *x;
    float *low, *high; /* blocks x cols */
    atomic_bool bad;
} extremes_job;

static four choose(four_bits when, four a, four b)
{
    return (four)(((four_bits)a & when) | ((four_bits)b & ~when));
}

static void extremes_block(void *ctx, size_t b)
{
    extremes_job *const w = ctx;
    const size_t d = w->x->cols, d4 = d / 4 * 4, from = b * ROWS;
    const size_t to = w->x->rows - from < ROWS ? w->x->rows : from + ROWS;
    float *const low = w->low + b * d, *const high = w->high + b * d, odd = 0;
    four nothing = {0};
    float rest = odd;
    for (size_t c = 0; c < d; c++) low[c] = INFINITY, high[c] = -INFINITY;
    for (size_t i = from; i < to; i++) {
        const float *const x = w->x->v + i * w->x->ld;
        for (size_t c = 0; c < d4; c += 4) {
            const four v = *(const four *)(x + c);
            four *const l = (four *)(low + c), *const h = (four *)(high + c);
            nothing += v * (four){0};
            *l = choose(v < *l, v, *l);
            *h = choose(v > *h, v, *h);
        }
        for (size_t c = d4; c < d; c++) {
            rest += x[c] * 0;
            if (x[c] < low[c]) low[c] = x[c];
            if (x[c] > high[c]) high[c] = x[c];
        }
    }
    rest += nothing[0] + nothing[1] + nothing[2] + nothing[3];
    if (!(rest == 0)) atomic_store(&w->bad, true); /* 0 inf and 0 nan are nan */
}

static pare_status name_bad(const pare_mat32 *x, const char *what, pare_err *err)
{
    for (size_t i = 0; i < x->rows; i++)
        for (size_t c = 0; c < x->cols; c++)
            if (!isfinite(x->v[i * x->ld + c]))
                return pare_fail(err, PARE_ERR_NONFINITE, "%s: row %zu, column %zu is %s", what, i,
                                 c, isnan(x->v[i * x->ld + c]) ? "nan" : "infinite");
    return PARE_OK;
}

pare_status poly_extremes(float *low, float *high, const pare_mat32 *x, const char *what,
                          const pare_exec *exec, pare_err *err)
{
    const size_t blocks = blocks_of(x->rows), d = x->cols;
    float *const both = malloc((2 * blocks * d + 1) * sizeof *both);
    if (!both) return pare_no_memory(err);
    extremes_job w = {.x = x, .low = both, .high = both + blocks * d};
    pare_parallel(exec, blocks, extremes_block, &w);
    for (size_t c = 0; c < d; c++) low[c] = INFINITY, high[c] = -INFINITY;
    for (size_t b = 0; b < blocks; b++)
        for (size_t c = 0; c < d; c++) {
            if (w.low[b * d + c] < low[c]) low[c] = w.low[b * d + c];
            if (w.high[b * d + c] > high[c]) high[c] = w.high[b * d + c];
        }
    free(both);
    return atomic_load(&w.bad) ? name_bad(x, what, err) : PARE_OK;
}

/* ---- centred rows --------------------------------------------------------------------------- */

/* The norm is raised by what d + 4 roundings may have taken from it. */
static float norm_up(float squares, size_t d)
{
    return sqrtf(squares) * (1 + (float)(d + 6) * 0x1p-23f) + 0x1p-70f;
}

typedef struct row_sums {
    float squares, with;
} row_sums;

static row_sums centre_row(float *x, const float *from, const float *c, float by, const float *with,
                           size_t d)
{
    const size_t d4 = d / 4 * 4;
    four sum = {0}, dot = {0};
    row_sums rest = {0, 0};
    for (size_t e = 0; e < d4; e += 4) {
        const four t =
            (*(const four *)(from + e) - *(const four *)(c + e)) * (four){by, by, by, by};
        sum += t * t;
        if (with) dot += t * *(const four *)(with + e);
        if (x) *(four *)(x + e) = t;
    }
    for (size_t e = d4; e < d; e++) {
        const float t = (from[e] - c[e]) * by;
        rest.squares += t * t;
        if (with) rest.with += t * with[e];
        if (x) x[e] = t;
    }
    rest.squares += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    rest.with += (dot[0] + dot[1]) + (dot[2] + dot[3]);
    return rest;
}

static double product(const double *with, const float *x, const float *c, size_t d)
{
    const size_t d4 = d / 4 * 4;
    four_wide sum = {0};
    double rest = 0;
    for (size_t e = 0; e < d4; e += 4)
        sum += *(const four_wide *)(with + e) *
               (__builtin_convertvector(*(const four *)(x + e), four_wide) -
                __builtin_convertvector(*(const four *)(c + e), four_wide));
    for (size_t e = d4; e < d; e++) rest += with[e] * ((double)x[e] - (double)c[e]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]) + rest;
}

static void centre_block(void *ctx, size_t b)
{
    const poly_side *const s = ctx;
    const size_t d = s->from->cols, n = s->from->rows;
    const size_t end = n - b * ROWS < ROWS ? n : (b + 1) * ROWS;
    for (size_t i = b * ROWS; i < end; i++) {
        const float *const from = s->from->v + i * s->from->ld;
        const row_sums r =
            centre_row(s->x ? s->x + i * d : NULL, from, s->centre, s->by, s->with32, d);
        if (s->norm) s->norm[i] = norm_up(r.squares, d);
        if (s->a) s->a[i] = s->with ? product(s->with, from, s->centre, d) : (double)r.with;
    }
}

void poly_centre(const poly_side *s, const pare_exec *exec)
{
    poly_side w = *s;
    pare_parallel(exec, blocks_of(s->from->rows), centre_block, &w);
}
