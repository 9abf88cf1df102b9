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
 * Its running statistics move towards the mean and the unbiased variance.
 *
 * In f32 sums over a row have 16 partial sums, and what is done once per row is f64; sums over the
 * rows of a span are f32 (f64 where a mean comes of them), sums over spans f64. */
#include "simd_lanes.h"
#include <math.h>

typedef enum norm_op {
    NORM_ROWS,            /* forward, row by row */
    NORM_ROWS_BACKWARD,   /* sums: gain, bias, offset */
    NORM_SUM,             /* batch norm, f64: column sums, */
    NORM_SQUARES,         /* then squared distances from the mean; */
    NORM_MOMENTS,         /* f32: both at once (column_moments) */
    NORM_COLUMNS,         /* forward */
    NORM_SUMS_BACKWARD,   /* sums: dy u, dy */
    NORM_COLUMNS_BACKWARD /* dx */
} norm_op;

/* In f32 a batch norm is, per column,
 *
 *     y  = (x - mean) scale + shift
 *     dx = (dy - shift - (x - mean) coupling) scale */
typedef struct norm_job {
    norm_op op;
    const norm_saved *k;
    const pare_norm *n;
    const rows *x, *dy, *plus;
    rows *y;                                /* backward: dx */
    const double *mean_dyu, *mean_dy;       /* batch norm, backward: over the rows */
    float *mean, *scale, *shift, *coupling; /* batch norm in f32; else NULL */
} norm_job;

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

static double bias_at(const pare_norm *n, size_t j)
{
    return pare_has(&n->bias) ? pare_weight_at(&n->bias, j) : 0;
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
        for (size_t j = 0; j < w->x->d; j++) y[j] = u[j] * gain_at(w->n, j) + bias_at(w->n, j);
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

/* A batch norm, by columns. Squares: distances from the mean, so that nothing cancels where it is
 * large. */
static void column_span(void *self, const span *s)
{
    const norm_job *const w = self;
    const size_t d = w->x->d;
    const double *const mean = w->k->mean, *const inv = w->k->inv;
    const bool forward = w->op == NORM_COLUMNS, backward = w->op == NORM_COLUMNS_BACKWARD;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(w->x, i, s->row[0]);
        const double *const dy = w->dy ? row_read(w->dy, i, s->row[1]) : NULL;
        const double *const plus = w->plus ? row_read(w->plus, i, s->row[2]) : NULL;
        double *const y = forward || backward ? row_write(w->y, i, s->row[3]) : NULL;
        for (size_t j = 0; j < d; j++) {
            if (w->op == NORM_SUM) {
                s->sum[j] += x[j];
            } else if (w->op == NORM_SQUARES) {
                s->sum[j] += (x[j] - mean[j]) * (x[j] - mean[j]);
            } else if (forward) {
                y[j] = (x[j] - mean[j]) * inv[j] * gain_at(w->n, j) + bias_at(w->n, j);
            } else if (backward) {
                const double u = (x[j] - mean[j]) * inv[j];
                const double centered = w->k->batch ? w->mean_dy[j] + u * w->mean_dyu[j] : 0;
                y[j] = gain_at(w->n, j) * inv[j] * (dy[j] - centered) + (plus ? plus[j] : 0);
            } else { /* NORM_SUMS_BACKWARD */
                s->sum[j] += dy[j] * (x[j] - mean[j]) * inv[j];
                s->sum[d + j] += dy[j];
            }
        }
        if (y) row_done(w->y, i, y);
    }
}

/* Moments of a row in the backward pass. */
typedef struct row_moments {
    float mean, inv, s1, s2; /* s1: mean of dy gain (0: not centered), s2: of dy gain u */
} row_moments;

/* ---- f32, row by row -------------------------------------------------------------------------- */

PARE_INLINE float row_mean(const float *x, const float *offset, size_t d)
{
    lanes part = {0}, v, o;
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        part += v + o;
    }
    return lanes_total(&part) / (float)d;
}

PARE_INLINE float row_squares(const float *x, const float *offset, float mean, size_t d)
{
    lanes part = {0}, v, o;
    float rest = 0;
    size_t j = 0;
    for (; j + LANES <= d; j += LANES) {
        lanes_load(&v, x, j, LANES, 0);
        lanes_load(&o, offset, j, LANES, 0);
        v = v + o - mean;
        part += v * v;
    }
    for (; j < d; j++) {
        const float c = x[j] + (offset ? offset[j] : 0) - mean;
        rest += c * c;
    }
    return lanes_total(&part) + rest;
}

PARE_INLINE void scale_row(float *y, const float *x, float mean, float inv, const float *offset,
                           const float *gain, const float *bias, size_t d)
{
    lanes v, o, g, b;
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        lanes_load(&g, gain, j, n, 1);
        lanes_load(&b, bias, j, n, 0);
        v = (v + o - mean) * inv * g + b;
        lanes_store(y, &v, j, n);
    }
}

