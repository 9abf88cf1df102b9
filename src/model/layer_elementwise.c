/* layer_ops_f32.c - hands rows to the kernels of vector_kernels.h: constants in f32, and blocks of
 * rows over the threads where there is enough to do. */
#include "layer_ops.h"
#include "vector_kernels.h"
#include <math.h>

/* Numbers per unit of work, about 20 microseconds: waking a thread for less does not pay. */
enum { UNIT = 1 << 15 };

typedef struct f32_job {
    enum { NORM, ACTIVATION, ADD, SHIFT } op;
    rows *y;
    const rows *x; /* of a norm or a sum; the factor of an activation, or NULL */
    const vector_norm *norm;
    const float *w; /* diagonal of a sum, or NULL; what is added to every row */
    pare_act act;
    size_t per_unit; /* rows */
} f32_job;

static void do_unit(void *ctx, size_t unit)
{
    const f32_job *const j = ctx;
    const size_t d = j->y->d, first = unit * j->per_unit, left = j->y->n - first;
    const size_t n = left < j->per_unit ? left : j->per_unit;
    float *const y = (float *)j->y->v + first * d;
    const float *const x = j->x ? (const float *)j->x->v + first * j->x->d : NULL;
    switch (j->op) {
    case NORM:
        vector_normalize(simd_best(), y, x, n, d, j->norm);
        break;
    case ACTIVATION:
        vector_activation(simd_best(), y, x, n * d, j->act);
        break;
    case ADD:
        vector_add(simd_best(), y, x, j->w, n, d);
        break;
    case SHIFT:
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < d; k++) y[i * d + k] += j->w[k];
        break;
    }
}

static void do_units(f32_job j, rows_ctx *c)
{
    if (c->work.st || j.y->n == 0 || j.y->d == 0) return;
    j.per_unit = j.y->d < UNIT ? UNIT / j.y->d : 1;
    pare_parallel(c->work.exec, (j.y->n + j.per_unit - 1) / j.per_unit, do_unit, &j);
}

/* A stored vector as floats: itself, or rounded into scratch; NULL when it is absent. */
static const float *floats_of(const pare_weight *w, rows_ctx *c)
{
    if (!w || !pare_has(w)) return NULL;
    if (w->dtype == PARE_F32) return w->data;
    const size_t n = w->rows * w->cols;
    float *const v = rows_scratch(c, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = (float)((const double *)w->data)[i];
    return v;
}

void rows_norm_f32(rows *y, const rows *x, const pare_norm *n, rows_ctx *c)
{
    const scratch_mark mark = scratch_save(c->scratch);
    vector_norm k = {.kind = n->kind, .eps = n->eps, .divisor = n->divisor, .shift = n->shift};
    k.offset = floats_of(&n->offset, c);
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
        k.gain = floats_of(&n->gain, c);
        k.bias = floats_of(&n->bias, c);
    }
    do_units((f32_job){.op = NORM, .y = y, .x = x, .norm = &k}, c);
    scratch_reset(c->scratch, mark);
}

void rows_act_f32(rows *y, const rows *u, pare_act a, rows_ctx *c)
{
    if (a == PARE_ACT_NONE && !u) return;
    do_units((f32_job){.op = ACTIVATION, .y = y, .x = u, .act = a}, c);
}

void rows_add_f32(rows *y, const rows *x, const pare_weight *w, rows_ctx *c)
{
    const scratch_mark mark = scratch_save(c->scratch);
    do_units((f32_job){.op = ADD, .y = y, .x = x, .w = floats_of(w, c)}, c);
    scratch_reset(c->scratch, mark);
}

void rows_shift_f32(rows *y, const pare_weight *b, rows_ctx *c)
{
    const scratch_mark mark = scratch_save(c->scratch);
    do_units((f32_job){.op = SHIFT, .y = y, .w = floats_of(b, c)}, c);
    scratch_reset(c->scratch, mark);
}
