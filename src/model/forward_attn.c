/* The attention branch: softmax heads, and the kinds that may stand in their place. */
#include "forward_parts.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- heads ------------------------------------------------------------------------------- */

typedef struct head_job {
    const pass *p;
    const pare_attn *a;
    const head_rows *h;
    const pare_exec *inner; /* threads within one head; NULL when heads are spread over threads */
    bool same;              /* all rows ask the same */
    atomic_int st;
} head_job;

static pare_mat view64(const rows *r, size_t row, size_t n, size_t col, size_t d)
{
    return (pare_mat){n, d, r->d, (double *)r->v + row * r->d + col};
}

static pare_mat32 view32(const rows *r, size_t row, size_t n, size_t col, size_t d)
{
    return (pare_mat32){n, d, r->d, (float *)r->v + row * r->d + col};
}

static void tell(const pass *p, const pare_attn *a, size_t head, const pare_poly_report *r)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    size_t block = 0;
    if (!p->trace || !p->trace->poly) return;
    while (&p->m->blocks[block].attn != a) block++;
    pthread_mutex_lock(&one_at_a_time);
    p->trace->poly(p->trace->self, block, head, r);
    pthread_mutex_unlock(&one_at_a_time);
}

/* Polynomials refuse numbers that are none; the exact kernel carries them on, as it does for every
 * other kind. */
static pare_status head_f32(const head_job *w, size_t head, pare_mat32 *y, const pare_mat32 *q,
                            const pare_mat32 *k, const pare_mat32 *v)
{
    const pare_pattern *const pattern = &w->p->m->pattern;
    const double scale = w->a->heads[head].scale;
    if (w->a->kind == PARE_ATTN_POLY) {
        const pare_poly_opts o = {.tolerance = w->a->tolerance, .degree = -1};
        pare_poly_report report;
        const pare_status st =
            pare_poly_f32(y, &report, q, k, v, scale, pattern, w->p->graph, &o, w->inner, NULL);
        if (!st) tell(w->p, w->a, head, &report);
        if (st != PARE_ERR_NONFINITE) return st;
    }
    return (w->same ? pare_attend_same_f32 : pare_attend_f32)(y, q, k, v, (float)scale, pattern,
                                                              w->p->graph, w->inner, NULL);
}

static void one_head(void *self, size_t unit)
{
    head_job *const w = self;
    const size_t head = unit % w->a->nheads;
    const pare_head *const h = &w->a->heads[head];
    const head_rows *const r = w->h;
    const size_t n = w->p->tokens, row = unit / w->a->nheads * n;
    pare_status st;
    if (r->y.t == PARE_F64) {
        pare_mat y = view64(&r->y, row, n, h->o, h->dv);
        const pare_mat q = view64(&r->q, row, n, h->q, h->dk);
        const pare_mat k = view64(&r->k, row, n, h->k, h->dk);
        const pare_mat v = view64(&r->v, row, n, h->v, h->dv);
        st = pare_attend_f64(&y, &q, &k, &v, h->scale, &w->p->m->pattern, w->p->graph, w->inner,
                             NULL);
    } else {
        pare_mat32 y = view32(&r->y, row, n, h->o, h->dv);
        const pare_mat32 q = view32(&r->q, row, n, h->q, h->dk);
        const pare_mat32 k = view32(&r->k, row, n, h->k, h->dk);
        const pare_mat32 v = view32(&r->v, row, n, h->v, h->dv);
        st = head_f32(w, head, &y, &q, &k, &v);
    }
    if (st) atomic_store(&w->st, (int)st);
}

/* Positions that turn queries make them differ again. */
static bool one_query(const pare_attn *a)
{
    if (pare_has(&a->wq) && a->kind != PARE_ATTN_MEANQ) return false;
    for (size_t h = 0; h < a->nheads; h++)
        if (a->heads[h].planes) return false;
    return true;
}

static const void *at(const rows *r, size_t row, size_t column)
{
    return (const char *)r->v + (row * r->d + column) * pare_dtype_size(r->t);
}

size_t attention_jobs(pare_attend_job *jobs, const pass *p, const head_rows *r, const pare_attn *a)
{
    const size_t n = p->tokens, units = r->q.n / n * a->nheads;
    for (size_t u = 0; u < units; u++) {
        const pare_head *const h = &a->heads[u % a->nheads];
        const size_t row = u / a->nheads * n;
        jobs[u] = (pare_attend_job){.n = n,
                                    .dk = h->dk,
                                    .dv = h->dv,
                                    .q = at(&r->q, row, h->q),
                                    .k = at(&r->k, row, h->k),
                                    .v = at(&r->v, row, h->v),
                                    .ldq = r->q.d,
                                    .ldk = r->k.d,
                                    .ldv = r->v.d,
                                    .scale = h->scale,
                                    .y = (void *)at(&r->y, row, h->o),
                                    .ldy = r->y.d};
    }
    return units;
}

