/* enclose_softmax.c - softmax heads at the midpoint: o_i = sum_j p_ij v_j over the visible keys.
 *
 * The plain sums, in f64 or double-double; what they and an engine's may be off by is in
 * enclose_weights.c. */
#include "linalg/elementary.h"
#include "enclose_heads.h"
#include <stdatomic.h>

typedef struct job {
    heads *h;
    size_t dk, dv; /* widest */
    atomic_bool no_memory;
} job;

/* The range of wide scores and the weight beside the best, from their hi, which is off by less than
 * LO_SHARE of itself. */
static void weights_wide(head_row *w)
{
    double *const p = w->s->p, *const p_lo = w->s->p_lo;
    const size_t n = w->keys->count, dk = w->d->dk;
    size_t best = 0, worst = 0;
    for (size_t j = 0; j < n; j++) {
        const size_t row = key_row(w, j);
        const dd s = wide_dot(part(&w->h->q, w->i, w->g), part_lo(&w->h->q, w->i, w->g),
                              part(&w->h->k, row, w->g), part_lo(&w->h->k, row, w->g), dk);
        const dd x = dd_mul_d(s, w->d->scale);
        p[j] = x.hi;
        p_lo[j] = x.lo;
        if (p[j] > p[best]) best = j;
        if (p[j] < p[worst]) worst = j;
    }
    const dd top = {p[best], p_lo[best]};
    w->range =
        up_add(up(top.hi - p[worst]), up_mul(LO_SHARE, up_add(fabs(top.hi), fabs(p[worst]))));
    wide_exp_row(p, p_lo, top, n);
    const dd sum = wide_total(p, p_lo, n);
    w->others = 0;
    for (size_t j = 0; j < n; j++)
        if (j != best) w->others = up_add(w->others, up_mul(p[j], 1 + LO_SHARE));
    for (size_t j = 0; j < n; j++) {
        const dd x = dd_div((dd){p[j], p_lo[j]}, sum);
        p[j] = x.hi;
        p_lo[j] = x.lo;
    }
}

static void average_wide(const head_row *w, double *hi, double *lo)
{
    const side *const v = &w->h->v;
    const size_t width = v->width[w->g];
    const wide_sums y = {hi, lo, w->s->rest};
    for (size_t c = 0; c < width; c++) hi[c] = lo[c] = y.m[c] = 0;
    for (size_t j = 0; j < w->keys->count; j++) {
        const size_t row = key_row(w, j);
        wide_gather(y, (dd){w->s->p[j], w->s->p_lo[j]}, part(v, row, w->g), part_lo(v, row, w->g),
                    width);
    }
    wide_tidy(y, width);
}

static void weights(head_row *w, double *p)
{
    const double *const q = part(&w->h->q, w->i, w->g);
    const size_t n = w->keys->count;
    double top = -INFINITY, low = INFINITY, sum = 0;
    size_t best = 0;
    for (size_t j = 0; j < n; j++) {
        const double *const k = part(&w->h->k, key_row(w, j), w->g);
        double s = 0;
        for (size_t c = 0; c < w->d->dk; c++) s += q[c] * k[c];
        p[j] = s * w->d->scale;
        if (p[j] > top) top = p[best = j];
        if (p[j] < low) low = p[j];
    }
    w->range = up(top - low);
    w->others = 0;
    for (size_t j = 0; j < n; j++) {
        p[j] = pare_exp(p[j] - top);
        sum += p[j];
        if (j != best) w->others = up_add(w->others, p[j]);
    }
    for (size_t j = 0; j < n; j++) p[j] /= sum;
}

static void average(const head_row *w, const side *s, const double *p, double *y)
{
    const size_t width = s->width[w->g];
    for (size_t c = 0; c < width; c++) y[c] = 0;
    for (size_t j = 0; j < w->keys->count; j++) {
        const double *const x = part(s, key_row(w, j), w->g);
        for (size_t c = 0; c < width; c++) y[c] += p[j] * x[c];
    }
}