PARE_INLINE void norm_rows(const norm_job *w, const span *s)
{
    const pare_norm *const n = w->n;
    const float *const offset = n->offset.data, *const gain = n->gain.data;
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        const float mean = centers(n) ? row_mean(x, offset, d) : 0;
        double deviation = 1;
        if (divides(n)) {
            const double squares = (double)row_squares(x, offset, mean, d);
            deviation = sqrt((squares + n->shift) / n->divisor + n->eps);
        }
        w->k->mean[i] = (double)mean;
        w->k->inv[i] = deviation > 0 ? 1 / deviation : 0;
        scale_row(rows_at(w->y, i, 0), x, mean, (float)w->k->inv[i], offset, gain, n->bias.data, d);
    }
}

/* Adds this row to the sums of gain and bias, and finds its own. */
PARE_INLINE void row_backward_sums(row_moments *f, float *dgain, float *dbias, const float *x,
                                   const float *dy, const float *offset, const float *gain,
                                   size_t d)
{
    lanes p1 = {0}, p2 = {0};
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes v, o, e, g;
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        lanes_load(&e, dy, j, n, 0); /* 0 where it is filled up: the sums do not see it */
        lanes_load(&g, gain, j, n, 1);
        const lanes u = (v + o - f->mean) * f->inv, q = e * g;
        *(lanes_unaligned *)(dgain + j) += e * u;
        *(lanes_unaligned *)(dbias + j) += e;
        p1 += q;
        p2 += q * u;
    }
    f->s1 = lanes_total(&p1);
    f->s2 = lanes_total(&p2);
}

PARE_INLINE void row_backward(float *dx, const row_moments *f, float *doffset, const float *x,
                              const float *dy, const float *plus, const float *offset,
                              const float *gain, size_t d)
{
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes v, o, e, g, p;
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        lanes_load(&e, dy, j, n, 0);
        lanes_load(&g, gain, j, n, 1);
        lanes_load(&p, plus, j, n, 0);
        v = (e * g - f->s1 - (v + o - f->mean) * f->inv * f->s2) * f->inv;
        if (offset)
            for (size_t l = 0; l < n; l++) doffset[j + l] += v[l];
        v += p;
        lanes_store(dx, &v, j, n);
    }
}

PARE_INLINE void norm_rows_backward(const norm_job *w, const span *s)
{
    const pare_norm *const n = w->n;
    const float *const offset = n->offset.data, *const gain = n->gain.data;
    const size_t d = w->x->d;
    float *const sum[3] = {s->row32[0], s->row32[1], s->row32[2]};
    for (size_t k = 0; k < 3; k++) memset(sum[k], 0, (d + LANES) * sizeof(float));
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const dy = rows_at(w->dy, i, 0);
        const float *const plus = w->plus ? rows_at(w->plus, i, 0) : NULL;
        row_moments f = {(float)w->k->mean[i], (float)w->k->inv[i], 0, 0};
        row_backward_sums(&f, sum[0], sum[1], x, dy, offset, gain, d);
        f.s1 = centers(n) ? f.s1 / (float)d : 0;
        f.s2 = divides(n) ? (float)((double)f.s2 / n->divisor) : 0;
        row_backward(rows_at(w->y, i, 0), &f, sum[2], x, dy, plus, offset, gain, d);
    }
    for (size_t k = 0; k < 3; k++) lanes_widen(s->sum + k * d, sum[k], d);
}

/* ---- f32, batch norm: by columns -------------------------------------------------------------- */

/* The n columns from j on of a row; n is known where this is inlined, unless they are the last. */
PARE_INLINE void sum_chunk(double *sum, const float *x, size_t j, size_t n)
{
    lanes v;
    lanes_load(&v, x, j, n, 0);
    *(lanes_f64 *)(sum + j) += __builtin_convertvector(v, lanes_f64);
}

PARE_INLINE void squares_chunk(float *sum, const float *x, const float *mean, size_t j, size_t n)
{
    lanes v, m;
    lanes_load(&v, x, j, n, 0);
    lanes_load(&m, mean, j, n, 0);
    v -= m;
    *(lanes_unaligned *)(sum + j) += v * v;
}

/* Of the rows of a span: their sums, their squared distances from the span's own mean, so that
 * nothing cancels where that is large, and sum^2 / rows, from which the distances from the mean of
 * all rows follow. The second pass finds the rows in the cache. */
