/* ticket_pairs.h - targets and models that stand for their tickets: the theorems do not care where
 * an error comes from, so weights are rounded to few bits, moved at random, or merged. */
#ifndef TEST_TICKET_PAIRS_H
#define TEST_TICKET_PAIRS_H
#include <pare/run.h>
#include <enclose_models.h>

/* ---- weights --------------------------------------------------------------------------------- */

typedef enum pair_law { PAIR_GAUSS, PAIR_POSITIVE, PAIR_SPARSE, PAIR_LAWS } pair_law;

static inline double pair_draw(pare_rng *r, pair_law law, double size)
{
    const double x = size * pare_rng_normal(r);
    if (law == PAIR_POSITIVE) return fabs(x);
    return law == PAIR_SPARSE && pare_rng_below(r, 2) ? 0 : x;
}

static inline pare_weight pair_weight(pare_model *m, pare_rng *r, size_t rows, size_t cols,
                                      pair_law law, double size)
{
    double *const v = pare_alloc(m->arena, rows * cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < rows * cols; i++) v[i] = pair_draw(r, law, size);
    return (pare_weight){PARE_F64, rows, cols, v};
}

/* ---- targets --------------------------------------------------------------------------------- */

typedef struct pair_shape {
    size_t d1, d2, heads, dk, blocks; /* d2: of the attention; blocks > 1 need d2 = d1 */
    pare_pattern pattern;
    pair_law law;
    double size; /* of entries, times 1 / sqrt(d) */
    bool biases, skip, ffn, norms, rotary;
} pair_shape;

static inline void pair_attention(pare_model *m, pare_rng *r, pare_attn *at, const pair_shape *s)
{
    const double size = s->size / sqrt((double)s->d1);
    const size_t all = s->heads * s->dk;
    *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = s->d1, .dout = s->d2, .nheads = s->heads};
    at->heads = pare_alloc(m->arena, s->heads, sizeof *at->heads);
    assert_non_null(at->heads);
    for (size_t h = 0; h < s->heads; h++)
        at->heads[h] = (pare_head){.dk = s->dk,
                                   .dv = s->dk,
                                   .q = h * s->dk,
                                   .k = h * s->dk,
                                   .v = h * s->dk,
                                   .o = h * s->dk,
                                   .scale = 1 / sqrt((double)s->dk),
                                   .planes = s->rotary ? s->dk / 2 : 0};
    at->wq = pair_weight(m, r, all, s->d1, s->law, size);
    at->wk = pair_weight(m, r, all, s->d1, s->law, size);
    at->wv = pair_weight(m, r, all, s->d1, s->law, size);
    at->wo = pair_weight(m, r, s->d2, all, s->law, size);
    if (s->rotary && s->dk > 1) at->freqs = pair_weight(m, r, 1, s->dk / 2, PAIR_POSITIVE, 1);
    if (s->skip) at->skip.kind = PARE_SKIP_IDENTITY;
    if (!s->biases) return;
    at->bq = pair_weight(m, r, 1, all, s->law, .3);
    at->bk = pair_weight(m, r, 1, all, s->law, .3);
    at->bv = pair_weight(m, r, 1, all, s->law, .3);
    at->bo = pair_weight(m, r, 1, s->d2, s->law, .3);
}

static inline void pair_ffn(pare_model *m, pare_rng *r, pare_ffn *f, const pair_shape *s)
{
    static const pare_act acts[] = {PARE_ACT_RELU, PARE_ACT_GELU, PARE_ACT_SILU, PARE_ACT_TANH,
                                    PARE_ACT_GELU_TANH};
    const size_t hidden = 1 + pare_rng_below(r, 2 * s->d1), depth = 1 + pare_rng_below(r, 3);
    const bool gated = pare_rng_below(r, 3) == 0;
    *f = (pare_ffn){.kind = gated ? PARE_FFN_GATED : PARE_FFN_MLP,
                    .din = s->d2,
                    .dout = s->d2,
                    .nlayers = gated ? 3 : depth,
                    .act = acts[pare_rng_below(r, 5)],
                    .skip = {s->skip ? PARE_SKIP_IDENTITY : PARE_SKIP_NONE, {0}}};
    f->layers = pare_alloc(m->arena, 3, sizeof *f->layers);
    assert_non_null(f->layers);
    for (size_t l = 0; l < f->nlayers; l++) {
        const size_t out = l + 1 == f->nlayers ? s->d2 : hidden;
        const size_t in = l == 0 || (gated && l == 1) ? s->d2 : hidden;
        f->layers[l].w = pair_weight(m, r, out, in, s->law, s->size / sqrt((double)in));
        if (s->biases) f->layers[l].b = pair_weight(m, r, 1, out, s->law, .3);
    }
}

