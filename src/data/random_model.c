/* random_model.c - models with random weights.
 *
 * First the shapes: every tensor gets memory and a stream of its own. Then all numbers are drawn at
 * once, in blocks of fixed size, so that neither the order of the tensors in memory nor the number
 * of threads changes a bit. */
#include "model/variant.h"
#include "base/work.h"

#include <math.h>
#include <stdlib.h>

#define FILL_BLOCK 65536 /* numbers; fixed: bits must not depend on the threads */
#define NORM_EPS   1e-5
#define NOISE      0.1 /* spread of gains and variances around 1, and of biases around 0 */
#define ROPE_BASE  10000.0

const char *const pare_random_kinds[] = {"gpt", "llama", "bert", "graph", NULL};

static const struct {
    pare_norm_kind norm;
    bool post_norm;
    pare_act act;
} styles[] = {[PARE_RANDOM_GPT] = {PARE_NORM_LAYER, false, PARE_ACT_GELU_TANH},
              [PARE_RANDOM_LLAMA] = {PARE_NORM_RMS, false, PARE_ACT_SILU},
              [PARE_RANDOM_BERT] = {PARE_NORM_LAYER, true, PARE_ACT_GELU},
              [PARE_RANDOM_GRAPH] = {PARE_NORM_BATCH, true, PARE_ACT_RELU}};

/* A tensor whose numbers are still to be drawn. */
typedef struct fill {
    float *to;
    size_t count, first_block;
    double mean, sigma;
    struct fill *next;
} fill;

typedef struct builder {
    pare_work w; /* its arena is the model's */
    pare_model *m;
    pare_random_model_opts o; /* zeros replaced */
    fill *last;
    size_t tensors, blocks;
} builder;

/* ---- shapes ---------------------------------------------------------------------------------- */

static pare_weight tensor(builder *k, size_t rows, size_t cols, double mean, double sigma)
{
    size_t count = 0;
    if (!pare_mul(&count, rows, cols)) pare_work_keep(&k->w, pare_no_memory(k->w.err));
    fill *f = pare_work_alloc(&k->w, 1, sizeof *f);
    float *v = pare_work_alloc(&k->w, count, sizeof *v);
    if (k->w.st) return (pare_weight){0};
    *f = (fill){v, count, k->blocks, mean, sigma, k->last};
    k->last = f;
    k->tensors++;
    k->blocks += (count + FILL_BLOCK - 1) / FILL_BLOCK;
    return (pare_weight){PARE_F32, rows, cols, v};
}

static pare_weight matrix(builder *k, size_t rows, size_t cols)
{
    return tensor(k, rows, cols, 0, k->o.sigma > 0 ? k->o.sigma : 1 / sqrt((double)cols));
}

static pare_weight bias(builder *k, size_t n)
{
    return tensor(k, 1, n, 0, NOISE);
}

static pare_dense dense(builder *k, size_t out, size_t in, bool biased)
{
    pare_dense d = {.w = matrix(k, out, in)};
    if (biased) d.b = bias(k, out);
    return d;
}

static pare_norm norm(builder *k)
{
    const size_t d = k->o.dim;
    pare_norm n = {.kind = styles[k->o.kind].norm, .eps = NORM_EPS, .divisor = (double)d};
    n.gain = tensor(k, 1, d, 1, NOISE);
    if (n.kind != PARE_NORM_RMS) n.bias = bias(k, d);
    if (n.kind == PARE_NORM_BATCH) {
        n.mean = bias(k, d);
        n.var = tensor(k, 1, d, 1, NOISE);
    }
    return n;
}

static pare_attn attention(builder *k)
{
    const pare_random_model_opts *o = &k->o;
    const bool llama = o->kind == PARE_RANDOM_LLAMA;
    const size_t d = o->dim, dk = d / o->heads, kv = llama ? o->kv_heads : o->heads;
    const size_t planes = llama ? dk / 2 : 0;
    pare_attn a = {.kind = PARE_ATTN_EXACT, .din = d, .dout = d, .nheads = o->heads};
    a.skip.kind = PARE_SKIP_IDENTITY;
    a.heads = pare_work_alloc(&k->w, o->heads, sizeof *a.heads);
    for (size_t h = 0; h < o->heads && a.heads; h++) {
        const size_t shared = h / (o->heads / kv) * dk, own = h * dk;
        const double scale = 1 / sqrt((double)dk);
        a.heads[h] = (pare_head){dk, dk, own, shared, shared, own, scale, 0, planes};
    }
    a.wq = matrix(k, d, d);
    a.wk = matrix(k, kv * dk, d);
    a.wv = matrix(k, kv * dk, d);
    a.wo = matrix(k, d, d);
    if (llama) { /* radians per token of the planes of one head */
        double *const f = pare_work_alloc(&k->w, planes, sizeof *f);
        for (size_t i = 0; f && i < planes; i++) f[i] = pow(ROPE_BASE, -(double)i / (double)planes);
        a.freqs = (pare_weight){PARE_F64, 1, planes, f};
    } else {
        a.bq = bias(k, d);
        a.bk = bias(k, d);
        a.bv = bias(k, d);
        a.bo = bias(k, d);
    }
    return a;
}

