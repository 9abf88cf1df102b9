/* pair_ffn.c - activations and feed-forward branches, between two streams that move.
 *
 * An activation works entry by entry. Let x, y be an entry of f and g at the doubles, x + a, y + b
 * where the streams are, |a| <= r_f, |b| <= r_g, |a - b| <= v, and E >= |x - y|, |x + a - y - b|.
 * Then act moves by at most s |a| with s the largest slope on the way, and the difference by
 *     int act'(x + t a)(a - b) dt + int [act'(x + t a) - act'(y + t b)] b dt
 *         <= s_f v + bend r_g,     bend = min(E sup|act''|, range of the slopes),
 * the same with f and g exchanged, and also by s_f r_f + s_g r_g and by L (2 |x - y| + v). A ReLU
 * has bend 0 where both entries are surely on the same side of 0, and 1 elsewhere.
 *     sup|act''|: gelu 2 phi(0) = 0.797884...; its tanh form the same (0.797884... at 0, smaller
 *     elsewhere: tests/cert/test_pair.c tries them all); silu 1/2; tanh 4 / (3 sqrt 3) =
 * 0.769800... Entries come from a map with rows w_u, so each has its own radius |w_u| r.
 *
 * Gated: with a = act(gate) and u = up, both at the doubles A, U of f and B, W of g,
 *     [(A+a)(U+u) - A U] - [(B+b)(W+w) - B W]
 *         = (a - b) U + b (U - W) + A (u - w) + (A - B) w + (a - b) u + b (u - w). */
#include "linalg/elementary.h"
#include "model/model_facts.h"
#include "pair.h"
#include <string.h>

/* ---- activations ---------------------------------------------------------------------------- */

static double curvature(pare_act act)
{
    switch (act) {
    case PARE_ACT_NONE:
        return 0;
    case PARE_ACT_RELU:
        return INFINITY;
    case PARE_ACT_GELU:
        return 0.79789;
    case PARE_ACT_GELU_TANH:
        return 0.799;
    case PARE_ACT_SILU:
        return 0.50001;
    case PARE_ACT_TANH:
        return 0.76981;
    }
    return INFINITY;
}

/* |act'(t)|, within 1e-12; L beyond 50, where formulas overflow. */
static double slope_at(pare_act act, double t)
{
    const double c = 0.79788456080286535588; /* sqrt(2 / pi) */
    if (!(fabs(t) <= 50)) return pare_act_lipschitz(act);
    switch (act) {
    case PARE_ACT_NONE:
    case PARE_ACT_RELU:
        return 1;
    case PARE_ACT_GELU:
        return fabs(0.5 * (1 + pare_erf(t * 0.70710678118654752440)) +
                    0.5 * c * t * pare_exp(-0.5 * t * t));
    case PARE_ACT_GELU_TANH: {
        const double h = pare_tanh(c * (t + 0.044715 * t * t * t));
        return fabs(0.5 * (1 + h) + 0.5 * t * (1 - h * h) * c * (1 + 0.134145 * t * t));
    }
    case PARE_ACT_SILU: {
        const double s = 1 / (1 + pare_exp(-t));
        return fabs(s * (1 + t * (1 - s)));
    }
    case PARE_ACT_TANH:
        return 1 - pare_tanh(t) * pare_tanh(t);
    }
    return INFINITY;
}

/* The largest slope within r of t. */
static double slope_up(pare_act act, double t, double r)
{
    if (act == PARE_ACT_RELU) return t <= 0 && -t >= r ? 0 : 1;
    const double local = up_fma(curvature(act), r, up_add(slope_at(act, t), 1e-12));
    return act == PARE_ACT_NONE ? 1 : up_min(pare_act_lipschitz(act), local);
}

/* How far slopes at points of f and g may be apart, when the points are by at most e. */
static double bend_of(pare_act act, const double t[2], const double r[2], double e)
{
    if (act != PARE_ACT_RELU) return up_min(up_mul(curvature(act), e), 1.3);
    const bool on = t[0] >= r[0] && t[1] >= r[1], off = -t[0] >= r[0] && -t[1] >= r[1];
    return on || off ? 0 : 1;
}

