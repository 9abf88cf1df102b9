/* Steps over rows: spans, products, sums. */
#include "tape.h"
#include <string.h>

pare_status tape_new_rows(pare_tape *t, rows *out, size_t n, size_t d)
{
    size_t count;
    *out = (rows){t->p->dtype, n, d, d, NULL};
    if (pare_mul(&count, n, d)) out->v = store_get(&t->store, count, pare_dtype_size(out->t));
    return out->v ? PARE_OK : pare_no_memory(t->err);
}

/* ---- gradients by address ------------------------------------------------------------------ */

void *tape_grad(const pare_tape *t, const pare_weight *w)
{
    const uintptr_t values = (uintptr_t)t->p->values, at = (uintptr_t)w->data;
    const size_t bytes = t->p->count * pare_dtype_size(t->p->dtype);
    if (!t->grad || at < values || at - values >= bytes) return NULL;
    return (char *)t->grad + (at - values);
}

void tape_grad_add(const pare_tape *t, const pare_weight *w, const double *sum)
{
    void *const g = tape_grad(t, w);
    for (size_t i = 0; g && i < w->rows * w->cols; i++) {
        if (t->p->dtype == PARE_F64)
            ((double *)g)[i] += sum[i];
        else
            ((float *)g)[i] = (float)((double)((float *)g)[i] + sum[i]);
    }
}

/* ---- spans ---------------------------------------------------------------------------------- */

typedef struct span_job {
    span_fn *fn;
    void *job;
    size_t n, width, nsums;
    double *room, *sums;
} span_job;

static void one_span(void *self, size_t b)
{
    const span_job *const w = self;
    const size_t first = b * SPAN, end = first + SPAN < w->n ? first + SPAN : w->n;
    span s = {.first = first, .end = end, .sum = w->sums + b * w->nsums};
    for (size_t r = 0; r < SPAN_ROWS; r++) s.row[r] = w->room + (b * SPAN_ROWS + r) * w->width;
    w->fn(w->job, &s);
}

pare_status tape_spans(pare_tape *t, size_t n, size_t width, size_t nsums, double *total,
                       span_fn *fn, void *job)
{
    const size_t spans = (n + SPAN - 1) / SPAN;
    const store_mark mark = store_top(&t->store);
    span_job w = {.fn = fn, .job = job, .n = n, .width = width, .nsums = nsums};
    w.room = store_get(&t->store, spans * SPAN_ROWS, width * sizeof *w.room);
    w.sums = store_get(&t->store, spans, nsums * sizeof *w.sums);
    if (!w.room || !w.sums) return pare_no_memory(t->err);
    memset(w.sums, 0, spans * nsums * sizeof *w.sums);
    pare_parallel(t->exec, spans, one_span, &w);
    for (size_t j = 0; j < nsums; j++) total[j] = 0;
    for (size_t b = 0; b < spans; b++)
        for (size_t j = 0; j < nsums; j++) total[j] += w.sums[b * nsums + j];
    store_reset(&t->store, mark);
    return PARE_OK;
}

const double *row_read(const rows *r, size_t i, double *room)
{
    if (r->t == PARE_F64) return rows_at(r, i, 0);
    const float *const from = rows_at(r, i, 0);
    for (size_t j = 0; j < r->d; j++) room[j] = (double)from[j];
    return room;
}

double *row_write(const rows *r, size_t i, double *room)
{
    return r->t == PARE_F64 ? rows_at(r, i, 0) : room;
}

void row_done(const rows *r, size_t i, const double *room)
{
    if (r->t == PARE_F64) return;
    float *const to = rows_at(r, i, 0);
    for (size_t j = 0; j < r->d; j++) to[j] = (float)room[j];
}

/* ---- products -------------------------------------------------------------------------------- */

static pare_mat view64(const rows *r)
{
    return (pare_mat){r->n, r->d, r->ld, r->v};
}

pare_status tape_dense(pare_tape *t, rows *y, const rows *x, const pare_weight *w,
                       const pare_weight *b)
{
    PARE_ASSERT(y->n == x->n && y->d == w->rows && x->d == w->cols);
    if (y->t == PARE_F32)
        return pare_dense_f32(y->v, y->ld, x->v, x->ld, x->n, w, b, t->exec, t->err);
    pare_mat out = view64(y);
    const pare_mat in = view64(x);
    return pare_dense_f64(&out, &in, w, b, t->exec, t->err);
}

