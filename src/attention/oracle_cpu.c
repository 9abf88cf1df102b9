/* oracle_cpu.c - the built-in oracle: partial calls and plain attention on the kernels of this
 * module. */
#include "oracle_calls.h"
#include "rows_f64.h"
#include "tiled.h"
#include <math.h>
#include "base/support.h"
#include "linalg/elementary.h"
#include <pare/attention.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct cpu {
    pare_dtype dtype;
    uint32_t max_len; /* UINT32_MAX: any */
    const pare_exec *exec;
} cpu;

static void caps(void *self, pare_oracle_caps *out)
{
    const cpu *const o = self;
    const bool f32 = o->dtype == PARE_F32;
    *out = (pare_oracle_caps){
        .size = sizeof *out,
        .features = PARE_ORC_FULL | PARE_ORC_CAUSAL | PARE_ORC_PARTIAL | PARE_ORC_QKV |
                    PARE_ORC_SPLIT | PARE_ORC_WHOLE | (f32 ? PARE_ORC_ADD : 0),
        .max_len = o->max_len,
        .dtype = o->dtype,
        .exp_flush = f32 ? 104 : 746,
        .exp_err = f32 ? 4 : 2, /* 2 ulp of pare_exp_f32, 2 u of pare_exp */
        .w_min = f32 ? 0x1p-80 : 0x1p-900,
    };
}

/* ---- what is refused ------------------------------------------------------------------------- */

static pare_status check_rows(const cpu *o, const char *what, uint32_t n, pare_err *err)
{
    if (n <= o->max_len) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "oracle call: %u %s, the oracle takes at most %u",
                     (unsigned)n, what, (unsigned)o->max_len);
}

static pare_status check_call(const cpu *o, const pare_call *c, pare_err *err)
{
    const pare_call_partial *const p = &c->u.p;
    pare_status st;
    if (c->into.weigh && c->kind != PARE_CALL_STRICT) {
        const pare_call_partial rows = oracle_partial_of(c);
        if (o->dtype != PARE_F32)
            return pare_fail(err, PARE_ERR_INPUT, "oracle call: only f32 is added to sums");
        if (c->kind == PARE_CALL_QKV && c->u.a.dv2 != 2)
            return pare_fail(err, PARE_ERR_INPUT,
                             "oracle call: sums of rows that %u columns weigh, not 2",
                             (unsigned)c->u.a.dv2);
        if (c->into.rows > rows.nq || c->into.ld < rows.dv)
            return pare_fail(
                err, PARE_ERR_INPUT, "oracle call: %u sums of %u numbers, ld %zu, of %u queries",
                (unsigned)c->into.rows, (unsigned)rows.dv, c->into.ld, (unsigned)rows.nq);
    }
    switch (c->kind) {
    case PARE_CALL_PARTIAL:
        if ((st = check_rows(o, "queries", p->nq, err)) || (st = check_rows(o, "keys", p->nk, err)))
            return st;
        if (p->ldq < p->dk || p->ldk < p->dk || p->ldv < p->dv ||
            (!c->into.weigh && p->ldacc < p->dv))
            return pare_fail(err, PARE_ERR_INPUT,
                             "oracle call: rows of %u and %u numbers overlap: ld %zu %zu %zu %zu",
                             (unsigned)p->dk, (unsigned)p->dv, p->ldq, p->ldk, p->ldv, p->ldacc);
        return PARE_OK;
    case PARE_CALL_QKV:
        if (c->u.a.bias)
            return pare_fail(err, PARE_ERR_INPUT, "oracle call: the cpu oracle takes no bias");
        return check_rows(o, "tokens", c->u.a.n, err);
    case PARE_CALL_STRICT:
        break;
    }
    return pare_fail(err, PARE_ERR_INPUT,
                     "oracle call: the cpu oracle knows partial and qkv calls");
}

/* ---- f32: the kernels ------------------------------------------------------------------------ */

enum { GRID = 96, ACROSS = 4 }; /* requests that share work, at most; of them with the same keys */

/* One job of the kernels: a call, or several calls whose rows follow one another. */
typedef struct request {
    pare_call_partial p;
    pare_call_qkv qkv; /* extra values in an array of their own; zeros for a partial call */
    pare_call_sums into;
    size_t calls;
    pare_mat32 q, k, v, v2; /* views for the kernels */
} request;

static request request_of(const pare_call *c)
{
    request x = {.p = oracle_partial_of(c), .into = c->into, .calls = 1};
    if (c->kind == PARE_CALL_QKV) x.qkv = c->u.a;
    if (x.into.weigh) x.p.nq = x.into.rows;
    return x;
}

