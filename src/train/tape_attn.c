/* Softmax heads: project, turn, attend; and back.
 *
 * Heads that share queries, keys or values add to the same gradients, so they form a group that one
 * thread takes, in order. Many (sequence, group) pairs are spread over the threads, few share them
 * within; the choice depends on shapes alone. */
#include "tape.h"
#include <stdatomic.h>
#include <string.h>

enum { SPREAD = 8 }; /* units from which they are handed out whole */

typedef struct head_job {
    pare_tape *t;
    const sublayer *s;
    const rows *dy;
    rows dq, dk, dv;
    const size_t *group; /* of each head: the first head of its group */
    size_t units;        /* of a sequence: heads, or heads that begin a group */
    const size_t *begin;
    const pare_exec *inner;
    atomic_int st;
} head_job;

static pare_mat at64(const rows *r, size_t row, size_t n, size_t col, size_t d)
{
    return (pare_mat){n, d, r->ld, rows_at(r, row, col)};
}

static pare_mat32 at32(const rows *r, size_t row, size_t n, size_t col, size_t d)
{
    return (pare_mat32){n, d, r->ld, rows_at(r, row, col)};
}

/* ---- there ----------------------------------------------------------------------------------- */

static void attend_unit(void *self, size_t unit)
{
    head_job *const w = self;
    const pare_attn *const a = w->s->attn;
    const attn_kept *const k = &w->s->attn_kept;
    const size_t head = unit % a->nheads, n = w->t->tokens, row = unit / a->nheads * n;
    const pare_head *const h = &a->heads[head];
    const pare_pattern *const p = &w->t->m->pattern;
    pare_status st;
    if (k->q.t == PARE_F64) {
        pare_mat y = at64(&k->y, row, n, h->o, h->dv);
        const pare_mat q = at64(&k->q, row, n, h->q, h->dk), key = at64(&k->k, row, n, h->k, h->dk);
        const pare_mat v = at64(&k->v, row, n, h->v, h->dv);
        st = pare_attend_keep_f64(&y, (double *)k->lse + head * k->q.n + row, &q, &key, &v,
                                  h->scale, p, w->t->graph, w->inner, NULL);
    } else {
        pare_mat32 y = at32(&k->y, row, n, h->o, h->dv);
        const pare_mat32 q = at32(&k->q, row, n, h->q, h->dk);
        const pare_mat32 key = at32(&k->k, row, n, h->k, h->dk);
        const pare_mat32 v = at32(&k->v, row, n, h->v, h->dv);
        st = pare_attend_keep_f32(&y, (float *)k->lse + head * k->q.n + row, &q, &key, &v,
                                  (float)h->scale, p, w->t->graph, w->inner, NULL);
    }
    if (st) atomic_store(&w->st, (int)st);
}

static pare_status run_units(head_job *w, size_t units, void (*fn)(void *, size_t))
{
    const bool spread = units >= SPREAD;
    w->inner = spread ? NULL : w->t->exec;
    pare_parallel(spread ? w->t->exec : NULL, units, fn, w);
    return atomic_load(&w->st) ? pare_no_memory(w->t->err) : PARE_OK;
}

static pare_status queries(pare_tape *t, sublayer *s, rows *q)
{
    const pare_attn *const a = s->attn;
    if (!pare_has(&a->wq)) return tape_fill(t, q, &a->bq);
    if (a->kind != PARE_ATTN_MEANQ) return tape_dense(t, q, &s->z, &a->wq, &a->bq);
    const store_mark mark = store_top(&t->store);
    rows each;
    pare_status st = tape_new_rows(t, &each, q->n, q->d);
    if (!st) st = tape_dense(t, &each, &s->z, &a->wq, &a->bq);
    if (!st) st = tape_mean(t, q, &each, false);
    store_reset(&t->store, mark);
    return st;
}

size_t tape_heads_width(const pare_attn *a)
{
    const pare_head *const last = &a->heads[a->nheads - 1];
    return last->o + last->dv;
}

pare_status tape_heads(pare_tape *t, sublayer *s)
{
    const pare_attn *const a = s->attn;
    attn_kept *const k = &s->attn_kept;
    const size_t n = s->z.n, dq = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    pare_status st;
    if ((st = tape_new_rows(t, &k->q, n, dq)) || (st = tape_new_rows(t, &k->k, n, a->wk.rows)) ||
        (st = tape_new_rows(t, &k->v, n, a->wv.rows)))
        return st;
    k->lse = store_get(&t->store, a->nheads * n, pare_dtype_size(k->q.t));
    if (!k->lse) return pare_no_memory(t->err);
    if ((st = queries(t, s, &k->q)) || (st = tape_dense(t, &k->k, &s->z, &a->wk, &a->bk)) ||
        (st = tape_dense(t, &k->v, &s->z, &a->wv, &a->bv)) ||
        (st = tape_turn(t, s, &k->q, &k->k, false)))
        return st;
    head_job w = {.t = t, .s = s};
    return run_units(&w, t->batch * a->nheads, attend_unit);
}

/* ---- back ------------------------------------------------------------------------------------ */

