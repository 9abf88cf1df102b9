/* tape_norm.c - norms and their backward pass.
 *
 * By rows (layer, rms, mean), with c = v - mean(v) for layer and mean norms and c = v for rms:
 *
 *     v  = x + offset,   s = sqrt((|c|^2 + shift) / divisor + eps),   u = c / s
 *     y  = u gain + bias
 *     du = dy gain,      dc = (du - u (du . u) / divisor) / s,        dv = dc - mean(dc)
 *
 * A batch norm in training takes mean and (biased) variance of its columns over all rows:
 *
 *     dx = gain / s (dy - mean(dy) - u mean(dy u)),   means over the rows.
 *
 * Its running statistics move towards the mean and the unbiased variance. */
#include "tape_kernels.h"
#include <math.h>

static bool divides(const pare_norm *n)
{
    return n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
}

static bool centers(const pare_norm *n)
{
    return n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_MEAN;
}

static double gain_at(const pare_norm *n, size_t j)
{
    return pare_has(&n->gain) ? pare_weight_at(&n->gain, j) : 1;
}

static double mean_of(const double *v, size_t d)
{
    double s = 0;
    for (size_t j = 0; j < d; j++) s += v[j];
    return s / (double)d;
}

/* ---- row by row ------------------------------------------------------------------------------ */

/* u of row i from mean and inv, which are computed first where `fresh`. */
static const double *unit_row(const norm_job *w, size_t i, double *u, bool fresh)
{
    const pare_norm *const n = w->n;
    const size_t d = w->x->d;
    const double *const x = row_read(w->x, i, u);
    for (size_t j = 0; j < d; j++)
        u[j] = x[j] + (pare_has(&n->offset) ? pare_weight_at(&n->offset, j) : 0);
    if (fresh) w->k->mean[i] = centers(n) ? mean_of(u, d) : 0;
    for (size_t j = 0; j < d; j++) u[j] -= w->k->mean[i];
    if (fresh) {
        double squares = 0;
        for (size_t j = 0; j < d; j++) squares += u[j] * u[j];
        const double deviation = divides(n) ? sqrt((squares + n->shift) / n->divisor + n->eps) : 1;
        w->k->inv[i] = deviation > 0 ? 1 / deviation : 0; /* eps = 0 and a zero row: it stays 0 */
    }
    for (size_t j = 0; j < d; j++) u[j] *= w->k->inv[i];
    return u;
}

static void row_span(void *self, const span *s)
{
    const norm_job *const w = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const u = unit_row(w, i, s->row[0], true);
        double *const y = row_write(w->y, i, s->row[1]);
        for (size_t j = 0; j < w->x->d; j++)
            y[j] = u[j] * gain_at(w->n, j) +
                   (pare_has(&w->n->bias) ? pare_weight_at(&w->n->bias, j) : 0);
        row_done(w->y, i, y);
    }
}

/* Sums: of gain, bias, offset, d each. */
static void row_backward_span(void *self, const span *s)
{
    const norm_job *const w = self;
    const size_t d = w->x->d;
    double *const dgain = s->sum, *const dbias = s->sum + d, *const doffset = s->sum + 2 * d;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const u = unit_row(w, i, s->row[0], false);
        const double *const dy = row_read(w->dy, i, s->row[1]);
        double *const dv = s->row[2], dot = 0, mean = 0;
        for (size_t j = 0; j < d; j++) {
            dgain[j] += dy[j] * u[j];
            dbias[j] += dy[j];
            dv[j] = dy[j] * gain_at(w->n, j);
            dot += dv[j] * u[j];
        }
        for (size_t j = 0; j < d && divides(w->n); j++)
            dv[j] = (dv[j] - u[j] * dot / w->n->divisor) * w->k->inv[i];
        if (centers(w->n)) mean = mean_of(dv, d);
        for (size_t j = 0; j < d; j++) doffset[j] += dv[j] -= mean;
        const double *const plus = w->plus ? row_read(w->plus, i, s->row[3]) : NULL;
        double *const dx = row_write(w->y, i, s->row[1]);
        for (size_t j = 0; j < d; j++) dx[j] = dv[j] + (plus ? plus[j] : 0);
        row_done(w->y, i, dx);
    }
}

/* ---- batch ----------------------------------------------------------------------------------- */

static void sum_span(void *self, const span *s)
{
    const norm_job *const w = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(w->x, i, s->row[0]);
        for (size_t j = 0; j < w->x->d; j++) s->sum[j] += x[j];
    }
}

