/* layer_elementwise.c - norms, activations and sums of rows: f64 as the reference has them, f32 by
 * the kernels of vector_kernels.h, with their constants in f32. Blocks of rows over the threads
 * where there is enough to do. */
#include "layer_ops.h"
#include "model_facts.h"
#include "vector_kernels.h"
#include <math.h>
#include <string.h>

/* Numbers per unit of work in f32, about 20 microseconds: waking a thread for less does not pay.
 * Rows per unit in f64. */
enum { UNIT = 1 << 15, UNIT_ROWS = 16 };

typedef struct element_job {
    enum { NORM, ACTIVATION, ADD, SHIFT } op;
    rows *y;
    const rows *x; /* of a norm or a sum; the factor of an activation, or NULL */
    const pare_norm *norm;
    const pare_weight *w; /* diagonal of a sum, or NULL; what is added to every row */
    pare_act act;
    const vector_norm *norm_f32; /* in f32: the same */
    const float *w_f32;
    size_t per_unit; /* rows */
} element_job;

static void norm_row(double *v, const pare_norm *n, size_t d)
{
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

static void unit_f64(const element_job *j, double *y, const double *x, size_t d)
{
    switch (j->op) {
    case NORM:
        if (y != x) memcpy(y, x, d * sizeof *y);
        norm_row(y, j->norm, d);
        break;
    case ACTIVATION:
        for (size_t k = 0; k < d; k++) y[k] = pare_act_f64(j->act, y[k]) * (x ? x[k] : 1);
        break;
    case ADD:
        for (size_t k = 0; k < d; k++) y[k] += j->w ? pare_weight_at(j->w, k) * x[k] : x[k];
        break;
    case SHIFT:
        for (size_t k = 0; k < d; k++) y[k] += pare_weight_at(j->w, k);
        break;
    }
}

static void unit_f32(const element_job *j, float *y, const float *x, size_t n, size_t d)
{
    switch (j->op) {
    case NORM:
        vector_normalize(simd_best(), y, x, n, d, j->norm_f32);
        break;
    case ACTIVATION:
        vector_activation(simd_best(), y, x, n * d, j->act);
        break;
    case ADD:
        vector_add(simd_best(), y, x, j->w_f32, n, d);
        break;
    case SHIFT:
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < d; k++) y[i * d + k] += j->w_f32[k];
        break;
    }
}

static void do_unit(void *ctx, size_t unit)
{
    const element_job *const j = ctx;
    const size_t d = j->y->d, first = unit * j->per_unit, left = j->y->n - first;
    const size_t n = left < j->per_unit ? left : j->per_unit;
    const rows y = rows_part(j->y, first, n), x = j->x ? rows_part(j->x, first, n) : (rows){0};
    if (y.t == PARE_F32)
        unit_f32(j, y.v, x.v, n, d);
    else
        for (size_t i = 0; i < n; i++)
            unit_f64(j, (double *)y.v + i * d, x.v ? (const double *)x.v + i * d : NULL, d);
}

static void do_units(element_job j, rows_ctx *c)
{
    if (c->work.st || j.y->n == 0 || j.y->d == 0) return;
    PARE_ASSERT(!j.x || (j.x->t == j.y->t && j.x->n == j.y->n && j.x->d == j.y->d));
    j.per_unit = j.y->t == PARE_F64 ? UNIT_ROWS : j.y->d < UNIT ? UNIT / j.y->d : 1;
    pare_parallel(c->work.exec, (j.y->n + j.per_unit - 1) / j.per_unit, do_unit, &j);
}

const float *rows_floats(const pare_weight *w, rows_ctx *c)
{
    if (!w || !pare_has(w)) return NULL;
    if (w->dtype == PARE_F32) return w->data;
    const size_t n = w->rows * w->cols;
    float *const v = rows_scratch(c, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = (float)((const double *)w->data)[i];
    return v;
}

void rows_norm(rows *y, const rows *x, const pare_norm *n, rows_ctx *c)
{
    if (n->kind == PARE_NORM_NONE && y->v == x->v) return;
    if (y->t == PARE_F64) {
        do_units((element_job){.op = NORM, .y = y, .x = x, .norm = n}, c);
        return;
    }
    const scratch_mark mark = scratch_save(c->scratch);
    vector_norm k = {.kind = n->kind, .eps = n->eps, .divisor = n->divisor, .shift = n->shift};
    k.offset = rows_floats(&n->offset, c);
    if (n->kind == PARE_NORM_BATCH) {
        /* (x - mean) / sqrt(var + eps) gain + bias as x a + b; a and b are f64 until the end. */
        float *const a = rows_scratch(c, x->d, sizeof *a), *const b =
                                                               rows_scratch(c, x->d, sizeof *b);
        for (size_t j = 0; !c->work.st && j < x->d; j++) {
            const double gain = pare_has(&n->gain) ? pare_weight_at(&n->gain, j) : 1;
            const double by = gain / sqrt(pare_weight_at(&n->var, j) + n->eps);
            const double bias = pare_has(&n->bias) ? pare_weight_at(&n->bias, j) : 0;
            a[j] = (float)by;
            b[j] = (float)(bias - pare_weight_at(&n->mean, j) * by);
        }
        k.gain = a;
        k.bias = b;
    } else {
        k.gain = rows_floats(&n->gain, c);
        k.bias = rows_floats(&n->bias, c);
    }
    do_units((element_job){.op = NORM, .y = y, .x = x, .norm_f32 = &k}, c);
    scratch_reset(c->scratch, mark);
}

void rows_act(rows *y, const rows *u, pare_act a, rows_ctx *c)
{
    if (a == PARE_ACT_NONE && !u) return;
    do_units((element_job){.op = ACTIVATION, .y = y, .x = u, .act = a}, c);
}

void rows_add(rows *y, const rows *x, const pare_weight *w, rows_ctx *c)
{
    const scratch_mark mark = scratch_save(c->scratch);
    const float *const w_f32 = y->t == PARE_F32 ? rows_floats(w, c) : NULL;
    do_units((element_job){.op = ADD, .y = y, .x = x, .w = w, .w_f32 = w_f32}, c);
    scratch_reset(c->scratch, mark);
}

void rows_shift(rows *y, const pare_weight *b, rows_ctx *c)
{
    const scratch_mark mark = scratch_save(c->scratch);
    const float *const b_f32 = y->t == PARE_F32 ? rows_floats(b, c) : NULL;
    do_units((element_job){.op = SHIFT, .y = y, .w = b, .w_f32 = b_f32}, c);
    scratch_reset(c->scratch, mark);
}
