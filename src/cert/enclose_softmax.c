/* enclose_softmax.c - the softmax of one head and row: o_i = sum_j p_ij v_j over the visible keys.
 *
 * With exact q, k and an engine's q + dq, k + dk of radii eq, ek:
 *     scale (q_i + dq).(k_j + dk_j) - scale q_i.k_j
 *         = scale [ dq.c + dq.(k_j - c) + q_i.dk_j + dq.dk_j ]
 * and dq.c is the same for all j, which softmax does not see (c = sum_j p_ij k_j here). Hence
 *     delta_ij = |scale| ( eq_i |k_j - c| + |q_i| ek_j + eq_i ek_j )
 *              + gamma_{dk+4} |scale| |q_i| |k_j|             rounding, at the engine's own point.
 * The argument s_ij - max is rounded once more (u times the range of the row's scores), and every
 * weight carries a factor within 1 -+ ew (exp, and rescaling where tiles are merged), which is the
 * same as moving its score by ew / (1 - ew). Let d be the largest sum of these over j.
 *
 * Lemma (half-oscillation). Scores that move by at most d change the weights by TV <= tanh(d/2):
 *     a set of mass s gets at most s e^2d / (s e^2d + 1 - s), and sigma(t + 2d) - sigma(t) is
 *     largest at t = -d, where it is tanh(d/2). The same growth is s (1 - s)(e^2d - 1) at most, so
 *     TV <= rest (e^2d - 1) when all weight but `rest` is on one key.
 * With p' the engine's weights,
 *     |sum p'_j v'_j - sum p_j v_j| <= max_j ev_j + TV diam(v),   diam(v) <= 2 max_j |v_j - o_i|.
 * The weighted sum and the division add gamma_{n+6} max_j |v_j|. Weights and products below the
 * smallest normal number are off by an absolute amount (the largest weight is 1, the sum at least
 * that): n tiny (max|v| + sqrt(dv)) up to a constant, however small the exact ones are. */
#include "enclose_heads.h"
#include <stdatomic.h>

enum { TILE = 32 }; /* keys an engine may merge at a time; see enclose.h */

typedef struct job {
    heads *h;
    size_t widest; /* keys */
    atomic_bool no_memory;
} job;

typedef struct scratch {
    double *p; /* weights of the visible keys */
    double *c; /* centre of the keys */
} scratch;

/* What is known of one head and row. */
typedef struct head_row {
    const heads *h;
    const pare_head *d;
    const pare_keys *keys;
    size_t i, g, first;       /* row, head, first row of its sequence */
    double range, others;     /* of the midpoint scores; weight beside the largest over it */
    double delta[ENGINES];    /* score errors, largest over the keys */
    double products[ENGINES]; /* |scale| |q| |k|, largest */
    double v_reach[ENGINES], v_radius[ENGINES];
    double diameter; /* of the exact values */
} head_row;

double enclose_tv(double d, double rest)
{
    /* tanh(t) <= t, and libm's is within 8 u. */
    const double half = up_mul(d, 0.5);
    const double tv = up_min(half, up_min(1, up_mul(tanh(half), 1 + 0x1p-48)));
    if (!(d <= 100)) return up_min(1, tv);
    return up_min(tv, up_mul(rest, up_mul(expm1(up_mul(2, d)), 1 + 0x1p-48)));
}

static size_t key_row(const head_row *w, size_t j)
{
    return w->first + pare_key(w->keys, j);
}

/* ---- midpoints ------------------------------------------------------------------------------ */

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
        p[j] = exp(p[j] - top);
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

/* ---- radii ---------------------------------------------------------------------------------- */

static radii side_radii(const side *s, size_t at)
{
    return (radii){{s->r[0][at], s->r[1][at]}};
}

/* delta_ij for one engine. */
static double score_error(const head_row *w, radii q, double q_norm, radii k, double k_norm,
                          double k_off, size_t e, double *product)
{
    const engine *const m = enclose_engine(e);
    const double scale = fabs(w->d->scale), dk = (double)w->d->dk;
    const double off = up_add(k_off, k.r[0]), exact_q = up_add(q_norm, q.r[0]);
    double move = up_mul(q.r[e], off);
    move = up_fma(exact_q, k.r[e], move);
    move = up_fma(q.r[e], k.r[e], move);
    const double big_q = reach(q_norm, q, e), big_k = reach(k_norm, k, e);
    const double size = up_mul(scale, up_mul(big_q, big_k));
    const double under = up_fma(dk + 2, up_add(1, scale),
                                up_add(up_mul(big_q, big_k), up_mul(dk, up_add(big_q, big_k))));
    *product = up_add(size, up_mul(big_q, big_k));
    return up_add(up_fma(scale, move, up_mul(gamma_of(w->d->dk + 4, m->u), size)),
                  up_mul(m->tiny, under));
}