static bool same_keys(const request *a, const request *b)
{
    return a->p.k == b->p.k && a->p.ldk == b->p.ldk && a->p.v == b->p.v && a->p.ldv == b->p.ldv &&
           a->p.nk == b->p.nk && a->p.dk == b->p.dk && a->p.dv == b->p.dv &&
           a->qkv.dv2 == b->qkv.dv2 && (!a->qkv.dv2 || a->qkv.v2 == b->qkv.v2);
}

static bool sees_all(const pare_call_partial *p)
{
    return p->vis0 >= (int64_t)p->nk;
}

/* Whether rows that are added to sums follow those of x in all arrays: with the same keys they are
 * one request, since no row depends on others. */
static bool follows_last(const pare_call *c, const request *x)
{
    const pare_call_sums *const s = &x->into, *const t = &c->into;
    if (!s->weigh || t->weigh != s->weigh || t->ctx != s->ctx || t->ld != s->ld ||
        t->sum != s->sum + x->p.nq * s->ld || t->row != s->row + x->p.nq || !sees_all(&x->p))
        return false;
    const pare_call_partial *const p = &c->u.p, *const have = &x->p;
    const pare_call_qkv *const a = &c->u.a, *const have_qkv = &x->qkv;
    const float *const q = (const float *)have->q + have->nq * have->ldq;
    if (c->kind == PARE_CALL_PARTIAL)
        return !have_qkv->n && p->q == q && p->ldq == have->ldq && p->k == have->k &&
               p->ldk == have->ldk && p->v == have->v && p->ldv == have->ldv && p->nk == have->nk &&
               p->dk == have->dk && p->dv == have->dv && sees_all(p);
    return a->n == have_qkv->n && a->q == q && a->k == have->k && a->v == have->v &&
           a->dk == have->dk && a->dv == have->dv && !a->causal && a->v2 == have_qkv->v2 &&
           a->dv2 == have_qkv->dv2;
}

/* Requests x[0], x[1], ... as a grid: how many in a row have the keys of the first, and how many
 * such rows of the same queries follow one another. Rows that are added to sums have an order: they
 * are never in one row of the grid. */
static tiled_grid find_grid(const request *x, size_t count)
{
    tiled_grid g = {NULL, 1, 1, tile_rows_kernel()};
    while (g.across < count && g.across < ACROSS && !x[g.across].into.weigh &&
           same_keys(&x[0], &x[g.across]))
        g.across++;
    for (size_t row = g.across; row + g.across <= count; row += g.across, g.down++)
        for (size_t i = 0; i < g.across; i++) {
            const request *const a = &x[i], *const b = &x[row + i];
            const bool same_queries = a->p.q == b->p.q && a->p.ldq == b->p.ldq &&
                                      a->p.nq == b->p.nq && a->p.dk == b->p.dk &&
                                      a->p.dv == b->p.dv && !a->into.weigh == !b->into.weigh;
            if (!same_queries || !same_keys(&x[row], b)) return g;
        }
    return g;
}

static pare_mat32 view(const void *v, size_t rows, size_t cols, size_t ld)
{
    return (pare_mat32){rows, cols, ld, (float *)v};
}

/* The first grid of the calls; *done: how many calls it is. */
static pare_status run_grid_f32(const pare_call *calls, size_t count, size_t *done,
                                const pare_exec *exec)
{
    request requests[GRID];
    tiled_job jobs[GRID];
    tile_kernel kernels[3];
    tile_kernels(kernels);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        request *const last = n ? &requests[n - 1] : NULL;
        if (last && follows_last(&calls[i], last)) {
            last->p.nq += calls[i].into.rows;
            last->calls++;
        } else if (n < GRID) {
            requests[n++] = request_of(&calls[i]);
        } else {
            break;
        }
    }
    tiled_grid g = find_grid(requests, n);
    g.jobs = jobs;
    *done = 0;
    for (size_t i = 0; i < g.across * g.down; i++) {
        request *const x = &requests[i];
        const pare_call_partial *const p = &x->p;
        const pare_call_qkv *const a = &x->qkv;
        x->q = view(p->q, p->nq, p->dk, p->ldq);
        x->k = view(p->k, p->nk, p->dk, p->ldk);
        x->v = view(p->v, p->nk, p->dv, p->ldv);
        x->v2 = view(a->v2, p->nk, a->dv2, a->dv2);
        jobs[i] = (tiled_job){.q = &x->q,
                              .k = &x->k,
                              .v = &x->v,
                              .extra = a->dv2 ? &x->v2 : NULL,
                              .scale = 1,
                              .mask = staircase_mask(p->vis0, p->nq, p->nk),
                              .kernel = &kernels[0],
                              .y = view(p->acc, p->nq, p->dv, p->ldacc),
                              .extra_y = view(a->y2, p->nq, a->dv2, a->dv2),
                              .m = p->m,
                              .l = p->l,
                              .into = x->into.weigh ? &x->into : NULL};
        *done += x->calls;
    }
    return tiled_attend_grid(&g, exec, NULL);
}

