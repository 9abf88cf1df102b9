/* forward_attn.c - the attention branch of a forward pass.
 *
 *     exact, poly, constq, meanq   softmax heads, then wo and bo
 *     uniform                      U (z mix^T + bv) + bo
 *     affmix                       z matrix^T + U z mix^T + bo
 *     umix                         sum_j U^j z E_j + bo
 *     linear, const, zero          z matrix^T + bo,  bo,  0
 *     pool                         [z, softmax heads] matrix^T + bo
 *
 * Row i of U x is the plain mean of the rows that i sees. */
#include "attention/attend.h"
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
    bool one_query;         /* the queries of all rows are equal */
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

static size_t block_of(const pare_model *m, const pare_attn *a)
{
    size_t block = 0;
    while (&m->blocks[block].attn != a) block++;
    return block;
}

static void attend_head(void *self, size_t unit)
{
    head_job *const w = self;
    const size_t head = unit % w->a->nheads;
    const pare_head *const h = &w->a->heads[head];
    const head_rows *const r = w->h;
    const size_t s = unit / w->a->nheads, n = pass_tokens(w->p, s), row = pass_row(w->p, s);
    const pare_pattern *const pattern = &w->p->m->pattern;
    pare_status st = PARE_OK;
    if (r->y.t == PARE_F64) {
        pare_mat y = view64(&r->y, row, n, h->o, h->dv);
        const pare_mat q = view64(&r->q, row, n, h->q, h->dk);
        const pare_mat k = view64(&r->k, row, n, h->k, h->dk);
        const pare_mat v = view64(&r->v, row, n, h->v, h->dv);
        const pare_attention_args x = {
            .q = &q, .k = &k, .v = &v, .scale = h->scale, .pattern = pattern, .graph = w->p->graph};
        st = pare_attend_f64(&y, &x, w->inner, NULL);
    } else {
        pare_mat32 y = view32(&r->y, row, n, h->o, h->dv);
        const pare_mat32 q = view32(&r->q, row, n, h->q, h->dk);
        const pare_mat32 k = view32(&r->k, row, n, h->k, h->dk);
        const pare_mat32 v = view32(&r->v, row, n, h->v, h->dv);
        const pare_attention_args32 x = {
            .q = &q, .k = &k, .v = &v, .scale = h->scale, .pattern = pattern, .graph = w->p->graph};
        const bool poly = w->a->kind == PARE_ATTN_POLY;
        if (poly) {
            const pare_poly_opts o = {.tolerance = w->a->tolerance, .degree = -1};
            const pare_trace *const trace = w->p->trace;
            pare_poly_report report;
            st = pare_poly_f32(&y, &report, &x, &o, w->inner, NULL);
            if (!st && trace && trace->poly) {
                static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
                pthread_mutex_lock(&one_at_a_time);
                trace->poly(trace->self, block_of(w->p->m, w->a), head, &report);
                pthread_mutex_unlock(&one_at_a_time);
            }
        }
        /* Polynomial attention refuses nan and inf; the exact kernel propagates them, as it does
         * for every other kind. */
        if (!poly || st == PARE_ERR_NONFINITE)
            st = (w->one_query ? pare_attend_same_f32 : pare_attend_f32)(&y, &x, w->inner, NULL);
    }
    if (st) atomic_store(&w->st, (int)st);
}

static const void *entry_at(const rows *r, size_t row, size_t column)
{
    return (const char *)r->v + (row * r->d + column) * pare_dtype_size(r->t);
}

