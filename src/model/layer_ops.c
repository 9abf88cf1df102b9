/* layer_ops.c - the operations of a forward pass: the f64 reference, calls of the f32 engine. */
#include "linalg/matrix.h"
#include "model_facts.h"
#include "layer_ops.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 }; /* rows per unit of work: fixed */

void *rows_scratch(rows_ctx *c, size_t count, size_t size)
{
    if (c->work.st) return NULL;
    void *const v = scratch_get(c->scratch, count, size);
    if (!v) c->work.st = pare_no_memory(c->work.err);
    return v;
}

rows rows_new(rows_ctx *c, pare_dtype t, size_t n, size_t d)
{
    size_t count;
    if (!pare_mul(&count, n, d)) count = SIZE_MAX; /* refused below */
    return (rows){t, n, d, rows_scratch(c, count, pare_dtype_size(t))};
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

/* ---- maps of rows ---------------------------------------------------------------------------- */

/* y_i = fn(y_i, x_i). */
typedef void row_fn2(const void *self, double *v, const double *x, size_t d);

typedef struct map_job {
    rows *y;
    const rows *x;
    row_fn *fn;
    row_fn2 *fn2; /* in its place */
    const void *self;
    atomic_bool no_memory;
} map_job;

static void map_block(void *ctx, size_t b)
{
    map_job *const w = ctx;
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
            w->fn(w->self, i, v);
        } else {
            rows_load(v, w->y, i);
            rows_load(v + wide, w->x, i);
            w->fn2(w->self, v, v + wide, w->y->d);
        }
        rows_store(w->y, i, v);
    }
    free(v);
}

static void map_blocks(map_job w, rows_ctx *c)
{
    if (c->work.st) return;
    PARE_ASSERT(w.y->n == w.x->n);
    pare_parallel(c->work.exec, (w.y->n + BLOCK - 1) / BLOCK, map_block, &w);
    if (atomic_load(&w.no_memory)) c->work.st = pare_no_memory(c->work.err);
}

void rows_map(rows *y, const rows *x, row_fn *fn, const void *self, rows_ctx *c)
{
    map_blocks((map_job){.y = y, .x = x, .fn = fn, .self = self}, c);
}

/* ---- operations ------------------------------------------------------------------------------ */

void rows_dense(rows *y, const rows *x, const pare_weight *w, const pare_weight *b, rows_ctx *c)
{
    if (c->work.st) return;
    PARE_ASSERT(y->n == x->n && y->d == w->rows && x->d == w->cols && y->t == x->t);
    if (y->t == PARE_F32) {
        pare_mat32 out = {y->n, y->d, y->d, y->v};
        const pare_mat32 in = {x->n, x->d, x->d, x->v};
        c->work.st = pare_dense_f32(&out, &in, w, b, c->work.exec, c->work.err);
    } else {
        pare_mat out = pare_mat_of(y->v, y->n, y->d);
        const pare_mat in = pare_mat_of(x->v, x->n, x->d);
        c->work.st = pare_dense_f64(&out, &in, w, b, c->work.exec, c->work.err);
    }
}

typedef struct norm_ctx {
    const pare_norm *n;
    size_t d;
} norm_ctx;

static void norm_row(const void *self, size_t i, double *v)
{
    (void)i;
    const norm_ctx *const c = self;
    const pare_norm *const n = c->n;
    const size_t d = c->d;
    if (pare_has(&n->offset))
        for (size_t j = 0; j < d; j++) v[j] += pare_weight_at(&n->offset, j);
    if (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_MEAN) {
        double sum = 0;
        for (size_t j = 0; j < d; j++) sum += v[j];
        const double mean = sum / (double)d;
        for (size_t j = 0; j < d; j++) v[j] -= mean;
    }
    if (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS) {
        double squares = 0;
        for (size_t j = 0; j < d; j++) squares += v[j] * v[j];
        const double by = sqrt((squares + n->shift) / n->divisor + n->eps);
        /* eps = 0 and a zero row: the row stays zero instead of becoming nan. */
        for (size_t j = 0; j < d; j++) v[j] = by > 0 ? v[j] / by : 0;
    }
    if (n->kind == PARE_NORM_BATCH)
        for (size_t j = 0; j < d; j++)
            v[j] = (v[j] - pare_weight_at(&n->mean, j)) / sqrt(pare_weight_at(&n->var, j) + n->eps);
    if (pare_has(&n->gain))
        for (size_t j = 0; j < d; j++) v[j] *= pare_weight_at(&n->gain, j);
    if (pare_has(&n->bias))
        for (size_t j = 0; j < d; j++) v[j] += pare_weight_at(&n->bias, j);
}

void rows_norm(rows *y, const rows *x, const pare_norm *n, rows_ctx *c)
{
    const norm_ctx self = {n, x->d};
    if (n->kind == PARE_NORM_NONE && y->v == x->v) return;
    if (y->t == PARE_F32)
        rows_norm_f32(y, x, n, c);
    else
        rows_map(y, x, norm_row, &self, c);
}

typedef struct act_ctx {
    pare_act a;
    size_t d;
} act_ctx;

static void act_row(const void *self, size_t i, double *v)
{
    (void)i;
    const act_ctx *const c = self;
    for (size_t j = 0; j < c->d; j++) v[j] = pare_act_f64(c->a, v[j]);
}

static void multiply_row(const void *self, double *v, const double *x, size_t d)
{
    (void)self;
    for (size_t j = 0; j < d; j++) v[j] *= x[j];
}

void rows_act(rows *y, const rows *u, pare_act a, rows_ctx *c)
{
    const act_ctx self = {a, y->d};
    if (y->t == PARE_F32) {
        rows_act_f32(y, u, a, c);
        return;
    }
    if (a != PARE_ACT_NONE) rows_map(y, y, act_row, &self, c);
    if (u) map_blocks((map_job){.y = y, .x = u, .fn2 = multiply_row}, c);
}

/* diagonal NULL: all ones. */
static void add_row(const void *diagonal, double *v, const double *x, size_t d)
{
    for (size_t j = 0; j < d; j++) v[j] += diagonal ? pare_weight_at(diagonal, j) * x[j] : x[j];
}

void rows_add(rows *y, const rows *x, const pare_weight *w, rows_ctx *c)
{
    if (y->t == PARE_F32)
        rows_add_f32(y, x, w, c);
    else
        map_blocks((map_job){.y = y, .x = x, .fn2 = add_row, .self = w}, c);
}

static void shift_row(const void *self, size_t i, double *v)
{
    (void)i;
    const pare_weight *const b = self;
    for (size_t j = 0; j < b->cols; j++) v[j] += pare_weight_at(b, j);
}

void rows_shift(rows *y, const pare_weight *b, rows_ctx *c)
{
    if (y->t == PARE_F32)
        rows_shift_f32(y, b, c);
    else
        rows_map(y, y, shift_row, b, c);
}

void rows_skip(rows *y, const rows *x, const pare_skip *s, rows_ctx *c)
{
    if (s->kind == PARE_SKIP_NONE) return;
    if (s->kind != PARE_SKIP_DENSE) {
        rows_add(y, x, s->kind == PARE_SKIP_DIAGONAL ? &s->w : NULL, c);
        return;
    }
    rows mapped = rows_new(c, y->t, y->n, y->d);
    rows_dense(&mapped, x, &s->w, NULL, c);
    rows_add(y, &mapped, NULL, c);
}
