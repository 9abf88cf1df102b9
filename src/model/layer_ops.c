/* layer_ops.c - the plain f64 steps, and which step the f32 engine takes instead. */
#include "layer_ops.h"
#include "layer_ops_f32.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 }; /* rows per unit of work: fixed */

pare_status rows_new(rows *out, const rows_ctx *c, pare_dtype t, size_t n, size_t d)
{
    size_t count;
    *out = (rows){t, n, d, NULL};
    if (pare_mul(&count, n, d)) out->v = scratch_get(c->scratch, count, pare_dtype_size(t));
    return out->v ? PARE_OK : pare_no_memory(c->err);
}

rows rows_part(const rows *r, size_t first, size_t n)
{
    char *const v = (char *)r->v + first * r->d * pare_dtype_size(r->t);
    return (rows){r->t, n, r->d, v};
}

void rows_load(double *to, const rows *r, size_t i)
{
    if (r->t == PARE_F64) {
        memcpy(to, (const double *)r->v + i * r->d, r->d * sizeof *to);
        return;
    }
    const float *const from = (const float *)r->v + i * r->d;
    for (size_t j = 0; j < r->d; j++) to[j] = (double)from[j];
}

void rows_store(rows *r, size_t i, const double *from)
{
    if (r->t == PARE_F64) {
        memcpy((double *)r->v + i * r->d, from, r->d * sizeof *from);
        return;
    }
    float *const to = (float *)r->v + i * r->d;
    for (size_t j = 0; j < r->d; j++) to[j] = (float)from[j];
}

/* y_i = fn(y_i, x_i). */
typedef void row_fn2(const void *ctx, double *v, const double *x);

typedef struct map_job {
    rows *y;
    const rows *x;
    row_fn *fn;
    row_fn2 *fn2;
    const void *ctx;
    atomic_bool no_memory;
} map_job;

static void map_block(void *self, size_t b)
{
    map_job *const w = self;
    const size_t wide = w->x->d > w->y->d ? w->x->d : w->y->d;
    const size_t end = (b + 1) * BLOCK < w->y->n ? (b + 1) * BLOCK : w->y->n;
    double *const v = malloc(2 * (wide ? wide : 1) * sizeof *v);
    if (!v) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (size_t i = b * BLOCK; i < end; i++) {
        if (w->fn) {
            rows_load(v, w->x, i);
            w->fn(w->ctx, i, v);
        } else {
            rows_load(v, w->y, i);
            rows_load(v + wide, w->x, i);
            w->fn2(w->ctx, v, v + wide);
        }
        rows_store(w->y, i, v);
    }
    free(v);
}

static pare_status run_map(map_job *w, const rows_ctx *c)
{
    PARE_ASSERT(w->y->n == w->x->n);
    pare_parallel(c->exec, (w->y->n + BLOCK - 1) / BLOCK, map_block, w);
    return atomic_load(&w->no_memory) ? pare_no_memory(c->err) : PARE_OK;
}

pare_status rows_map(rows *y, const rows *x, row_fn *fn, const void *ctx, const rows_ctx *c)
{
    map_job w = {.y = y, .x = x, .fn = fn, .ctx = ctx};
    return run_map(&w, c);
}

static pare_status map2(rows *y, const rows *x, row_fn2 *fn, const void *ctx, const rows_ctx *c)
{
    map_job w = {.y = y, .x = x, .fn2 = fn, .ctx = ctx};
    return run_map(&w, c);
}

pare_status rows_dense(rows *y, const rows *x, const pare_weight *w, const pare_weight *b,
                       const rows_ctx *c)
{
    PARE_ASSERT(y->n == x->n && y->d == w->rows && x->d == w->cols && y->t == x->t);
    if (y->t == PARE_F32)
        return pare_dense_f32(y->v, y->d, x->v, x->d, x->n, w, b, c->exec, c->err);
    pare_mat out = pare_mat_of(y->v, y->n, y->d);
    const pare_mat in = pare_mat_of(x->v, x->n, x->d);
    return pare_dense_f64(&out, &in, w, b, c->exec, c->err);
}

/* ---- norms ------------------------------------------------------------------------------ */

typedef struct norm_ctx {
    const pare_norm *n;
    size_t d;
} norm_ctx;

static double sum(const double *v, size_t d)
{
    double s = 0;
    for (size_t j = 0; j < d; j++) s += v[j];
    return s;
}

static void centre(double *v, size_t d)
{
    const double mean = sum(v, d) / (double)d;
    for (size_t j = 0; j < d; j++) v[j] -= mean;
}

