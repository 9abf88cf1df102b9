/* The order of the rows. Attention over a graph is faster where neighbours lie close together, and
 * where nothing else looks at the order, the tape has one of its own: rows are put into it as they
 * come in, and put back as they go out. */
#include "tape.h"
#include <string.h>

bool tape_can_reorder(const pare_model *m)
{
    return m->pattern.kind == PARE_GRAPH && m->stem.pos.kind == PARE_POS_NONE &&
           m->top.pool == PARE_POOL_NONE;
}

typedef struct order_job {
    const pare_tape *t;
    rows *y;
    const rows *x;
} order_job;

static void take_span(void *self, const span *s)
{
    const order_job *const w = self;
    const size_t bytes = w->y->d * rows_size(w->y);
    for (size_t i = s->first; i < s->end; i++)
        memcpy(rows_at(w->y, i, 0), rows_at(w->x, tape_input_row(w->t, i), 0), bytes);
}

pare_status tape_from_input_order(pare_tape *t, rows *y, const rows *x)
{
    *y = *x;
    if (!t->order) return PARE_OK;
    order_job w = {t, y, x};
    const pare_status st = tape_new_rows(t, y, x->n, x->d);
    return st ? st : tape_spans(t, x->n, 0, 0, NULL, take_span, &w);
}

void tape_copy_to_input_order(const pare_tape *t, rows *y, const rows *x)
{
    const size_t bytes = y->d * rows_size(y);
    for (size_t i = 0; i < x->n; i++)
        memcpy(rows_at(y, tape_input_row(t, i), 0), rows_at(x, i, 0), bytes);
}

pare_status tape_to_input_order(pare_tape *t, rows *y, const rows *x)
{
    *y = *x;
    if (!t->order) return PARE_OK;
    const pare_status st = tape_new_rows(t, y, x->n, x->d);
    if (!st) tape_copy_to_input_order(t, y, x);
    return st;
}
