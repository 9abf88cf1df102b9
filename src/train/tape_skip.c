/* tape_skip.c - skip connections: y = dropout(branch) + skip(x), where skip(x) is nothing, x, w * x
 * entry by entry, or a dense map of x. */
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
static void diagonal_backward_span(void *self, const span *s)
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

void tape_skip(pare_tape *t, rows *y, const rows *branch, const dropout_mask *k, const rows *x,
               const pare_skip *s)
{
    if (s->kind == PARE_SKIP_NONE || s->kind == PARE_SKIP_IDENTITY) {
        tape_dropout(t, y, branch, k, s->kind == PARE_SKIP_NONE ? NULL : x);
    } else if (s->kind == PARE_SKIP_DIAGONAL) {
        diagonal_job g = {.to = y, .x = x, .w = &s->w};
        tape_dropout(t, y, branch, k, NULL);
        tape_spans(t, y->n, y->d, 0, NULL, diagonal_span, &g);
    } else {
        const stack_mark mark = stack_top(&t->stack);
        const rows mapped = tape_dense(t, x, &s->w, NULL);
        tape_dropout(t, y, branch, k, &mapped);
        stack_reset(&t->stack, mark);
    }
}

rows tape_skip_backward(pare_tape *t, const rows *dy, const rows *x, const pare_skip *s)
{
    if (s->kind == PARE_SKIP_IDENTITY) return *dy;
    if (s->kind != PARE_SKIP_DIAGONAL) return tape_dense_backward(t, dy, x, &s->w, NULL);
    rows dx = tape_new_rows(t, x->n, x->d);
    diagonal_job g = {.to = &dx, .x = x, .dy = dy, .w = &s->w};
    double *const sum = tape_alloc(t, dx.d, sizeof *sum);
    tape_spans(t, dx.n, dx.d, dx.d, sum, diagonal_backward_span, &g);
    tape_grad_add(t, &s->w, sum);
    return dx;
}