size_t attention_jobs(pare_attend_job *jobs, const pass *p, const head_rows *r, const pare_attn *a)
{
    const size_t units = p->count * a->nheads;
    for (size_t u = 0; u < units; u++) {
        const pare_head *const h = &a->heads[u % a->nheads];
        const size_t n = pass_tokens(p, u / a->nheads), row = pass_row(p, u / a->nheads);
        jobs[u] = (pare_attend_job){.n = n,
                                    .dk = h->dk,
                                    .dv = h->dv,
                                    .q = entry_at(&r->q, row, h->q),
                                    .k = entry_at(&r->k, row, h->k),
                                    .v = entry_at(&r->v, row, h->v),
                                    .ldq = r->q.d,
                                    .ldk = r->k.d,
                                    .ldv = r->v.d,
                                    .scale = h->scale,
                                    .y = (void *)entry_at(&r->y, row, h->o),
                                    .ldy = r->y.d};
    }
    return units;
}

void attention_external(pass *p, pare_dtype t, const pare_attn *a, const pare_attend_job *jobs,
                        size_t count)
{
    external_attention *const e = p->external;
    if (p->ctx.work.st) return;
    e->st = e->attender->fn(e->attender->self, block_of(p->m, a), t, jobs, count, &p->m->pattern,
                            p->graph, &e->err);
    p->ctx.work.st = e->st;
}

/* Many (sequence, head) pairs are spread over the threads; few share them within; a little work is
 * for one thread. The choice depends on shapes alone. */
void attention_attend(pass *p, head_rows *h, const pare_attn *a)
{
    enum { SMALL = 1 << 17 }; /* multiplications */
    const size_t units = p->count * a->nheads;
    if (p->external) {
        pare_attend_job *const jobs = rows_scratch(&p->ctx, units, sizeof *jobs);
        if (jobs) attention_external(p, h->y.t, a, jobs, attention_jobs(jobs, p, h, a));
        return;
    }
    if (p->ctx.work.st) return;
    const double work = (double)h->q.n * (double)p->layout->longest * (double)(h->q.d + h->y.d);
    const pare_exec *const exec = work < SMALL ? NULL : p->ctx.work.exec;
    const bool spread = units >= 8;
    bool one_query = !pare_has(&a->wq) || a->kind == PARE_ATTN_MEANQ;
    for (size_t i = 0; i < a->nheads; i++)
        one_query = one_query && !a->heads[i].planes; /* rotary positions make queries differ */
    head_job w = {p, a, h, spread ? NULL : exec, one_query, PARE_OK};
    pare_parallel(spread ? exec : NULL, units, attend_head, &w);
    if (atomic_load(&w.st)) p->ctx.work.st = pare_no_memory(p->ctx.work.err);
}