static void divide(double *v, size_t d, const pare_norm *n)
{
    double squares = 0;
    for (size_t j = 0; j < d; j++) squares += v[j] * v[j];
    const double by = sqrt((squares + n->shift) / n->divisor + n->eps);
    /* eps = 0 and a zero row: the row stays zero instead of becoming nan. */
    for (size_t j = 0; j < d; j++) v[j] = by > 0 ? v[j] / by : 0;
}

static void norm_row(const void *ctx, size_t i, double *v)
{
    (void)i;
    const norm_ctx *const c = ctx;
    const pare_norm *const n = c->n;
    if (pare_has(&n->offset))
        for (size_t j = 0; j < c->d; j++) v[j] += pare_weight_at(&n->offset, j);
    if (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_MEAN) centre(v, c->d);
    if (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS) divide(v, c->d, n);
    if (n->kind == PARE_NORM_BATCH)
        for (size_t j = 0; j < c->d; j++)
            v[j] = (v[j] - pare_weight_at(&n->mean, j)) / sqrt(pare_weight_at(&n->var, j) + n->eps);
    if (pare_has(&n->gain))
        for (size_t j = 0; j < c->d; j++) v[j] *= pare_weight_at(&n->gain, j);
    if (pare_has(&n->bias))
        for (size_t j = 0; j < c->d; j++) v[j] += pare_weight_at(&n->bias, j);
}

pare_status rows_norm(rows *y, const rows *x, const pare_norm *n, const rows_ctx *c)
{
    const norm_ctx ctx = {n, x->d};
    if (n->kind == PARE_NORM_NONE && y->v == x->v) return PARE_OK;
    if (y->t == PARE_F32) return rows_norm_f32(y, x, n, c);
    return rows_map(y, x, norm_row, &ctx, c);
}

/* ---- activations ------------------------------------------------------------------------- */

typedef struct act_ctx {
    pare_act a;
    size_t d;
} act_ctx;

static void act_row(const void *ctx, size_t i, double *v)
{
    (void)i;
    const act_ctx *const c = ctx;
    for (size_t j = 0; j < c->d; j++) v[j] = pare_act_f64(c->a, v[j]);
}

static void multiply_row(const void *ctx, double *v, const double *x)
{
    const size_t d = *(const size_t *)ctx;
    for (size_t j = 0; j < d; j++) v[j] *= x[j];
}

pare_status rows_act(rows *y, const rows *u, pare_act a, const rows_ctx *c)
{
    const act_ctx ctx = {a, y->d};
    if (y->t == PARE_F32) return rows_act_f32(y, u, a, c);
    const pare_status st = a == PARE_ACT_NONE ? PARE_OK : rows_map(y, y, act_row, &ctx, c);
    return st || !u ? st : map2(y, u, multiply_row, &y->d, c);
}

/* ---- sums -------------------------------------------------------------------------------- */

typedef struct add_ctx {
    const pare_weight *diagonal; /* NULL: all ones */
    size_t d;
} add_ctx;

static void add_row(const void *ctx, double *v, const double *x)
{
    const add_ctx *const c = ctx;
    for (size_t j = 0; j < c->d; j++)
        v[j] += c->diagonal ? pare_weight_at(c->diagonal, j) * x[j] : x[j];
}

pare_status rows_add(rows *y, const rows *x, const pare_weight *w, const rows_ctx *c)
{
    const add_ctx ctx = {w, y->d};
    return y->t == PARE_F32 ? rows_add_f32(y, x, w, c) : map2(y, x, add_row, &ctx, c);
}

static void shift_row(const void *ctx, size_t i, double *v)
{
    (void)i;
    const pare_weight *const b = ctx;
    for (size_t j = 0; j < b->cols; j++) v[j] += pare_weight_at(b, j);
}

pare_status rows_shift(rows *y, const pare_weight *b, const rows_ctx *c)
{
    return y->t == PARE_F32 ? rows_shift_f32(y, b, c) : rows_map(y, y, shift_row, b, c);
}

pare_status rows_skip(rows *y, const rows *x, const pare_skip *s, const rows_ctx *c)
{
    if (s->kind == PARE_SKIP_NONE) return PARE_OK;
    if (s->kind != PARE_SKIP_DENSE)
        return rows_add(y, x, s->kind == PARE_SKIP_DIAGONAL ? &s->w : NULL, c);
    rows mapped;
    pare_status st = rows_new(&mapped, c, y->t, y->n, y->d);
    if (!st) st = rows_dense(&mapped, x, &s->w, NULL, c);
    return st ? st : rows_add(y, &mapped, NULL, c);
}
