/* tape_heads.c - softmax heads: project, rotate, attend; and the backward pass.
 *
 * Heads that share queries, keys or values add to the same gradients: they form a group that one
 * thread processes, in order. Many (sequence, group) pairs are distributed over the threads, for
 * few the threads work together on each; the choice depends on shapes alone. */
#include "tape.h"
#include <stdatomic.h>
#include <string.h>

enum {
    MIN_PARALLEL_UNITS = 8, /* from so many on, each unit is one thread's */
    MIN_SAVED_WIDTH = 32    /* of a head for which reading its scores is faster than recomputing */
};

typedef struct head_job {
    pare_tape *t;
    const sublayer *s;
    const rows *dy;
    rows dq, dk, dv;
    const size_t *group;       /* of each head: the first head of its group */
    const size_t *group_first; /* the heads that begin a group, */
    size_t groups;             /* so many */
    float *edge_scratch;       /* two numbers per edge, where heads come one after the other */
    bool overwrite;            /* the only head: its gradients are written, not added */
    const pare_exec *inner;    /* of one unit */
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

static size_t edge_count(const pare_tape *t)
{
    return t->graph ? t->graph->ptr[t->graph->n] : 0;
}

/* What is saved in f32 of a head, for the sequence that begins at `row`. */
static pare_saved32 head_saved(const head_job *w, size_t head, size_t row)
{
    const attn_saved *const k = &w->s->attn_saved;
    return (pare_saved32){.lse = (float *)k->lse + head * k->q.n + row,
                          .scores = k->scores ? k->scores + head * edge_count(w->t) : NULL,
                          .edge_scratch = w->edge_scratch,
                          .fresh = w->overwrite};
}

static poly_head poly_head_at(const head_job *w, const pare_head *h, size_t row, size_t n)
{
    const attn_saved *const k = &w->s->attn_saved;
    return (poly_head){.q = at32(&k->q, row, n, h->q, h->dk),
                       .k = at32(&k->k, row, n, h->k, h->dk),
                       .v = at32(&k->v, row, n, h->v, h->dv),
                       .scale = h->scale,
                       .tolerance = w->s->attn->tolerance,
                       .pattern = &w->t->m->pattern,
                       .exec = w->inner};
}

/* How the head was computed for this sequence; NULL: exactly, as its kind is not poly. */
static pare_poly_report *poly_report_at(const head_job *w, size_t head, size_t sequence)
{
    pare_poly_report *const all = w->s->attn_saved.poly;
    return all ? all + sequence * w->s->attn->nheads + head : NULL;
}

static void run_units(head_job *w, size_t units, void (*fn)(void *, size_t))
{
    pare_work *const k = &w->t->work;
    const bool parallel = units >= MIN_PARALLEL_UNITS;
    if (k->st) return;
    w->inner = parallel ? NULL : k->exec;
    pare_parallel(parallel ? k->exec : NULL, units, fn, w);
    if (atomic_load(&w->st)) k->st = pare_no_memory(k->err);
}

/* ---- projections ------------------------------------------------------------------------------ */

size_t tape_heads_width(const pare_attn *a)
{
    const pare_head *const last = &a->heads[a->nheads - 1];
    return last->o + last->dv;
}

static void split_qkv(const rows *all, rows *q, rows *k, rows *v, const pare_attn *a)
{
    const size_t dq = all->d - a->wk.rows - a->wv.rows;
    *q = rows_columns(all, 0, dq);
    *k = rows_columns(all, dq, a->wk.rows);
    *v = rows_columns(all, dq + a->wk.rows, a->wv.rows);
}

/* Whether q, k and v are one product: z is read once. */
static bool one_product(const pare_attn *a)
{
    return pare_has(&a->wq) && a->kind != PARE_ATTN_MEANQ;
}

/* q, k and v by one product with a copy of wq, wk, wv one below the other (small beside z), and of
 * the biases, 0 where there is none; or each by its own. */
static void project(pare_tape *t, sublayer *s)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    if (one_product(a)) {
        const pare_weight *const w[] = {&a->wq, &a->wk, &a->wv};
        const pare_weight *const b[] = {&a->bq, &a->bk, &a->bv};
        const size_t cols = a->wk.cols, size = pare_dtype_size(a->wk.dtype);
        char *const weights = tape_alloc(t, k->qkv.d * cols, size);
        char *const biases = tape_alloc(t, k->qkv.d, size);
        if (t->work.st) return;
        for (size_t i = 0, at = 0; i < 3; at += w[i++]->rows * size) {
            const size_t bytes = w[i]->rows * size;
            memcpy(weights + at * cols, w[i]->data, bytes * cols);
            if (pare_has(b[i]))
                memcpy(biases + at, b[i]->data, bytes);
            else
                memset(biases + at, 0, bytes);
        }
        k->qkv_map.w = (pare_weight){a->wk.dtype, k->qkv.d, cols, weights};
        k->qkv_map.b = (pare_weight){a->wk.dtype, 1, k->qkv.d, biases};
        tape_dense_into(t, &k->qkv, &s->z, &k->qkv_map.w, &k->qkv_map.b);
        return;
    }
    if (!pare_has(&a->wq)) {
        tape_fill(t, &k->q, &a->bq);
    } else {
        const stack_mark mark = stack_top(&t->stack);
        const rows each = tape_dense(t, &s->z, &a->wq, &a->bq);
        tape_mean(t, &k->q, &each, false);
        stack_reset(&t->stack, mark);
    }
    tape_dense_into(t, &k->k, &s->z, &a->wk, &a->bk);
    tape_dense_into(t, &k->v, &s->z, &a->wv, &a->bv);
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

/* After one product: the gradients of the stacked matrix and bias are added to those of the
 * parts. */
static void project_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const head_job *j,
                             const rows *dqkv)
{
    const pare_attn *const a = s->attn;
    if (one_product(a)) {
        const pare_weight *const all = &s->attn_saved.qkv_map.w;
        const pare_weight *const w[] = {&a->wq, &a->wk, &a->wv};
        const pare_weight *const b[] = {&a->bq, &a->bk, &a->bv};
        const size_t n = all->rows * all->cols, size = rows_size(dqkv);
        char *const dw = tape_alloc(t, n, size), *const db = tape_alloc(t, all->rows, size);
        if (t->work.st) return;
        memset(dw, 0, n * size);
        memset(db, 0, all->rows * size);
        tape_dense_backward_to(t, dz, add, dqkv, &s->z, all, t->grad ? dw : NULL,
                               t->grad ? db : NULL);
        for (size_t i = 0, at = 0; !t->work.st && t->grad && i < 3; at += w[i++]->rows) {
            add_numbers(tape_grad(t, w[i]), dw + at * w[i]->cols * size, w[i]->rows * w[i]->cols,
                        a->wk.dtype);
            if (pare_has(b[i]))
                add_numbers(tape_grad(t, b[i]), db + at * size, w[i]->rows, a->wk.dtype);
        }
        return;
    }
    if (!pare_has(&a->wq)) {
        if (!add) tape_zero(t, dz);
        tape_bias_backward(t, &a->bq, &j->dq);
    } else { /* the gradient of the mean goes to every token */
        rows each = tape_new_rows(t, j->dq.n, j->dq.d);
        tape_mean(t, &each, &j->dq, true);
        tape_dense_backward_into(t, dz, add, &each, &s->z, &a->wq, &a->bq);
    }
    tape_dense_backward_into(t, dz, true, &j->dk, &s->z, &a->wk, &a->bk);
    tape_dense_backward_into(t, dz, true, &j->dv, &s->z, &a->wv, &a->bv);
}