static void copy_vector(const void *self, size_t i, double *v)
{
    (void)i;
    const pare_weight *const b = self;
    for (size_t j = 0; j < b->cols; j++) v[j] = pare_weight_at(b, j);
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

void attention_project(pass *p, head_rows *h, const rows *z, const pare_attn *a)
{
    rows_ctx *const c = &p->ctx;
    const size_t d = h->q.d;
    if (pare_has(&a->wq))
        rows_dense(&h->q, z, &a->wq, &a->bq, c);
    else
        rows_each(&h->q, &h->q, copy_vector, &a->bq, c);
    if (a->kind == PARE_ATTN_MEANQ) { /* every query of a sequence becomes their mean */
        double *const mean = rows_scratch(c, 2 * d, sizeof *mean), *const row =
                                                                       mean ? mean + d : NULL;
        for (size_t s = 0; mean && s < p->count; s++) {
            const size_t first = pass_row(p, s), n = pass_tokens(p, s);
            memset(mean, 0, d * sizeof *mean);
            for (size_t i = 0; i < n; i++) {
                rows_load(row, &h->q, first + i);
                for (size_t j = 0; j < d; j++) mean[j] += row[j];
            }
            for (size_t j = 0; j < d; j++) mean[j] /= (double)n;
            for (size_t i = 0; i < n; i++) rows_store(&h->q, first + i, mean);
        }
    }
    rows_dense(&h->k, z, &a->wk, &a->bk, c);
    rows_dense(&h->v, z, &a->wv, &a->bv, c);
    rotate(&h->q, &h->k, a, p->angles, p->layout, p->row + p->first,
           p->m->embedding.pos.interleaved, c);
}

/* The outputs of all heads side by side: what wo (or the pool's matrix) reads. */
static rows head_outputs(pass *p, const rows *z, const pare_attn *a)
{
    rows_ctx *const c = &p->ctx;
    head_rows h = attention_shape(a, z->t, z->n);
    h.q = rows_new(c, z->t, z->n, h.q.d);
    h.k = rows_new(c, z->t, z->n, h.k.d);
    h.v = rows_new(c, z->t, z->n, h.v.d);
    h.y = rows_new(c, z->t, z->n, h.y.d);
    attention_project(p, &h, z, a);
    attention_attend(p, &h, a);
    return h.y;
}

void attention_output(pass *p, rows *y, const rows *heads, const pare_attn *a)
{
    if (pare_has(&a->wo)) {
        rows_dense(y, heads, &a->wo, &a->bo, &p->ctx);
        return;
    }
    if (p->ctx.work.st) return;
    memcpy(y->v, heads->v, y->n * y->d * pare_dtype_size(y->t));
    if (pare_has(&a->bo)) rows_shift(y, &a->bo, &p->ctx);
}

/* ---- replacements ---------------------------------------------------------------------------- */

typedef struct mean_job {
    const pass *p;
    const rows *x;
    rows *y;
    const pare_exec *inner; /* threads within one sequence */
    atomic_int st;
} mean_job;

static void mean_sequence_f32(void *self, size_t s)
{
    mean_job *const w = self;
    const size_t n = pass_tokens(w->p, s), row = pass_row(w->p, s);
    pare_mat32 y = view32(w->y, row, n, 0, w->y->d);
    const pare_mat32 x = view32(w->x, row, n, 0, w->x->d);
    const pare_status st =
        pare_mean_f32(&y, &x, NULL, &w->p->m->pattern, w->p->graph, w->inner, NULL);
    if (st) atomic_store(&w->st, (int)st);
}

/* Row i of U x in f64: the plain mean of what i sees, 0 when it sees nothing. */
static void mean_visible(const void *self, size_t i, double *v)
{
    const mean_job *const c = self;
    const size_t d = c->x->d, s = sequence_of(c->p->layout, c->p->row + i) - c->p->from;
    const size_t first = pass_row(c->p, s), n = pass_tokens(c->p, s);
    const pare_keys keys = pare_visible(&c->p->m->pattern, c->p->graph, n, i - first);
    memset(v, 0, d * sizeof *v);
    for (size_t j = 0; j < keys.count; j++) {
        const double *const x = (const double *)c->x->v + (first + pare_key(&keys, j)) * d;
        for (size_t e = 0; e < d; e++) v[e] += x[e];
    }
    for (size_t e = 0; keys.count && e < d; e++) v[e] /= (double)keys.count;
}

/* U x. In f32 the sequences are spread over the threads, or the rows of a few. */
static rows visible_means(pass *p, const rows *x)
{
    rows y = rows_new(&p->ctx, x->t, x->n, x->d);
    const pare_pattern_kind k = p->m->pattern.kind;
    const bool spread = p->count >= 8;
    const pare_exec *const exec = p->ctx.work.exec;
    mean_job w = {p, x, &y, spread ? NULL : exec, PARE_OK};
    if (p->ctx.work.st) return y;
    if (x->t == PARE_F32) {
        pare_parallel(spread ? exec : NULL, p->count, mean_sequence_f32, &w);
        if (atomic_load(&w.st)) p->ctx.work.st = pare_no_memory(p->ctx.work.err);
    } else if (k == PARE_FULL || k == PARE_CAUSAL) {
        /* One running sum. The terms come in the same order: the bits are those of the plain
         * mean. */
        const size_t d = x->d;
        const bool full = k == PARE_FULL;
        double *const sum = rows_scratch(&p->ctx, 2 * d, sizeof *sum), *const row =
                                                                           sum ? sum + d : NULL;
        for (size_t s = 0; sum && s < p->count; s++) {
            const size_t first = pass_row(p, s), n = pass_tokens(p, s);
            memset(sum, 0, d * sizeof *sum);
            for (size_t i = 0; i < n; i++) {
                rows_load(row, x, first + i);
                for (size_t e = 0; e < d; e++) sum[e] += row[e];
                for (size_t e = 0; !full && e < d; e++) row[e] = sum[e] / (double)(i + 1);
                if (!full) rows_store(&y, first + i, row);
            }
            for (size_t e = 0; full && e < d; e++) row[e] = sum[e] / (double)n;
            for (size_t i = 0; full && i < n; i++) rows_store(&y, first + i, row);
        }
    } else {
        rows_each(&y, x, mean_visible, &w, &p->ctx);
    }
    return y;
}

/* y = bo on every row, or 0. */
static void constant(pass *p, rows *y, const pare_attn *a)
{
    if (pare_has(&a->bo))
        rows_each(y, y, copy_vector, &a->bo, &p->ctx);
    else if (!p->ctx.work.st)
        memset(y->v, 0, y->n * y->d * pare_dtype_size(y->t));
}

/* y += x w^T */
static void add_product(pass *p, rows *y, const rows *x, const pare_weight *w)
{
    rows product = rows_new(&p->ctx, y->t, y->n, y->d);
    rows_dense(&product, x, w, NULL, &p->ctx);
    rows_add(y, &product, NULL, &p->ctx);
}

bool attention_has_heads(const pare_attn *a)
{
    return a->kind == PARE_ATTN_EXACT || a->kind == PARE_ATTN_POLY || a->kind == PARE_ATTN_CONSTQ;
}

bool attention_by_rows(const pare_attn *a)
{
    return a->kind == PARE_ATTN_ZERO || a->kind == PARE_ATTN_CONST || a->kind == PARE_ATTN_LINEAR;
}

void attention_branch(pass *p, rows *y, const rows *z, const pare_attn *a)
{
    rows_ctx *const c = &p->ctx;
    const size_t size = pare_dtype_size(z->t);
    rows x;
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        x = head_outputs(p, z, a);
        attention_output(p, y, &x, a);
        break;
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        constant(p, y, a);
        break;
    case PARE_ATTN_UNIFORM:
        x = rows_new(c, z->t, z->n, a->dout);
        rows_dense(&x, z, &a->mix, &a->bv, c);
        x = visible_means(p, &x);
        constant(p, y, a);
        rows_add(y, &x, NULL, c);
        break;
    case PARE_ATTN_LINEAR:
        rows_dense(y, z, &a->matrix, &a->bo, c);
        break;
    case PARE_ATTN_AFFMIX:
        rows_dense(y, z, &a->matrix, &a->bo, c);
        x = visible_means(p, z);
        add_product(p, y, &x, &a->mix);
        break;
    case PARE_ATTN_POOL: { /* rows of z and of the heads side by side, times the matrix */
        x = head_outputs(p, z, a);
        rows both = rows_new(c, z->t, z->n, z->d + x.d);
        if (c->work.st) return;
        const size_t left = z->d * size, right = x.d * size;
        for (size_t i = 0; i < z->n; i++) {
            char *const to = (char *)both.v + i * (left + right);
            memcpy(to, (const char *)z->v + i * left, left);
            memcpy(to + left, (const char *)x.v + i * right, right);
        }
        rows_dense(y, &both, &a->matrix, &a->bo, c);
        break;
    }
    case PARE_ATTN_UMIX: /* mix stacks the E_j^T */
        x = *z;
        constant(p, y, a);
        for (size_t j = 0; j < a->mix.rows / a->dout; j++) {
            const size_t bytes = a->dout * a->mix.cols * pare_dtype_size(a->mix.dtype);
            const pare_weight e = {a->mix.dtype, a->dout, a->mix.cols,
                                   (const char *)a->mix.data + j * bytes};
            if (j > 0) x = visible_means(p, &x);
            add_product(p, y, &x, &e);
        }
        break;
    }
}
