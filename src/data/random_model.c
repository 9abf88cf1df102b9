/* Models with random weights. Shapes are laid out first, every tensor with a stream of its own;
 * then all numbers are drawn at once in blocks of fixed size, so that neither the order of the
 * tensors in memory nor the number of threads changes a bit. */
#include "model/variant.h"

#include <math.h>

#define FILL_BLOCK 65536 /* numbers; fixed: bits must not depend on the threads */
#define NORM_EPS   1e-5
#define NOISE      0.1 /* spread of gains and variances around 1, and of biases around 0 */
#define ROPE_BASE  10000.0

const char *const pare_random_kinds[] = {"gpt", "llama", "bert", "graph", NULL};

typedef struct fill { /* one tensor that waits for its numbers */
    float *to;
    size_t count, first_block;
    double mean, sigma;
    struct fill *next;
} fill;

typedef struct maker {
    pare_model *m;
    pare_random_model_opts o; /* zeros replaced */
    fill *last;
    size_t tensors, blocks;
    bool no_memory;
} maker;

/* ---- drawing ----------------------------------------------------------------------------- */

/* Four normals from four 32-bit words, by Box-Muller with both halves used. The uniforms are at
 * least 2^-33, hence |z| < 6.8 and 1 + NOISE z > 0: a variance stays positive. */
static void four_normals(double z[4], pare_rng *r)
{
    const double two_pi = 6.283185307179586476925;
    for (int i = 0; i < 4; i += 2) {
        const double u = ((double)pare_rng_u32(r) + 0.5) * 0x1p-32;
        const double angle = two_pi * ((double)pare_rng_u32(r) * 0x1p-32);
        const double radius = sqrt(-2 * log(u));
        z[i] = radius * cos(angle);
        z[i + 1] = radius * sin(angle);
    }
}

typedef struct fill_job {
    fill **tensors; /* by first_block */
    size_t n;
    uint64_t seed;
} fill_job;

static void fill_block(void *ctx, size_t block)
{
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
    double z[4] = {0};
    for (size_t i = from; i < to; i++) {
        if ((i - from) % 4 == 0) four_normals(z, &r);
        f->to[i] = (float)(f->mean + f->sigma * z[(i - from) % 4]);
    }
}

static pare_status draw(maker *k, pare_err *err)
{
    pare_arena *scratch = pare_arena_new();
    fill **tensors = scratch ? pare_alloc(scratch, k->tensors, sizeof *tensors) : NULL;
    if (!tensors) {
        pare_arena_free(scratch);
        return pare_no_memory(err);
    }
    size_t i = k->tensors;
    for (fill *f = k->last; f; f = f->next) tensors[--i] = f;
    fill_job job = {tensors, k->tensors, k->o.seed};
    pare_parallel(k->o.exec, k->blocks, fill_block, &job);
    pare_arena_free(scratch);
    return PARE_OK;
}

/* ---- laying out -------------------------------------------------------------------------- */

static void *get(maker *k, size_t count, size_t size)
{
    void *p = k->no_memory ? NULL : pare_alloc(k->m->arena, count, size);
    if (!p) k->no_memory = true;
    return p;
}

static pare_weight tensor(maker *k, size_t rows, size_t cols, double mean, double sigma)
{
    size_t count = 0;
    if (!pare_mul(&count, rows, cols)) k->no_memory = true;
    fill *f = get(k, 1, sizeof *f);
    float *v = get(k, count, sizeof *v);
    if (k->no_memory) return (pare_weight){0};
    *f = (fill){v, count, k->blocks, mean, sigma, k->last};
    k->last = f;
    k->tensors++;
    k->blocks += (count + FILL_BLOCK - 1) / FILL_BLOCK;
    return (pare_weight){PARE_F32, rows, cols, v};
}

static pare_weight matrix(maker *k, size_t rows, size_t cols)
{
    return tensor(k, rows, cols, 0, k->o.sigma > 0 ? k->o.sigma : 1 / sqrt((double)cols));
}

static pare_weight bias(maker *k, size_t n)
{
    return tensor(k, 1, n, 0, NOISE);
}
static pare_weight gain(maker *k, size_t n)
{
    return tensor(k, 1, n, 1, NOISE);
}

static pare_dense dense(maker *k, size_t out, size_t in, bool biased)
{
    pare_dense d = {.w = matrix(k, out, in)};
    if (biased) d.b = bias(k, out);
    return d;
}

static pare_norm norm(maker *k, pare_norm_kind kind)
{
    const size_t d = k->o.dim;
    pare_norm n = {.kind = kind, .eps = NORM_EPS, .divisor = (double)d, .gain = gain(k, d)};
    if (kind != PARE_NORM_RMS) n.bias = bias(k, d);
    if (kind == PARE_NORM_BATCH) {
        n.mean = bias(k, d);
        n.var = gain(k, d);
    }
    return n;
}

