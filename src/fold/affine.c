/* Affine maps folded into the linear maps around them. Sums run in index order in f64 without
 * fused operations: the same bits on every machine, so a verifier can fold again and compare. */
#include "fold_parts.h"
#include <math.h>
#include <stdlib.h>

/* Is p = fl(a b) the product itself? Far above underflow the remainder is a double. */
static bool exact_product(double a, double b, double p)
{
    if (a == 0 || b == 0) return true;
    return fabs(p) > 0x1p-900 && fma(a, b, -p) == 0;
}

/* Is s = fl(a + b) the sum itself? */
static bool exact_sum(double a, double b, double s)
{
    const double back = s - a;
    return (a - (s - back)) + (b - back) == 0;
}

number number_product(number a, number b)
{
    const double p = a.v * b.v;
    return (number){p, a.exact && b.exact && exact_product(a.v, b.v, p)};
}

number number_sum(number a, number b)
{
    const double s = a.v + b.v;
    return (number){s, a.exact && b.exact && exact_sum(a.v, b.v, s)};
}

number number_of(const pare_weight *w, size_t i, double otherwise)
{
    return (number){pare_has(w) ? pare_weight_at(w, i) : otherwise, true};
}

/* Writes one row into row r of a weight being built; counts what is not the real number itself. */
static size_t put_row(void *data, pare_dtype t, size_t r, const number *v, size_t cols)
{
    size_t rounded = 0;
    for (size_t j = 0; j < cols; j++) {
        if (t == PARE_F64)
            ((double *)data)[r * cols + j] = v[j].v;
        else
            ((float *)data)[r * cols + j] = (float)v[j].v;
        rounded += !v[j].exact || (t == PARE_F32 && (double)(float)v[j].v != v[j].v);
    }
    return rounded;
}

pare_status store(folder *f, pare_weight *out, const number *v, size_t rows, size_t cols,
                  pare_dtype dtype)
{
    void *const data = pare_alloc(f->arena, rows * cols, pare_dtype_size(dtype));
    if (!data) return pare_no_memory(f->err);
    for (size_t r = 0; r < rows; r++)
        f->report->rounded += put_row(data, dtype, r, v + r * cols, cols);
    *out = (pare_weight){dtype, rows, cols, data};
    return PARE_OK;
}

static pare_status make_affine(folder *f, affine *out, size_t d)
{
    out->d = d;
    out->scale = pare_alloc(f->arena, d, sizeof *out->scale);
    out->shift = pare_alloc(f->arena, d, sizeof *out->shift);
    return out->scale && out->shift ? PARE_OK : pare_no_memory(f->err);
}

/* offset o in front of a linear norm moves into the shift: s P (x + o) + t. */
static void absorb_offset(affine *a, const pare_norm *n)
{
    double mean = 0;
    if (!pare_has(&n->offset)) return;
    for (size_t j = 0; a->centred && j < a->d; j++) mean += pare_weight_at(&n->offset, j);
    mean /= (double)a->d;
    for (size_t j = 0; j < a->d; j++) {
        const double o = pare_weight_at(&n->offset, j) - (a->centred ? mean : 0);
        a->shift[j] = (number){a->shift[j].v + a->scale[j].v * o, false};
    }
}

pare_status norm_affine(folder *f, affine *out, bool *any, const pare_norm *n, size_t d)
{
    const bool batch = n->kind == PARE_NORM_BATCH, mean = n->kind == PARE_NORM_MEAN;
    *out = (affine){0};
    *any = batch || mean || pare_has(&n->gain) || pare_has(&n->bias);
    if (!*any || n->kind == PARE_NORM_NONE) {
        *any = false;
        return PARE_OK;
    }
    const pare_status st = make_affine(f, out, d);
    if (st) return st;
    out->centred = mean;
    for (size_t j = 0; j < d; j++) {
        const number gain = number_of(&n->gain, j, 1), bias = number_of(&n->bias, j, 0);
        out->scale[j] = gain;
        out->shift[j] = bias;
        if (batch) {
            const double s = gain.v / sqrt(pare_weight_at(&n->var, j) + n->eps);
            out->scale[j] = (number){s, false};
            out->shift[j] = (number){bias.v - pare_weight_at(&n->mean, j) * s, false};
        }
    }
    if (mean) absorb_offset(out, n);
    return PARE_OK;
}