pare_status attention_elsewhere(const pass *p, pare_dtype t, const pare_attn *a,
                                const pare_attend_job *jobs, size_t count)
{
    elsewhere *const e = p->elsewhere;
    size_t block = 0;
    while (&p->m->blocks[block].attn != a) block++;
    e->st = e->by->fn(e->by->self, block, t, jobs, count, &p->m->pattern, p->graph, &e->err);
    return e->st;
}

static pare_status attend_elsewhere(const pass *p, head_rows *r, const pare_attn *a)
{
    const size_t units = r->q.n / p->tokens * a->nheads;
    pare_attend_job *const jobs = scratch_get(p->ctx.scratch, units, sizeof *jobs);
    if (!jobs) return pare_no_memory(p->ctx.err);
    return attention_elsewhere(p, r->y.t, a, jobs, attention_jobs(jobs, p, r, a));
}

/* Many (sequence, head) pairs are spread over the threads; few share them within; a little work is
 * for one thread. The choice depends on shapes alone. */
pare_status attention_attend(const pass *p, head_rows *h, const pare_attn *a)
{
    enum { SMALL = 1 << 17 }; /* multiplications */
    if (p->elsewhere) return attend_elsewhere(p, h, a);
    const size_t units = h->q.n / p->tokens * a->nheads;
    const double work = (double)h->q.n * (double)p->tokens * (double)(h->q.d + h->y.d);
    const pare_exec *const exec = work < SMALL ? NULL : p->ctx.exec;
    const bool spread = units >= 8;
    head_job w = {p, a, h, spread ? NULL : exec, one_query(a), PARE_OK};
    pare_parallel(spread ? exec : NULL, units, one_head, &w);
    return atomic_load(&w.st) ? pare_no_memory(p->ctx.err) : PARE_OK;
}

static void fill_query(const void *ctx, size_t i, double *v)
{
    (void)i;
    const pare_weight *const bq = ctx;
    for (size_t j = 0; j < bq->cols; j++) v[j] = pare_weight_at(bq, j);
}

static void mean_rows(rows *r, size_t tokens, double *mean, double *row)
{
    for (size_t s = 0; s < r->n; s += tokens) {
        memset(mean, 0, r->d * sizeof *mean);
        for (size_t i = 0; i < tokens; i++) {
            rows_load(row, r, s + i);
            for (size_t j = 0; j < r->d; j++) mean[j] += row[j];
        }
        for (size_t j = 0; j < r->d; j++) mean[j] /= (double)tokens;
        for (size_t i = 0; i < tokens; i++) rows_store(r, s + i, mean);
    }
}

static pare_status queries(const pass *p, rows *q, const rows *z, const pare_attn *a)
{
    if (!pare_has(&a->wq)) return rows_map(q, q, fill_query, &a->bq, &p->ctx);
    const pare_status st = rows_dense(q, z, &a->wq, &a->bq, &p->ctx);
    if (st || a->kind != PARE_ATTN_MEANQ) return st;
    double *const buf = scratch_get(p->ctx.scratch, 2 * q->d, sizeof *buf);
    if (!buf) return pare_no_memory(p->ctx.err);
    mean_rows(q, p->tokens, buf, buf + q->d);
    return PARE_OK;
}

head_rows attention_shape(const pare_attn *a, pare_dtype t, size_t n)
{
    const pare_head *const last = &a->heads[a->nheads - 1];
    const size_t dq = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    return (head_rows){{t, n, dq, NULL},
                       {t, n, a->wk.rows, NULL},
                       {t, n, a->wv.rows, NULL},
                       {t, n, last->o + last->dv, NULL}};
}

pare_status attention_project(const pass *p, head_rows *h, const rows *z, const pare_attn *a)
{
    pare_status st;
    if ((st = queries(p, &h->q, z, a)) || (st = rows_dense(&h->k, z, &a->wk, &a->bk, &p->ctx)) ||
        (st = rows_dense(&h->v, z, &a->wv, &a->bv, &p->ctx)))
        return st;
    return rotate(&h->q, &h->k, a, p->angles, p->first, p->tokens, p->m->stem.pos.interleaved,
                  &p->ctx);
}

/* The heads' outputs side by side: what wo (or the pool's matrix) reads. */
static pare_status pooled(const pass *p, rows *y, const rows *z, const pare_attn *a)
{
    head_rows h = attention_shape(a, z->t, z->n);
    pare_status st;
    if ((st = rows_new(&h.q, &p->ctx, z->t, z->n, h.q.d)) ||
        (st = rows_new(&h.k, &p->ctx, z->t, z->n, h.k.d)) ||
        (st = rows_new(&h.v, &p->ctx, z->t, z->n, h.v.d)) ||
        (st = rows_new(&h.y, &p->ctx, z->t, z->n, h.y.d)) ||
        (st = attention_project(p, &h, z, a)) || (st = attention_attend(p, &h, a)))
        return st;
    *y = h.y;
    return PARE_OK;
}

