/* layer_ops_f32.c - hands rows to the kernels of vector_kernels.h: constants in f32, and blocks of rows over the
 * threads where there is enough to do. */
#include "layer_ops_f32.h"
#include "vector_kernels.h"
#include <math.h>

/* Numbers per unit of work, about 20 microseconds: waking a thread for less does not pay. */
enum { UNIT = 1 << 15 };

typedef struct f32_job {
    rows *y;
    const rows *x; /* of a norm or a sum; the factor of an activation, or NULL */
    const vrow_norm *norm;
    const float *w;
    pare_act act;
    size_t per_unit; /* rows */
} f32_job;

static float *row_at(const rows *r, size_t i)
{
    return (float *)r->v + i * r->d;
}

static size_t rows_in(const f32_job *j, size_t unit)
{
    const size_t left = j->y->n - unit * j->per_unit;
    return left < j->per_unit ? left : j->per_unit;
}

static void run_units(f32_job *j, void (*fn)(void *ctx, size_t unit), const rows_ctx *c)
{
    if (j->y->n == 0 || j->y->d == 0) return;
    j->per_unit = j->y->d < UNIT ? UNIT / j->y->d : 1;
    pare_parallel(c->exec, (j->y->n + j->per_unit - 1) / j->per_unit, fn, j);
}

/* A stored vector as floats: itself, or rounded into scratch. */
static pare_status floats_of(const float **out, const pare_weight *w, const rows_ctx *c)
{
    *out = NULL;
    if (!w || !pare_has(w)) return PARE_OK;
    if (w->dtype == PARE_F32) {
        *out = w->data;
        return PARE_OK;
    }
    const size_t n = w->rows * w->cols;
    float *const v = scratch_get(c->scratch, n, sizeof *v);
    if (!v) return pare_no_memory(c->err);
    for (size_t i = 0; i < n; i++) v[i] = (float)((const double *)w->data)[i];
    *out = v;
    return PARE_OK;
}

/* ---- norms -------------------------------------------------------------------------------- */

/* (x - mean) / sqrt(var + eps) gain + bias as x a + b; a and b are f64 until the end. */
static pare_status fold_batch(vrow_norm *k, const pare_norm *n, size_t d, const rows_ctx *c)
{
    float *const a = scratch_get(c->scratch, d, sizeof *a);
    float *const b = scratch_get(c->scratch, d, sizeof *b);
    if (!a || !b) return pare_no_memory(c->err);
    for (size_t j = 0; j < d; j++) {
        const double gain = pare_has(&n->gain) ? pare_weight_at(&n->gain, j) : 1;
        const double by = gain / sqrt(pare_weight_at(&n->var, j) + n->eps);
        const double bias = pare_has(&n->bias) ? pare_weight_at(&n->bias, j) : 0;
        a[j] = (float)by;
        b[j] = (float)(bias - pare_weight_at(&n->mean, j) * by);
    }
    k->gain = a;
    k->bias = b;
    return PARE_OK;
}

static pare_status constants(vrow_norm *k, const pare_norm *n, size_t d, const rows_ctx *c)
{
    *k = (vrow_norm){.kind = n->kind, .eps = n->eps, .divisor = n->divisor, .shift = n->shift};
    pare_status st = floats_of(&k->offset, &n->offset, c);
    if (st) return st;
    if (n->kind == PARE_NORM_BATCH) return fold_batch(k, n, d, c);
    if ((st = floats_of(&k->gain, &n->gain, c))) return st;
    return floats_of(&k->bias, &n->bias, c);
}

static void norm_unit(void *ctx, size_t unit)
{
    const f32_job *const j = ctx;
    const size_t first = unit * j->per_unit;
    vrow_normalise(vrow_best(), row_at(j->y, first), row_at(j->x, first), rows_in(j, unit), j->x->d,
                   j->norm);
}

pare_status rows_norm_f32(rows *y, const rows *x, const pare_norm *n, const rows_ctx *c)
{
    const scratch_mark top = scratch_top(c->scratch);
    vrow_norm k;
    const pare_status st = constants(&k, n, x->d, c);
    f32_job j = {.y = y, .x = x, .norm = &k};
    if (!st) run_units(&j, norm_unit, c);
    scratch_reset(c->scratch, top);
    return st;
}

/* ---- activations -------------------------------------------------------------------------- */

static void act_unit(void *ctx, size_t unit)
{
    const f32_job *const j = ctx;
    const size_t first = unit * j->per_unit;
    vrow_act(vrow_best(), row_at(j->y, first), j->x ? row_at(j->x, first) : NULL,
             rows_in(j, unit) * j->y->d, j->act);
}

pare_status rows_act_f32(rows *y, const rows *u, pare_act a, const rows_ctx *c)
{
    f32_job j = {.y = y, .x = u, .act = a};
    if (a != PARE_ACT_NONE || u) run_units(&j, act_unit, c);
    return PARE_OK;
}

/* ---- sums --------------------------------------------------------------------------------- */

static void add_unit(void *ctx, size_t unit)
{
    const f32_job *const j = ctx;
    const size_t first = unit * j->per_unit;
    vrow_add(vrow_best(), row_at(j->y, first), row_at(j->x, first), j->w, rows_in(j, unit),
             j->y->d);
}

pare_status rows_add_f32(rows *y, const rows *x, const pare_weight *w, const rows_ctx *c)
{
    const scratch_mark top = scratch_top(c->scratch);
    f32_job j = {.y = y, .x = x};
    const pare_status st = floats_of(&j.w, w, c);
    if (!st) run_units(&j, add_unit, c);
    scratch_reset(c->scratch, top);
    return st;
}

static void shift_unit(void *ctx, size_t unit)
{
    const f32_job *const j = ctx;
    const size_t d = j->y->d, n = rows_in(j, unit);
    float *const y = row_at(j->y, unit * j->per_unit);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < d; k++) y[i * d + k] += j->w[k];
}

pare_status rows_shift_f32(rows *y, const pare_weight *b, const rows_ctx *c)
{
    const scratch_mark top = scratch_top(c->scratch);
    f32_job j = {.y = y};
    const pare_status st = floats_of(&j.w, b, c);
    if (!st) run_units(&j, shift_unit, c);
    scratch_reset(c->scratch, top);
    return st;
}