/* ---- forward ---------------------------------------------------------------------------------- */

static void attend_unit(void *self, size_t unit)
{
    head_job *const w = self;
    const pare_attn *const a = w->s->attn;
    const attn_saved *const k = &w->s->attn_saved;
    const size_t head = unit % a->nheads, sequence = unit / a->nheads;
    const size_t row = sequence_start(&w->t->layout, sequence);
    const size_t n = sequence_length(&w->t->layout, sequence);
    const pare_head *const h = &a->heads[head];
    const pare_pattern *const p = &w->t->m->pattern;
    pare_status st = PARE_OK;
    if (k->q.t == PARE_F64) {
        pare_mat y = at64(&k->y, row, n, h->o, h->dv);
        const pare_mat q = at64(&k->q, row, n, h->q, h->dk), key = at64(&k->k, row, n, h->k, h->dk);
        const pare_mat v = at64(&k->v, row, n, h->v, h->dv);
        st = pare_attend_saving_f64(&y, (double *)k->lse + head * k->q.n + row, &q, &key, &v,
                                    h->scale, p, w->t->graph, w->inner, NULL);
    } else {
        pare_mat32 y = at32(&k->y, row, n, h->o, h->dv);
        const pare_saved32 saved = head_saved(w, head, row);
        pare_poly_report *const report = poly_report_at(w, head, sequence);
        const poly_head in = poly_head_at(w, h, row, n);
        if (report) st = tape_poly(&y, report, k->exact + head * k->q.n + row, &in);
        if (!st && (!report || report->kind == PARE_POLY_EXACT))
            st = pare_attend_saving_f32(&y, &saved, &in.q, &in.k, &in.v, (float)h->scale, p,
                                        w->t->graph, w->t->graph ? &w->t->transposed : NULL,
                                        w->inner, NULL);
    }
    if (st) atomic_store(&w->st, (int)st);
}

