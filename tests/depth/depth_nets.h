/* depth_nets.h - pure attention networks for the theorems of depth: random, of one sign, with and
 * without biases, masks and skips; and inputs that are made to hurt. */
#ifndef TEST_DEPTH_NETS_H
#define TEST_DEPTH_NETS_H
#include "depth/depth_bounds.h"
#include <pare_test.h>

typedef enum weight_law { LAW_UNIFORM, LAW_SIGNS, LAW_GAUSS, LAW_POSITIVE, LAW_ALL_ETA } weight_law;

typedef struct net_shape {
    size_t layers, heads, d;
    double eta, beta, bias; /* bias: size of all biases; 0: none */
    weight_law law;
    pare_pattern_kind pattern;
    bool no_skip;
} net_shape;

static inline double net_draw(pare_rng *r, weight_law law, double eta)
{
    const double u = 2 * pare_rng_uniform(r) - 1;
    switch (law) {
    case LAW_UNIFORM:
        return eta * u;
    case LAW_SIGNS:
        return u < 0 ? -eta : eta;
    case LAW_GAUSS:
        return eta * pare_rng_normal(r);
    case LAW_POSITIVE:
        return eta * fabs(u);
    case LAW_ALL_ETA:
        break;
    }
    return eta;
}

static inline double *net_room(pare_model *m, size_t n)
{
    double *const v = pare_alloc(m->arena, n, sizeof *v);
    assert_non_null(v);
    return v;
}

static inline pare_weight net_weight(pare_model *m, pare_rng *r, size_t rows, size_t cols,
                                     weight_law law, double eta)
{
    double *const v = net_room(m, rows * cols);
    for (size_t i = 0; i < rows * cols; i++) v[i] = net_draw(r, law, eta);
    return (pare_weight){PARE_F64, rows, cols, v};
}

/* Heads of d x d matrices whose values are added up. */
static inline void net_attention(pare_model *m, pare_rng *r, pare_attn *at, const net_shape *s)
{
    const size_t d = s->d, n = s->heads;
    *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = d, .dout = d, .nheads = n};
    at->heads = pare_alloc(m->arena, n, sizeof *at->heads);
    assert_non_null(at->heads);
    for (size_t h = 0; h < n; h++)
        at->heads[h] = (pare_head){d, d, h * d, h * d, h * d, h * d, s->beta, 0, 0};
    at->skip.kind = s->no_skip ? PARE_SKIP_NONE : PARE_SKIP_IDENTITY;
    at->wq = net_weight(m, r, n * d, d, s->law, s->eta);
    at->wk = net_weight(m, r, n * d, d, s->law, s->eta);
    at->wv = net_weight(m, r, n * d, d, s->law, s->eta);
    double *const wo = net_room(m, n * d * d);
    for (size_t i = 0; i < n * d; i++) wo[i % d * n * d + i] = 1;
    at->wo = (pare_weight){PARE_F64, d, n * d, wo};
    if (s->bias == 0) return;
    at->bq = net_weight(m, r, 1, n * d, LAW_UNIFORM, s->bias);
    at->bk = net_weight(m, r, 1, n * d, LAW_UNIFORM, s->bias);
    at->bv = net_weight(m, r, 1, n * d, LAW_UNIFORM, s->bias);
    at->bo = net_weight(m, r, 1, d, LAW_UNIFORM, s->bias);
}

static inline pare_model *net_of(pare_rng *r, const net_shape *s)
{
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_new(&m, &err), &err);
    m->embedding.width = s->d;
    m->pattern = (pare_pattern){.kind = s->pattern, .window = 2, .sinks = 1, .self_loops = true};
    m->nblocks = s->layers;
    m->blocks = pare_alloc(m->arena, s->layers, sizeof *m->blocks);
    assert_non_null(m->blocks);
    for (size_t b = 0; b < s->layers; b++) net_attention(m, r, &m->blocks[b].attn, s);
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

static inline pare_input net_input(const double *x, size_t n, size_t d)
{
    return (pare_input){.batch = 1, .tokens = n, .width = d, .x = x};
}