/* Row r of w' and, returned, what the shift adds to the bias of that row. */
static number before_row(number *v, const pare_weight *w, size_t r, const affine *m)
{
    number moved = {0, true};
    double mean = 0;
    for (size_t j = 0; j < w->cols; j++) {
        const number x = number_of(w, r * w->cols + j, 0);
        moved = number_sum(moved, number_product(x, m->shift[j]));
        v[j] = number_product(x, m->scale[j]);
        mean += v[j].v;
    }
    mean /= (double)w->cols;
    for (size_t j = 0; m->centred && j < w->cols; j++) v[j] = (number){v[j].v - mean, false};
    return moved;
}

static bool is_zero(const number *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].v != 0 || !v[i].exact) return false;
    return true;
}

pare_status fold_before(folder *f, pare_weight *w, pare_weight *b, const affine *m)
{
    PARE_ASSERT(w->cols == m->d);
    number *const bias = malloc(w->rows * sizeof *bias), *const row = malloc(w->cols * sizeof *row);
    void *const data = pare_alloc(f->arena, w->rows * w->cols, pare_dtype_size(w->dtype));
    pare_status st = bias && row && data ? PARE_OK : pare_no_memory(f->err);
    for (size_t r = 0; !st && r < w->rows; r++) {
        bias[r] = number_sum(before_row(row, w, r, m), number_of(b, r, 0));
        f->report->rounded += put_row(data, w->dtype, r, row, w->cols);
    }
    if (!st) w->data = data;
    if (!st && (pare_has(b) || !is_zero(bias, w->rows)))
        st = store(f, b, bias, 1, w->rows, pare_has(b) ? b->dtype : w->dtype);
    free(bias);
    free(row);
    return st;
}

pare_status scale_rows(folder *f, pare_weight *w, const affine *m)
{
    if (!pare_has(w)) return PARE_OK;
    PARE_ASSERT(w->rows % m->d == 0);
    number *const row = malloc(w->cols * sizeof *row);
    void *const data = pare_alloc(f->arena, w->rows * w->cols, pare_dtype_size(w->dtype));
    const pare_status st = row && data ? PARE_OK : pare_no_memory(f->err);
    for (size_t r = 0; !st && r < w->rows; r++) {
        for (size_t j = 0; j < w->cols; j++)
            row[j] = number_product(m->scale[r % m->d], number_of(w, r * w->cols + j, 0));
        f->report->rounded += put_row(data, w->dtype, r, row, w->cols);
    }
    if (!st) w->data = data;
    free(row);
    return st;
}

pare_status affine_bias(folder *f, pare_weight *b, const affine *m, pare_dtype dtype)
{
    number *const v = malloc(m->d * sizeof *v);
    if (!v) return pare_no_memory(f->err);
    for (size_t j = 0; j < m->d; j++)
        v[j] = number_sum(number_product(m->scale[j], number_of(b, j, 0)), m->shift[j]);
    const pare_status st = store(f, b, v, 1, m->d, pare_has(b) ? b->dtype : dtype);
    free(v);
    return st;
}

pare_status scale_skip(folder *f, pare_skip *s, const affine *m, pare_dtype dtype)
{
    if (s->kind == PARE_SKIP_DENSE) return scale_rows(f, &s->w, m);
    if (s->kind == PARE_SKIP_NONE) return PARE_OK;
    number *const v = malloc(m->d * sizeof *v);
    if (!v) return pare_no_memory(f->err);
    for (size_t j = 0; j < m->d; j++) v[j] = number_product(m->scale[j], number_of(&s->w, j, 1));
    const pare_status st =
        store(f, &s->w, v, 1, m->d, s->kind == PARE_SKIP_DIAGONAL ? s->w.dtype : dtype);
    s->kind = PARE_SKIP_DIAGONAL;
    free(v);
    return st;
}
