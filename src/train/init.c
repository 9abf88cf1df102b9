/* init.c - fresh models to be trained.
 *
 * Graph kinds are the practical variant of Shirzad 2024 (D.2):
 *
 *     h = We x + be;   per layer   z = BN(h + attention(h)),   h' = BN(z + W2 relu(W1 z + b1) + b2)
 *
 * with Wq, Wk, Wv without bias. A single head needs no Wo (the product Wo Wv is one matrix) and has
 * none. Every tensor is drawn from a stream of its own, in the order of construction.
 *
 * Without skips and norms nothing restores the size of the rows: torch's weights (variance 1/3 of
 * 1 / inputs) would shrink them by .14 in every layer, GPT-2's by more. Such nets are drawn with
 * variance 1 / inputs, and 2 / inputs after an activation that cuts off one half (He et al. 2015),
 * so that the mean square of the rows is preserved. */
#include "model/frozen.h"
#include "model/variant.h"
#include "frozen_gpt.h"
#include "base/work.h"

#include <math.h>

#define NORM_EPS     1e-5
#define GPT_SIGMA    0.02
#define FIRST_STREAM ((uint64_t)1 << 62) /* far from those of batches and of dropout */

typedef enum fill_kind { FILL_UNIFORM, FILL_NORMAL } fill_kind;

typedef struct maker {
    pare_work work; /* its arena is the model's */
    pare_model *m;
    pare_init o; /* zeros replaced by defaults */
    uint64_t tensors;
} maker;

/* ---- tensors ------------------------------------------------------------------------------- */

static pare_weight drawn(maker *k, size_t rows, size_t cols, fill_kind kind, double spread)
{
    size_t count = 0;
    if (!pare_mul(&count, rows, cols)) pare_work_keep(&k->work, pare_no_memory(k->work.err));
    if (k->o.source) return (pare_weight){PARE_F32, rows, cols, NULL}; /* filled by freeze_one */
    float *v = pare_work_alloc(&k->work, count, sizeof *v);
    if (!v) return (pare_weight){0};
    pare_rng r = pare_rng_at(k->o.seed, FIRST_STREAM + k->tensors++);
    for (size_t i = 0; i < count; i++)
        v[i] = (float)(spread *
                       (kind == FILL_NORMAL ? pare_rng_normal(&r) : 2 * pare_rng_uniform(&r) - 1));
    return (pare_weight){PARE_F32, rows, cols, v};
}