static inline pare_norm pair_norm(pare_model *m, pare_rng *r, size_t d)
{
    pare_norm n = {.kind = pare_rng_below(r, 2) ? PARE_NORM_LAYER : PARE_NORM_RMS,
                   .eps = 1e-3,
                   .divisor = (double)d};
    n.gain = pair_weight(m, r, 1, d, PAIR_POSITIVE, 1);
    n.bias = pair_weight(m, r, 1, d, PAIR_GAUSS, .2);
    return n;
}

/* Vectors in, the stream out. */
static inline pare_model *pair_target(pare_rng *r, const pair_shape *s)
{
    pare_err err = {0};
    pare_model *m;
    assert_ok(pare_model_new(&m, &err), &err);
    m->stem.width = s->d1;
    m->stem.pos.kind = s->rotary ? PARE_POS_ROTARY : PARE_POS_NONE;
    m->pattern = s->pattern;
    m->nblocks = s->blocks;
    m->blocks = pare_alloc(m->arena, s->blocks, sizeof *m->blocks);
    assert_non_null(m->blocks);
    for (size_t b = 0; b < s->blocks; b++) {
        pair_attention(m, r, &m->blocks[b].attn, s);
        if (s->ffn) pair_ffn(m, r, &m->blocks[b].ffn, s);
        if (s->norms) m->blocks[b].attn.in_norm = pair_norm(m, r, s->d1);
        if (s->norms && s->ffn) m->blocks[b].ffn.out_norm = pair_norm(m, r, s->d2);
    }
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

static inline pair_shape pair_shape_of(pare_rng *r)
{
    static const size_t widths[] = {2, 4, 8, 16};
    static const double sizes[] = {.1, 1, 3, 20};
    pair_shape s = {.d1 = widths[pare_rng_below(r, 4)],
                    .heads = 1 + pare_rng_below(r, 4),
                    .dk = 1 + pare_rng_below(r, 8),
                    .blocks = 1 + pare_rng_below(r, 3),
                    .law = (pair_law)pare_rng_below(r, PAIR_LAWS),
                    .size = sizes[pare_rng_below(r, 4)]};
    s.pattern = (pare_pattern){.kind = (pare_pattern_kind)pare_rng_below(r, 4), .window = 3};
    s.d2 = s.d1;
    if (s.blocks == 1 && pare_rng_below(r, 2)) s.d2 = 1 + pare_rng_below(r, s.d1);
    s.biases = pare_rng_below(r, 2);
    s.skip = s.d1 == s.d2 && pare_rng_below(r, 2);
    s.ffn = pare_rng_below(r, 2);
    s.norms = pare_rng_below(r, 3) == 0;
    s.rotary = pare_rng_below(r, 4) == 0;
    return s;
}

/* ---- tickets --------------------------------------------------------------------------------- */

typedef struct pair_change {
    pare_model *m;
    pare_rng r;
    double size;
    int how;      /* 0: rounded to a grid, 1: moved at random, 2: all in one direction */
    bool vectors; /* biases and gains as well */
} pair_change;

static inline double pair_moved(pair_change *c, double x, double largest)
{
    const double step = c->size * largest;
    if (step == 0 || c->how == 2) return x + step;
    return c->how == 0 ? step * nearbyint(x / step) : x + step * pare_rng_normal(&c->r);
}

static inline pare_status pair_change_one(void *self, const char *name, pare_weight *w, bool vector,
                                          pare_err *err)
{
    pair_change *const c = self;
    (void)err;
    if (!pare_has(w) || (vector && !c->vectors) || strstr(name, "freqs") || strstr(name, "mean") ||
        strstr(name, "var") || strstr(name, "offset") || strstr(name, "matrix") ||
        strstr(name, "mix"))
        return PARE_OK;
    double *const v = pare_alloc(c->m->arena, w->rows * w->cols, sizeof *v);
    assert_non_null(v);
    double largest = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++)
        largest = fmax(largest, fabs(pare_weight_at(w, i)));
    for (size_t i = 0; i < w->rows * w->cols; i++)
        v[i] = pair_moved(c, pare_weight_at(w, i), largest);
    *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
    return PARE_OK;
}

/* f with its weights changed by `size` of the largest entry. */
static inline pare_model *pair_ticket(const pare_model *f, uint64_t seed, double size, int how,
                                      bool vectors)
{
    pare_err err = {0};
    pare_model *g;
    assert_ok(pare_model_clone(&g, f, &err), &err);
    pair_change c = {g, pare_rng_at(seed, 5), size, how, vectors};
    assert_ok(pare_model_visit(g, pair_change_one, &c, &err), &err);
    return g;
}