typedef struct act_job {
    const pair_ctx *c;
    pair *x;
    pare_act act;
    const pair *from; /* or NULL */
    const unit_norms *units;
} act_job;

/* A distance of the map's input, as entry u sees it. */
static double entry(const act_job *j, size_t u, const dist *from, double off, double most)
{
    if (!from) return most;
    const lever w = {j->units->two[u], j->units->one[u]};
    return up_min(most, up_add(lever_move(w, *from), off));
}

typedef struct sums { /* over the entries of a row */
    double slope[2], own2[2], own_max[2];
    double v2, v_max, bend[2], bent2[2];
} sums;

static void entry_moves(const act_job *j, sums *s, size_t i, size_t u)
{
    const pair *const x = j->x, *const o = j->from;
    double t[2], r[2], slope[2];
    for (size_t p = 0; p < pair_paths(x); p++) {
        t[p] = pare_row(&x->h[p], i)[u];
        r[p] = entry(j, u, o ? &o->r[p][i] : NULL, x->off[p][i], x->r[p][i].max);
        slope[p] = slope_up(j->act, t[p], r[p]);
        const double own = up_mul(slope[p], r[p]);
        s->slope[p] = up_max(s->slope[p], slope[p]);
        s->own_max[p] = up_max(s->own_max[p], own);
        s->own2[p] = up_fma(own, own, s->own2[p]);
    }
    if (x->one) return;
    const double off = up_add(x->off[0][i], x->off[1][i]), apart = up(fabs(t[0] - t[1]));
    const double v = entry(j, u, o ? &o->v[i] : NULL, off, x->v[i].max);
    const double z = entry(j, u, o ? &o->z[i] : NULL, 0, x->z[i].max);
    const double bend = bend_of(j->act, t, r, up_max(apart, z));
    double most = up_add(up_mul(slope[0], r[0]), up_mul(slope[1], r[1]));
    most = up_min(most, up_mul(pare_act_lipschitz(j->act), up_fma(2, apart, v)));
    for (size_t p = 0; p < 2; p++) {
        const double bent = up_mul(bend, r[1 - p]);
        most = up_min(most, up_fma(slope[p], v, bent));
        s->bend[p] = up_max(s->bend[p], bend);
        s->bent2[p] = up_fma(bent, bent, s->bent2[p]);
    }
    s->v2 = up_fma(most, most, s->v2);
    s->v_max = up_max(s->v_max, most);
}

static void act_row(void *ctx, size_t i)
{
    const act_job *const j = ctx;
    pair *const x = j->x;
    sums s = {0};
    for (size_t u = 0; u < x->h[0].cols; u++) entry_moves(j, &s, i, u);
    const dist r[2] = {x->r[0][i], x->r[1][i]};
    for (size_t p = 0; p < pair_paths(x); p++) {
        const double two = up_min(up_mul(s.slope[p], r[p].two), up_sqrt(s.own2[p]));
        x->r[p][i] = (dist){two, s.own_max[p]};
    }
    if (x->one) return;
    double two = up_sqrt(s.v2);
    for (size_t p = 0; p < 2; p++) {
        const double bent = up_min(up_mul(s.bend[p], r[1 - p].two), up_sqrt(s.bent2[p]));
        two = up_min(two, up_fma(s.slope[p], x->v[i].two, bent));
    }
    x->v[i] = (dist){two, s.v_max};
    x->z[i] = dist_mul(pare_act_lipschitz(j->act), x->z[i]);
}

pare_status pair_act(pair *x, const pair_ctx *c, pare_act act, const pair *from,
                     const unit_norms *u, pare_err *err)
{
    if (act == PARE_ACT_NONE) return PARE_OK;
    const size_t rows = x->h[0].rows, d = x->h[0].cols;
    act_job j = {c, x, act, from, u};
    enclose_rows(c->exec, rows, act_row, &j);
    for (size_t p = 0; p < pair_paths(x); p++) {
        flow to;
        const pare_status st = enclose_flow_new(&to, &c->c[p], rows, d, err);
        if (st != PARE_OK) return st;
        memcpy(to.x.v, x->h[p].v, rows * d * sizeof(double));
        enclose_act(&to, act, c->exec);
        pair_take(x, p, &to);
    }
    pair_settle(x);
    return PARE_OK;
}