pare_status tape_dense_back(pare_tape *t, rows *dx, bool add, const rows *dy, const rows *x,
                            const pare_weight *w, const pare_weight *b)
{
    void *const dw = tape_grad(t, w), *const db = b && pare_has(b) ? tape_grad(t, b) : NULL;
    void *const to = dx ? dx->v : NULL;
    const size_t ld = dx ? dx->ld : 0;
    if (dy->t == PARE_F32)
        return pare_dense_backward_f32(to, ld, add, dw, db, dy->v, dy->ld, x->v, x->ld, x->n, w,
                                       t->exec, t->err);
    return pare_dense_backward_f64(to, ld, add, dw, db, dy->v, dy->ld, x->v, x->ld, x->n, w,
                                   t->exec, t->err);
}

/* ---- sums ------------------------------------------------------------------------------------ */

typedef struct sum_job {
    rows *y;
    const rows *x, *plus;
} sum_job;

static void sum_f32(float *y, const float *x, const float *plus, size_t d)
{
    for (size_t j = 0; j < d; j++) y[j] = x[j] + plus[j];
}

static void sum_f64(double *y, const double *x, const double *plus, size_t d)
{
    for (size_t j = 0; j < d; j++) y[j] = x[j] + plus[j];
}

static void sum_span(void *self, const span *s)
{
    const sum_job *const w = self;
    const size_t d = w->y->d, bytes = d * pare_dtype_size(w->y->t);
    for (size_t i = s->first; i < s->end; i++) {
        void *const y = rows_at(w->y, i, 0), *const x = rows_at(w->x, i, 0);
        if (!w->plus)
            memmove(y, x, bytes);
        else if (w->y->t == PARE_F32)
            sum_f32(y, x, rows_at(w->plus, i, 0), d);
        else
            sum_f64(y, x, rows_at(w->plus, i, 0), d);
    }
}

pare_status tape_sum(pare_tape *t, rows *y, const rows *x, const rows *plus)
{
    sum_job w = {y, x, plus};
    PARE_ASSERT(y->n == x->n && y->d == x->d && (!plus || plus->d == y->d));
    if (!plus && y->v == x->v) return PARE_OK;
    return tape_spans(t, y->n, 0, 0, NULL, sum_span, &w);
}

void tape_zero(rows *y)
{
    const size_t size = pare_dtype_size(y->t);
    for (size_t i = 0; i < y->n; i++) memset(rows_at(y, i, 0), 0, y->d * size);
}

static void columns_span(void *self, const span *s)
{
    const rows *const x = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const v = row_read(x, i, s->row[0]);
        for (size_t j = 0; j < x->d; j++) s->sum[j] += v[j];
    }
}

pare_status tape_bias_back(pare_tape *t, const pare_weight *b, const rows *dy)
{
    if (!pare_has(b) || !tape_grad(t, b)) return PARE_OK;
    const store_mark mark = store_top(&t->store);
    double *const sum = store_get(&t->store, dy->d, sizeof *sum);
    if (!sum) return pare_no_memory(t->err);
    const pare_status st = tape_spans(t, dy->n, dy->d, dy->d, sum, columns_span, (void *)dy);
    if (!st) tape_grad_add(t, b, sum);
    store_reset(&t->store, mark);
    return st;
}

typedef struct fill_job {
    rows *y;
    const pare_weight *b;
} fill_job;

static void fill_span(void *self, const span *s)
{
    const fill_job *const w = self;
    const size_t bytes = w->y->d * pare_dtype_size(w->y->t);
    for (size_t i = s->first; i < s->end; i++) {
        if (pare_has(w->b))
            memcpy(rows_at(w->y, i, 0), w->b->data, bytes);
        else
            memset(rows_at(w->y, i, 0), 0, bytes);
    }
}

pare_status tape_fill(pare_tape *t, rows *y, const pare_weight *b)
{
    fill_job w = {y, b};
    return tape_spans(t, y->n, 0, 0, NULL, fill_span, &w);
}