/* The order of the tensors is the order of their streams. */
static void build_model(builder *k)
{
    const pare_random_model_opts *o = &k->o;
    const bool llama = o->kind == PARE_RANDOM_LLAMA, bert = o->kind == PARE_RANDOM_BERT;
    const bool graph = o->kind == PARE_RANDOM_GRAPH, post_norm = styles[o->kind].post_norm;
    pare_model *m = k->m;
    m->pattern.kind = graph ? PARE_GRAPH : bert ? PARE_FULL : PARE_CAUSAL;
    m->pattern.self_loops = graph;
    m->context = graph ? 0 : o->context;
    if (!graph && o->vocab == 256) m->tokenizer = PARE_TOK_BYTES;
    m->name = pare_sprintf(m->arena, "random %s", pare_random_kinds[o->kind]);
    if (!m->name) pare_work_keep(&k->w, pare_no_memory(k->w.err));

    pare_embedding *s = &m->embedding;
    s->ids = !graph;
    s->width = graph ? o->features : o->dim;
    if (graph) {
        s->map = dense(k, o->dim, o->features, true);
    } else {
        s->vocab = o->vocab;
        s->table = matrix(k, o->vocab, o->dim);
        s->pos.kind = llama ? PARE_POS_ROTARY : PARE_POS_LEARNED;
        s->pos.interleaved = llama;
        if (!llama) s->pos.table = matrix(k, o->context, o->dim);
        if (bert) s->norm = norm(k);
    }

    m->nblocks = o->layers;
    m->blocks = pare_work_alloc(&k->w, o->layers, sizeof *m->blocks);
    for (size_t b = 0; b < o->layers && !k->w.st; b++) {
        pare_attn *const a = &m->blocks[b].attn;
        pare_ffn *const f = &m->blocks[b].ffn;
        *a = attention(k);
        *f = (pare_ffn){.kind = llama ? PARE_FFN_GATED : PARE_FFN_MLP,
                        .act = styles[o->kind].act,
                        .din = o->dim,
                        .dout = o->dim,
                        .nlayers = llama ? 3 : 2,
                        .skip = {.kind = PARE_SKIP_IDENTITY}};
        f->layers = pare_work_alloc(&k->w, f->nlayers, sizeof *f->layers);
        for (size_t i = 0; i + 1 < f->nlayers && f->layers; i++)
            f->layers[i] = dense(k, o->ffn, o->dim, !llama);
        if (f->layers) f->layers[f->nlayers - 1] = dense(k, o->dim, o->ffn, !llama);
        *(post_norm ? &a->out_norm : &a->in_norm) = norm(k);
        *(post_norm ? &f->out_norm : &f->in_norm) = norm(k);
    }

    pare_output_head *t = &m->head;
    if (!post_norm) t->norm = norm(k);
    t->normalize = o->normalize;
    t->pool = o->pool;
    if (o->pool != PARE_POOL_NONE) return; /* an encoder of texts */
    t->tied = o->kind == PARE_RANDOM_GPT;  /* the embedding is the head: no weight of its own */
    if (bert) {
        t->pool = PARE_POOL_FIRST;
        t->dense = dense(k, o->dim, o->dim, true);
        t->act = PARE_ACT_TANH;
    }
    if (!t->tied) t->out = dense(k, llama ? o->vocab : o->classes, o->dim, !llama);
}

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct fill_job {
    fill **tensors; /* by first_block */
    size_t n;
    uint64_t seed;
} fill_job;

/* Normals from 32-bit words by Box-Muller, both halves used: two words give two normals. The
 * uniforms are at least 2^-33, hence |z| < 6.8 and 1 + NOISE z > 0: a variance stays positive. */
