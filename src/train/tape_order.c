/* tape_order.c - the order of the rows on the tape.
 *
 * Attention over a graph is faster where neighbors lie close together in memory. Where nothing else
 * depends on the order of the nodes, the tape has its own: rows are permuted as they come in, and
 * permuted back as they go out. */
#include "tape.h"
#include <string.h>

bool tape_can_reorder(const pare_model *m)
{
    return m->pattern.kind == PARE_GRAPH && m->embedding.pos.kind == PARE_POS_NONE &&
           m->head.pool == PARE_POOL_NONE;
}

typedef struct order_job {
    const pare_tape *t;
    rows *y;
    const rows *x;
} order_job;

static void permute_span(void *self, const span *s)
{
    const order_job *const w = self;
    const size_t bytes = w->y->d * rows_size(w->y);
    for (size_t i = s->first; i < s->end; i++)
        memcpy(rows_at(w->y, i, 0), rows_at(w->x, tape_input_row(w->t, i), 0), bytes);
}

rows tape_from_input_order(pare_tape *t, const rows *x)
{
    if (!t->order) return *x;
    rows y = tape_new_rows(t, x->n, x->d);
    order_job w = {t, &y, x};
    tape_spans(t, x->n, 0, 0, NULL, permute_span, &w);
    return y;
}

void tape_copy_to_input_order(const pare_tape *t, rows *y, const rows *x)
{
    const size_t bytes = y->d * rows_size(y);
    for (size_t i = 0; i < x->n; i++)
        memcpy(rows_at(y, tape_input_row(t, i), 0), rows_at(x, i, 0), bytes);
}

rows tape_to_input_order(pare_tape *t, const rows *x)
{
    if (!t->order) return *x;
    rows y = tape_new_rows(t, x->n, x->d);
    if (!t->work.st) tape_copy_to_input_order(t, &y, x);
    return y;
}
