/* Softmax heads: project, turn, attend; and back.
 *
 * Heads that share queries, keys or values add to the same gradients, so they form a group that one
 * thread takes, in order. Many (sequence, group) pairs are spread over the threads, few share them
 * within; the choice depends on shapes alone. */
#include "tape.h"
#include <stdatomic.h>
#include <string.h>

enum {
    SPREAD = 8,    /* units from which they are handed out whole */
    KEPT_FROM = 32 /* width of a head whose scores are worth a number an edge until the way back */
};

typedef struct head_job {
    pare_tape *t;
    const sublayer *s;
    const rows *dy;
    rows dq, dk, dv;
    const size_t *group; /* of each head: the first head of its group */
    size_t units;        /* of a sequence: heads, or heads that begin a group */
    const size_t *begin;
    float *room; /* two numbers an edge, where heads come one after the other */
    bool fresh;  /* the only head: its gradients are written, not added */
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

static size_t edges_of(const pare_tape *t)
{
    return t->graph ? t->graph->ptr[t->graph->n] : 0;
}

/* What head and sequence keep in f32. */
static pare_kept32 kept_of(const head_job *w, size_t head, size_t row)
{
    const attn_saved *const k = &w->s->attn_saved;
    pare_kept32 kept = {.lse = (float *)k->lse + head * k->q.n + row};
    kept.room = w->room;
    kept.fresh = w->fresh;
    if (k->scores) kept.scores = k->scores + head * edges_of(w->t);
    return kept;
}

/* Where head h of a kind poly stands on the tape, for the sequence that begins at `row`. */
static poly_head poly_head_of(const head_job *w, const pare_head *h, size_t row)
{
    const attn_saved *const k = &w->s->attn_saved;
    const size_t n = w->t->tokens;
    return (poly_head){.q = at32(&k->q, row, n, h->q, h->dk),
                       .k = at32(&k->k, row, n, h->k, h->dk),
                       .v = at32(&k->v, row, n, h->v, h->dv),
                       .scale = h->scale,
                       .tolerance = w->s->attn->tolerance,
                       .pattern = &w->t->m->pattern,
                       .exec = w->inner};
}

/* Of attn_saved.way: heads of a sequence side by side. */
static pare_poly_report *way_of(const head_job *w, size_t head, size_t row)
{
    const attn_saved *const k = &w->s->attn_saved;
    return k->way ? k->way + row / w->t->tokens * w->s->attn->nheads + head : NULL;
}

static uint8_t *exact_of(const head_job *w, size_t head, size_t row)
{
    return w->s->attn_saved.exact + head * w->s->attn_saved.q.n + row;
}

/* ---- there ----------------------------------------------------------------------------------- */

static void attend_unit(void *self, size_t unit)
{
    head_job *const w = self;
    const pare_attn *const a = w->s->attn;
    const attn_saved *const k = &w->s->attn_saved;
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
        const pare_kept32 kept = kept_of(w, head, row);
        pare_poly_report *const way = way_of(w, head, row);
        const poly_head poly = poly_head_of(w, h, row);
        st = way ? tape_poly(&y, way, exact_of(w, head, row), &poly) : PARE_OK;
        if (!st && (!way || way->kind == PARE_POLY_EXACT))
            st = pare_attend_keep_f32(&y, &kept, &q, &key, &v, (float)h->scale, p, w->t->graph,
                                      w->t->graph ? &w->t->turned : NULL, w->inner, NULL);
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

/* wq, wk, wv as one matrix: one product reads z once. The copies are small beside z. */
static pare_weight stack(pare_tape *t, const pare_weight *const part[3], size_t rows_in_all)
{
    const size_t cols = part[1]->cols, size = pare_dtype_size(part[1]->dtype);
    char *const to = stack_alloc(&t->stack, rows_in_all * cols, size);
    const pare_weight all = {part[1]->dtype, rows_in_all, cols, to};
    for (size_t i = 0, at = 0; to && i < 3; i++) {
        const size_t bytes = part[i]->rows * cols * size;
        memcpy(to + at, part[i]->data, bytes);
        at += bytes;
    }
    return all;
}

/* The biases, 0 where there is none. */
static pare_weight join(pare_tape *t, const pare_attn *a, size_t rows_in_all)
{
    const pare_weight *const w[] = {&a->wq, &a->wk, &a->wv}, *const b[] = {&a->bq, &a->bk, &a->bv};
    const size_t size = pare_dtype_size(a->wk.dtype);
    char *const to = stack_alloc(&t->stack, rows_in_all, size);
    for (size_t i = 0, at = 0; to && i < 3; at += w[i++]->rows * size) {
        if (pare_has(b[i]))
            memcpy(to + at, b[i]->data, w[i]->rows * size);
        else
            memset(to + at, 0, w[i]->rows * size);
    }
    return (pare_weight){a->wk.dtype, 1, rows_in_all, to};
}

static pare_status project_all(pare_tape *t, sublayer *s)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    const pare_weight *const w[] = {&a->wq, &a->wk, &a->wv};
    k->all.w = stack(t, w, k->qkv.d);
    k->all.b = join(t, a, k->qkv.d);
    if (!pare_has(&k->all.w) || !pare_has(&k->all.b)) return pare_no_memory(t->err);
    return tape_dense(t, &k->qkv, &s->z, &k->all.w, &k->all.b);
}

static bool one_product(const pare_attn *a)
{
    return pare_has(&a->wq) && a->kind != PARE_ATTN_MEANQ;
}

static void split(const rows *all, rows *q, rows *k, rows *v, const pare_attn *a)
{
    const size_t dq = all->d - a->wk.rows - a->wv.rows;
    *q = rows_columns(all, 0, dq);
    *k = rows_columns(all, dq, a->wk.rows);
    *v = rows_columns(all, dq + a->wk.rows, a->wv.rows);
}

static pare_status queries(pare_tape *t, sublayer *s, rows *q)
{
    const pare_attn *const a = s->attn;
    if (!pare_has(&a->wq)) return tape_fill(t, q, &a->bq);
    if (a->kind != PARE_ATTN_MEANQ) return tape_dense(t, q, &s->z, &a->wq, &a->bq);
    const stack_mark mark = stack_top(&t->stack);
    rows each;
    pare_status st = tape_new_rows(t, &each, q->n, q->d);
    if (!st) st = tape_dense(t, &each, &s->z, &a->wq, &a->bq);
    if (!st) st = tape_mean(t, q, &each, false);
    stack_reset(&t->stack, mark);
    return st;
}

size_t tape_heads_width(const pare_attn *a)
{
    const pare_head *const last = &a->heads[a->nheads - 1];
    return last->o + last->dv;
}

static pare_status project(pare_tape *t, sublayer *s)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    pare_status st;
    if (one_product(a)) return project_all(t, s);
    if ((st = queries(t, s, &k->q)) || (st = tape_dense(t, &k->k, &s->z, &a->wk, &a->bk)))
        return st;
    return tape_dense(t, &k->v, &s->z, &a->wv, &a->bv);
}