void tape_heads(pare_tape *t, sublayer *s)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    const size_t n = s->z.n, dq = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    k->qkv = tape_new_rows(t, n, dq + a->wk.rows + a->wv.rows);
    split_qkv(&k->qkv, &k->q, &k->k, &k->v, a);
    k->lse = tape_alloc(t, a->nheads * n, rows_size(&k->q));
    k->scores = NULL;
    if (t->graph && k->q.t == PARE_F32 && a->heads[0].dk >= MIN_SAVED_WIDTH) {
        size_t count;
        if (!pare_mul(&count, a->nheads, edge_count(t))) count = SIZE_MAX;
        k->scores = tape_alloc(t, count, sizeof *k->scores);
    }
    tape_poly_alloc(t, s);
    project(t, s);
    tape_rotary(t, s, &k->q, &k->k, false);
    if (t->provider) {
        tape_heads_provided(t, s);
        return;
    }
    head_job w = {.t = t, .s = s};
    run_units(&w, t->layout.n * a->nheads, attend_unit);
    tape_poly_count(t, s);
}

/* ---- backward --------------------------------------------------------------------------------- */

/* The heads of one group for one sequence, one after the other. */
static void group_backward(void *self, size_t unit)
{
    head_job *const w = self;
    const pare_attn *const a = w->s->attn;
    const attn_saved *const k = &w->s->attn_saved;
    const pare_pattern *const p = &w->t->m->pattern;
    const pare_graph *const g = w->t->graph;
    const pare_transposed_graph *const transposed = g ? &w->t->transposed : NULL;
    const size_t first = w->group_first[unit % w->groups], sequence = unit / w->groups;
    const size_t row = sequence_start(&w->t->layout, sequence);
    const size_t n = sequence_length(&w->t->layout, sequence);
    for (size_t head = first; head < a->nheads; head++) {
        const pare_head *const h = &a->heads[head];
        pare_status st;
        if (w->group[head] != first) continue;
        if (k->q.t == PARE_F64) {
            pare_mat dq = at64(&w->dq, row, n, h->q, h->dk), dk = at64(&w->dk, row, n, h->k, h->dk);
            pare_mat dv = at64(&w->dv, row, n, h->v, h->dv);
            const pare_mat q = at64(&k->q, row, n, h->q, h->dk);
            const pare_mat key = at64(&k->k, row, n, h->k, h->dk);
            const pare_mat v = at64(&k->v, row, n, h->v, h->dv);
            const pare_mat y = at64(&k->y, row, n, h->o, h->dv);
            const pare_mat dy = at64(w->dy, row, n, h->o, h->dv);
            st = pare_attend_backward_f64(&dq, &dk, &dv, &dy, &q, &key, &v, &y,
                                          (double *)k->lse + head * k->q.n + row, h->scale, p, g,
                                          transposed, w->inner, NULL);
        } else {
            pare_mat32 dq = at32(&w->dq, row, n, h->q, h->dk);
            pare_mat32 dk = at32(&w->dk, row, n, h->k, h->dk);
            pare_mat32 dv = at32(&w->dv, row, n, h->v, h->dv);
            const pare_mat32 y = at32(&k->y, row, n, h->o, h->dv);
            const pare_mat32 dy = at32(w->dy, row, n, h->o, h->dv);
            const pare_saved32 saved = head_saved(w, head, row);
            const pare_poly_report *const report = poly_report_at(w, head, sequence);
            const poly_head in = poly_head_at(w, h, row, n);
            if (report && report->kind != PARE_POLY_EXACT)
                st = tape_poly_backward(&dq, &dk, &dv, &dy, k->exact + head * k->q.n + row, &in);
            else
                st = pare_attend_backward_f32(&dq, &dk, &dv, &dy, &in.q, &in.k, &in.v, &y, &saved,
                                              (float)h->scale, p, g, transposed, w->inner, NULL);
        }
        if (st) atomic_store(&w->st, (int)st);
    }
}

