/* Norms.
 *
 *   v = x + offset;  c = v - mean v (layer, mean);  u = c / s,  s = sqrt((|c|^2 + shift) / divisor
 *   + eps);  y = u gain + bias
 *   back: du = dy gain;  dc = (du - u (du.u) / divisor) / s;  dv = dc - mean dc
 *
 * A batch norm in training takes mean and (biased) variance of its columns over all rows:
 *   back: dx = gain / s (dy - mean dy - u mean(dy u)), means over the rows.
 * Its running figures move towards the mean and the unbiased variance. */
#include "tape_norm.h"
#include <math.h>

static bool by_rows(const pare_norm *n)
{
    return n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
}

static bool centres(const pare_norm *n)
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

/* u of row i, with what mean and inv say; they are found first where `fresh`. */
static const double *unit_row(const norm_job *w, size_t i, double *u, bool fresh)
{
    const pare_norm *const n = w->n;
    const size_t d = w->x->d;
    const double *const x = row_read(w->x, i, u);
    for (size_t j = 0; j < d; j++)
        u[j] = x[j] + (pare_has(&n->offset) ? pare_weight_at(&n->offset, j) : 0);
    if (fresh) w->k->mean[i] = centres(n) ? mean_of(u, d) : 0;
    for (size_t j = 0; j < d; j++) u[j] -= w->k->mean[i];
    if (fresh) {
        double squares = 0;
        for (size_t j = 0; j < d; j++) squares += u[j] * u[j];
        const double by = by_rows(n) ? sqrt((squares + n->shift) / n->divisor + n->eps) : 1;
        w->k->inv[i] = by > 0 ? 1 / by : 0; /* eps = 0 and a zero row: it stays zero */
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
static void row_back_span(void *self, const span *s)
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
        for (size_t j = 0; j < d && by_rows(w->n); j++)
            dv[j] = (dv[j] - u[j] * dot / w->n->divisor) * w->k->inv[i];
        if (centres(w->n)) mean = mean_of(dv, d);
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

/* From the mean, so that nothing cancels where it is large. */
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

static void column_back_span(void *self, const span *s)
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
            const double away = w->k->batch ? w->s2[j] + u * w->s1[j] : 0;
            dx[j] = gain_at(w->n, j) * inv[j] * (dy[j] - away) + (plus ? plus[j] : 0);
        }
        row_done(w->y, i, dx);
    }
}

static void move(const pare_weight *stat, size_t j, double to, double by)
{
    if (stat->dtype == PARE_F64)
        ((double *)stat->data)[j] = (1 - by) * ((double *)stat->data)[j] + by * to;
    else
        ((float *)stat->data)[j] = (float)((1 - by) * pare_weight_at(stat, j) + by * to);
}

/* f32 has one function for all of it. */
static pare_status run(pare_tape *t, norm_job *w, norm_op op, size_t nsums, double *total)
{
    static span_fn *const in_f64[] = {row_span, row_back_span, sum_span,         squares_span,
                                      NULL,     column_span,   column_sums_span, column_back_span};
    w->op = op;
    /* room for f32 sums that are filled up to whole lanes */
    return tape_spans(t, w->x->n, w->x->d + 16, nsums, total,
                      w->x->t == PARE_F32 ? norm_f32() : in_f64[op], w);
}

static void narrow(float *to, const double *from, size_t d)
{
    for (size_t j = 0; to && j < d; j++) to[j] = (float)from[j];
}

/* Of every column its mean and the sum of the squared distances from it. */
static pare_status mean_and_squares(pare_tape *t, norm_job *w, double *mean, double *squares)
{
    const size_t n = w->x->n, d = w->x->d;
    const pare_status st = run(t, w, NORM_SUM, d, mean);
    if (st) return st;
    for (size_t j = 0; j < d; j++) mean[j] /= (double)n;
    return run(t, w, NORM_SQUARES, d, squares);
}

/* The same in f32. The sums of the spans differ among themselves: sum^2 / rows of each, less that
 * of all, is what the spans' means are away from the mean. */
static pare_status mean_and_squares_f32(pare_tape *t, norm_job *w, double *mean, double *squares)
{
    const size_t n = w->x->n, d = w->x->d;
    const stack_mark mark = stack_top(&t->stack);
    double *const sum = stack_alloc(&t->stack, 3 * d, sizeof *sum);
    const pare_status st = sum ? run(t, w, NORM_MOMENTS, 3 * d, sum) : pare_no_memory(t->err);
    for (size_t j = 0; !st && j < d; j++) {
        mean[j] = sum[j] / (double)n;
        const double apart = sum[2 * d + j] - sum[j] * mean[j];
        squares[j] = sum[d + j] + (apart <= 0 ? 0 : apart); /* a nan stays one */
    }
    stack_reset(&t->stack, mark);
    return st;
}

