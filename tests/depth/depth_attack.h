/* depth_attack.h - tries to break the bounds of depth: random networks and ones made to hurt (all
 * weights of one sign, corners of the box), collapsed or with attention replaced in place, and
 * inputs improved by gradient ascent on the worst output. */
#ifndef TEST_DEPTH_ATTACK_H
#define TEST_DEPTH_ATTACK_H
#include "depth_nets.h"
#include "train/gradient.h"
#include <pare/depth.h>

typedef struct target {
    pare_model *f, *g;
    size_t n, d;
    double phi, diam;       /* of the domain; diam < 0: 2 phi */
    double low[8], high[8]; /* where each coordinate of this input may be */
    char name[60];
} target;

/* ---- networks -------------------------------------------------------------------------------- */

static inline void attack_ffn(pare_model *m, pare_rng *r, pare_ffn *f, size_t d, double eta)
{
    const size_t hidden = 1 + pare_rng_below(r, 6);
    static const pare_act acts[] = {PARE_ACT_RELU, PARE_ACT_TANH, PARE_ACT_GELU, PARE_ACT_SILU,
                                    PARE_ACT_GELU_TANH};
    const bool gated = pare_rng_below(r, 3) == 0;
    *f = (pare_ffn){.kind = gated ? PARE_FFN_GATED : PARE_FFN_MLP,
                    .din = d,
                    .dout = d,
                    .nlayers = gated ? 3 : 2,
                    .act = acts[pare_rng_below(r, 5)]};
    f->layers = pare_alloc(m->arena, 3, sizeof *f->layers);
    assert_non_null(f->layers);
    for (size_t l = 0; l < f->nlayers; l++) {
        const bool last = l + 1 == f->nlayers;
        f->layers[l].w = net_weight(m, r, last ? d : hidden, last ? hidden : d, LAW_GAUSS, eta);
        f->layers[l].b = net_weight(m, r, 1, last ? d : hidden, LAW_GAUSS, .2);
    }
    f->skip.kind = PARE_SKIP_IDENTITY;
}

static inline pare_norm attack_norm(pare_model *m, pare_rng *r, size_t d)
{
    pare_norm n = {0};
    if (pare_rng_below(r, 2)) return n;
    n.kind = pare_rng_below(r, 2) ? PARE_NORM_MEAN : PARE_NORM_BATCH;
    n.gain = net_weight(m, r, 1, d, LAW_GAUSS, 1);
    n.bias = net_weight(m, r, 1, d, LAW_GAUSS, .1);
    if (n.kind == PARE_NORM_MEAN) return n;
    n.mean = net_weight(m, r, 1, d, LAW_GAUSS, .2);
    n.var = net_weight(m, r, 1, d, LAW_POSITIVE, 1);
    n.eps = .3;
    return n;
}

static inline void attack_kind(pare_model *g, pare_rng *r, pare_attn *at)
{
    const pare_attn old = *at;
    const uint64_t how = pare_rng_below(r, 5);
    if (how == 0) return;
    if (how <= 2) {
        make_uniform(g, at);
        return;
    }
    *at = (pare_attn){.kind = how == 3 ? PARE_ATTN_ZERO : PARE_ATTN_AFFMIX,
                      .din = old.din,
                      .dout = old.dout,
                      .bo = old.bo,
                      .in_norm = old.in_norm,
                      .out_norm = old.out_norm,
                      .skip = old.skip};
    if (how == 3) return;
    at->matrix = net_weight(g, r, at->dout, at->din, LAW_GAUSS, .05);
    at->mix = net_weight(g, r, at->dout, at->din, LAW_GAUSS, .1);
}