/* Entries up to phi: corners of the box, the inside, all alike but one, one token alone. */
static inline void hostile_input(double *x, pare_rng *r, size_t n, size_t d, double phi)
{
    const uint64_t how = pare_rng_below(r, 4);
    for (size_t i = 0; i < n * d; i++) {
        const double u = 2 * pare_rng_uniform(r) - 1;
        x[i] = how == 0 ? phi * u : how == 1 ? (u < 0 ? -phi : phi) : phi;
        if (how == 2 && i < d) x[i] = -phi;
        if (how == 3 && i < d) x[i] = phi * u;
    }
}

static inline void net_run(double *y, const pare_model *m, const double *x, size_t n, size_t d)
{
    pare_err err = {0};
    const pare_input in = net_input(x, n, d);
    assert_ok(pare_forward_f64(y, m, &in, NULL, NULL, &err), &err);
}

/* Largest |f - g| at one input. */
static inline double net_apart(const pare_model *f, const pare_model *g, const double *x, size_t n,
                               size_t d)
{
    double *const y = calloc(2 * n * d, sizeof *y);
    double far = 0;
    assert_non_null(y);
    net_run(y, f, x, n, d);
    net_run(y + n * d, g, x, n, d);
    for (size_t i = 0; i < n * d; i++) {
        const double e = fabs(y[i] - y[n * d + i]);
        if (!(e <= far)) far = e;
    }
    free(y);
    return far;
}

static inline pare_model *collapsed(const pare_model *m, pare_collapse kind, size_t keep,
                                    const pare_inputs *calib)
{
    pare_model *g = NULL;
    pare_err err = {0};
    const one_layer_opts o = {.kind = kind, .keep = keep, .calib = calib};
    assert_ok(collapse_to_one_layer(&g, m, &o, &err), &err);
    return g;
}

static inline depth_bound bound_of(const pare_model *f, const pare_model *g, double phi0,
                                   double diam0)
{
    depth_bound b;
    pare_err err = {0};
    const depth_domain d = {phi0, diam0};
    assert_ok(depth_apriori(&b, f, g, &d, NULL, &err), &err);
    return b;
}

/* Every attention replaced by the uniform kind (f64), the rest borrowed. */
static inline void make_uniform(pare_model *m, pare_attn *at)
{
    const size_t d = at->dout, in = at->din;
    double *const mix = net_room(m, d * in), *const bv = net_room(m, d);
    for (size_t h = 0; h < at->nheads; h++) {
        const pare_head *const e = &at->heads[h];
        for (size_t i = 0; i < d; i++)
            for (size_t k = 0; k < e->dv; k++) {
                const double o = pare_has(&at->wo)
                                     ? pare_weight_at(&at->wo, i * at->wo.cols + e->o + k)
                                     : (double)(i == e->o + k);
                for (size_t j = 0; j < in; j++)
                    mix[i * in + j] += o * pare_weight_at(&at->wv, (e->v + k) * in + j);
                if (pare_has(&at->bv)) bv[i] += o * pare_weight_at(&at->bv, e->v + k);
            }
    }
    const pare_attn old = *at;
    *at = (pare_attn){.kind = PARE_ATTN_UNIFORM, .din = in, .dout = d, .bo = old.bo};
    at->in_norm = old.in_norm;
    at->out_norm = old.out_norm;
    at->skip = old.skip;
    at->mix = (pare_weight){PARE_F64, d, in, mix};
    at->bv = (pare_weight){PARE_F64, 1, d, bv};
}

static inline pare_model *net_clone(const pare_model *m)
{
    pare_model *g = NULL;
    pare_err err = {0};
    assert_ok(pare_model_clone(&g, m, &err), &err);
    return g;
}

static inline pare_model *all_uniform(const pare_model *m)
{
    pare_model *const g = net_clone(m);
    for (size_t b = 0; b < g->nblocks; b++) make_uniform(g, &g->blocks[b].attn);
    return g;
}
#endif
