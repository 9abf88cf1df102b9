#include "rows.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 }; /* rows per unit of work: fixed */

pare_status rows_new(rows *out, pare_arena *a, pare_dtype t, size_t n, size_t d, pare_err *err)
{
    size_t count;
    *out = (rows){t, n, d, NULL};
    if (pare_mul(&count, n, d)) out->v = pare_alloc(a, count ? count : 1, pare_dtype_size(t));
    return out->v ? PARE_OK : pare_no_memory(err);
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

static pare_status run_map(map_job *w, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(w->y->n == w->x->n);
    pare_parallel(exec, (w->y->n + BLOCK - 1) / BLOCK, map_block, w);
    return atomic_load(&w->no_memory) ? pare_no_memory(err) : PARE_OK;
}

pare_status rows_map(rows *y, const rows *x, row_fn *fn, const void *ctx, const pare_exec *exec,
                     pare_err *err)
{
    map_job w = {.y = y, .x = x, .fn = fn, .ctx = ctx};
    return run_map(&w, exec, err);
}

pare_status rows_map2(rows *y, const rows *x, row_fn2 *fn, const void *ctx, const pare_exec *exec,
                      pare_err *err)
{
    map_job w = {.y = y, .x = x, .fn2 = fn, .ctx = ctx};
    return run_map(&w, exec, err);
}

pare_status rows_dense(rows *y, const rows *x, const pare_weight *w, const pare_weight *b,
                       const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(y->n == x->n && y->d == w->rows && x->d == w->cols && y->t == x->t);
    if (y->t == PARE_F32) return pare_dense_f32(y->v, y->d, x->v, x->d, x->n, w, b, exec, err);
    pare_mat out = pare_mat_of(y->v, y->n, y->d);
    const pare_mat in = pare_mat_of(x->v, x->n, x->d);
    return pare_dense_f64(&out, &in, w, b, exec, err);
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

pare_status rows_norm(rows *y, const rows *x, const pare_norm *n, const pare_exec *exec,
                      pare_err *err)
{
    const norm_ctx c = {n, x->d};
    if (n->kind == PARE_NORM_NONE && y->v == x->v) return PARE_OK;
    return rows_map(y, x, norm_row, &c, exec, err);
}

/* ---- activations ------------------------------------------------------------------------- */

typedef struct act_ctx {
    pare_act a;
    size_t d;
} act_ctx;

static double act_of(pare_act a, double x)
{
    static const double root_half = 0.70710678118654752440, root_2_pi = 0.79788456080286535588;
    switch (a) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x > 0 ? x : 0;
    case PARE_ACT_GELU:
        return 0.5 * x * (1 + erf(x * root_half));
    case PARE_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(root_2_pi * (x + 0.044715 * x * x * x)));
    case PARE_ACT_SILU:
        return x / (1 + exp(-x));
    case PARE_ACT_TANH:
        return tanh(x);
    }
    return x;
}

static void act_row(const void *ctx, size_t i, double *v)
{
    (void)i;
    const act_ctx *const c = ctx;
    for (size_t j = 0; j < c->d; j++) v[j] = act_of(c->a, v[j]);
}

pare_status rows_act(rows *y, pare_act a, const pare_exec *exec, pare_err *err)
{
    const act_ctx c = {a, y->d};
    if (a == PARE_ACT_NONE) return PARE_OK;
    return rows_map(y, y, act_row, &c, exec, err);
}

/* ---- skips ------------------------------------------------------------------------------- */

typedef struct skip_ctx {
    const pare_weight *diagonal; /* NULL: all ones */
    size_t d;
} skip_ctx;

static void skip_row(const void *ctx, double *v, const double *x)
{
    const skip_ctx *const c = ctx;
    for (size_t j = 0; j < c->d; j++)
        v[j] += c->diagonal ? pare_weight_at(c->diagonal, j) * x[j] : x[j];
}

pare_status rows_skip(rows *y, const rows *x, const pare_skip *s, pare_arena *scratch,
                      const pare_exec *exec, pare_err *err)
{
    skip_ctx c = {s->kind == PARE_SKIP_DIAGONAL ? &s->w : NULL, y->d};
    if (s->kind == PARE_SKIP_NONE) return PARE_OK;
    if (s->kind != PARE_SKIP_DENSE) return rows_map2(y, x, skip_row, &c, exec, err);
    rows mapped;
    pare_status st = rows_new(&mapped, scratch, y->t, y->n, y->d, err);
    if (!st) st = rows_dense(&mapped, x, &s->w, NULL, exec, err);
    return st ? st : rows_map2(y, &mapped, skip_row, &c, exec, err);
}