/* ---- f64: plain loops ------------------------------------------------------------------------ */

/* acc = sum_j w_j v_j / by */
static void weighted_mean(double *acc, const double *w, const double *v, size_t ldv, size_t dv,
                          size_t n, double by)
{
    memset(acc, 0, dv * sizeof *acc);
    for (size_t j = 0; j < n; j++) add_scaled_f64(acc, w[j], v + j * ldv, dv);
    for (size_t c = 0; c < dv; c++) acc[c] /= by;
}

static pare_status run_call_f64(const pare_call *call)
{
    const request x = request_of(call);
    const pare_call_partial *const p = &x.p;
    const size_t dv2 = x.qkv.dv2;
    double *const s = malloc((p->nk ? p->nk : 1) * sizeof *s);
    if (!s) return PARE_ERR_MEMORY;
    for (size_t i = 0; i < p->nq; i++) {
        const double *const q = (const double *)p->q + i * p->ldq, *const k = p->k;
        const size_t n = oracle_visible_keys(p, i);
        double row_max = -INFINITY, sum = 0;
        for (size_t j = 0; j < n; j++) {
            s[j] = dot_f64(q, k + j * p->ldk, p->dk);
            if (s[j] > row_max) row_max = s[j];
        }
        for (size_t j = 0; j < n; j++) sum += s[j] = pare_exp(s[j] - row_max);
        if (p->m) {
            ((double *)p->m)[i] = row_max;
            ((double *)p->l)[i] = sum;
        }
        const double by = p->m ? 1 : sum;
        weighted_mean((double *)p->acc + i * p->ldacc, s, p->v, p->ldv, p->dv, n, by);
        if (dv2) weighted_mean((double *)x.qkv.y2 + i * dv2, s, x.qkv.v2, dv2, dv2, n, by);
    }
    free(s);
    return PARE_OK;
}

/* ---- a round --------------------------------------------------------------------------------- */

typedef struct batch {
    const cpu *o;
    const pare_call *calls;
    size_t n, per_block;    /* calls; of them in one block of work */
    const pare_exec *inner; /* threads within one call; NULL when calls are spread over threads */
    atomic_bool no_memory;
} batch;

static void run_block(void *ctx, size_t b)
{
    batch *const w = ctx;
    const size_t first = b * w->per_block;
    const size_t end = w->n - first < w->per_block ? w->n : first + w->per_block;
    for (size_t i = first, done = 1; i < end; i += done)
        if (w->o->dtype == PARE_F32 ? run_grid_f32(&w->calls[i], end - i, &done, w->inner)
                                    : run_call_f64(&w->calls[i]))
            atomic_store(&w->no_memory, true);
}

/* Many calls are spread over the threads in blocks; few run one after the other, with threads
 * within each, and so do those that are added to sums, which have an order. May depend on the
 * threads, because no call depends on the others nor on its threads. */
static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    enum { BLOCKS = 4 }; /* per thread */
    const cpu *const o = self;
    bool ordered = false;
    for (size_t i = 0; i < n; i++) {
        const pare_status st = check_call(o, &calls[i], err);
        if (st) return st;
        ordered = ordered || calls[i].into.weigh;
    }
    const size_t threads = o->exec ? (size_t)o->exec->threads : 1, share = n / (BLOCKS * threads);
    /* the loops in f64 know no threads */
    const bool spread = threads > 1 && !ordered && (share > 0 || o->dtype == PARE_F64);
    batch b = {.o = o, .calls = calls, .n = n, .inner = spread ? NULL : o->exec};
    b.per_block = !spread ? n + 1 : share > GRID ? GRID : share > 1 ? share : 1;
    pare_status st = pare_parallel_until(spread ? o->exec : NULL,
                                         (n + b.per_block - 1) / b.per_block, run_block, &b, err);
    if (atomic_load(&b.no_memory)) st = pare_no_memory(err);
    return pare_or_stopped(o->exec, st, err);
}

static pare_status barrier(void *self, pare_err *err)
{
    (void)self, (void)err; /* evaluate has waited */
    return PARE_OK;
}

pare_status pare_oracle_cpu(pare_oracle *out, pare_dtype dtype, uint32_t max_len,
                            const pare_exec *exec, pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, free};
    PARE_ASSERT(dtype == PARE_F32 || dtype == PARE_F64);
    cpu *const o = malloc(sizeof *o);
    if (!o) return pare_no_memory(err);
    *o = (cpu){dtype, max_len ? max_len : UINT32_MAX, exec};
    out->ops = &ops;
    out->self = o;
    return PARE_OK;
}