/* A graph's scores in f32, where computing them again would take longer than reading them. */
static bool keep_scores(pare_tape *t, sublayer *s)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    size_t count;
    k->scores = NULL;
    if (!t->graph || k->q.t != PARE_F32 || a->heads[0].dk < KEPT_FROM) return true;
    if (pare_mul(&count, a->nheads, edges_of(t)))
        k->scores = stack_alloc(&t->stack, count, sizeof *k->scores);
    return k->scores;
}

pare_status tape_heads(pare_tape *t, sublayer *s)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    const size_t n = s->z.n, dq = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    pare_status st = tape_new_rows(t, &k->qkv, n, dq + a->wk.rows + a->wv.rows);
    if (st) return st;
    split(&k->qkv, &k->q, &k->k, &k->v, a);
    k->lse = stack_alloc(&t->stack, a->nheads * n, rows_size(&k->q));
    if (!k->lse || !keep_scores(t, s) || !tape_poly_alloc(t, s)) return pare_no_memory(t->err);
    if ((st = project(t, s)) || (st = tape_rotary(t, s, &k->q, &k->k, false))) return st;
    if (t->by) return tape_heads_provided(t, s);
    head_job w = {.t = t, .s = s};
    st = run_units(&w, t->batch * a->nheads, attend_unit);
    if (!st) tape_poly_count(t, s);
    return st;
}

/* ---- back ------------------------------------------------------------------------------------ */