/* ---- branches ------------------------------------------------------------------------------- */

/* The distances of an entry by entry product; a is changed in place. */
static void product_row(pair *a, const pair *u, size_t i)
{
    const size_t d = a->h[0].cols;
    const dist ra[2] = {a->r[0][i], a->r[1][i]}, va = a->v[i], za = a->z[i];
    double am[2], um[2];
    for (size_t p = 0; p < pair_paths(a); p++) {
        am[p] = enclose_max_up(pare_row(&a->h[p], i), d);
        um[p] = enclose_max_up(pare_row(&u->h[p], i), d);
        const dist ru = u->r[p][i];
        const double by = up_add(um[p], ru.max);
        a->r[p][i] = dist_add(dist_mul(by, ra[p]), dist_mul(am[p], ru));
    }
    if (a->one) return;
    const dist vu = u->v[i], zu = u->z[i];
    const double apart_a = row_apart(&a->h[0], &a->h[1], i).max;
    const double apart_u = row_apart(&u->h[0], &u->h[1], i).max;
    dist v = dist_mul(up_add(um[0], u->r[0][i].max), va);
    v = dist_add(v, dist_mul(apart_u, ra[1]));
    v = dist_add(v, dist_mul(up_add(am[0], ra[1].max), vu));
    a->v[i] = dist_add(v, dist_mul(apart_a, u->r[1][i]));
    const double far_u = up_add(um[0], u->r[0][i].max), far_a = up_add(am[1], ra[1].max);
    a->z[i] = dist_add(dist_mul(far_u, za), dist_mul(far_a, zu));
}

static pare_status gated(pair *y, const pair_ctx *c, const pair *x, const pare_ffn *f,
                         const ffn_ops *o, const ffn_norms *n, pare_err *err)
{
    const pare_dense *const l = f->layers;
    pair gate, upward;
    pare_status st = pair_dense(&gate, c, x, &l[0].w, &l[0].b, &o->layers[0], &n->layers[0], err);
    if (st == PARE_OK) st = pair_act(&gate, c, f->act, x, &o->units[0], err);
    if (st == PARE_OK)
        st = pair_dense(&upward, c, x, &l[1].w, &l[1].b, &o->layers[1], &n->layers[1], err);
    if (st != PARE_OK) return st;
    const size_t rows = gate.h[0].rows;
    for (size_t i = 0; i < rows; i++) product_row(&gate, &upward, i);
    for (size_t p = 0; p < pair_paths(x); p++) {
        for (size_t i = 0; i < rows; i++) {
            double *const a = pare_row_mut(&gate.h[p], i);
            const double *const u = pare_row(&upward.h[p], i);
            for (size_t k = 0; k < gate.h[p].cols; k++) a[k] *= u[k];
            const double size = enclose_norm_up(a, gate.h[p].cols);
            const double lost = up_mul(0x1p-1022, (double)gate.h[p].cols);
            const dist off = dist_of(up_fma(0x1p-52, size, lost));
            gate.r[p][i] = dist_add(gate.r[p][i], off);
            if (!gate.one) gate.v[i] = dist_add(gate.v[i], off);
        }
    }
    pair_settle(&gate);
    return pair_dense(y, c, &gate, &l[2].w, &l[2].b, &o->layers[2], &n->layers[2], err);
}

pare_status pair_ffn(pair *y, const pair_ctx *c, const pair *z, size_t b, pare_err *err)
{
    const pare_ffn *const f = &c->c[0].m->blocks[b].ffn;
    const ffn_ops *const o = &c->ops->ffn[b];
    const ffn_norms *const n = &c->c[0].norms->ffn[b];
    if (f->kind == PARE_FFN_GATED) return gated(y, c, z, f, o, n, err);
    pair x = *z;
    for (size_t l = 0; l < f->nlayers; l++) {
        const pare_dense *const dense = &f->layers[l];
        pare_status st =
            pair_dense(y, c, &x, &dense->w, &dense->b, &o->layers[l], &n->layers[l], err);
        if (st == PARE_OK && l + 1 < f->nlayers) st = pair_act(y, c, f->act, &x, &o->units[l], err);
        if (st != PARE_OK) return st;
        x = *y;
    }
    return PARE_OK;
}
