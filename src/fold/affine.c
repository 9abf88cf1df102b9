/* affine.c - affine maps folded into the linear maps around them.
 *
 * Sums run in index order in f64 without fused operations: the same bits on every machine, so a
 * verifier can fold again and compare. */
#include "fold_parts.h"
#include <math.h>
#include <stdlib.h>

number number_product(number a, number b)
{
    const double p = a.v * b.v;
    /* Is p = fl(a b) the product itself? Far above underflow the remainder is a double. */
    const bool same = a.v == 0 || b.v == 0 || (fabs(p) > 0x1p-900 && fma(a.v, b.v, -p) == 0);
    return (number){p, a.exact && b.exact && same};
}

number number_sum(number a, number b)
{
    const double s = a.v + b.v;
    /* The rounding error of s, computed exactly. */
    const double back = s - a.v, error = (a.v - (s - back)) + (b.v - back);
    return (number){s, a.exact && b.exact && error == 0};
}

number number_of(const pare_weight *w, size_t i, double otherwise)
{
    return (number){pare_has(w) ? pare_weight_at(w, i) : otherwise, true};
}

void put_number(folder *f, void *data, pare_dtype t, size_t i, number v)
{
    if (t == PARE_F64)
        ((double *)data)[i] = v.v;
    else
        ((float *)data)[i] = (float)v.v;
    f->report->rounded += !v.exact || (t == PARE_F32 && (double)(float)v.v != v.v);
}

static void *new_data(folder *f, size_t rows, size_t cols, pare_dtype t)
{
    return pare_work_alloc(&f->work, rows * cols, pare_dtype_size(t));
}

bool weight_is(const pare_weight *w, double v)
{
    for (size_t i = 0; pare_has(w) && i < w->rows * w->cols; i++)
        if (pare_weight_at(w, i) != v) return false;
    return true;
}

bool norm_affine(folder *f, affine *out, const pare_norm *n, size_t d)
{
    const bool batch = n->kind == PARE_NORM_BATCH, mean = n->kind == PARE_NORM_MEAN;
    const bool any = batch || mean || pare_has(&n->gain) || pare_has(&n->bias);
    *out = (affine){.d = d, .centered = mean};
    if (!any || n->kind == PARE_NORM_NONE) return false;
    if (f->standard && !batch && !mean && weight_is(&n->gain, 1) && weight_is(&n->bias, 0))
        return false;
    out->scale = pare_work_alloc(&f->work, d, sizeof *out->scale);
    out->shift = pare_work_alloc(&f->work, d, sizeof *out->shift);
    if (f->work.st) return false;
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
    if (!mean || !pare_has(&n->offset)) return true;
    /* An offset o in front moves into the shift: s P (x + o) + t. */
    double o_mean = 0;
    for (size_t j = 0; j < d; j++) o_mean += pare_weight_at(&n->offset, j);
    o_mean /= (double)d;
    for (size_t j = 0; j < d; j++) {
        const double o = pare_weight_at(&n->offset, j) - o_mean;
        out->shift[j] = (number){out->shift[j].v + out->scale[j].v * o, false};
    }
    return true;
}

void fold_before(folder *f, pare_weight *w, pare_weight *b, const affine *m)
{
    const size_t cols = w->cols;
    if (f->work.st) return;
    PARE_ASSERT(cols == m->d);
    number *const bias = malloc(w->rows * sizeof *bias), *const row = malloc(cols * sizeof *row);
    void *const data = new_data(f, w->rows, cols, w->dtype);
    if (!bias || !row) f->work.st = pare_no_memory(f->work.err);
    bool any = pare_has(b);
    for (size_t r = 0; !f->work.st && r < w->rows; r++) {
        number shift = {0, true}; /* w t */
        double mean = 0;
        for (size_t j = 0; j < cols; j++) {
            const number x = number_of(w, r * cols + j, 0);
            shift = number_sum(shift, number_product(x, m->shift[j]));
            row[j] = number_product(x, m->scale[j]);
            mean += row[j].v;
        }
        mean /= (double)cols;
        for (size_t j = 0; j < cols; j++) {
            if (m->centered) row[j] = (number){row[j].v - mean, false};
            put_number(f, data, w->dtype, r * cols + j, row[j]);
        }
        bias[r] = number_sum(shift, number_of(b, r, 0));
        any = any || bias[r].v != 0 || !bias[r].exact;
    }
    if (!f->work.st) w->data = data;
    if (!f->work.st && any) {
        const pare_dtype t = pare_has(b) ? b->dtype : w->dtype;
        *b = (pare_weight){t, 1, w->rows, new_data(f, 1, w->rows, t)};
        for (size_t r = 0; !f->work.st && r < w->rows; r++)
            put_number(f, (void *)b->data, t, r, bias[r]);
    }
    free(bias);
    free(row);
}

void scale_rows(folder *f, pare_weight *w, const affine *m)
{
    if (!pare_has(w) || f->work.st) return;
    PARE_ASSERT(w->rows % m->d == 0);
    void *const data = new_data(f, w->rows, w->cols, w->dtype);
    for (size_t i = 0; data && i < w->rows * w->cols; i++)
        put_number(f, data, w->dtype, i,
                   number_product(m->scale[i / w->cols % m->d], number_of(w, i, 0)));
    if (data) w->data = data;
}

void affine_bias(folder *f, pare_weight *b, const affine *m, pare_dtype dtype)
{
    const pare_dtype t = pare_has(b) ? b->dtype : dtype;
    void *const data = new_data(f, 1, m->d, t);
    if (!data) return;
    for (size_t j = 0; j < m->d; j++)
        put_number(f, data, t, j,
                   number_sum(number_product(m->scale[j], number_of(b, j, 0)), m->shift[j]));
    *b = (pare_weight){t, 1, m->d, data};
}

void scale_skip(folder *f, pare_skip *s, const affine *m, pare_dtype dtype)
{
    if (s->kind == PARE_SKIP_DENSE) scale_rows(f, &s->w, m);
    if (s->kind == PARE_SKIP_NONE || s->kind == PARE_SKIP_DENSE) return;
    const pare_dtype t = s->kind == PARE_SKIP_DIAGONAL ? s->w.dtype : dtype;
    void *const data = new_data(f, 1, m->d, t);
    if (!data) return;
    for (size_t j = 0; j < m->d; j++)
        put_number(f, data, t, j, number_product(m->scale[j], number_of(&s->w, j, 1)));
    s->w = (pare_weight){t, 1, m->d, data};
    s->kind = PARE_SKIP_DIAGONAL;
}