/* Distances from the mean, so that nothing cancels where it is large. */
static void squares_span(void *self, const span *s)
{
    const norm_job *const w = self;
    const double *const mean = w->k->mean;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(w->x, i, s->row[0]);
        for (size_t j = 0; j < w->x->d; j++) s->sum[j] += (x[j] - mean[j]) * (x[j] - mean[j]);
    }
}

static void column_span(void *self, const span *s)
{
    const norm_job *const w = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(w->x, i, s->row[0]);
        double *const y = row_write(w->y, i, s->row[1]);
        for (size_t j = 0; j < w->x->d; j++)
            y[j] = (x[j] - w->k->mean[j]) * w->k->inv[j] * gain_at(w->n, j) +
                   (pare_has(&w->n->bias) ? pare_weight_at(&w->n->bias, j) : 0);
        row_done(w->y, i, y);
    }
}

/* Sums: of dy u and dy. */
static void column_sums_span(void *self, const span *s)
{
    const norm_job *const w = self;
    const size_t d = w->x->d;
    const double *const mean = w->k->mean, *const inv = w->k->inv;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(w->x, i, s->row[0]);
        const double *const dy = row_read(w->dy, i, s->row[1]);
        for (size_t j = 0; j < d; j++) {
            s->sum[j] += dy[j] * (x[j] - mean[j]) * inv[j];
            s->sum[d + j] += dy[j];
        }
    }
}

static void column_backward_span(void *self, const span *s)
{
    const norm_job *const w = self;
    const double *const mean = w->k->mean, *const inv = w->k->inv;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(w->x, i, s->row[0]);
        const double *const dy = row_read(w->dy, i, s->row[1]);
        const double *const plus = w->plus ? row_read(w->plus, i, s->row[2]) : NULL;
        double *const dx = row_write(w->y, i, s->row[3]);
        for (size_t j = 0; j < w->x->d; j++) {
            const double u = (x[j] - mean[j]) * inv[j];
            const double centered = w->k->batch ? w->mean_dy[j] + u * w->mean_dyu[j] : 0;
            dx[j] = gain_at(w->n, j) * inv[j] * (dy[j] - centered) + (plus ? plus[j] : 0);
        }
        row_done(w->y, i, dx);
    }
}

/* f32 has one kernel for all operations. */
static void run_op(pare_tape *t, norm_job *w, norm_op op, size_t nsums, double *total)
{
    static span_fn *const in_f64[] = {
        row_span, row_backward_span, sum_span,         squares_span,
        NULL,     column_span,       column_sums_span, column_backward_span};
    w->op = op;
    /* + 16: f32 sums are padded to whole lanes */
    tape_spans(t, w->x->n, w->x->d + 16, nsums, total,
               w->x->t == PARE_F32 ? norm_f32() : in_f64[op], w);
}

/* The mean of every column, and in `squares` the sum of the squared distances from it.
 *
 * In f32 each span takes the distances from its own mean. For spans with n_s rows, sums S_s and all
 * rows with the sum S, what is missing is sum_s S_s^2 / n_s - S^2 / n. */
static void column_moments(pare_tape *t, norm_job *w, double *mean, double *squares)
{
    const size_t n = w->x->n, d = w->x->d;
    if (w->x->t != PARE_F32) {
        run_op(t, w, NORM_SUM, d, mean);
        for (size_t j = 0; !t->work.st && j < d; j++) mean[j] /= (double)n;
        run_op(t, w, NORM_SQUARES, d, squares);
        return;
    }
    const stack_mark mark = stack_top(&t->stack);
    double *const sum = tape_alloc(t, 3 * d, sizeof *sum);
    run_op(t, w, NORM_MOMENTS, 3 * d, sum);
    for (size_t j = 0; !t->work.st && j < d; j++) {
        mean[j] = sum[j] / (double)n;
        const double between = sum[2 * d + j] - sum[j] * mean[j];
        squares[j] = sum[d + j] + (between <= 0 ? 0 : between); /* a nan stays one */
    }
    stack_reset(&t->stack, mark);
}

static void update_running(const pare_weight *stat, size_t j, double to, double momentum)
{
    if (stat->dtype == PARE_F64)
        ((double *)stat->data)[j] = (1 - momentum) * ((double *)stat->data)[j] + momentum * to;
    else
        ((float *)stat->data)[j] =
            (float)((1 - momentum) * pare_weight_at(stat, j) + momentum * to);
}

