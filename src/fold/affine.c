/* Affine maps folded into the linear maps around them. Sums run in index order in f64 without
 * fused operations: the same bits on every machine, so a verifier can fold again and compare. */
#include "fold_parts.h"
#include <math.h>
#include <stdlib.h>

/* Writes one row of doubles into row r of a weight being built; counts what had to be rounded. */
static size_t put_row(void *data, pare_dtype t, size_t r, const double *v, size_t cols)
{
    size_t rounded = 0;
    if (t == PARE_F64) {
        for (size_t j = 0; j < cols; j++) ((double *)data)[r * cols + j] = v[j];
        return 0;
    }
    for (size_t j = 0; j < cols; j++) {
        const float x = (float)v[j];
        ((float *)data)[r * cols + j] = x;
        rounded += (double)x != v[j];
    }
    return rounded;
}

pare_status store(folder *f, pare_weight *out, const double *v, size_t rows, size_t cols,
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
    for (size_t j = 0; j < a->d; j++)
        a->shift[j] += a->scale[j] * (pare_weight_at(&n->offset, j) - (a->centred ? mean : 0));
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
        const double gain = pare_has(&n->gain) ? pare_weight_at(&n->gain, j) : 1;
        const double bias = pare_has(&n->bias) ? pare_weight_at(&n->bias, j) : 0;
        out->scale[j] = gain;
        out->shift[j] = bias;
        if (batch) {
            out->scale[j] = gain / sqrt(pare_weight_at(&n->var, j) + n->eps);
            out->shift[j] = bias - pare_weight_at(&n->mean, j) * out->scale[j];
        }
    }
    if (mean) absorb_offset(out, n);
    return PARE_OK;
}

/* Row r of w' and, returned, what the shift adds to the bias of that row. */
static double before_row(double *v, const pare_weight *w, size_t r, const affine *m)
{
    double moved = 0, mean = 0;
    for (size_t j = 0; j < w->cols; j++) {
        const double x = pare_weight_at(w, r * w->cols + j);
        moved += x * m->shift[j];
        v[j] = x * m->scale[j];
        mean += v[j];
    }
    mean /= (double)w->cols;
    for (size_t j = 0; m->centred && j < w->cols; j++) v[j] -= mean;
    return moved;
}

static bool is_zero(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0) return false;
    return true;
}

pare_status fold_before(folder *f, pare_weight *w, pare_weight *b, const affine *m)
{
    PARE_ASSERT(w->cols == m->d);
    double *const bias = malloc(w->rows * sizeof *bias), *const row = malloc(w->cols * sizeof *row);
    void *const data = pare_alloc(f->arena, w->rows * w->cols, pare_dtype_size(w->dtype));
    pare_status st = bias && row && data ? PARE_OK : pare_no_memory(f->err);
    for (size_t r = 0; !st && r < w->rows; r++) {
        bias[r] = before_row(row, w, r, m) + (pare_has(b) ? pare_weight_at(b, r) : 0);
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
    double *const row = malloc(w->cols * sizeof *row);
    void *const data = pare_alloc(f->arena, w->rows * w->cols, pare_dtype_size(w->dtype));
    const pare_status st = row && data ? PARE_OK : pare_no_memory(f->err);
    for (size_t r = 0; !st && r < w->rows; r++) {
        for (size_t j = 0; j < w->cols; j++)
            row[j] = m->scale[r % m->d] * pare_weight_at(w, r * w->cols + j);
        f->report->rounded += put_row(data, w->dtype, r, row, w->cols);
    }
    if (!st) w->data = data;
    free(row);
    return st;
}

pare_status affine_bias(folder *f, pare_weight *b, const affine *m, pare_dtype dtype)
{
    double *const v = malloc(m->d * sizeof *v);
    if (!v) return pare_no_memory(f->err);
    for (size_t j = 0; j < m->d; j++)
        v[j] = m->scale[j] * (pare_has(b) ? pare_weight_at(b, j) : 0) + m->shift[j];
    const pare_status st = store(f, b, v, 1, m->d, pare_has(b) ? b->dtype : dtype);
    free(v);
    return st;
}

pare_status scale_skip(folder *f, pare_skip *s, const affine *m, pare_dtype dtype)
{
    if (s->kind == PARE_SKIP_DENSE) return scale_rows(f, &s->w, m);
    if (s->kind == PARE_SKIP_NONE) return PARE_OK;
    double *const v = malloc(m->d * sizeof *v);
    if (!v) return pare_no_memory(f->err);
    for (size_t j = 0; j < m->d; j++)
        v[j] = m->scale[j] * (s->kind == PARE_SKIP_DIAGONAL ? pare_weight_at(&s->w, j) : 1);
    const pare_status st =
        store(f, &s->w, v, 1, m->d, s->kind == PARE_SKIP_DIAGONAL ? s->w.dtype : dtype);
    s->kind = PARE_SKIP_DIAGONAL;
    free(v);
    return st;
}