/* Radians per token of the planes of one head. */
static pare_weight frequencies(maker *k, size_t planes)
{
    double *f = get(k, planes, sizeof *f);
    if (!f) return (pare_weight){0};
    for (size_t i = 0; i < planes; i++) f[i] = pow(ROPE_BASE, -(double)i / (double)planes);
    return (pare_weight){PARE_F64, 1, planes, f};
}

static pare_attn attention(maker *k)
{
    const pare_random_model_opts *o = &k->o;
    const bool llama = o->kind == PARE_RANDOM_LLAMA;
    const size_t d = o->dim, dk = d / o->heads, kv = llama ? o->kv_heads : o->heads;
    pare_attn a = {.kind = PARE_ATTN_EXACT, .din = d, .dout = d, .nheads = o->heads};
    a.heads = get(k, o->heads, sizeof *a.heads);
    if (!a.heads) return a;
    for (size_t h = 0; h < o->heads; h++) {
        const size_t shared = h / (o->heads / kv);
        a.heads[h] = (pare_head){dk,
                                 dk,
                                 h * dk,
                                 shared * dk,
                                 shared * dk,
                                 h * dk,
                                 1 / sqrt((double)dk),
                                 0,
                                 llama ? dk / 2 : 0};
    }
    a.wq = matrix(k, d, d);
    a.wk = matrix(k, kv * dk, d);
    a.wv = matrix(k, kv * dk, d);
    a.wo = matrix(k, d, d);
    if (llama) {
        a.freqs = frequencies(k, dk / 2);
    } else {
        a.bq = bias(k, d);
        a.bk = bias(k, d);
        a.bv = bias(k, d);
        a.bo = bias(k, d);
    }
    a.skip.kind = PARE_SKIP_IDENTITY;
    return a;
}

static pare_ffn feed_forward(maker *k)
{
    const size_t d = k->o.dim, hidden = k->o.ffn;
    const bool llama = k->o.kind == PARE_RANDOM_LLAMA;
    pare_ffn f = {.kind = llama ? PARE_FFN_GATED : PARE_FFN_MLP, .din = d, .dout = d};
    f.nlayers = llama ? 3 : 2;
    f.layers = get(k, f.nlayers, sizeof *f.layers);
    if (!f.layers) return f;
    size_t i = 0;
    f.layers[i++] = dense(k, hidden, d, !llama);
    if (llama) f.layers[i++] = dense(k, hidden, d, false);
    f.layers[i] = dense(k, d, hidden, !llama);
    f.skip.kind = PARE_SKIP_IDENTITY;
    return f;
}

static void put_norms(maker *k, pare_block *b)
{
    switch (k->o.kind) {
    case PARE_RANDOM_GPT:
        b->attn.in_norm = norm(k, PARE_NORM_LAYER);
        b->ffn.in_norm = norm(k, PARE_NORM_LAYER);
        b->ffn.act = PARE_ACT_GELU_TANH;
        break;
    case PARE_RANDOM_LLAMA:
        b->attn.in_norm = norm(k, PARE_NORM_RMS);
        b->ffn.in_norm = norm(k, PARE_NORM_RMS);
        b->ffn.act = PARE_ACT_SILU;
        break;
    case PARE_RANDOM_BERT:
        b->attn.out_norm = norm(k, PARE_NORM_LAYER);
        b->ffn.out_norm = norm(k, PARE_NORM_LAYER);
        b->ffn.act = PARE_ACT_GELU;
        break;
    case PARE_RANDOM_GRAPH:
        b->attn.out_norm = norm(k, PARE_NORM_BATCH);
        b->ffn.out_norm = norm(k, PARE_NORM_BATCH);
        b->ffn.act = PARE_ACT_RELU;
        break;
    }
}

static void put_stem(maker *k)
{
    const pare_random_model_opts *o = &k->o;
    pare_stem *s = &k->m->stem;
    if (o->kind == PARE_RANDOM_GRAPH) {
        s->width = o->features;
        s->map = dense(k, o->dim, o->features, true);
        return;
    }
    s->ids = true;
    s->width = o->dim;
    s->vocab = o->vocab;
    s->embedding = matrix(k, o->vocab, o->dim);
    if (o->kind == PARE_RANDOM_LLAMA) {
        s->pos = (pare_positions){.kind = PARE_POS_ROTARY, .interleaved = true};
    } else {
        s->pos.kind = PARE_POS_LEARNED;
        s->pos.table = matrix(k, o->context, o->dim);
    }
    if (o->kind == PARE_RANDOM_BERT) s->norm = norm(k, PARE_NORM_LAYER);
}

static void put_top(maker *k)
{
    const pare_random_model_opts *o = &k->o;
    pare_top *t = &k->m->top;
    switch (o->kind) {
    case PARE_RANDOM_GPT:
        t->norm = norm(k, PARE_NORM_LAYER);
        t->tied = true; /* the embedding is the head: no weight of its own */
        break;
    case PARE_RANDOM_LLAMA:
        t->norm = norm(k, PARE_NORM_RMS);
        t->out = dense(k, o->vocab, o->dim, false);
        break;
    case PARE_RANDOM_BERT:
        t->pool = PARE_POOL_FIRST;
        t->dense = dense(k, o->dim, o->dim, true);
        t->act = PARE_ACT_TANH;
        t->out = dense(k, o->classes, o->dim, true);
        break;
    case PARE_RANDOM_GRAPH:
        t->out = dense(k, o->classes, o->dim, true);
        break;
    }
}