/* Mean and 1 / sqrt(var + eps) of every column: of the batch, or the running ones. */
static void batch_statistics(pare_tape *t, norm_job *w)
{
    const size_t n = w->x->n, d = w->x->d;
    double *const mean = w->k->mean, *const inv = w->k->inv;
    if (w->k->batch) column_moments(t, w, mean, inv);
    for (size_t j = 0; !t->work.st && j < d; j++) {
        if (!w->k->batch) {
            mean[j] = pare_weight_at(&w->n->mean, j);
            inv[j] = 1 / sqrt(pare_weight_at(&w->n->var, j) + w->n->eps);
            continue;
        }
        const double squares = inv[j];
        inv[j] = 1 / sqrt(squares / (double)n + w->n->eps);
        if (!(inv[j] <= 1e300)) inv[j] = 0; /* eps = 0 and a constant column */
        update_running(&w->n->mean, j, mean[j], t->mode.momentum);
        update_running(&w->n->var, j, squares / (double)(n > 1 ? n - 1 : 1), t->mode.momentum);
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Memory for the four coefficients of every column, where the f32 kernel needs them. */
static void alloc_columns_f32(pare_tape *t, norm_job *w)
{
    const size_t d = w->x->d;
    if (w->x->t != PARE_F32 || w->n->kind != PARE_NORM_BATCH) return;
    float *const v = tape_alloc(t, 4 * d, sizeof *v);
    if (!v) return;
    w->mean = v;
    w->scale = v + d;
    w->shift = v + 2 * d;
    w->coupling = v + 3 * d;
}

rows tape_norm(pare_tape *t, norm_saved *k, const rows *x, const pare_norm *n)
{
    const bool columns = n->kind == PARE_NORM_BATCH;
    const size_t moments = columns ? x->d : x->n;
    k->x = *x;
    if (n->kind == PARE_NORM_NONE) return *x;
    k->batch = columns && t->mode.training;
    k->mean = tape_alloc(t, moments, sizeof *k->mean);
    k->inv = tape_alloc(t, moments, sizeof *k->inv);
    rows y = tape_new_rows(t, x->n, x->d);
    norm_job w = {.k = k, .n = n, .x = &k->x, .y = &y};
    alloc_columns_f32(t, &w);
    if (columns) batch_statistics(t, &w);
    for (size_t j = 0; w.mean && !t->work.st && j < x->d; j++) {
        w.mean[j] = (float)k->mean[j];
        w.scale[j] = (float)(k->inv[j] * gain_at(n, j));
        w.shift[j] = pare_has(&n->bias) ? (float)pare_weight_at(&n->bias, j) : 0;
    }
    run_op(t, &w, columns ? NORM_COLUMNS : NORM_ROWS, 0, NULL);
    return y;
}

/* sum: 4 d numbers, of which the first 2 d become the gradients of gain and bias. */
static void columns_backward(pare_tape *t, norm_job *w, double *sum)
{
    const size_t d = w->x->d;
    const norm_saved *const k = w->k;
    double *const means = sum + 2 * d;
    alloc_columns_f32(t, w);
    for (size_t j = 0; w->mean && j < d; j++) w->mean[j] = (float)k->mean[j];
    run_op(t, w, NORM_SUMS_BACKWARD, 2 * d, sum);
    for (size_t j = 0; !t->work.st && j < 2 * d; j++) means[j] = sum[j] / (double)w->x->n;
    w->mean_dyu = means;
    w->mean_dy = means + d;
    for (size_t j = 0; w->mean && !t->work.st && j < d; j++) {
        w->scale[j] = (float)(k->inv[j] * gain_at(w->n, j));
        w->shift[j] = k->batch ? (float)w->mean_dy[j] : 0;
        w->coupling[j] = k->batch ? (float)(w->mean_dyu[j] * k->inv[j]) : 0;
    }
    run_op(t, w, NORM_COLUMNS_BACKWARD, 0, NULL);
}

void tape_norm_backward(pare_tape *t, const norm_saved *k, rows *dx, const rows *dy,
                        const rows *plus, const pare_norm *n)
{
    if (n->kind == PARE_NORM_NONE) {
        tape_sum(t, dx, dy, plus);
        return;
    }
    const stack_mark mark = stack_top(&t->stack);
    const size_t d = dx->d;
    norm_job w = {.k = k, .n = n, .x = &k->x, .dy = dy, .plus = plus, .y = dx};
    double *const sum = tape_alloc(t, 4 * d, sizeof *sum);
    if (!sum) return;
    if (n->kind == PARE_NORM_BATCH) {
        columns_backward(t, &w, sum);
    } else {
        run_op(t, &w, NORM_ROWS_BACKWARD, 3 * d, sum);
        if (pare_has(&n->offset)) tape_grad_add(t, &n->offset, sum + 2 * d);
    }
    if (pare_has(&n->gain)) tape_grad_add(t, &n->gain, sum);
    if (pare_has(&n->bias)) tape_grad_add(t, &n->bias, sum + d);
    stack_reset(&t->stack, mark);
}
