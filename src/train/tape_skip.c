/* Skips: what goes around a branch. */
#include "tape.h"

typedef struct diagonal_job {
    rows *to;
    const rows *x, *dy;
    const pare_weight *w;
} diagonal_job;

/* to += w x */
static void diagonal_span(void *self, const span *s)
{
    const diagonal_job *const g = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(g->x, i, s->row[0]);
        const double *const was = row_read(g->to, i, s->row[1]);
        double *const y = row_write(g->to, i, s->row[1]);
        for (size_t j = 0; j < g->to->d; j++) y[j] = was[j] + pare_weight_at(g->w, j) * x[j];
        row_done(g->to, i, y);
    }
}

/* to = w dy; sum: of dy x. */
static void diagonal_back_span(void *self, const span *s)
{
    const diagonal_job *const g = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const x = row_read(g->x, i, s->row[0]);
        const double *const dy = row_read(g->dy, i, s->row[1]);
        double *const dx = row_write(g->to, i, s->row[2]);
        for (size_t j = 0; j < g->to->d; j++) {
            s->sum[j] += dy[j] * x[j];
            dx[j] = pare_weight_at(g->w, j) * dy[j];
        }
        row_done(g->to, i, dx);
    }
}

pare_status tape_skip(pare_tape *t, rows *y, const rows *branch, const dropout_mask *k,
                      const rows *x, const pare_skip *s)
{
    diagonal_job g = {.to = y, .x = x, .w = &s->w};
    pare_status st;
    if (s->kind == PARE_SKIP_NONE) return tape_dropout(t, y, branch, k, NULL);
    if (s->kind == PARE_SKIP_IDENTITY) return tape_dropout(t, y, branch, k, x);
    if (s->kind == PARE_SKIP_DIAGONAL) {
        st = tape_dropout(t, y, branch, k, NULL);
        return st ? st : tape_spans(t, y->n, y->d, 0, NULL, diagonal_span, &g);
    }
    const stack_mark mark = stack_top(&t->stack);
    rows mapped;
    st = tape_new_rows(t, &mapped, y->n, y->d);
    if (!st) st = tape_dense(t, &mapped, x, &s->w, NULL);
    if (!st) st = tape_dropout(t, y, branch, k, &mapped);
    stack_reset(&t->stack, mark);
    return st;
}

static pare_status diagonal_back(pare_tape *t, rows *dx, const rows *dy, const rows *x,
                                 const pare_weight *w)
{
    diagonal_job g = {.to = dx, .x = x, .dy = dy, .w = w};
    double *const sum = stack_alloc(&t->stack, dx->d, sizeof *sum);
    if (!sum) return pare_no_memory(t->err);
    const pare_status st = tape_spans(t, dx->n, dx->d, dx->d, sum, diagonal_back_span, &g);
    if (!st) tape_grad_add(t, w, sum);
    return st;
}

pare_status tape_skip_backward(pare_tape *t, rows *dx, bool *there, const rows *dy, const rows *x,
                               const pare_skip *s)
{
    *there = s->kind != PARE_SKIP_NONE;
    *dx = *dy;
    if (s->kind == PARE_SKIP_NONE || s->kind == PARE_SKIP_IDENTITY) return PARE_OK;
    const pare_status st = tape_new_rows(t, dx, x->n, x->d);
    if (st) return st;
    if (s->kind == PARE_SKIP_DIAGONAL) return diagonal_back(t, dx, dy, x, &s->w);
    return tape_dense_backward(t, dx, false, dy, x, &s->w, NULL);
}