static void head_back(head_job *w, size_t head, size_t row)
{
    const pare_attn *const a = w->s->attn;
    const attn_saved *const k = &w->s->attn_saved;
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
        const pare_kept32 kept = kept_of(w, head, row);
        const pare_poly_report *const way = way_of(w, head, row);
        const poly_head poly = poly_head_of(w, h, row);
        if (way && way->kind != PARE_POLY_EXACT)
            st = tape_poly_backward(&dq, &dk, &dv, &dy, exact_of(w, head, row), &poly);
        else
            st = pare_attend_backward_f32(&dq, &dk, &dv, &dy, &q, &key, &v, &y, &kept,
                                          (float)h->scale, p, g, turned, w->inner, NULL);
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
static pare_status queries_back(pare_tape *t, const sublayer *s, rows *dz, bool add, rows *dq)
{
    const pare_attn *const a = s->attn;
    rows each = *dq;
    pare_status st;
    if (!pare_has(&a->wq)) {
        st = add ? PARE_OK : tape_zero(t, dz);
        return st ? st : tape_bias_backward(t, &a->bq, dq);
    }
    if (a->kind == PARE_ATTN_MEANQ &&
        ((st = tape_new_rows(t, &each, dq->n, dq->d)) || (st = tape_mean(t, &each, dq, true))))
        return st;
    return tape_dense_backward(t, dz, add, &each, &s->z, &a->wq, &a->bq);
}

static void add_numbers(void *to, const void *from, size_t n, pare_dtype t)
{
    for (size_t i = 0; to && i < n; i++) {
        if (t == PARE_F64)
            ((double *)to)[i] += ((const double *)from)[i];
        else
            ((float *)to)[i] += ((const float *)from)[i];
    }
}

/* The gradients of the one matrix and bias go to those they were made of. */
static void hand_out(pare_tape *t, const pare_attn *a, const char *dw, const char *db)
{
    const pare_weight *const w[] = {&a->wq, &a->wk, &a->wv}, *const b[] = {&a->bq, &a->bk, &a->bv};
    const size_t size = pare_dtype_size(a->wk.dtype);
    for (size_t i = 0, at = 0; i < 3; at += w[i++]->rows) {
        add_numbers(tape_grad(t, w[i]), dw + at * w[i]->cols * size, w[i]->rows * w[i]->cols,
                    a->wk.dtype);
        if (pare_has(b[i]))
            add_numbers(tape_grad(t, b[i]), db + at * size, w[i]->rows, a->wk.dtype);
    }
}

static pare_status project_all_back(pare_tape *t, const sublayer *s, rows *dz, bool add,
                                    const rows *dqkv)
{
    const pare_attn *const a = s->attn;
    const pare_weight *const w = &s->attn_saved.all.w;
    const size_t n = w->rows * w->cols, size = rows_size(dqkv);
    char *const dw = stack_alloc(&t->stack, n, size), *const db =
                                                          stack_alloc(&t->stack, w->rows, size);
    if (!dw || !db) return pare_no_memory(t->err);
    memset(dw, 0, n * size);
    memset(db, 0, w->rows * size);
    const bool wanted = t->grad;
    const pare_status st =
        tape_dense_backward_to(t, dz, add, dqkv, &s->z, w, wanted ? dw : NULL, wanted ? db : NULL);
    if (!st && wanted) hand_out(t, a, dw, db);
    return st;
}

static pare_status project_back(pare_tape *t, const sublayer *s, rows *dz, bool add,
                                const head_job *w, const rows *dqkv)
{
    const pare_attn *const a = s->attn;
    rows dq = w->dq;
    pare_status st;
    if (one_product(a)) return project_all_back(t, s, dz, add, dqkv);
    if ((st = queries_back(t, s, dz, add, &dq)) ||
        (st = tape_dense_backward(t, dz, true, &w->dk, &s->z, &a->wk, &a->bk)))
        return st;
    return tape_dense_backward(t, dz, true, &w->dv, &s->z, &a->wv, &a->bv);
}

pare_status tape_heads_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_attn *const a = s->attn;
    const attn_saved *const k = &s->attn_saved;
    head_job w = {.t = t, .s = s, .dy = dy};
    size_t *const group = stack_alloc(&t->stack, a->nheads, sizeof *group);
    size_t *const begin = stack_alloc(&t->stack, a->nheads, sizeof *begin);
    rows dqkv;
    pare_status st;
    if (!group || !begin) return pare_no_memory(t->err);
    if ((st = tape_new_rows(t, &dqkv, k->qkv.n, k->qkv.d))) return st;
    split(&dqkv, &w.dq, &w.dk, &w.dv, a);
    w.fresh = t->graph && dqkv.t == PARE_F32 && a->nheads == 1 && w.dq.d == a->heads[0].dk &&
              w.dk.d == a->heads[0].dk && w.dv.d == a->heads[0].dv;
    if (!w.fresh && (st = tape_zero(t, &dqkv))) return st;
    find_groups(group, begin, &w.units, a);
    w.group = group;
    w.begin = begin;
    if (t->graph && dqkv.t == PARE_F32 && t->batch * w.units < SPREAD &&
        !(w.room = stack_alloc(&t->stack, edges_of(t), 2 * sizeof *w.room)))
        return pare_no_memory(t->err);
    st = t->by ? tape_heads_provided_backward(t, s, dy, &w.dq, &w.dk, &w.dv)
               : run_units(&w, t->batch * w.units, back_unit);
    if (st || (st = tape_rotary(t, s, &w.dq, &w.dk, true))) return st;
    return project_back(t, s, dz, add, &w, &dqkv);
}