PARE_INLINE void column_moments_f32(const norm_job *w, const span *s)
{
    const size_t d = w->x->d, whole = d / LANES * LANES;
    const double count = (double)(s->end - s->first);
    double *const sum = s->row[0];
    float *const squares = s->row32[1], *const mean = s->row32[2];
    memset(sum, 0, (d + LANES) * sizeof *sum);
    memset(squares, 0, (d + LANES) * sizeof *squares);
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        for (size_t j = 0; j < whole; j += LANES) sum_chunk(sum, x, j, LANES);
        if (whole < d) sum_chunk(sum, x, whole, d - whole);
    }
    for (size_t j = 0; j < d; j++) mean[j] = (float)(sum[j] / count);
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        for (size_t j = 0; j < whole; j += LANES) squares_chunk(squares, x, mean, j, LANES);
        if (whole < d) squares_chunk(squares, x, mean, whole, d - whole);
    }
    for (size_t j = 0; j < d; j++) {
        s->sum[j] = sum[j];
        s->sum[d + j] = (double)squares[j];
        s->sum[2 * d + j] = sum[j] * sum[j] / count;
    }
}

/* What a pass over the columns reads and writes of one row. */
typedef struct column_row {
    const float *x, *dy, *plus;
    float *y, *s1, *s2; /* sums over the rows: of dy (x - mean), of dy */
} column_row;

/* The three passes (NORM_COLUMNS, NORM_SUMS_BACKWARD, NORM_COLUMNS_BACKWARD), for the n columns
 * from j on; op is known where this is inlined. */
PARE_INLINE void column_chunk(norm_op op, const norm_job *w, const column_row *r, size_t j,
                              size_t n)
{
    lanes v, m, a, b, e, c, p;
    lanes_load(&v, r->x, j, n, 0);
    lanes_load(&m, w->mean, j, n, 0);
    lanes_load(&e, r->dy, j, n, 0);
    if (op == NORM_SUMS_BACKWARD) {
        *(lanes_unaligned *)(r->s1 + j) += e * (v - m);
        *(lanes_unaligned *)(r->s2 + j) += e;
        return;
    }
    lanes_load(&a, w->scale, j, n, 0);
    lanes_load(&b, w->shift, j, n, 0);
    if (op == NORM_COLUMNS) {
        v = (v - m) * a + b;
    } else {
        lanes_load(&c, w->coupling, j, n, 0);
        lanes_load(&p, r->plus, j, n, 0);
        v = (e - b - (v - m) * c) * a + p;
    }
    lanes_store(r->y, &v, j, n);
}

PARE_INLINE void columns_of_rows(norm_op op, const norm_job *w, const span *s)
{
    const norm_job here = *w; /* a copy that no store can change */
    const size_t d = w->x->d;
    const bool sums = op == NORM_SUMS_BACKWARD;
    float *const s1 = s->row32[0], *const s2 = s->row32[1];
    if (sums) memset(s1, 0, (d + LANES) * sizeof *s1);
    if (sums) memset(s2, 0, (d + LANES) * sizeof *s2);
    for (size_t i = s->first; i < s->end; i++) {
        const column_row r = {.x = rows_at(w->x, i, 0),
                              .dy = op == NORM_COLUMNS ? NULL : rows_at(w->dy, i, 0),
                              .plus = w->plus ? rows_at(w->plus, i, 0) : NULL,
                              .y = sums ? NULL : rows_at(w->y, i, 0),
                              .s1 = s1,
                              .s2 = s2};
        size_t j = 0;
        for (; j + LANES <= d; j += LANES) column_chunk(op, &here, &r, j, LANES);
        if (j < d) column_chunk(op, &here, &r, j, d - j);
    }
    for (size_t j = 0; sums && j < d; j++) s->sum[j] = (double)s1[j] * w->k->inv[j];
    if (sums) lanes_widen(s->sum + d, s2, d);
}

/* ---- f32, chosen at run time ------------------------------------------------------------------ */

/* NORM_SUM and NORM_SQUARES are in f64 alone. */
PARE_INLINE void norm_any(const norm_job *w, const span *s)
{
    if (w->op == NORM_ROWS) norm_rows(w, s);
    if (w->op == NORM_ROWS_BACKWARD) norm_rows_backward(w, s);
    if (w->op == NORM_MOMENTS) column_moments_f32(w, s);
    if (w->op == NORM_COLUMNS) columns_of_rows(NORM_COLUMNS, w, s);
    if (w->op == NORM_SUMS_BACKWARD) columns_of_rows(NORM_SUMS_BACKWARD, w, s);
    if (w->op == NORM_COLUMNS_BACKWARD) columns_of_rows(NORM_COLUMNS_BACKWARD, w, s);
}

LANES_DISPATCH(norm_f32, norm_any)

/* ---- moments --------------------------------------------------------------------------------- */