/* In place: masks, FFNs and affine norms. */
static inline void attack_blocks(target *t, pare_rng *r, net_shape s)
{
    s.pattern = (pare_pattern_kind)pare_rng_below(r, 3);
    t->f = net_of(r, &s);
    for (size_t b = 0; b < s.layers; b++) {
        t->f->blocks[b].attn.in_norm = attack_norm(t->f, r, s.d);
        t->f->blocks[b].attn.out_norm = attack_norm(t->f, r, s.d);
        if (pare_rng_below(r, 2)) attack_ffn(t->f, r, &t->f->blocks[b].ffn, s.d, .3);
    }
    t->g = net_clone(t->f);
    for (size_t b = 0; b < s.layers; b++) attack_kind(t->g, r, &t->g->blocks[b].attn);
    snprintf(t->name, sizeof t->name, "in place, %s", pare_pattern_name(s.pattern));
}

static inline void attack_collapse(target *t, pare_rng *r, net_shape s, double *x)
{
    const pare_collapse kind = (pare_collapse)pare_rng_below(r, PARE_ONES);
    const bool any = kind == PARE_ONE_KEEP || kind == PARE_ONE_PARALLEL || kind == PARE_ONE_UMIX;
    if (any) s.pattern = (pare_pattern_kind)pare_rng_below(r, 3);
    t->f = net_of(r, &s);
    pare_input in = net_input(x, t->n, t->d);
    const pare_inputs calib = {1, &in};
    t->g = collapsed(t->f, kind, (size_t)pare_rng_below(r, s.layers), &calib);
    snprintf(t->name, sizeof t->name, "%s, %s", pare_collapse_names[kind],
             pare_pattern_name(s.pattern));
}

static inline void attack_domain(target *t, pare_rng *r)
{
    static const double sizes[] = {.3, 1, 2};
    t->phi = sizes[pare_rng_below(r, 3)];
    t->diam = pare_rng_below(r, 2) ? -1 : t->phi * pare_rng_uniform(r);
    const double half = t->diam < 0 ? t->phi : t->diam / 2;
    for (size_t j = 0; j < t->d; j++) {
        const double c = (t->phi - half) * (2 * pare_rng_uniform(r) - 1);
        t->low[j] = fmax(-t->phi, c - half * (1 - 1e-12));
        t->high[j] = fmin(t->phi, c + half * (1 - 1e-12));
    }
}

static inline void attack_input(const target *t, pare_rng *r, double *x)
{
    const uint64_t how = pare_rng_below(r, 4);
    for (size_t i = 0; i < t->n * t->d; i++) {
        const double lo = t->low[i % t->d], hi = t->high[i % t->d], u = pare_rng_uniform(r);
        x[i] = how == 0 ? lo + u * (hi - lo) : how == 1 ? (u < .5 ? lo : hi) : hi;
        if (how == 2 && i / t->d < t->n / 2) x[i] = lo;
        if (how == 3 && i < t->d) x[i] = lo;
    }
}

static inline void attack_make(target *t, uint64_t seed, double *x)
{
    static const double etas[] = {.005, .05, .2, .6};
    pare_rng r = pare_rng_at(seed, 100);
    *t = (target){.n = 1 + pare_rng_below(&r, 7), .d = 1 + pare_rng_below(&r, 5)};
    attack_domain(t, &r);
    attack_input(t, &r, x);
    const net_shape s = {.layers = 1 + pare_rng_below(&r, 4),
                         .heads = 1 + pare_rng_below(&r, 3),
                         .d = t->d,
                         .eta = etas[pare_rng_below(&r, 4)],
                         .beta = 1,
                         .bias = pare_rng_below(&r, 3) ? 0 : .2,
                         .law = (weight_law)pare_rng_below(&r, 5)};
    if (seed % 3)
        attack_collapse(t, &r, s, x);
    else
        attack_blocks(t, &r, s);
}

/* ---- ascent ---------------------------------------------------------------------------------- */

typedef struct climber {
    pare_params *p[2];
    pare_tape *t[2];
} climber;

