/* model_norms.c - proven norms of every matrix a model multiplies by.
 *
 * A list of (matrix, bias, where to write) is laid out first and then worked off by all threads:
 * each matrix is one job. Spectral norms come from pare_norm_spectral, which is proven; where it
 * cannot say anything the Frobenius norm stands, which is a bound as well. The classifier needs
 * only its longest row: every logit is one row times the hidden vector. */
#include "model/model_facts.h"
#include "base/support.h"
#include "linalg/bounds.h"
#include "model_norms.h"
#include <math.h>
#include <stdatomic.h>

typedef struct job {
    pare_weight w, b;
    dense_norms *to;
    bool rows_only;
} job;

typedef struct work {
    job *jobs;
    size_t n, capacity;
    const pare_exec *exec;
    atomic_bool no_memory;
} work;

pare_weight weight_rows(const pare_weight *w, size_t r, size_t rows)
{
    if (!pare_has(w)) return (pare_weight){0};
    PARE_ASSERT(r <= w->rows && rows <= w->rows - r);
    const size_t skip = r * w->cols * pare_dtype_size(w->dtype);
    return (pare_weight){w->dtype, rows, w->cols, (const char *)w->data + skip};
}

pare_weight vector_part(const pare_weight *v, size_t at, size_t n)
{
    if (!pare_has(v)) return (pare_weight){0};
    PARE_ASSERT(at <= v->rows * v->cols && n <= v->rows * v->cols - at);
    return (pare_weight){v->dtype, 1, n, (const char *)v->data + at * pare_dtype_size(v->dtype)};
}

static void add_job(work *k, dense_norms *to, pare_weight w, pare_weight b)
{
    if (!pare_has(&w) && !pare_has(&b)) return;
    if (k->jobs) {
        PARE_ASSERT(k->n < k->capacity);
        k->jobs[k->n] = (job){.w = w, .b = b, .to = to};
    }
    k->n++;
}

/* ---- one matrix ----------------------------------------------------------------------------- */

static pare_ub spectral_bound(const pare_weight *w, atomic_bool *no_memory)
{
    pare_ub two = pare_norm_fro(w);
    pare_arena *scratch = pare_arena_new();
    pare_ub proven;
    if (!scratch) {
        atomic_store(no_memory, true);
        return two;
    }
    const pare_status st = pare_norm_spectral(&proven, w, scratch, NULL);
    if (st == PARE_ERR_MEMORY) atomic_store(no_memory, true);
    if (st == PARE_OK) two = pare_ub_min(two, proven);
    pare_arena_free(scratch);
    return two;
}

static void run_job(void *ctx, size_t i)
{
    work *const k = ctx;
    const job *const j = &k->jobs[i];
    dense_norms n = {.out = j->w.rows, .in = j->w.cols};
    n.wide =
        (pare_has(&j->w) && j->w.dtype == PARE_F64) || (pare_has(&j->b) && j->b.dtype == PARE_F64);
    if (pare_has(&j->w)) {
        n.fro = pare_norm_fro(&j->w).v;
        n.row2 = pare_norm_max_row2(&j->w).v;
        n.two = j->rows_only ? n.fro : spectral_bound(&j->w, &k->no_memory).v;
    } else { /* a bias alone: the constant query */
        n.out = j->b.rows * j->b.cols;
    }
    if (pare_has(&j->b)) {
        n.b2 = pare_norm_fro(&j->b).v;
        n.bmax = pare_norm_max(&j->b).v;
    }
    *j->to = n;
}

/* ---- the list; walked twice: to count and to fill ------------------------------------------- */

/* Heads that share keys and values (and so their rows) share the work. */
static const pare_head *same_rows(const pare_attn *at, size_t h)
{
    for (size_t g = 0; g < h; g++)
        if (at->heads[g].k == at->heads[h].k && at->heads[g].v == at->heads[h].v &&
            at->heads[g].dk == at->heads[h].dk && at->heads[g].dv == at->heads[h].dv)
            return &at->heads[g];
    return NULL;
}

static void list_heads(work *k, const pare_attn *at, attn_norms *n)
{
    for (size_t h = 0; h < at->nheads; h++) {
        const pare_head *const d = &at->heads[h];
        add_job(k, &n->heads[h].q, weight_rows(&at->wq, d->q, d->dk),
                vector_part(&at->bq, d->q, d->dk));
        if (same_rows(at, h)) continue;
        add_job(k, &n->heads[h].k, weight_rows(&at->wk, d->k, d->dk),
                vector_part(&at->bk, d->k, d->dk));
        add_job(k, &n->heads[h].v, weight_rows(&at->wv, d->v, d->dv),
                vector_part(&at->bv, d->v, d->dv));
    }
}

static void share_heads(const pare_attn *at, attn_norms *n)
{
    for (size_t h = 0; h < at->nheads; h++) {
        const pare_head *const first = same_rows(at, h);
        if (!first) continue;
        n->heads[h].k = n->heads[first - at->heads].k;
        n->heads[h].v = n->heads[first - at->heads].v;
    }
}