static void head_back(head_job *w, size_t head, size_t row)
{
    const pare_attn *const a = w->s->attn;
    const attn_kept *const k = &w->s->attn_kept;
    const size_t n = w->t->tokens;
    const pare_head *const h = &a->heads[head];
    const pare_pattern *const p = &w->t->m->pattern;
    const pare_graph *const g = w->t->graph;
    const pare_turned *const turned = g ? &w->t->turned : NULL;
    pare_status st;
    if (k->q.t == PARE_F64) {
        pare_mat dq = at64(&w->dq, row, n, h->q, h->dk), dk = at64(&w->dk, row, n, h->k, h->dk);
        pare_mat dv = at64(&w->dv, row, n, h->v, h->dv);
        const pare_mat q = at64(&k->q, row, n, h->q, h->dk), key = at64(&k->k, row, n, h->k, h->dk);
        const pare_mat v = at64(&k->v, row, n, h->v, h->dv), y = at64(&k->y, row, n, h->o, h->dv);
        const pare_mat dy = at64(w->dy, row, n, h->o, h->dv);
        st = pare_attend_backward_f64(&dq, &dk, &dv, &dy, &q, &key, &v, &y,
                                      (double *)k->lse + head * k->q.n + row, h->scale, p, g,
                                      turned, w->inner, NULL);
    } else {
        pare_mat32 dq = at32(&w->dq, row, n, h->q, h->dk), dk = at32(&w->dk, row, n, h->k, h->dk);
        pare_mat32 dv = at32(&w->dv, row, n, h->v, h->dv);
        const pare_mat32 q = at32(&k->q, row, n, h->q, h->dk);
        const pare_mat32 key = at32(&k->k, row, n, h->k, h->dk);
        const pare_mat32 v = at32(&k->v, row, n, h->v, h->dv), y = at32(&k->y, row, n, h->o, h->dv);
        const pare_mat32 dy = at32(w->dy, row, n, h->o, h->dv);
        st = pare_attend_backward_f32(&dq, &dk, &dv, &dy, &q, &key, &v, &y,
                                      (float *)k->lse + head * k->q.n + row, (float)h->scale, p, g,
                                      turned, w->inner, NULL);
    }
    if (st) atomic_store(&w->st, (int)st);
}

static void back_unit(void *self, size_t unit)
{
    head_job *const w = self;
    const size_t first = w->begin[unit % w->units], row = unit / w->units * w->t->tokens;
    for (size_t h = first; h < w->s->attn->nheads; h++)
        if (w->group[h] == first) head_back(w, h, row);
}

static bool touch(size_t a, size_t na, size_t b, size_t nb)
{
    return a < b + nb && b < a + na;
}

static bool share(const pare_head *x, const pare_head *y)
{
    return touch(x->q, x->dk, y->q, y->dk) || touch(x->k, x->dk, y->k, y->dk) ||
           touch(x->v, x->dv, y->v, y->dv);
}

/* group[h]: the first head of the group of h; begin: those heads, *groups of them. */
static void find_groups(size_t *group, size_t *begin, size_t *groups, const pare_attn *a)
{
    *groups = 0;
    for (size_t h = 0; h < a->nheads; h++) {
        group[h] = h;
        for (size_t e = 0; e < h; e++) {
            if (!share(&a->heads[e], &a->heads[h]) || group[e] == group[h]) continue;
            const size_t low = group[e] < group[h] ? group[e] : group[h];
            const size_t high = group[e] < group[h] ? group[h] : group[e];
            for (size_t i = 0; i <= h; i++)
                if (group[i] == high) group[i] = low;
        }
    }
    for (size_t h = 0; h < a->nheads; h++)
        if (group[h] == h) begin[(*groups)++] = h;
}

/* dq as the queries' product sees it: the mean goes back to every token. */
static pare_status queries_back(pare_tape *t, const sublayer *s, rows *dz, rows *dq)
{
    const pare_attn *const a = s->attn;
    rows each = *dq;
    pare_status st;
    if (!pare_has(&a->wq)) {
        tape_zero(dz);
        return tape_bias_back(t, &a->bq, dq);
    }
    if (a->kind == PARE_ATTN_MEANQ &&
        ((st = tape_new_rows(t, &each, dq->n, dq->d)) || (st = tape_mean(t, &each, dq, true))))
        return st;
    return tape_dense_back(t, dz, false, &each, &s->z, &a->wq, &a->bq);
}

pare_status tape_heads_back(pare_tape *t, const sublayer *s, rows *dz, const rows *dy)
{
    const pare_attn *const a = s->attn;
    const attn_kept *const k = &s->attn_kept;
    head_job w = {.t = t, .s = s, .dy = dy};
    size_t *const group = store_get(&t->store, a->nheads, sizeof *group);
    size_t *const begin = store_get(&t->store, a->nheads, sizeof *begin);
    pare_status st;
    if (!group || !begin) return pare_no_memory(t->err);
    if ((st = tape_new_rows(t, &w.dq, k->q.n, k->q.d)) ||
        (st = tape_new_rows(t, &w.dk, k->k.n, k->k.d)) ||
        (st = tape_new_rows(t, &w.dv, k->v.n, k->v.d)))
        return st;
    tape_zero(&w.dq);
    tape_zero(&w.dk);
    tape_zero(&w.dv);
    find_groups(group, begin, &w.units, a);
    w.group = group;
    w.begin = begin;
    if ((st = run_units(&w, t->batch * w.units, back_unit)) ||
        (st = tape_turn(t, s, &w.dq, &w.dk, true)) || (st = queries_back(t, s, dz, &w.dq)) ||
        (st = tape_dense_back(t, dz, true, &w.dk, &s->z, &a->wk, &a->bk)))
        return st;
    return tape_dense_back(t, dz, true, &w.dv, &s->z, &a->wv, &a->bv);
}