/* One operation over all rows: f32 has one kernel for all. */
static void run_op(pare_tape *t, norm_job *w, norm_op op, size_t nsums, double *total)
{
    span_fn *const in_f64 = op == NORM_ROWS            ? row_span
                            : op == NORM_ROWS_BACKWARD ? row_backward_span
                                                       : column_span;
    w->op = op;
    /* + 16: f32 sums are padded to whole lanes */
    tape_spans(t, w->x->n, w->x->d + 16, nsums, total, w->x->t == PARE_F32 ? norm_f32() : in_f64,
               w);
}

static void update_running(const pare_weight *stat, size_t j, double to, double momentum)
{
    if (stat->dtype == PARE_F64)
        ((double *)stat->data)[j] = (1 - momentum) * ((double *)stat->data)[j] + momentum * to;
    else
        ((float *)stat->data)[j] =
            (float)((1 - momentum) * pare_weight_at(stat, j) + momentum * to);
}

/* Mean and 1 / sqrt(var + eps) of every column of the batch; moves the running ones.
 *
 * In f32 each span takes the squared distances from its own mean. For spans with n_s rows, sums S_s
 * and all rows with the sum S, what is missing is sum_s S_s^2 / n_s - S^2 / n. */
static void batch_statistics(pare_tape *t, norm_job *w)
{
    const size_t n = w->x->n, d = w->x->d;
    double *const mean = w->k->mean, *const inv = w->k->inv, *const squares = inv;
    if (w->x->t == PARE_F32) {
        const stack_mark mark = stack_top(&t->stack);
        double *const sum = tape_alloc(t, 3 * d, sizeof *sum);
        run_op(t, w, NORM_MOMENTS, 3 * d, sum);
        for (size_t j = 0; !t->work.st && j < d; j++) {
            mean[j] = sum[j] / (double)n;
            const double between = sum[2 * d + j] - sum[j] * mean[j];
            squares[j] = sum[d + j] + (between <= 0 ? 0 : between); /* a nan stays one */
        }
        stack_reset(&t->stack, mark);
    } else {
        run_op(t, w, NORM_SUM, d, mean);
        for (size_t j = 0; !t->work.st && j < d; j++) mean[j] /= (double)n;
        run_op(t, w, NORM_SQUARES, d, squares);
    }
    for (size_t j = 0; !t->work.st && j < d; j++) {
        const double sum = squares[j];
        inv[j] = 1 / sqrt(sum / (double)n + w->n->eps);
        if (!(inv[j] <= 1e300)) inv[j] = 0; /* eps = 0 and a constant column */
        update_running(&w->n->mean, j, mean[j], t->mode.momentum);
        update_running(&w->n->var, j, sum / (double)(n > 1 ? n - 1 : 1), t->mode.momentum);
    }
}

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
    if (k->batch) batch_statistics(t, &w);
    for (size_t j = 0; columns && !k->batch && !t->work.st && j < x->d; j++) { /* running ones */
        k->mean[j] = pare_weight_at(&n->mean, j);
        k->inv[j] = 1 / sqrt(pare_weight_at(&n->var, j) + n->eps);
    }
    for (size_t j = 0; w.mean && !t->work.st && j < x->d; j++) {
        w.mean[j] = (float)k->mean[j];
        w.scale[j] = (float)(k->inv[j] * gain_at(n, j));
        w.shift[j] = (float)bias_at(n, j);
    }
    run_op(t, &w, columns ? NORM_COLUMNS : NORM_ROWS, 0, NULL);
    return y;
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
    double *const sum = tape_alloc(t, 4 * d, sizeof *sum); /* first gradients of gain and bias */
    if (!sum) return;
    if (n->kind == PARE_NORM_BATCH) {
        double *const means = sum + 2 * d;
        alloc_columns_f32(t, &w);
        for (size_t j = 0; w.mean && j < d; j++) w.mean[j] = (float)k->mean[j];
        run_op(t, &w, NORM_SUMS_BACKWARD, 2 * d, sum);
        for (size_t j = 0; !t->work.st && j < 2 * d; j++) means[j] = sum[j] / (double)k->x.n;
        w.mean_dyu = means;
        w.mean_dy = means + d;
        for (size_t j = 0; w.mean && !t->work.st && j < d; j++) {
            w.scale[j] = (float)(k->inv[j] * gain_at(n, j));
            w.shift[j] = k->batch ? (float)w.mean_dy[j] : 0;
            w.coupling[j] = k->batch ? (float)(w.mean_dyu[j] * k->inv[j]) : 0;
        }
        run_op(t, &w, NORM_COLUMNS_BACKWARD, 0, NULL);
    } else {
        run_op(t, &w, NORM_ROWS_BACKWARD, 3 * d, sum);
        if (pare_has(&n->offset)) tape_grad_add(t, &n->offset, sum + 2 * d);
    }
    if (pare_has(&n->gain)) tape_grad_add(t, &n->gain, sum);
    if (pare_has(&n->bias)) tape_grad_add(t, &n->bias, sum + d);
    stack_reset(&t->stack, mark);
}