static bool heads_apart(const pare_attn *at)
{
    for (size_t h = 0; h < at->nheads; h++)
        for (size_t g = 0; g < h; g++) {
            const pare_head *const a = &at->heads[h], *const b = &at->heads[g];
            if (a->o < b->o + b->dv && b->o < a->o + a->dv) return false;
        }
    return true;
}

static void list_attn(work *k, const pare_attn *at, attn_norms *n)
{
    const pare_weight none = {0};
    list_heads(k, at, n);
    add_job(k, &n->o, at->wo, at->bo);
    add_job(k, &n->matrix, at->matrix, at->bo);
    add_job(k, &n->skip, at->skip.kind == PARE_SKIP_NONE ? none : at->skip.w, none);
    for (size_t j = 0; j < n->nmix; j++) {
        const size_t rows = at->mix.rows / n->nmix;
        add_job(k, &n->mix[j], weight_rows(&at->mix, j * rows, rows),
                at->kind == PARE_ATTN_UNIFORM ? at->bv : none);
    }
}

static void list_model(work *k, const pare_model *m, pare_model_norms *n)
{
    const pare_weight none = {0};
    add_job(k, &n->map, m->embedding.map.w, m->embedding.map.b);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_ffn *const f = &m->blocks[b].ffn;
        list_attn(k, &m->blocks[b].attn, &n->attn[b]);
        for (size_t l = 0; f->kind != PARE_FFN_NONE && l < f->nlayers; l++)
            add_job(k, &n->ffn[b].layers[l], f->layers[l].w, f->layers[l].b);
        add_job(k, &n->ffn[b].skip, f->skip.kind == PARE_SKIP_NONE ? none : f->skip.w, none);
    }
    add_job(k, &n->dense, m->head.dense.w, m->head.dense.b);
    const size_t before = k->n;
    add_job(k, &n->out, *pare_head_weight(m), m->head.out.b);
    if (k->jobs && k->n > before) k->jobs[before].rows_only = true;
}

static pare_status allocate_norms(pare_model_norms *n, pare_arena *a, const pare_model *m,
                                  pare_err *err)
{
    n->attn = pare_alloc(a, m->nblocks, sizeof *n->attn);
    n->ffn = pare_alloc(a, m->nblocks, sizeof *n->ffn);
    if (!n->attn || !n->ffn) return pare_no_memory(err);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const at = &m->blocks[b].attn;
        attn_norms *const t = &n->attn[b];
        t->heads = pare_alloc(a, at->nheads, sizeof *t->heads);
        if (pare_has(&at->mix))
            t->nmix = at->kind == PARE_ATTN_UMIX && at->dout > 0 ? at->mix.rows / at->dout : 1;
        t->mix = pare_alloc(a, t->nmix, sizeof *t->mix);
        t->apart = heads_apart(at);
        n->ffn[b].layers = pare_alloc(a, m->blocks[b].ffn.nlayers, sizeof *n->ffn[b].layers);
        if (!t->heads || !t->mix || !n->ffn[b].layers) return pare_no_memory(err);
    }
    return PARE_OK;
}

/* A few matrices at a time, so that progress can be told between them. */
static pare_status run_all(work *k, pare_err *err)
{
    enum { AT_ONCE = 8 };
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < k->n; i += AT_ONCE) {
        work part = *k;
        part.jobs = k->jobs + i;
        part.n = k->n - i < AT_ONCE ? k->n - i : AT_ONCE;
        st = pare_parallel_until(k->exec, part.n, run_job, &part, err);
        if (atomic_load(&part.no_memory)) atomic_store(&k->no_memory, true);
        if (!st) st = pare_progress(k->exec, "norms of the weights", i + part.n, k->n, err);
    }
    return st;
}

pare_status pare_model_norms_new(pare_model_norms **out, pare_arena *a, const pare_model *m,
                                 const pare_exec *exec, pare_err *err)
{
    *out = NULL;
    pare_model_norms *const n = pare_alloc(a, 1, sizeof *n);
    if (!n) return pare_no_memory(err);
    pare_status st = allocate_norms(n, a, m, err);
    if (st != PARE_OK) return st;
    work count = {0}, k = {.exec = exec};
    list_model(&count, m, n);
    k.capacity = count.n;
    k.jobs = pare_alloc(a, k.capacity ? k.capacity : 1, sizeof *k.jobs);
    if (!k.jobs) return pare_no_memory(err);
    list_model(&k, m, n);
    st = run_all(&k, err);
    if (st != PARE_OK) return st;
    for (size_t b = 0; b < m->nblocks; b++) share_heads(&m->blocks[b].attn, &n->attn[b]);
    if (atomic_load(&k.no_memory)) return pare_no_memory(err);
    *out = n;
    return PARE_OK;
}
