/* tape_rows.c - steps over rows: spans, matrix products, sums. */
#include "linalg/matrix.h"
#include "tape.h"
#include <string.h>

void *tape_alloc(pare_tape *t, size_t count, size_t size)
{
    if (t->work.st) return NULL;
    void *const p = stack_alloc(&t->stack, count, size);
    if (!p) t->work.st = pare_no_memory(t->work.err);
    return p;
}

rows tape_new_rows(pare_tape *t, size_t n, size_t d)
{
    const pare_dtype type = t->p->dtype;
    size_t count;
    if (!pare_mul(&count, n, d)) count = SIZE_MAX; /* more than there is memory */
    return (rows){type, n, d, d, tape_alloc(t, count, pare_dtype_size(type))};
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
    void *const g = t->work.st ? NULL : tape_grad(t, w);
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
    void *buffers;
    double *sums;
} span_job;

static void one_span(void *self, size_t b)
{
    const span_job *const w = self;
    const size_t first = b * SPAN, end = first + SPAN < w->n ? first + SPAN : w->n;
    span s = {.first = first, .end = end, .sum = w->sums + b * w->nsums};
    for (size_t r = 0; r < SPAN_ROWS; r++) {
        void *const buffer = (char *)w->buffers + (b * SPAN_ROWS + r) * w->width * sizeof(double);
        s.row[r] = buffer;
        s.row32[r] = buffer;
    }
    w->fn(w->job, &s);
}

void tape_spans(pare_tape *t, size_t n, size_t width, size_t nsums, double *total, span_fn *fn,
                void *job)
{
    const size_t spans = (n + SPAN - 1) / SPAN;
    const stack_mark mark = stack_top(&t->stack);
    span_job w = {.fn = fn, .job = job, .n = n, .width = width, .nsums = nsums};
    w.buffers = tape_alloc(t, spans * SPAN_ROWS, width * sizeof(double));
    w.sums = tape_alloc(t, spans, nsums * sizeof *w.sums);
    if (t->work.st) return;
    memset(w.sums, 0, spans * nsums * sizeof *w.sums);
    pare_parallel(t->work.exec, spans, one_span, &w);
    for (size_t j = 0; j < nsums; j++) total[j] = 0;
    for (size_t b = 0; b < spans; b++)
        for (size_t j = 0; j < nsums; j++) total[j] += w.sums[b * nsums + j];
    stack_reset(&t->stack, mark);
}

const double *row_read(const rows *r, size_t i, double *buffer)
{
    if (r->t == PARE_F64) return rows_at(r, i, 0);
    const float *const from = rows_at(r, i, 0);
    for (size_t j = 0; j < r->d; j++) buffer[j] = (double)from[j];
    return buffer;
}

double *row_write(const rows *r, size_t i, double *buffer)
{
    return r->t == PARE_F64 ? rows_at(r, i, 0) : buffer;
}

void row_done(const rows *r, size_t i, const double *buffer)
{
    if (r->t == PARE_F64) return;
    float *const to = rows_at(r, i, 0);
    for (size_t j = 0; j < r->d; j++) to[j] = (float)buffer[j];
}

/* ---- products -------------------------------------------------------------------------------- */

void tape_dense_into(pare_tape *t, rows *y, const rows *x, const pare_weight *w,
                     const pare_weight *b)
{
    pare_work *const k = &t->work;
    if (k->st) return;
    PARE_ASSERT(y->n == x->n && y->d == w->rows && x->d == w->cols);
    if (y->t == PARE_F32) {
        pare_mat32 out = {y->n, y->d, y->ld, y->v};
        const pare_mat32 in = {x->n, x->d, x->ld, x->v};
        k->st = pare_dense_f32(&out, &in, w, b, k->exec, k->err);
    } else {
        pare_mat out = {y->n, y->d, y->ld, y->v};
        const pare_mat in = {x->n, x->d, x->ld, x->v};
        k->st = pare_dense_f64(&out, &in, w, b, k->exec, k->err);
    }
}

rows tape_dense(pare_tape *t, const rows *x, const pare_weight *w, const pare_weight *b)
{
    rows y = tape_new_rows(t, x->n, w->rows);
    tape_dense_into(t, &y, x, w, b);
    return y;
}

void tape_dense_backward_to(pare_tape *t, rows *dx, bool add, const rows *dy, const rows *x,
                            const pare_weight *w, void *dw, void *db)
{
    pare_work *const k = &t->work;
    void *const to = dx ? dx->v : NULL;
    const size_t ld = dx ? dx->ld : 0;
    if (k->st) return;
    if (dy->t == PARE_F32)
        k->st = pare_dense_backward_f32(to, ld, add, dw, db, dy->v, dy->ld, x->v, x->ld, x->n, w,
                                        k->exec, k->err);
    else
        k->st = pare_dense_backward_f64(to, ld, add, dw, db, dy->v, dy->ld, x->v, x->ld, x->n, w,
                                        k->exec, k->err);
}

void tape_dense_backward_into(pare_tape *t, rows *dx, bool add, const rows *dy, const rows *x,
                              const pare_weight *w, const pare_weight *b)
{
    tape_dense_backward_to(t, dx, add, dy, x, w, tape_grad(t, w),
                           b && pare_has(b) ? tape_grad(t, b) : NULL);
}

rows tape_dense_backward(pare_tape *t, const rows *dy, const rows *x, const pare_weight *w,
                         const pare_weight *b)
{
    rows dx = tape_new_rows(t, dy->n, w->cols);
    tape_dense_backward_into(t, &dx, false, dy, x, w, b);
    return dx;
}

/* ---- sums ------------------------------------------------------------------------------------ */

void tape_sum(pare_tape *t, rows *y, const rows *x, const rows *plus)
{
    static const dropout_mask nothing = {0};
    PARE_ASSERT(y->n == x->n && y->d == x->d && (!plus || plus->d == y->d));
    tape_dropout(t, y, x, &nothing, plus);
}

static void column_sums_span(void *self, const span *s)
{
    const rows *const x = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const v = row_read(x, i, s->row[0]);
        for (size_t j = 0; j < x->d; j++) s->sum[j] += v[j];
    }
}

void tape_bias_backward(pare_tape *t, const pare_weight *b, const rows *dy)
{
    if (!pare_has(b) || !tape_grad(t, b)) return;
    const stack_mark mark = stack_top(&t->stack);
    double *const sum = tape_alloc(t, dy->d, sizeof *sum);
    tape_spans(t, dy->n, dy->d, dy->d, sum, column_sums_span, (void *)dy);
    tape_grad_add(t, b, sum);
    stack_reset(&t->stack, mark);
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

void tape_fill(pare_tape *t, rows *y, const pare_weight *b)
{
    fill_job w = {y, b};
    tape_spans(t, y->n, 0, 0, NULL, fill_span, &w);
}

void tape_zero(pare_tape *t, rows *y)
{
    static const pare_weight absent = {0};
    tape_fill(t, y, &absent);
}