static void fill_block(void *ctx, size_t block)
{
    const double two_pi = 6.283185307179586476925;
    const fill_job *job = ctx;
    size_t lo = 0, hi = job->n;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (job->tensors[mid]->first_block <= block)
            lo = mid;
        else
            hi = mid;
    }
    const fill *f = job->tensors[lo];
    const size_t part = block - f->first_block, from = part * FILL_BLOCK;
    const size_t to = f->count - from < FILL_BLOCK ? f->count : from + FILL_BLOCK;
    pare_rng r = pare_rng_at(job->seed, (uint64_t)lo << 32 | part);
    for (size_t i = from; i < to; i += 2) {
        const double u = ((double)pare_rng_u32(&r) + 0.5) * 0x1p-32;
        const double angle = two_pi * ((double)pare_rng_u32(&r) * 0x1p-32);
        const double radius = sqrt(-2 * log(u));
        f->to[i] = (float)(f->mean + f->sigma * (radius * cos(angle)));
        if (i + 1 < to) f->to[i + 1] = (float)(f->mean + f->sigma * (radius * sin(angle)));
    }
}

/* ---- options --------------------------------------------------------------------------------- */

static pare_status at_least_one(size_t v, const char *name, pare_err *err)
{
    return v > 0 ? PARE_OK : pare_fail(err, PARE_ERR_USAGE, "%s must be at least 1", name);
}

/* Replaces zeros and refuses what does not fit. */
static pare_status check_options(pare_random_model_opts *o, pare_err *err)
{
    const bool graph = o->kind == PARE_RANDOM_GRAPH, bert = o->kind == PARE_RANDOM_BERT;
    const bool llama = o->kind == PARE_RANDOM_LLAMA;
    if ((unsigned)o->kind > PARE_RANDOM_GRAPH)
        return pare_fail(err, PARE_ERR_USAGE, "unknown kind %d", (int)o->kind);
    if (!(o->sigma >= 0 && o->sigma <= 1e6))
        return pare_fail(err, PARE_ERR_USAGE, "sigma %g is not between 0 and 1e6", o->sigma);
    pare_status st = at_least_one(o->dim, "dim", err);
    if (!st) st = at_least_one(o->layers, "layers", err);
    if (!st) st = at_least_one(o->heads, "heads", err);
    if (st) return st;
    if (o->dim % o->heads != 0)
        return pare_fail(err, PARE_ERR_USAGE, "dim %zu is no multiple of heads %zu", o->dim,
                         o->heads);
    if ((unsigned)o->pool > PARE_POOL_LAST)
        return pare_fail(err, PARE_ERR_USAGE, "unknown pooling %d", (int)o->pool);
    if (graph && o->pool != PARE_POOL_NONE)
        return pare_fail(err, PARE_ERR_USAGE, "a graph has an output for each node: no pooling");
    if (o->variant.no_biases && llama)
        return pare_fail(err, PARE_ERR_USAGE, "a llama has no biases to leave out");
    if (graph) st = at_least_one(o->features, "features", err);
    if (!st && (graph || bert)) st = at_least_one(o->classes, "classes", err);
    if (!st && !graph) st = at_least_one(o->vocab, "vocab", err);
    if (!st && !graph) st = at_least_one(o->context, "context", err);
    if (st) return st;
    if (llama && o->kv_heads == 0) o->kv_heads = o->heads % 2 == 0 ? o->heads / 2 : o->heads;
    if (llama && o->heads % o->kv_heads != 0)
        return pare_fail(err, PARE_ERR_USAGE, "heads %zu is no multiple of kv_heads %zu", o->heads,
                         o->kv_heads);
    if (llama && o->dim / o->heads % 2 != 0)
        return pare_fail(err, PARE_ERR_USAGE,
                         "rotary positions turn pairs: dim %zu / heads %zu must be even", o->dim,
                         o->heads);
    if (o->ffn == 0) o->ffn = graph ? 2 * o->dim : llama ? (8 * o->dim + 2) / 3 : 4 * o->dim;
    return PARE_OK;
}

pare_status pare_random_model(pare_model **out, const pare_random_model_opts *opts, pare_err *err)
{
    *out = NULL;
    builder k = {.w = {.err = err}, .o = *opts};
    pare_status st = check_options(&k.o, err);
    if (!st) st = pare_model_new(&k.m, err);
    if (st) return st;
    k.w.arena = k.m->arena;
    build_model(&k);
    st = k.w.st;
    fill **const tensors = malloc((k.tensors ? k.tensors : 1) * sizeof *tensors);
    if (!st && !tensors) st = pare_no_memory(err);
    if (!st) {
        size_t i = k.tensors;
        for (fill *f = k.last; f; f = f->next) tensors[--i] = f;
        fill_job job = {tensors, k.tensors, k.o.seed};
        pare_parallel(k.o.exec, k.blocks, fill_block, &job);
        pare_model_vary(k.m, &k.o.variant);
        st = pare_model_check(k.m, err);
    }
    free(tensors);
    if (st)
        pare_model_free(k.m);
    else
        *out = k.m;
    return st;
}
