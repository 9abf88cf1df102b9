/* tape_heads_provider.c - softmax heads whose attention somebody else computes
 * (pare_attention_provider): the tape projects, passes queries, keys and values on, and takes
 * outputs and gradients back. Heads that share keys or values add to the same gradients, so each
 * gradient goes into memory of its own first. */
#include "gradient.h"
#include "tape.h"
#include <string.h>

pare_status pare_tape_attend_by(pare_tape *t, const pare_attention_provider *by, pare_err *err)
{
    t->provider = NULL;
    if (by && t->m->pattern.kind == PARE_GRAPH)
        return pare_fail(err, PARE_ERR_INPUT,
                         "%s: the model attends over a graph, and training through an engine knows "
                         "full, causal and window attention",
                         by->id);
    for (size_t b = 0; by && b < t->m->nblocks; b++)
        if (t->m->blocks[b].attn.kind == PARE_ATTN_POLY)
            return pare_fail(err, PARE_ERR_INPUT,
                             "%s: block %zu attends by polynomials, which no engine computes",
                             by->id, b);
    t->provider = by;
    return PARE_OK;
}

/* Unit u: head u % nheads of sequence u / nheads. */
static pare_attend_job job_at(const pare_tape *t, const sublayer *s, size_t u)
{
    const attn_saved *const k = &s->attn_saved;
    const pare_head *const h = &s->attn->heads[u % s->attn->nheads];
    const size_t row = sequence_start(&t->layout, u / s->attn->nheads);
    return (pare_attend_job){.n = sequence_length(&t->layout, u / s->attn->nheads),
                             .dk = h->dk,
                             .dv = h->dv,
                             .q = rows_at(&k->q, row, h->q),
                             .k = rows_at(&k->k, row, h->k),
                             .v = rows_at(&k->v, row, h->v),
                             .ldq = k->q.ld,
                             .ldk = k->k.ld,
                             .ldv = k->v.ld,
                             .scale = h->scale,
                             .y = rows_at(&k->y, row, h->o),
                             .ldy = k->y.ld};
}

static void *lse_at(const pare_tape *t, const sublayer *s, size_t u)
{
    const attn_saved *const k = &s->attn_saved;
    const size_t row = sequence_start(&t->layout, u / s->attn->nheads);
    const size_t at = u % s->attn->nheads * k->q.n + row;
    return (char *)k->lse + at * rows_size(&k->q);
}

void tape_heads_provided(pare_tape *t, sublayer *s)
{
    const size_t units = t->layout.n * s->attn->nheads;
    const stack_mark mark = stack_top(&t->stack);
    pare_attend_job *const jobs = tape_alloc(t, units, sizeof *jobs);
    void **const lse = tape_alloc(t, units, sizeof *lse);
    if (t->work.st) return;
    for (size_t u = 0; u < units; u++) {
        jobs[u] = job_at(t, s, u);
        lse[u] = lse_at(t, s, u);
    }
    t->work.st = t->provider->forward(t->provider->self, s->attn_saved.q.t, jobs, lse, units,
                                      &t->m->pattern, t->work.err);
    stack_reset(&t->stack, mark);
}

/* The columns of `to` from `col` on += from, in the rows from `row` on. */
static void add_columns(rows *to, size_t row, size_t col, const rows *from)
{
    for (size_t i = 0; i < from->n; i++)
        for (size_t c = 0; c < from->d; c++) {
            if (to->t == PARE_F64)
                *(double *)rows_at(to, row + i, col + c) += *(double *)rows_at(from, i, c);
            else
                *(float *)rows_at(to, row + i, col + c) += *(float *)rows_at(from, i, c);
        }
}

void tape_heads_provided_backward(pare_tape *t, const sublayer *s, const rows *dy, rows *dq,
                                  rows *dk, rows *dv)
{
    pare_work *const w = &t->work;
    for (size_t u = 0; u < t->layout.n * s->attn->nheads && !w->st; u++) {
        const stack_mark mark = stack_top(&t->stack);
        const pare_head *const h = &s->attn->heads[u % s->attn->nheads];
        const size_t row = sequence_start(&t->layout, u / s->attn->nheads);
        const size_t n = sequence_length(&t->layout, u / s->attn->nheads);
        const rows q = tape_new_rows(t, n, h->dk), k = tape_new_rows(t, n, h->dk);
        const rows v = tape_new_rows(t, n, h->dv);
        const pare_attend_grad g = {.job = job_at(t, s, u),
                                    .lse = lse_at(t, s, u),
                                    .dy = rows_at(dy, row, h->o),
                                    .lddy = dy->ld,
                                    .dq = q.v,
                                    .dk = k.v,
                                    .dv = v.v,
                                    .lddq = q.ld,
                                    .lddk = k.ld,
                                    .lddv = v.ld};
        if (!w->st)
            w->st = t->provider->backward(t->provider->self, q.t, &g, &t->m->pattern, w->err);
        if (!w->st) {
            add_columns(dq, row, h->q, &q);
            add_columns(dk, row, h->k, &k);
            add_columns(dv, row, h->v, &v);
        }
        stack_reset(&t->stack, mark);
    }
}