pare_status attention_join(const pass *p, rows *y, const rows *heads, const pare_attn *a)
{
    if (pare_has(&a->wo)) return rows_dense(y, heads, &a->wo, &a->bo, &p->ctx);
    memcpy(y->v, heads->v, y->n * y->d * pare_dtype_size(y->t));
    return pare_has(&a->bo) ? rows_shift(y, &a->bo, &p->ctx) : PARE_OK;
}

static pare_status softmax_heads(const pass *p, rows *y, const rows *z, const pare_attn *a)
{
    rows heads;
    const pare_status st = pooled(p, &heads, z, a);
    return st ? st : attention_join(p, y, &heads, a);
}

/* ---- replacements ------------------------------------------------------------------------ */

typedef struct mean_ctx {
    const pass *p;
    const rows *x;
} mean_ctx;

/* Row i of U x in f64: the plain mean of what i sees, 0 when it sees nothing. */
static void mean_visible(const void *ctx, size_t i, double *v)
{
    const mean_ctx *const c = ctx;
    const size_t d = c->x->d, first = i / c->p->tokens * c->p->tokens;
    const pare_keys keys = pare_visible(&c->p->m->pattern, c->p->graph, c->p->tokens, i - first);
    memset(v, 0, d * sizeof *v);
    for (size_t j = 0; j < keys.count; j++) {
        const double *const x = (const double *)c->x->v + (first + pare_key(&keys, j)) * d;
        for (size_t e = 0; e < d; e++) v[e] += x[e];
    }
    for (size_t e = 0; keys.count && e < d; e++) v[e] /= (double)keys.count;
}

/* The same where a row sees all rows, or all up to itself: one sum that grows. The terms come in
 * the same order, so the bits are those of the plain mean. */
static void mean_running(const pass *p, rows *y, const rows *x, double *sum, double *row)
{
    const size_t n = p->tokens, d = x->d;
    const bool full = p->m->pattern.kind == PARE_FULL;
    for (size_t s = 0; s < x->n; s += n) {
        memset(sum, 0, d * sizeof *sum);
        for (size_t i = 0; i < n; i++) {
            rows_load(row, x, s + i);
            for (size_t e = 0; e < d; e++) sum[e] += row[e];
            for (size_t e = 0; !full && e < d; e++) row[e] = sum[e] / (double)(i + 1);
            if (!full) rows_store(y, s + i, row);
        }
        for (size_t e = 0; full && e < d; e++) row[e] = sum[e] / (double)n;
        for (size_t i = 0; full && i < n; i++) rows_store(y, s + i, row);
    }
}

static pare_status average_f64(const pass *p, rows *y, const rows *x)
{
    const mean_ctx c = {p, x};
    const pare_pattern_kind k = p->m->pattern.kind;
    if (k != PARE_FULL && k != PARE_CAUSAL) return rows_map(y, x, mean_visible, &c, &p->ctx);
    double *const buf = scratch_get(p->ctx.scratch, 2 * x->d, sizeof *buf);
    if (!buf) return pare_no_memory(p->ctx.err);
    mean_running(p, y, x, buf, buf + x->d);
    return PARE_OK;
}

typedef struct mean_job {
    const pass *p;
    const rows *x;
    rows *y;
    const pare_exec *inner; /* threads within one sequence */
    atomic_int st;
} mean_job;

static void mean_sequence(void *self, size_t s)
{
    mean_job *const w = self;
    const size_t n = w->p->tokens;
    pare_mat32 y = view32(w->y, s * n, n, 0, w->y->d);
    const pare_mat32 x = view32(w->x, s * n, n, 0, w->x->d);
    const pare_status st =
        pare_mean_f32(&y, &x, NULL, &w->p->m->pattern, w->p->graph, w->inner, NULL);
    if (st) atomic_store(&w->st, (int)st);
}

/* y = U x, the sequences shared out, or the rows of a few. */
static pare_status average(const pass *p, rows *y, const rows *x)
{
    const pare_status st = rows_new(y, &p->ctx, x->t, x->n, x->d);
    if (st) return st;
    if (x->t == PARE_F64) return average_f64(p, y, x);
    const size_t sequences = x->n / p->tokens;
    const bool spread = sequences >= 8;
    mean_job w = {p, x, y, spread ? NULL : p->ctx.exec, PARE_OK};
    pare_parallel(spread ? p->ctx.exec : NULL, sequences, mean_sequence, &w);
    return atomic_load(&w.st) ? pare_no_memory(p->ctx.err) : PARE_OK;
}

