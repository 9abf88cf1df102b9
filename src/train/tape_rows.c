/* Steps over rows: spans, products, sums. */
#include "tape.h"
#include <string.h>

pare_status tape_new_rows(pare_tape *t, rows *out, size_t n, size_t d)
{
    size_t count;
    *out = (rows){t->p->dtype, n, d, d, NULL};
    if (pare_mul(&count, n, d)) out->v = stack_alloc(&t->stack, count, pare_dtype_size(out->t));
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
    void *room;
    double *sums;
} span_job;

static void one_span(void *self, size_t b)
{
    const span_job *const w = self;
    const size_t first = b * SPAN, end = first + SPAN < w->n ? first + SPAN : w->n;
    span s = {.first = first, .end = end, .sum = w->sums + b * w->nsums};
    for (size_t r = 0; r < SPAN_ROWS; r++) {
        void *const room = (char *)w->room + (b * SPAN_ROWS + r) * w->width * sizeof(double);
        s.row[r] = room;
        s.row32[r] = room;
    }
    w->fn(w->job, &s);
}

pare_status tape_spans(pare_tape *t, size_t n, size_t width, size_t nsums, double *total,
                       span_fn *fn, void *job)
{
    const size_t spans = (n + SPAN - 1) / SPAN;
    const stack_mark mark = stack_top(&t->stack);
    span_job w = {.fn = fn, .job = job, .n = n, .width = width, .nsums = nsums};
    w.room = stack_alloc(&t->stack, spans * SPAN_ROWS, width * sizeof(double));
    w.sums = stack_alloc(&t->stack, spans, nsums * sizeof *w.sums);
    if (!w.room || !w.sums) return pare_no_memory(t->err);
    memset(w.sums, 0, spans * nsums * sizeof *w.sums);
    pare_parallel(t->exec, spans, one_span, &w);
    for (size_t j = 0; j < nsums; j++) total[j] = 0;
    for (size_t b = 0; b < spans; b++)
        for (size_t j = 0; j < nsums; j++) total[j] += w.sums[b * nsums + j];
    stack_reset(&t->stack, mark);
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

pare_status tape_dense_backward(pare_tape *t, rows *dx, bool add, const rows *dy, const rows *x,
                                const pare_weight *w, const pare_weight *b)
{
    return tape_dense_backward_to(t, dx, add, dy, x, w, tape_grad(t, w),
                                  b && pare_has(b) ? tape_grad(t, b) : NULL);
}

pare_status tape_dense_backward_to(pare_tape *t, rows *dx, bool add, const rows *dy, const rows *x,
                                   const pare_weight *w, void *dw, void *db)
{
    void *const to = dx ? dx->v : NULL;
    const size_t ld = dx ? dx->ld : 0;
    if (dy->t == PARE_F32)
        return pare_dense_backward_f32(to, ld, add, dw, db, dy->v, dy->ld, x->v, x->ld, x->n, w,
                                       t->exec, t->err);
    return pare_dense_backward_f64(to, ld, add, dw, db, dy->v, dy->ld, x->v, x->ld, x->n, w,
                                   t->exec, t->err);
}

/* ---- sums ------------------------------------------------------------------------------------ */

pare_status tape_sum(pare_tape *t, rows *y, const rows *x, const rows *plus)
{
    static const dropout_mask nothing = {0};
    PARE_ASSERT(y->n == x->n && y->d == x->d && (!plus || plus->d == y->d));
    return tape_dropout(t, y, x, &nothing, plus);
}

static void columns_span(void *self, const span *s)
{
    const rows *const x = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const v = row_read(x, i, s->row[0]);
        for (size_t j = 0; j < x->d; j++) s->sum[j] += v[j];
    }
}

pare_status tape_bias_backward(pare_tape *t, const pare_weight *b, const rows *dy)
{
    if (!pare_has(b) || !tape_grad(t, b)) return PARE_OK;
    const stack_mark mark = stack_top(&t->stack);
    double *const sum = stack_alloc(&t->stack, dy->d, sizeof *sum);
    if (!sum) return pare_no_memory(t->err);
    const pare_status st = tape_spans(t, dy->n, dy->d, dy->d, sum, columns_span, (void *)dy);
    if (!st) tape_grad_add(t, b, sum);
    stack_reset(&t->stack, mark);
    return st;
}

typedef struct fill_job {
    rows *y;
    const pare_weight *b;
} fill_job;

static void fill_span(void *self, const span *s)
{
    const fill_job *const w = self;
    const size_t bytes = w->y->d * rows_size(w->y);
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

pare_status tape_zero(pare_tape *t, rows *y)
{
    static const pare_weight absent = {0};
    return tape_fill(t, y, &absent);
}
