/* Softmax heads that somebody else attends for (pare_attention_provider): the tape projects, hands
 * queries, keys and values over, and takes outputs and gradients back. Heads that share keys or
 * values add to the same gradients, so each answer goes into memory of its own first. */
#include "tape.h"
#include <string.h>

pare_status pare_tape_attend_by(pare_tape *t, const pare_attention_provider *by, pare_err *err)
{
    t->by = NULL;
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
    t->by = by;
    return PARE_OK;
}

/* Job u: sequences one after the other, the heads of each. */
static pare_attend_job job_of(const pare_tape *t, const sublayer *s, size_t u)
{
    const attn_saved *const k = &s->attn_saved;
    const pare_head *const h = &s->attn->heads[u % s->attn->nheads];
    const size_t row = u / s->attn->nheads * t->tokens;
    return (pare_attend_job){.n = t->tokens,
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

static void *lse_of(const pare_tape *t, const sublayer *s, size_t u)
{
    const attn_saved *const k = &s->attn_saved;
    const size_t at = u % s->attn->nheads * k->q.n + u / s->attn->nheads * t->tokens;
    return (char *)k->lse + at * rows_size(&k->q);
}

pare_status tape_heads_provided(pare_tape *t, sublayer *s)
{
    const size_t units = t->batch * s->attn->nheads;
    const stack_mark mark = stack_top(&t->stack);
    pare_attend_job *const jobs = stack_alloc(&t->stack, units, sizeof *jobs);
    void **const lse = stack_alloc(&t->stack, units, sizeof *lse);
    if (!jobs || !lse) return pare_no_memory(t->err);
    for (size_t u = 0; u < units; u++) {
        jobs[u] = job_of(t, s, u);
        lse[u] = lse_of(t, s, u);
    }
    const pare_status st =
        t->by->forward(t->by->self, s->attn_saved.q.t, jobs, lse, units, &t->m->pattern, t->err);
    stack_reset(&t->stack, mark);
    return st;
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

static pare_status job_back(pare_tape *t, const sublayer *s, size_t u, const rows *dy, rows *dq,
                            rows *dk, rows *dv)
{
    const pare_head *const h = &s->attn->heads[u % s->attn->nheads];
    const size_t row = u / s->attn->nheads * t->tokens;
    rows q, k, v;
    pare_status st;
    if ((st = tape_new_rows(t, &q, t->tokens, h->dk)) ||
        (st = tape_new_rows(t, &k, t->tokens, h->dk)) ||
        (st = tape_new_rows(t, &v, t->tokens, h->dv)))
        return st;
    const pare_attend_grad g = {.job = job_of(t, s, u),
                                .lse = lse_of(t, s, u),
                                .dy = rows_at(dy, row, h->o),
                                .lddy = dy->ld,
                                .dq = q.v,
                                .dk = k.v,
                                .dv = v.v,
                                .lddq = q.ld,
                                .lddk = k.ld,
                                .lddv = v.ld};
    if ((st = t->by->backward(t->by->self, q.t, &g, &t->m->pattern, t->err))) return st;
    add_columns(dq, row, h->q, &q);
    add_columns(dk, row, h->k, &k);
    add_columns(dv, row, h->v, &v);
    return PARE_OK;
}

pare_status tape_heads_provided_backward(pare_tape *t, const sublayer *s, const rows *dy, rows *dq,
                                         rows *dk, rows *dv)
{
    pare_status st = PARE_OK;
    for (size_t u = 0; u < t->batch * s->attn->nheads && !st; u++) {
        const stack_mark mark = stack_top(&t->stack);
        st = job_back(t, s, u, dy, dq, dk, dv);
        stack_reset(&t->stack, mark);
    }
    return st;
}
