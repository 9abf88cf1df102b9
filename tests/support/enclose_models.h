/* enclose_models.h - random small models of every kind, as wild as model.h allows. */
#ifndef TEST_ENCLOSE_MODELS_H
#define TEST_ENCLOSE_MODELS_H
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include <pare/run.h>
#include <pare_test.h>

typedef struct maker {
    pare_model *m;
    pare_rng r;
    double sigma; /* of matrices, before division by sqrt(in) */
} maker;

static inline size_t pick(maker *k, size_t n)
{
    return (size_t)pare_rng_below(&k->r, n);
}

static inline bool maybe(maker *k)
{
    return pick(k, 2) == 0;
}

static inline void *make(maker *k, size_t n, size_t size)
{
    void *const p = pare_alloc(k->m->arena, n, size);
    assert_non_null(p);
    return p;
}

static inline pare_weight weight(maker *k, size_t rows, size_t cols, double mean, double sigma)
{
    const bool narrow = maybe(k);
    float *const f = make(k, rows * cols, sizeof *f);
    double *const d = make(k, rows * cols, sizeof *d);
    for (size_t i = 0; i < rows * cols; i++) {
        d[i] = mean + sigma * pare_rng_normal(&k->r);
        f[i] = (float)d[i];
    }
    return (pare_weight){narrow ? PARE_F32 : PARE_F64, rows, cols, narrow ? (void *)f : (void *)d};
}

static inline pare_weight matrix(maker *k, size_t rows, size_t cols)
{
    return weight(k, rows, cols, 0, k->sigma / sqrt((double)cols));
}

static inline pare_weight vector(maker *k, size_t n)
{
    return maybe(k) ? weight(k, 1, n, 0, 0.3) : (pare_weight){0};
}

static inline pare_norm some_norm(maker *k, size_t d)
{
    static const double eps[] = {1e-5, 1e-12, 0.1};
    pare_norm n = {.kind = (pare_norm_kind)pick(k, 5), .eps = eps[pick(k, 3)]};
    if (n.kind == PARE_NORM_NONE) return n;
    n.divisor = (double)(d + 3 * pick(k, 2));
    n.shift = maybe(k) ? 0.7 : 0;
    if (maybe(k)) n.gain = weight(k, 1, d, 1, 0.5);
    n.bias = vector(k, d);
    if (n.kind != PARE_NORM_BATCH) {
        n.offset = vector(k, d);
        return n;
    }
    n.mean = weight(k, 1, d, 0.5, 1);
    double *const var = make(k, d, sizeof *var);
    for (size_t i = 0; i < d; i++) var[i] = 0.1 + fabs(pare_rng_normal(&k->r));
    n.var = (pare_weight){PARE_F64, 1, d, var};
    return n;
}

static inline pare_skip some_skip(maker *k, size_t din, size_t dout)
{
    const pare_skip_kind kind = (pare_skip_kind)pick(k, 4);
    if (kind == PARE_SKIP_DENSE) return (pare_skip){kind, matrix(k, dout, din)};
    if (din != dout || kind == PARE_SKIP_NONE) return (pare_skip){PARE_SKIP_NONE, {0}};
    if (kind == PARE_SKIP_IDENTITY) return (pare_skip){kind, {0}};
    return (pare_skip){kind, weight(k, 1, din, 1, 0.5)};
}

static inline void some_heads(maker *k, pare_attn *at)
{
    const bool rotary = pare_model_is_rotary(k->m);
    size_t q = 0, kk = 0, v = 0, o = 0, planes = 0;
    at->nheads = 1 + pick(k, 3);
    at->heads = make(k, at->nheads, sizeof *at->heads);
    for (size_t h = 0; h < at->nheads; h++) {
        pare_head *const d = &at->heads[h];
        *d = (pare_head){.dk = 1 + pick(k, 5), .dv = 1 + pick(k, 4), .q = q, .o = o};
        const bool shared = h > 0 && maybe(k); /* grouped queries: the keys of the head before */
        if (shared) {
            *d = at->heads[h - 1];
            d->q = q;
            d->o = o;
        } else {
            d->k = kk;
            d->v = v;
            kk += d->dk;
            v += d->dv;
            d->scale = (maybe(k) ? 1 : -1.7) / sqrt((double)d->dk);
            d->freq = planes;
            d->planes = rotary ? d->dk / 2 : 0;
            planes += d->planes;
        }
        q += d->dk;
        o += d->dv;
    }
    const bool fixed = at->kind == PARE_ATTN_CONSTQ || at->kind == PARE_ATTN_POOL;
    if (!fixed) at->wq = matrix(k, q, at->din);
    at->bq = fixed ? weight(k, 1, q, 0, 1) : vector(k, q);
    at->wk = matrix(k, kk, at->din);
    at->bk = vector(k, kk);
    at->wv = matrix(k, v, at->din);
    at->bv = vector(k, v);
    if (planes) at->freqs = weight(k, 1, planes, 0, 1);
    if (at->kind == PARE_ATTN_POOL)
        at->matrix = matrix(k, at->dout, at->din + o);
    else
        at->wo = matrix(k, at->dout, o);
    if (pare_has(&at->wo) && (q + 3 * kk + o + at->din) % 4 == 0) {
        at->dout = o; /* the heads side by side */
        at->wo = (pare_weight){0};
    }
}