static void bias_row(const void *ctx, size_t i, double *v)
{
    (void)i;
    const pare_weight *const b = ctx;
    for (size_t j = 0; j < b->cols; j++) v[j] = pare_weight_at(b, j);
}

/* y = bo on every row, or 0. */
static pare_status constant(const pass *p, rows *y, const pare_attn *a)
{
    if (pare_has(&a->bo)) return rows_map(y, y, bias_row, &a->bo, &p->ctx);
    memset(y->v, 0, y->n * y->d * pare_dtype_size(y->t));
    return PARE_OK;
}

/* y += x w^T (+ b) */
static pare_status add_product(const pass *p, rows *y, const rows *x, const pare_weight *w)
{
    rows t;
    pare_status st;
    if ((st = rows_new(&t, &p->ctx, y->t, y->n, y->d)) ||
        (st = rows_dense(&t, x, w, NULL, &p->ctx)))
        return st;
    return rows_add(y, &t, NULL, &p->ctx);
}

/* U (z mix^T + bv) + bo */
static pare_status uniform(const pass *p, rows *y, const rows *z, const pare_attn *a)
{
    rows values, mean;
    pare_status st;
    if ((st = rows_new(&values, &p->ctx, z->t, z->n, a->dout)) ||
        (st = rows_dense(&values, z, &a->mix, &a->bv, &p->ctx)) ||
        (st = average(p, &mean, &values)) || (st = constant(p, y, a)))
        return st;
    return rows_add(y, &mean, NULL, &p->ctx);
}

/* sum_j U^j z E_j + bo; mix stacks the E_j^T. */
static pare_status umix(const pass *p, rows *y, const rows *z, const pare_attn *a)
{
    const size_t powers = a->mix.rows / a->dout, size = pare_dtype_size(a->mix.dtype);
    rows x = *z, next;
    pare_status st = constant(p, y, a);
    for (size_t j = 0; !st && j < powers; j++) {
        const pare_weight e = {a->mix.dtype, a->dout, a->mix.cols,
                               (const char *)a->mix.data + j * a->dout * a->mix.cols * size};
        if (j > 0) {
            if ((st = average(p, &next, &x))) return st;
            x = next;
        }
        st = add_product(p, y, &x, &e);
    }
    return st;
}

static pare_status affmix(const pass *p, rows *y, const rows *z, const pare_attn *a)
{
    rows mean;
    pare_status st;
    if ((st = rows_dense(y, z, &a->matrix, &a->bo, &p->ctx)) || (st = average(p, &mean, z)))
        return st;
    return add_product(p, y, &mean, &a->mix);
}

/* Rows of a and of b side by side. */
static void side_by_side(rows *y, const rows *a, const rows *b)
{
    const size_t size = pare_dtype_size(y->t), na = a->d * size, nb = b->d * size;
    char *to = y->v;
    const char *left = a->v, *right = b->v;
    for (size_t i = 0; i < y->n; i++, to += na + nb, left += na, right += nb) {
        memcpy(to, left, na);
        memcpy(to + na, right, nb);
    }
}

static pare_status pool(const pass *p, rows *y, const rows *z, const pare_attn *a)
{
    rows heads, both;
    pare_status st;
    if ((st = pooled(p, &heads, z, a)) ||
        (st = rows_new(&both, &p->ctx, z->t, z->n, z->d + heads.d)))
        return st;
    side_by_side(&both, z, &heads);
    return rows_dense(y, &both, &a->matrix, &a->bo, &p->ctx);
}

bool attention_has_heads(const pare_attn *a)
{
    return a->kind == PARE_ATTN_EXACT || a->kind == PARE_ATTN_POLY || a->kind == PARE_ATTN_CONSTQ;
}

bool attention_by_rows(const pare_attn *a)
{
    return a->kind == PARE_ATTN_ZERO || a->kind == PARE_ATTN_CONST || a->kind == PARE_ATTN_LINEAR;
}

pare_status attention_branch(const pass *p, rows *y, const rows *z, const pare_attn *a)
{
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        return softmax_heads(p, y, z, a);
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        return constant(p, y, a);
    case PARE_ATTN_UNIFORM:
        return uniform(p, y, z, a);
    case PARE_ATTN_LINEAR:
        return rows_dense(y, z, &a->matrix, &a->bo, &p->ctx);
    case PARE_ATTN_AFFMIX:
        return affmix(p, y, z, a);
    case PARE_ATTN_POOL:
        return pool(p, y, z, a);
    case PARE_ATTN_UMIX:
        return umix(p, y, z, a);
    }
    return PARE_OK;
}