static pare_status lay_out(maker *k, pare_err *err)
{
    const pare_random_model_opts *o = &k->o;
    pare_model *m = k->m;
    const bool graph = o->kind == PARE_RANDOM_GRAPH;
    m->pattern.kind = graph ? PARE_GRAPH : o->kind == PARE_RANDOM_BERT ? PARE_FULL : PARE_CAUSAL;
    m->pattern.self_loops = graph;
    m->context = graph ? 0 : o->context;
    if (!graph && o->vocab == 256) m->tokenizer = PARE_TOK_BYTES;
    m->name = pare_sprintf(m->arena, "random %s", pare_random_kinds[o->kind]);
    m->nblocks = o->layers;
    m->blocks = get(k, o->layers, sizeof *m->blocks);
    put_stem(k);
    for (size_t b = 0; b < o->layers && !k->no_memory; b++) {
        m->blocks[b].attn = attention(k);
        m->blocks[b].ffn = feed_forward(k);
        put_norms(k, &m->blocks[b]);
    }
    put_top(k);
    return k->no_memory || !m->name ? pare_no_memory(err) : PARE_OK;
}

/* ---- options ----------------------------------------------------------------------------- */

static pare_status at_least_one(size_t v, const char *name, pare_err *err)
{
    return v > 0 ? PARE_OK : pare_fail(err, PARE_ERR_USAGE, "%s must be at least 1", name);
}

static pare_status check_ids(pare_random_model_opts *o, pare_err *err)
{
    pare_status st = at_least_one(o->vocab, "vocab", err);
    if (!st) st = at_least_one(o->context, "context", err);
    if (st || o->kind != PARE_RANDOM_LLAMA) return st;
    if (o->kv_heads == 0) o->kv_heads = o->heads % 2 == 0 ? o->heads / 2 : o->heads;
    if (o->heads % o->kv_heads != 0)
        return pare_fail(err, PARE_ERR_USAGE, "heads %zu is no multiple of kv_heads %zu", o->heads,
                         o->kv_heads);
    if (o->dim / o->heads % 2 != 0)
        return pare_fail(err, PARE_ERR_USAGE,
                         "rotary positions turn pairs: dim %zu / heads %zu must be even", o->dim,
                         o->heads);
    return PARE_OK;
}

/* Replaces zeros and refuses what does not fit. */
static pare_status settle(pare_random_model_opts *o, pare_err *err)
{
    const bool graph = o->kind == PARE_RANDOM_GRAPH, bert = o->kind == PARE_RANDOM_BERT;
    if ((unsigned)o->kind > PARE_RANDOM_GRAPH)
        return pare_fail(err, PARE_ERR_USAGE, "unknown kind %d", (int)o->kind);
    if (!(o->sigma >= 0 && o->sigma <= 1e6))
        return pare_fail(err, PARE_ERR_USAGE, "sigma %g is not between 0 and 1e6", o->sigma);
    pare_status st = at_least_one(o->dim, "dim", err);
    if (!st) st = at_least_one(o->layers, "layers", err);
    if (!st) st = at_least_one(o->heads, "heads", err);
    if (!st && o->dim % o->heads != 0)
        st =
            pare_fail(err, PARE_ERR_USAGE, "dim %zu is no multiple of heads %zu", o->dim, o->heads);
    if (!st && o->variant.no_biases && o->kind == PARE_RANDOM_LLAMA)
        st = pare_fail(err, PARE_ERR_USAGE, "a llama has no biases to leave out");
    if (!st && graph) st = at_least_one(o->features, "features", err);
    if (!st && (graph || bert)) st = at_least_one(o->classes, "classes", err);
    if (!st && !graph) st = check_ids(o, err);
    if (st) return st;
    if (o->ffn == 0)
        o->ffn = graph                          ? 2 * o->dim
                 : o->kind == PARE_RANDOM_LLAMA ? (8 * o->dim + 2) / 3
                                                : 4 * o->dim;
    return PARE_OK;
}

pare_status pare_random_model(pare_model **out, const pare_random_model_opts *opts, pare_err *err)
{
    *out = NULL;
    maker k = {.o = *opts};
    pare_status st = settle(&k.o, err);
    if (!st) st = pare_model_new(&k.m, err);
    if (!st) st = lay_out(&k, err);
    if (!st) st = draw(&k, err);
    if (!st) pare_model_vary(k.m, &k.o.variant);
    if (!st) st = pare_model_check(k.m, err);
    if (st) {
        pare_model_free(k.m);
        return st;
    }
    *out = k.m;
    return PARE_OK;
}