static bool overlap(size_t a, size_t na, size_t b, size_t nb)
{
    return a < b + nb && b < a + na;
}

/* The connected components of "shares queries, keys or values". */
static void find_groups(head_job *w, size_t *group, size_t *first)
{
    const pare_attn *const a = w->s->attn;
    for (size_t h = 0; h < a->nheads; h++) {
        const pare_head *const y = &a->heads[h];
        group[h] = h;
        for (size_t e = 0; e < h; e++) {
            const pare_head *const x = &a->heads[e];
            const bool share = overlap(x->q, x->dk, y->q, y->dk) ||
                               overlap(x->k, x->dk, y->k, y->dk) ||
                               overlap(x->v, x->dv, y->v, y->dv);
            if (!share || group[e] == group[h]) continue;
            const size_t low = group[e] < group[h] ? group[e] : group[h];
            const size_t high = group[e] < group[h] ? group[h] : group[e];
            for (size_t i = 0; i <= h; i++)
                if (group[i] == high) group[i] = low;
        }
    }
    for (size_t h = 0; h < a->nheads; h++)
        if (group[h] == h) first[w->groups++] = h;
    w->group = group;
    w->group_first = first;
}

void tape_heads_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_attn *const a = s->attn;
    const attn_saved *const k = &s->attn_saved;
    head_job w = {.t = t, .s = s, .dy = dy};
    size_t *const group = tape_alloc(t, a->nheads, sizeof *group);
    size_t *const first = tape_alloc(t, a->nheads, sizeof *first);
    rows dqkv = tape_new_rows(t, k->qkv.n, k->qkv.d);
    const bool sparse_f32 = t->graph && dqkv.t == PARE_F32;
    if (t->work.st) return;
    split_qkv(&dqkv, &w.dq, &w.dk, &w.dv, a);
    w.overwrite = sparse_f32 && a->nheads == 1 && w.dq.d == a->heads[0].dk &&
                  w.dk.d == a->heads[0].dk && w.dv.d == a->heads[0].dv;
    if (!w.overwrite) tape_zero(t, &dqkv);
    find_groups(&w, group, first);
    if (sparse_f32 && t->layout.n * w.groups < MIN_PARALLEL_UNITS)
        w.edge_scratch = tape_alloc(t, edge_count(t), 2 * sizeof *w.edge_scratch);
    if (t->provider)
        tape_heads_provided_backward(t, s, dy, &w.dq, &w.dk, &w.dv);
    else
        run_units(&w, t->layout.n * w.groups, group_backward);
    tape_rotary(t, s, &w.dq, &w.dk, true);
    project_backward(t, s, dz, add, &w, &dqkv);
}