static inline void climber_open(climber *c, const target *t)
{
    const pare_model *const m[] = {t->f, t->g};
    pare_err err = {0};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(pare_params_new(&c->p[i], m[i], PARE_F64, &err), &err);
        assert_ok(pare_tape_new(&c->t[i], c->p[i], NULL, &err), &err);
    }
}

static inline void climber_close(climber *c)
{
    for (size_t i = 0; i < 2; i++) {
        pare_tape_free(c->t[i]);
        pare_params_free(c->p[i]);
    }
}

/* |f - g| at x, and the direction in which its worst entry grows. */
static inline double climb_slope(climber *c, const target *t, const double *x, double *slope)
{
    const pare_input in = net_input(x, t->n, t->d);
    const pare_mode mode = {0};
    const size_t size = t->n * t->d;
    const void *y[2];
    pare_err err = {0};
    double far = -1, dy[64] = {0};
    size_t at = 0;
    for (size_t i = 0; i < 2; i++)
        assert_ok(pare_tape_forward(c->t[i], &in, &mode, &y[i], &err), &err);
    const double *const f = y[0], *const g = y[1];
    for (size_t i = 0; i < size; i++)
        if (fabs(f[i] - g[i]) > far) far = fabs(f[i] - g[i]), at = i;
    const double sign = f[at] < g[at] ? -1 : 1;
    memset(slope, 0, size * sizeof *slope);
    for (size_t i = 0; i < 2; i++) {
        dy[at] = i ? -sign : sign;
        assert_ok(pare_tape_backward(c->t[i], dy, NULL, NULL, &err), &err);
        const double *const d = pare_tape_dstream(c->t[i], 0);
        for (size_t j = 0; j < size; j++) slope[j] += d[j];
    }
    return far;
}

/* The best of some starts and of the climbs from them. */
static inline double attack_search(const target *t, uint64_t seed, size_t starts, size_t steps)
{
    pare_rng r = pare_rng_at(seed, 101);
    climber c;
    double x[64], slope[64], best = 0;
    climber_open(&c, t);
    for (size_t s = 0; s < starts; s++) {
        attack_input(t, &r, x);
        for (size_t k = 0; k <= steps; k++) {
            best = fmax(best, climb_slope(&c, t, x, slope));
            const double share = .5 / (double)(1 + k);
            for (size_t i = 0; i < t->n * t->d; i++) {
                const double lo = t->low[i % t->d], hi = t->high[i % t->d];
                const double moved = x[i] + share * (hi - lo) * (slope[i] > 0 ? 1 : -1);
                if (slope[i] != 0) x[i] = fmin(hi, fmax(lo, moved));
            }
        }
    }
    climber_close(&c);
    return best;
}

/* ---- the attack ------------------------------------------------------------------------------ */

static inline void attack_many(uint64_t first, uint64_t count, size_t starts, size_t steps)
{
    size_t close = 0, finite = 0;
    double closest = INFINITY;
    for (uint64_t seed = first; seed < first + count; seed++) {
        double x[64];
        target t;
        attack_make(&t, seed, x);
        const depth_bound b = bound_of(t.f, t.g, t.phi, t.diam);
        const double seen = attack_search(&t, seed, starts, steps);
        /* what is seen is itself rounded */
        if (!(seen <= b.bound.v * (1 + 1e-9) + 1e-13))
            fail_msg("seed %llu (%s): seen %.17g, bound %.17g", (unsigned long long)seed, t.name,
                     seen, b.bound.v);
        finite += isfinite(b.bound.v) != 0;
        close += b.bound.v < 10 * seen;
        if (seen > 1e-9) closest = fmin(closest, b.bound.v / seen);
        pare_model_free(t.g);
        pare_model_free(t.f);
    }
    print_message(
        "%llu networks, seeds from %llu: none broken; %zu bounds finite, %zu within 10 of "
        "the attack, the closest %.4f\n",
        (unsigned long long)count, (unsigned long long)first, finite, close, closest);
    assert_true(finite * 10 > count * 9 && close * 2 > count && closest < 1.01);
}
#endif