static inline void some_attn(maker *k, pare_attn *at, size_t din)
{
    const bool rotary = pare_model_is_rotary(k->m);
    *at = (pare_attn){.din = din, .dout = maybe(k) ? din : 1 + pick(k, 7), .tolerance = 1e-3};
    do at->kind = (pare_attn_kind)pick(k, 12);
    while ((at->kind == PARE_ATTN_MEANQ && k->m->pattern.kind != PARE_FULL) ||
           (rotary && (at->kind == PARE_ATTN_CONSTQ || at->kind == PARE_ATTN_POOL)));
    if (pick(k, 3) == 0) at->kind = PARE_ATTN_EXACT; /* the one that matters most */
    if (at->kind == PARE_ATTN_NONE) return;
    switch (at->kind) {
    case PARE_ATTN_UNIFORM:
        at->mix = matrix(k, at->dout, din);
        at->bv = vector(k, at->dout);
        break;
    case PARE_ATTN_AFFMIX:
        at->mix = matrix(k, at->dout, din); /* fall through */
    case PARE_ATTN_LINEAR:
        at->matrix = matrix(k, at->dout, din);
        break;
    case PARE_ATTN_UMIX:
        at->mix = matrix(k, at->dout * (1 + pick(k, 3)), din);
        break;
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        break;
    case PARE_ATTN_EXACT:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
    case PARE_ATTN_POOL:
    case PARE_ATTN_POLY:
        some_heads(k, at);
        break;
    }
    at->bo = at->kind == PARE_ATTN_CONST ? weight(k, 1, at->dout, 0, 1) : vector(k, at->dout);
    at->in_norm = some_norm(k, din);
    at->out_norm = some_norm(k, at->dout);
    at->skip = some_skip(k, din, at->dout);
}

static inline void some_ffn(maker *k, pare_ffn *f, size_t din)
{
    *f = (pare_ffn){.kind = (pare_ffn_kind)pick(k, 3), .din = din, .act = (pare_act)pick(k, 6)};
    f->dout = maybe(k) ? din : 1 + pick(k, 7);
    if (f->kind == PARE_FFN_NONE) return;
    f->nlayers = f->kind == PARE_FFN_GATED ? 3 : 1 + pick(k, 3);
    f->layers = make(k, f->nlayers, sizeof *f->layers);
    const size_t hidden = 1 + pick(k, 9);
    for (size_t l = 0; l < f->nlayers; l++) {
        const bool first = l == 0 || (f->kind == PARE_FFN_GATED && l == 1);
        const size_t out = l + 1 == f->nlayers ? f->dout : hidden;
        f->layers[l].w = matrix(k, out, first ? din : hidden);
        f->layers[l].b = vector(k, out);
    }
    f->in_norm = some_norm(k, din);
    f->out_norm = some_norm(k, f->dout);
    f->skip = some_skip(k, din, f->dout);
}

static inline void some_stem(maker *k)
{
    pare_model *const m = k->m;
    pare_embedding *const s = &m->embedding;
    s->ids = m->pattern.kind != PARE_GRAPH && maybe(k);
    s->width = 2 + pick(k, 6);
    s->vocab = s->ids ? 11 : 0;
    if (s->ids) s->table = weight(k, s->vocab, s->width, 0, 1);
    s->pos.kind = (pare_position_kind)pick(k, 4);
    s->pos.after_map = maybe(k);
    s->pos.interleaved = maybe(k);
    s->pos.base = 10000;
    size_t d = s->width;
    if (maybe(k)) {
        d = 2 + pick(k, 6);
        s->map.w = matrix(k, d, s->width);
        s->map.b = vector(k, d);
    }
    m->context = 16;
    if (s->pos.kind == PARE_POS_LEARNED)
        s->pos.table = weight(k, m->context, s->pos.after_map ? d : s->width, 0, 1);
    s->norm = some_norm(k, d);
}