static pare_weight constant(maker *k, size_t n, float value)
{
    float *v = pare_work_alloc(&k->work, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = value;
    return v ? (pare_weight){PARE_F32, 1, n, v} : (pare_weight){0};
}

static bool is_gpt(const maker *k)
{
    return k->o.kind == PARE_INIT_GPT;
}

static bool is_bare(const maker *k)
{
    return k->o.variant.no_skips && k->o.variant.no_norms;
}

/* torch's Linear draws weight and bias from U(-1, 1) / sqrt(inputs). */
static pare_weight matrix(maker *k, size_t out, size_t in)
{
    if (is_bare(k)) return drawn(k, out, in, FILL_UNIFORM, sqrt(3 / (double)in));
    return is_gpt(k) ? drawn(k, out, in, FILL_NORMAL, GPT_SIGMA)
                     : drawn(k, out, in, FILL_UNIFORM, 1 / sqrt((double)in));
}

/* The last map of a branch: GPT-2 bounds the variance of the sum of 2 L branches. */
static pare_weight residual(maker *k, size_t out, size_t in)
{
    return is_gpt(k) && !is_bare(k)
               ? drawn(k, out, in, FILL_NORMAL, GPT_SIGMA / sqrt(2 * (double)k->o.layers))
               : matrix(k, out, in);
}

static pare_weight bias(maker *k, size_t out, size_t in)
{
    if (k->o.source) return (pare_weight){0};
    return is_gpt(k) ? constant(k, out, 0) : drawn(k, 1, out, FILL_UNIFORM, 1 / sqrt((double)in));
}

/* torch's Embedding is standard normal. A bare GPT reads its rows and its logits off one table:
 * unit rows keep both near 1. */
static pare_weight table(maker *k, size_t rows)
{
    const double unit = 1 / sqrt((double)k->o.dim);
    return drawn(k, rows, k->o.dim, FILL_NORMAL, !is_gpt(k) ? 1 : is_bare(k) ? unit : GPT_SIGMA);
}

static pare_norm norm(maker *k, pare_norm_kind kind)
{
    const size_t d = k->o.dim;
    pare_norm n = {.kind = kind, .eps = NORM_EPS, .divisor = (double)d};
    if (k->o.source) return n;
    n.gain = constant(k, d, 1);
    n.bias = constant(k, d, 0);
    if (kind == PARE_NORM_BATCH) {
        n.mean = constant(k, d, 0);
        n.var = constant(k, d, 1);
    }
    return n;
}

/* ---- layers -------------------------------------------------------------------------------- */

static bool on_nodes(const pare_init *o)
{
    return o->kind == PARE_INIT_GRAPH || o->kind == PARE_INIT_MLP || o->kind == PARE_INIT_GCN;
}

static pare_attn attention(maker *k)
{
    const size_t d = k->o.dim, dk = d / k->o.heads;
    const bool nodes = on_nodes(&k->o);
    pare_attn a = {.kind = PARE_ATTN_NONE};
    if (k->o.kind == PARE_INIT_MLP) return a;
    a = (pare_attn){.kind = PARE_ATTN_EXACT, .din = d, .dout = d};
    a.skip.kind = PARE_SKIP_IDENTITY;
    if (k->o.kind == PARE_INIT_GCN) {
        a.kind = PARE_ATTN_UNIFORM;
        a.mix = matrix(k, d, d);
    } else {
        a.nheads = k->o.heads;
        a.heads = pare_work_alloc(&k->work, a.nheads, sizeof *a.heads);
        for (size_t h = 0; a.heads && h < a.nheads; h++)
            a.heads[h] = (pare_head){.dk = dk,
                                     .dv = dk,
                                     .q = h * dk,
                                     .k = h * dk,
                                     .v = h * dk,
                                     .o = h * dk,
                                     .scale = 1 / sqrt((double)dk)};
        a.wq = matrix(k, d, d);
        a.wk = matrix(k, d, d);
        a.wv = matrix(k, d, d);
        if (!nodes || a.nheads > 1) a.wo = residual(k, d, d);
        if (!nodes) {
            a.bq = bias(k, d, d);
            a.bk = bias(k, d, d);
            a.bv = bias(k, d, d);
            a.bo = bias(k, d, d);
        }
    }
    if (nodes)
        a.out_norm = norm(k, PARE_NORM_BATCH);
    else
        a.in_norm = norm(k, PARE_NORM_LAYER);
    return a;
}

static pare_ffn feed_forward(maker *k)
{
    const size_t d = k->o.dim, hidden = k->o.ffn;
    const bool nodes = on_nodes(&k->o);
    pare_ffn f = {.kind = PARE_FFN_MLP, .din = d, .dout = d, .nlayers = 2};
    f.act = nodes ? PARE_ACT_RELU : is_gpt(k) ? PARE_ACT_GELU_TANH : PARE_ACT_GELU;
    if (k->o.variant.has_act) f.act = k->o.variant.act;
    f.skip.kind = PARE_SKIP_IDENTITY;
    f.layers = pare_work_alloc(&k->work, 2, sizeof *f.layers);
    if (!f.layers) return f;
    const bool halves = f.act != PARE_ACT_NONE && f.act != PARE_ACT_TANH;
    f.layers[0].w = matrix(k, hidden, d);
    f.layers[0].b = bias(k, hidden, d);
    f.layers[1].w = is_bare(k) && halves
                        ? drawn(k, d, hidden, FILL_UNIFORM, sqrt(6 / (double)hidden))
                        : residual(k, d, hidden);
    f.layers[1].b = bias(k, d, hidden);
    if (nodes)
        f.out_norm = norm(k, PARE_NORM_BATCH);
    else
        f.in_norm = norm(k, PARE_NORM_LAYER);
    return f;
}

/* Frozen weights are filled in when every matrix has its name. */
static pare_status freeze_one(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    maker *const k = self;
    (void)err;
    pare_frozen from;
    if (vector || w->rows == 0) return PARE_OK;
    const bool known = pare_frozen_gpt_of(&from, k->o.source, name, k->o.dim, k->o.layers);
    PARE_ASSERT(known);
    float *const v = pare_work_alloc(&k->work, w->rows * w->cols, sizeof *v);
    if (!v) return k->work.st;
    pare_frozen_fill(v, &from, 0, w->rows * w->cols);
    w->data = v;
    return PARE_OK;
}

static pare_status build(maker *k)
{
    static const char *const names[] = {"graph transformer", "graph mlp", "graph convolution",
                                        "gpt", "encoder"};
    pare_work *const w = &k->work;
    pare_model *const m = k->m;
    const pare_init *const o = &k->o;
    m->pattern.kind = is_gpt(k) ? PARE_CAUSAL : PARE_FULL;
    if (on_nodes(o) && !o->full && o->kind != PARE_INIT_MLP)
        m->pattern = (pare_pattern){.kind = PARE_GRAPH,
                                    .self_loops = o->self_loops,
                                    .expander_degree = o->expander_degree,
                                    .expander_seed = o->expander_degree ? o->seed : 0};
    m->context = o->context;
    if (o->vocab == 256) m->tokenizer = PARE_TOK_BYTES;
    m->name = pare_strdup(m->arena, names[o->kind]);
    m->nblocks = o->layers;
    m->blocks = pare_work_alloc(w, o->layers, sizeof *m->blocks);

    pare_embedding *const s = &m->embedding;
    s->ids = o->vocab > 0;
    s->vocab = o->vocab;
    s->width = s->ids ? o->dim : o->features;
    if (s->ids) {
        s->table = table(k, o->vocab);
    } else {
        s->map.w = matrix(k, o->dim, o->features);
        s->map.b = bias(k, o->dim, o->features);
    }
    if (o->context) {
        s->pos = (pare_positions){.kind = PARE_POS_LEARNED, .after_map = !s->ids};
        s->pos.table = table(k, o->context);
    }
    for (size_t b = 0; b < o->layers && !w->st; b++) {
        m->blocks[b].attn = attention(k);
        m->blocks[b].ffn = feed_forward(k);
    }
    pare_output_head *const head = &m->head;
    if (!on_nodes(o)) head->norm = norm(k, PARE_NORM_LAYER);
    if (o->source) head->norm.gain = constant(k, o->dim, (float)sqrt(768 / (double)o->dim));
    head->pool = o->pool;
    head->tied = is_gpt(k); /* the embedding is the head: no weight of its own */
    if (!head->tied) {
        head->out.w = matrix(k, o->outputs, o->dim);
        head->out.b = bias(k, o->outputs, o->dim);
    }
    if (!m->name) pare_work_keep(w, pare_no_memory(w->err));
    if (w->st) return w->st;
    pare_model_vary(m, &o->variant);
    return o->source ? pare_model_each_weight(m, freeze_one, k, w->err) : PARE_OK;
}

/* ---- options ------------------------------------------------------------------------------- */

static pare_status at_least_one(size_t v, const char *name, pare_err *err)
{
    return v > 0 ? PARE_OK : pare_fail(err, PARE_ERR_USAGE, "%s must be at least 1", name);
}

static pare_status check_sequence_options(pare_init *o, pare_err *err)
{
    if (o->full || o->self_loops || o->expander_degree)
        return pare_fail(err, PARE_ERR_USAGE,
                         "self loops, an expander and full are for graph kinds");
    if (o->kind == PARE_INIT_ENCODER) {
        if ((o->vocab > 0) == (o->features > 0))
            return pare_fail(err, PARE_ERR_USAGE,
                             "an encoder takes ids (vocab) or vectors (features), one of them");
        return PARE_OK;
    }
    o->features = 0;
    o->pool = PARE_POOL_NONE;
    pare_status st = at_least_one(o->vocab, "vocab", err);
    if (!st) st = at_least_one(o->context, "context", err);
    if (!st && o->outputs && o->outputs != o->vocab)
        st = pare_fail(err, PARE_ERR_USAGE, "a tied head has an output per id: %zu, not %zu",
                       o->vocab, o->outputs);
    o->outputs = o->vocab;
    return st;
}

/* Replaces zeros by defaults and refuses what does not fit. */
static pare_status check_options(pare_init *o, pare_err *err)
{
    if ((unsigned)o->kind > PARE_INIT_ENCODER)
        return pare_fail(err, PARE_ERR_USAGE, "unknown kind %d", (int)o->kind);
    pare_status st = at_least_one(o->dim, "dim", err);
    if (!st) st = at_least_one(o->layers, "layers", err);
    if (!st) st = at_least_one(o->heads, "heads", err);
    if (!st && o->dim % o->heads != 0)
        st =
            pare_fail(err, PARE_ERR_USAGE, "dim %zu is no multiple of heads %zu", o->dim, o->heads);
    if (st) return st;
    if (!on_nodes(o)) {
        st = check_sequence_options(o, err);
    } else if (o->full && (o->self_loops || o->expander_degree)) {
        return pare_fail(err, PARE_ERR_USAGE,
                         "full attention has every pair: self loops and an expander add nothing");
    } else if (o->expander_degree % 2 != 0 || o->expander_degree > PARE_MAX_EXPANDER) {
        return pare_fail(err, PARE_ERR_USAGE, "expander degree %zu must be even and at most %d",
                         o->expander_degree, PARE_MAX_EXPANDER);
    } else {
        o->vocab = o->context = 0;
        o->pool = PARE_POOL_NONE;
        st = at_least_one(o->features, "features", err);
    }
    if (!st) st = at_least_one(o->outputs, "outputs", err);
    if (st) return st;
    if (o->ffn == 0) o->ffn = on_nodes(o) ? o->dim : 4 * o->dim;
    if (!o->source) return PARE_OK;
    if (o->kind != PARE_INIT_GPT)
        return pare_fail(err, PARE_ERR_USAGE, "frozen weights are for the kind gpt");
    if (!pare_variant_is_usual(&o->variant))
        return pare_fail(err, PARE_ERR_USAGE,
                         "frozen weights are those of a GPT with skips, norms and its activation");
    const double s = o->source->qk_scale;
    if (s >= 1e-3 && s <= 1e3) return PARE_OK;
    return pare_fail(err, PARE_ERR_USAGE,
                     "the scale of queries and keys is %g: it must be from 0.001 to 1000", s);
}

pare_status pare_init_model(pare_model **out, const pare_init *o, pare_err *err)
{
    *out = NULL;
    maker k = {.o = *o};
    pare_status st = check_options(&k.o, err);
    if (!st) st = pare_model_new(&k.m, err);
    if (!st) {
        k.work = (pare_work){.arena = k.m->arena, .err = err};
        st = build(&k);
    }
    if (!st) st = pare_model_check(k.m, err);
    if (st) {
        pare_model_free(k.m);
        return st;
    }
    *out = k.m;
    return PARE_OK;
}