static void one_head(head_row *w)
{
    double *const out = pare_row_mut(&w->h->o->x, w->i) + w->d->o;
    const bool wide = w->h->c->wide;
    if (wide)
        weights_wide(w);
    else
        weights(w, w->s->p);
    average(w, &w->h->k, w->s->p, w->s->c); /* any centre serves: f64 is enough */
    if (wide)
        average_wide(w, out, pare_row_mut(&w->h->o->lo, w->i) + w->d->o);
    else
        average(w, &w->h->v, w->s->p, out);
    w->out = out;
    w->out_lo = wide ? up_mul(LO_SHARE, enclose_norm_up(out, w->d->dv)) : 0;
}

/* All heads of row i; their columns are apart, so squares of their radii add up. */
static void one_row(const heads *h, size_t i, const scratch *s)
{
    const size_t t = h->c->tokens, first = i / t * t;
    const pare_keys keys = pare_visible(&h->c->m->pattern, h->c->graph, t, i - first);
    double squares[ENGINES] = {0};
    for (size_t g = 0; g < h->at->nheads; g++) {
        head_row w = {
            .h = h, .d = &h->at->heads[g], .keys = &keys, .i = i, .g = g, .first = first, .s = s};
        if (keys.count == 0) continue; /* nothing is visible: exactly 0 */
        one_head(&w);
        radii r = enclose_head_radii(&w);
        if (h->slack) r.r[1] = up_add(r.r[1], h->slack[i / t * h->at->nheads + g]);
        for (size_t e = 0; e < ENGINES; e++) squares[e] = up_fma(r.r[e], r.r[e], squares[e]);
    }
    for (size_t e = 0; e < ENGINES; e++) h->o->r[e][i] = up_sqrt(squares[e]);
}

enum { ROWS = 16 };

/* What a row of a sparse graph sees is far less than all tokens. */
static size_t most_keys(const enclose_ctx *c, size_t row, size_t end)
{
    size_t most = 1;
    for (; row < end; row++) {
        const size_t n = pare_visible(&c->m->pattern, c->graph, c->tokens, row % c->tokens).count;
        if (n > most) most = n;
    }
    return most;
}

/* For rows with at most t keys. */
static bool scratch_new(scratch *s, pare_arena *a, const job *w, size_t t)
{
    const size_t few = t < COVARIANCE_KEYS ? t : COVARIANCE_KEYS;
    if (!a) return false;
    s->p = pare_alloc(a, t, sizeof *s->p);
    s->p_lo = pare_alloc(a, w->h->c->wide ? t : 1, sizeof *s->p_lo);
    s->k_off = pare_alloc(a, t, sizeof *s->k_off);
    s->v_off = pare_alloc(a, t, sizeof *s->v_off);
    s->c = pare_alloc(a, w->dk, sizeof *s->c);
    s->rest = pare_alloc(a, w->dv, sizeof *s->rest);
    s->cov = pare_alloc(a, w->dv, w->dk * sizeof *s->cov);
    s->kc = pare_alloc(a, few, w->dk * sizeof *s->kc);
    s->pv = pare_alloc(a, few, w->dv * sizeof *s->pv);
    return s->p && s->p_lo && s->rest && s->k_off && s->v_off && s->c && s->cov && s->kc && s->pv;
}

static void block(void *ctx, size_t b)
{
    job *const w = ctx;
    const size_t n = w->h->o->x.rows, end = n - b * ROWS < ROWS ? n : (b + 1) * ROWS;
    pare_arena *const a = pare_arena_new();
    scratch s;
    if (scratch_new(&s, a, w, most_keys(w->h->c, b * ROWS, end))) {
        for (size_t i = b * ROWS; i < end; i++) one_row(w->h, i, &s);
    } else {
        atomic_store(&w->no_memory, true);
    }
    pare_arena_free(a);
}

pare_status enclose_softmax(heads *h, pare_err *err)
{
    job w = {.h = h};
    for (size_t g = 0; g < h->at->nheads; g++) {
        if (h->at->heads[g].dk > w.dk) w.dk = h->at->heads[g].dk;
        if (h->at->heads[g].dv > w.dv) w.dv = h->at->heads[g].dv;
    }
    const pare_status st = enclose_poly_slack(h, err);
    if (st) return st;
    pare_parallel(h->c->exec, (h->o->x.rows + ROWS - 1) / ROWS, block, &w);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : PARE_OK;
}