static void survey_keys(head_row *w, const double *centre, const double *out)
{
    const heads *const h = w->h;
    const size_t nh = h->at->nheads, own = w->i * nh + w->g;
    const radii q = side_radii(&h->q, own);
    for (size_t j = 0; j < w->keys->count; j++) {
        const size_t row = key_row(w, j), at = row * nh + w->g;
        const radii k = side_radii(&h->k, at), v = side_radii(&h->v, at);
        const double k_off = enclose_distance_up(part(&h->k, row, w->g), centre, w->d->dk);
        const double v_off = enclose_distance_up(part(&h->v, row, w->g), out, w->d->dv);
        w->diameter = up_max(w->diameter, up_mul(2, up_add(v_off, v.r[0])));
        for (size_t e = 0; e < ENGINES; e++) {
            double product;
            const double delta =
                score_error(w, q, h->q.norm[own], k, h->k.norm[at], k_off, e, &product);
            w->delta[e] = up_max(w->delta[e], delta);
            w->products[e] = up_max(w->products[e], product);
            w->v_reach[e] = up_max(w->v_reach[e], reach(h->v.norm[at], v, e));
            w->v_radius[e] = up_max(w->v_radius[e], v.r[e]);
        }
    }
}

/* All that moves a weight of engine e, as a movement of its score. */
static double weight_error(const head_row *w, size_t e)
{
    const engine *const m = enclose_engine(e);
    const size_t tiles = w->keys->count / TILE;
    const double range = up_fma(2, up_add(w->delta[0], w->delta[e]), w->range);
    const double ew = gamma_of(10 + 10 * tiles, m->u);
    const double factor = up_div(ew, down_sub(1, ew));
    return up_add(w->delta[e], up_fma(m->u, range, factor));
}

static double row_radius(const head_row *w, size_t e)
{
    const engine *const m = enclose_engine(e);
    const size_t n = w->keys->count;
    const double d0 = weight_error(w, 0), d = weight_error(w, e);
    /* The exact weights beside the largest: each ratio is within e^(2 d0) of ours. */
    const double slack = up_fma((double)n, enclose_engine(0)->tiny, w->others);
    const double rest = up_mul(slack, up_mul(exp(up_mul(2, d0)), 1 + 0x1p-48));
    const double tv = n > 1 ? enclose_tv(d, rest) : 0;
    const double local = up_mul(gamma_of(n + 6, m->u), w->v_reach[e]);
    const double each = up_mul(m->tiny, up_mul(32, (double)(n / TILE + 2)));
    const double under =
        up_mul(each, up_mul((double)n + 2, up_add(w->v_reach[e], up_sqrt((double)w->d->dv))));
    const double move = up_fma(tv, w->diameter, w->v_radius[e]);
    const double most = up_max(w->products[e], up_mul(w->v_reach[e], (double)n));
    return in_range(m, most, up_add(move, up_add(local, under)));
}

static void one_head(head_row *w, const scratch *s)
{
    double *const out = pare_row_mut(&w->h->o->x, w->i) + w->d->o;
    if (w->keys->count == 0) return; /* nothing is visible: exactly 0 */
    weights(w, s->p);
    average(w, &w->h->k, s->p, s->c);
    average(w, &w->h->v, s->p, out);
    survey_keys(w, s->c, out);
}

/* All heads of row i; their columns are apart, so squares of their radii add up. */
static void one_row(const heads *h, size_t i, const scratch *s)
{
    const size_t t = h->c->tokens, first = i / t * t;
    const pare_keys keys = pare_visible(&h->c->m->pattern, h->c->graph, t, i - first);
    double squares[ENGINES] = {0};
    for (size_t g = 0; g < h->at->nheads; g++) {
        head_row w = {.h = h, .d = &h->at->heads[g], .keys = &keys, .i = i, .g = g, .first = first};
        one_head(&w, s);
        if (keys.count == 0) continue;
        for (size_t e = 0; e < ENGINES; e++) {
            const double r = row_radius(&w, e);
            squares[e] = up_fma(r, r, squares[e]);
        }
    }
    for (size_t e = 0; e < ENGINES; e++) h->o->r[e][i] = up_sqrt(squares[e]);
}

enum { ROWS = 16 };

static void block(void *ctx, size_t b)
{
    job *const w = ctx;
    const size_t n = w->h->o->x.rows, end = n - b * ROWS < ROWS ? n : (b + 1) * ROWS;
    pare_arena *const a = pare_arena_new();
    scratch s = {0};
    if (a) {
        s.p = pare_alloc(a, w->h->c->tokens, sizeof *s.p);
        s.c = pare_alloc(a, w->widest, sizeof *s.c);
    }
    if (s.p && s.c) {
        for (size_t i = b * ROWS; i < end; i++) one_row(w->h, i, &s);
    } else {
        atomic_store(&w->no_memory, true);
    }
    pare_arena_free(a);
}

pare_status enclose_softmax(heads *h, pare_err *err)
{
    job w = {.h = h};
    for (size_t g = 0; g < h->at->nheads; g++)
        if (h->at->heads[g].dk > w.widest) w.widest = h->at->heads[g].dk;
    pare_parallel(h->c->exec, (h->o->x.rows + ROWS - 1) / ROWS, block, &w);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : PARE_OK;
}