static inline void some_top(maker *k)
{
    pare_model *const m = k->m;
    pare_output_head *const t = &m->head;
    size_t d = pare_model_width(m, m->nblocks);
    t->norm = some_norm(k, d);
    t->pool = (pare_pool)pick(k, 3);
    t->act = (pare_act)pick(k, 6);
    t->tied = m->embedding.ids && maybe(k);
    if (t->tied || maybe(k)) {
        const size_t hidden = t->tied ? m->embedding.width : 1 + pick(k, 6);
        t->dense.w = matrix(k, hidden, d);
        t->dense.b = vector(k, hidden);
        d = hidden;
    }
    if (t->tied) t->out.b = vector(k, m->embedding.vocab);
    if (!t->tied && maybe(k)) {
        t->out.w = matrix(k, 5, d);
        t->out.b = vector(k, 5);
    }
}

/* Four tokens get one row. */
static inline void share_rows(pare_model *m)
{
    pare_err err = {0};
    const pare_embedding *const s = &m->embedding;
    bool shares[11] = {[1] = true, [4] = true, [5] = true, [10] = true};
    const char *const row =
        (const char *)s->table.data + 4 * s->width * pare_dtype_size(s->table.dtype);
    assert_true(s->vocab == 11);
    assert_ok(pare_model_share(m, shares, row, &err), &err);
}

/* A model that pare_model_check accepts. */
static inline pare_model *some_model(uint64_t seed, double sigma)
{
    maker k = {.r = pare_rng_at(seed, 77), .sigma = sigma};
    pare_err err = {0};
    assert_ok(pare_model_new(&k.m, &err), &err);
    pare_model *const m = k.m;
    m->pattern = (pare_pattern){.kind = (pare_pattern_kind)pick(&k, 4), .window = 2, .sinks = 1};
    m->pattern.self_loops = maybe(&k);
    m->pattern.expander_degree = maybe(&k) ? 2 : 0;
    some_stem(&k);
    m->nblocks = 1 + pick(&k, 2);
    m->blocks = make(&k, m->nblocks, sizeof *m->blocks);
    for (size_t b = 0; b < m->nblocks; b++) {
        some_attn(&k, &m->blocks[b].attn, pare_model_width(m, b));
        const pare_attn *const at = &m->blocks[b].attn;
        some_ffn(&k, &m->blocks[b].ffn, at->kind ? at->dout : pare_model_width(m, b));
    }
    some_top(&k);
    if (m->embedding.ids && seed % 3 == 0) share_rows(m);
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

/* The same with a head as encoders of texts have it: every kind of pooling, and outputs of length 1
 * in two of three. */
static inline pare_model *some_encoder(uint64_t seed, double sigma)
{
    pare_model *const m = some_model(seed, sigma);
    pare_err err = {0};
    if (m->head.tied) assert_ok(pare_model_expand_rows(m, &err), &err);
    m->head.pool = (pare_pool)(seed % 5);
    m->head.normalize = seed % 3 != 0;
    return m;
}

/* An input for it, vectors scaled by `size` around `offset`; rows 0 and 2 of a graph see nobody
 * unless the pattern adds edges. */
static inline pare_input some_input(pare_model *m, uint64_t seed, double size, double offset)
{
    maker k = {.m = m, .r = pare_rng_at(seed, 78)};
    pare_input in = {.batch = m->pattern.kind == PARE_GRAPH ? 1 : 1 + pick(&k, 2),
                     .tokens = 1 + pick(&k, 7)};
    const size_t n = in.batch * in.tokens;
    if (m->embedding.ids) {
        int64_t *const ids = make(&k, n, sizeof *ids);
        for (size_t i = 0; i < n; i++) ids[i] = (int64_t)pick(&k, m->embedding.vocab);
        in.ids = ids;
    } else {
        in.width = m->embedding.width;
        double *const x = make(&k, n * in.width, sizeof *x);
        for (size_t i = 0; i < n * in.width; i++) x[i] = offset + size * pare_rng_normal(&k.r);
        in.x = x;
    }
    if (m->pattern.kind == PARE_GRAPH) {
        pare_graph *const g = make(&k, 1, sizeof *g);
        size_t *const ptr = make(&k, in.tokens + 1, sizeof *ptr);
        uint32_t *const idx = make(&k, in.tokens * in.tokens, sizeof *idx);
        for (size_t i = 0; i < in.tokens; i++) {
            ptr[i + 1] = ptr[i];
            for (size_t j = 0; i % 2 == 1 && j < in.tokens; j++)
                if (maybe(&k)) idx[ptr[i + 1]++] = (uint32_t)j;
        }
        *g = (pare_graph){in.tokens, ptr, idx};
        in.graph = g;
    }
    return in;
}
#endif