/* Heads that compute with c Wq^T Wk (and its bias row) and Wo Wv themselves: the same function. */
static inline void pair_merge(pare_model *g, pare_attn *at)
{
    const size_t d = at->din, n = at->nheads, dk = d + 1, dv = at->dout;
    pare_attn y = *at;
    y.heads = pare_alloc(g->arena, n, sizeof *y.heads);
    double *const q = pare_alloc(g->arena, n * dk * d, sizeof *q),
                  *const bq = pare_alloc(g->arena, n * dk, sizeof *bq),
                  *const k = pare_alloc(g->arena, n * dk * d, sizeof *k),
                  *const v = pare_alloc(g->arena, n * dv * d, sizeof *v),
                  *const bv = pare_alloc(g->arena, n * dv, sizeof *bv),
                  *const o = pare_alloc(g->arena, n * dv * dv, sizeof *o);
    assert_true(y.heads && q && bq && k && v && bv && o);
    for (size_t h = 0; h < n; h++) {
        const pare_head *const x = &at->heads[h];
        y.heads[h] = (pare_head){dk, dv, h * dk, h * dk, h * dv, h * dv, 1, 0, 0};
        for (size_t i = 0; i < d; i++) q[(h * dk + i) * d + i] = 1;
        bq[h * dk + d] = 1;
        for (size_t i = 0; i <= d; i++)
            for (size_t j = 0; j < d; j++)
                for (size_t c = 0; c < x->dk; c++) {
                    const double left =
                        i < d ? pare_weight_at(&at->wq, (x->q + c) * d + i)
                              : (pare_has(&at->bq) ? pare_weight_at(&at->bq, x->q + c) : 0);
                    k[(h * dk + i) * d + j] +=
                        x->scale * left * pare_weight_at(&at->wk, (x->k + c) * d + j);
                }
        for (size_t i = 0; i < dv; i++) {
            o[i * n * dv + h * dv + i] = 1;
            for (size_t c = 0; c < x->dv; c++) {
                const double w = pare_weight_at(&at->wo, i * at->wo.cols + x->o + c);
                bv[h * dv + i] += pare_has(&at->bv) ? w * pare_weight_at(&at->bv, x->v + c) : 0;
                for (size_t j = 0; j < d; j++)
                    v[(h * dv + i) * d + j] += w * pare_weight_at(&at->wv, (x->v + c) * d + j);
            }
        }
    }
    y.wq = (pare_weight){PARE_F64, n * dk, d, q};
    y.bq = (pare_weight){PARE_F64, 1, n * dk, bq};
    y.wk = (pare_weight){PARE_F64, n * dk, d, k};
    y.bk = (pare_weight){0};
    y.wv = (pare_weight){PARE_F64, n * dv, d, v};
    y.bv = (pare_weight){PARE_F64, 1, n * dv, bv};
    y.wo = (pare_weight){PARE_F64, dv, n * dv, o};
    *at = y;
}

static inline pare_model *pair_merged(const pare_model *f)
{
    pare_err err = {0};
    pare_model *g;
    assert_ok(pare_model_clone(&g, f, &err), &err);
    for (size_t b = 0; b < g->nblocks; b++) pair_merge(g, &g->blocks[b].attn);
    assert_ok(pare_model_check(g, &err), &err);
    return g;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* A ring with some rows that see nobody. */
static inline pare_graph pair_graph(pare_arena *a, pare_rng *r, size_t n)
{
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, n * n + 1, sizeof *idx);
    assert_true(ptr && idx);
    for (size_t i = 0; i < n; i++) {
        ptr[i + 1] = ptr[i];
        for (size_t j = 0; i % 4 != 3 && j < n; j++)
            if (pare_rng_below(r, 3) == 0) idx[ptr[i + 1]++] = (uint32_t)j;
    }
    return (pare_graph){n, ptr, idx};
}

/* Rows of length alpha at most: many of them as long as that. */
static inline void pair_rows(double *x, pare_rng *r, size_t n, size_t d, double alpha)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < d; j++) {
            x[i * d + j] = pare_rng_below(r, 4) ? pare_rng_normal(r) : 0;
            sum += x[i * d + j] * x[i * d + j];
        }
        const double to = pare_rng_below(r, 3) ? alpha : alpha * pare_rng_uniform(r);
        for (size_t j = 0; j < d && sum > 0; j++) x[i * d + j] *= to / sqrt(sum) * (1 - 1e-15);
    }
}

/* Largest |f - g| over the entries, and the largest row distance where wanted. */
static inline double pair_apart(const pare_model *f, const pare_model *g, const pare_input *in,
                                double *rows, double *scale)
{
    pare_err err = {0};
    const size_t n = pare_output_rows(f, in), c = pare_model_outputs(f);
    double *const y = calloc(2 * n * c + 1, sizeof *y), far = 0;
    assert_non_null(y);
    assert_ok(pare_forward_f64(y, f, in, NULL, NULL, &err), &err);
    assert_ok(pare_forward_f64(y + n * c, g, in, NULL, NULL, &err), &err);
    if (scale) *scale = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t j = 0; j < c; j++) {
            const double e = y[i * c + j] - y[n * c + i * c + j];
            far = fmax(far, fabs(e));
            sum += e * e;
            if (scale) *scale = fmax(*scale, fabs(y[i * c + j]) + fabs(y[n * c + i * c + j]));
        }
        if (rows) rows[i] = sqrt(sum);
    }
    free(y);
    return far;
}
#endif