/* Mean and 1 / sqrt(var + eps) of every column: of the batch, or the running ones. */
static pare_status batch_figures(pare_tape *t, norm_job *w)
{
    const size_t n = w->x->n, d = w->x->d;
    double *const mean = w->k->mean, *const inv = w->k->inv;
    pare_status st;
    for (size_t j = 0; !w->k->batch && j < d; j++) {
        mean[j] = pare_weight_at(&w->n->mean, j);
        inv[j] = 1 / sqrt(pare_weight_at(&w->n->var, j) + w->n->eps);
    }
    if (!w->k->batch) return PARE_OK;
    st = w->x->t == PARE_F32 ? mean_and_squares_f32(t, w, mean, inv)
                             : mean_and_squares(t, w, mean, inv);
    if (st) return st;
    for (size_t j = 0; j < d; j++) {
        const double squares = inv[j];
        inv[j] = 1 / sqrt(squares / (double)n + w->n->eps);
        if (!(inv[j] <= 1e300)) inv[j] = 0; /* eps = 0 and a constant column */
        move(&w->n->mean, j, mean[j], t->mode.momentum);
        move(&w->n->var, j, squares / (double)(n > 1 ? n - 1 : 1), t->mode.momentum);
    }
    return PARE_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* f32 columns of a batch norm: four figures each, filled up to whole lanes. */
static pare_status columns_f32(pare_tape *t, norm_job *w)
{
    const size_t d = w->x->d;
    if (w->x->t != PARE_F32 || w->n->kind != PARE_NORM_BATCH) return PARE_OK;
    float *const v = stack_alloc(&t->stack, 4 * d, sizeof *v);
    if (!v) return pare_no_memory(t->err);
    w->mean = v;
    w->by = v + d;
    w->shift = v + 2 * d;
    w->lean = v + 3 * d;
    return PARE_OK;
}

/* y = (x - mean) by + shift */
static void there_f32(norm_job *w)
{
    for (size_t j = 0; w->mean && j < w->x->d; j++) {
        w->mean[j] = (float)w->k->mean[j];
        w->by[j] = (float)(w->k->inv[j] * gain_at(w->n, j));
        w->shift[j] = pare_has(&w->n->bias) ? (float)pare_weight_at(&w->n->bias, j) : 0;
    }
}

/* dx = (dy - shift - (x - mean) lean) by */
static void back_f32(norm_job *w)
{
    const bool batch = w->k->batch;
    for (size_t j = 0; w->mean && j < w->x->d; j++) {
        w->by[j] = (float)(w->k->inv[j] * gain_at(w->n, j));
        w->shift[j] = batch ? (float)w->s2[j] : 0;
        w->lean[j] = batch ? (float)(w->s1[j] * w->k->inv[j]) : 0;
    }
}

pare_status tape_norm(pare_tape *t, norm_saved *k, rows *y, const rows *x, const pare_norm *n)
{
    const bool columns = n->kind == PARE_NORM_BATCH;
    const size_t figures = columns ? x->d : x->n;
    norm_job w = {.k = k, .n = n, .x = &k->x, .y = y};
    pare_status st;
    k->x = *y = *x;
    if (n->kind == PARE_NORM_NONE) return PARE_OK;
    k->batch = columns && t->mode.training;
    k->mean = stack_alloc(&t->stack, figures, sizeof *k->mean);
    k->inv = stack_alloc(&t->stack, figures, sizeof *k->inv);
    if (!k->mean || !k->inv) return pare_no_memory(t->err);
    if ((st = tape_new_rows(t, y, x->n, x->d)) || (st = columns_f32(t, &w)) ||
        (columns && (st = batch_figures(t, &w))))
        return st;
    there_f32(&w);
    return run(t, &w, columns ? NORM_COLUMNS : NORM_ROWS, 0, NULL);
}

static pare_status row_back(pare_tape *t, norm_job *w, double *sum)
{
    const size_t d = w->x->d;
    const pare_status st = run(t, w, NORM_ROWS_BACKWARD, 3 * d, sum);
    if (!st && pare_has(&w->n->offset)) tape_grad_add(t, &w->n->offset, sum + 2 * d);
    return st;
}

static pare_status column_back(pare_tape *t, norm_job *w, double *sum)
{
    const size_t d = w->x->d;
    double *const means = sum + 2 * d;
    pare_status st = columns_f32(t, w);
    if (st) return st;
    narrow(w->mean, w->k->mean, d);
    if ((st = run(t, w, NORM_SUMS_BACKWARD, 2 * d, sum))) return st;
    for (size_t j = 0; j < 2 * d; j++) means[j] = sum[j] / (double)w->x->n;
    w->s1 = means;
    w->s2 = means + d;
    back_f32(w);
    return run(t, w, NORM_COLUMNS_BACKWARD, 0, NULL);
}

pare_status tape_norm_backward(pare_tape *t, const norm_saved *k, rows *dx, const rows *dy,
                               const rows *plus, const pare_norm *n)
{
    if (n->kind == PARE_NORM_NONE) return tape_sum(t, dx, dy, plus);
    const stack_mark mark = stack_top(&t->stack);
    const size_t d = dx->d;
    norm_job w = {.k = k, .n = n, .x = &k->x, .dy = dy, .plus = plus, .y = dx};
    double *const sum = stack_alloc(&t->stack, 4 * d, sizeof *sum);
    if (!sum) return pare_no_memory(t->err);
    const pare_status st =
        n->kind == PARE_NORM_BATCH ? column_back(t, &w, sum) : row_back(t, &w, sum);
    if (!st && pare_has(&n->gain)) tape_grad_add(t, &n->gain, sum);
    if (!st && pare_has(&n->bias)) tape_grad_add(t, &n->bias, sum + d);
    stack_reset(&t->stack, mark);
    return st;
}
