/* enclose_weights.c - how far the output of one softmax head and row may be from the exact one.
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
 *     |sum p'_j v'_j - sum p_j v_j| <= max_j ev_j + TV diam(v),   diam(v) <= 2 max_j |v_j - a|.
 *
 * Small movements (d <= 0.1) are bounded more finely. For any a (here our own o_i), with b_j the
 * movement of score j, p' = p e^b / Z, Z = sum p e^b, and o = sum p_j v_j,
 *     o' - o = [ sum_j p_j (e^b_j - 1)(v_j - a) - (Z - 1)(o - a) ] / Z,   |Z - 1| <= e^d - 1,
 * and e^b - 1 = b + rho, |rho| <= d^2 e^d / 2. In sum_j p_j b_j (v_j - a) the part of b that comes
 * from dq is scale C dq with the covariance C = sum_j p_j (v_j - a)(k_j - c)^T, which is much
 * smaller than its largest term; the other parts count with their weight p_j, not all like the
 * worst. The exact p_j are within a factor e^(2 d_0) (1 + gamma_{n+3}) of ours.
 *
 * Wide midpoints are hi + lo; distances and C are taken from hi alone (and a is the whole o_i, c is
 * in f64). What that is off by, `lo_of`, is added to the distance.
 *
 * The weighted sum and the division add gamma_{2n+6} max_j |v_j|. Weights and products below the
 * smallest normal number are off by an absolute amount (the largest weight is 1, the sum at least
 * that): n tiny (max|v| + sqrt(dv)) up to a constant, however small the exact ones are. */
#include "linalg/bounds.h"
#include "enclose_heads.h"

enum { TILE = 32 /* keys an engine may merge at a time; see enclose.h */ };
static const double SMALL = 0.1; /* score movements below it get the finer bound */

/* ---- scores --------------------------------------------------------------------------------- */

/* One key as seen from one engine. */
typedef struct key_view {
    radii q, k;
    double q_norm, k_norm, k_off;
} key_view;

/* delta_ij without the part of dq. */
static double score_rest(const head_row *w, const key_view *v, size_t e)
{
    const engine *const m = enclose_engine(w->h->c->wide, e);
    const double scale = fabs(w->d->scale), dk = (double)w->d->dk;
    const double exact_q = up_add(v->q_norm, v->q.r[0]);
    const double move = up_mul(up_add(exact_q, v->q.r[e]), v->k.r[e]);
    const double big_q = reach(v->q_norm, v->q, e), big_k = reach(v->k_norm, v->k, e);
    const double both = up_mul(big_q, big_k), size = up_mul(scale, both);
    const double under =
        up_fma(dk + 2, up_add(1, scale), up_add(both, up_mul(dk, up_add(big_q, big_k))));
    return up_add(up_fma(scale, move, up_mul(roundings(m, w->d->dk, 4, 1), size)),
                  up_mul(m->tiny, under));
}

/* delta_ij */
static double score_error(const head_row *w, const key_view *v, size_t e)
{
    const double turned = up_mul(v->q.r[e], up_add(v->k_off, v->k.r[0]));
    return up_fma(fabs(w->d->scale), turned, score_rest(w, v, e));
}

static key_view view_key(const head_row *w, size_t j)
{
    const heads *const h = w->h;
    const size_t nh = h->at->nheads, own = w->i * nh + w->g, at = key_row(w, j) * nh + w->g;
    return (key_view){side_radii(&h->q, own), side_radii(&h->k, at), h->q.norm[own], h->k.norm[at],
                      w->s->k_off[j]};
}

static radii value_radii(const head_row *w, size_t j)
{
    return side_radii(&w->h->v, key_row(w, j) * w->h->at->nheads + w->g);
}

/* How far hi is from a midpoint of that norm. */
static double lo_of(const head_row *w, double norm)
{
    return w->h->c->wide ? up_mul(LO_SHARE, norm) : 0;
}

static void survey_keys(head_row *w)
{
    const heads *const h = w->h;
    const size_t nh = h->at->nheads;
    for (size_t j = 0; j < w->keys->count; j++) {
        const size_t row = key_row(w, j), at = row * nh + w->g;
        const radii v = side_radii(&h->v, at);
        const double k_off = enclose_distance_up(part(&h->k, row, w->g), w->s->c, w->d->dk);
        const double v_off = enclose_distance_up(part(&h->v, row, w->g), w->out, w->d->dv);
        w->s->k_off[j] = up_add(k_off, lo_of(w, h->k.norm[at]));
        w->s->v_off[j] = up_add(v_off, up_add(lo_of(w, h->v.norm[at]), w->out_lo));
        w->diameter = up_max(w->diameter, up_mul(2, up_add(w->s->v_off[j], v.r[0])));
        const key_view key = view_key(w, j);
        for (size_t e = 0; e < ENGINES; e++) {
            const double q = reach(key.q_norm, key.q, e);
            const double both = up_max(q, up_mul(q, reach(key.k_norm, key.k, e)));
            /* an engine may scale the scores, or the queries before they meet the keys */
            const double product = up_mul(up_add(1, fabs(w->d->scale)), both);
            w->delta[e] = up_max(w->delta[e], score_error(w, &key, e));
            w->products[e] = up_max(w->products[e], product);
            w->v_reach[e] = up_max(w->v_reach[e], reach(h->v.norm[at], v, e));
            w->v_radius[e] = up_max(w->v_radius[e], v.r[e]);
        }
    }
}

/* ---- weights -------------------------------------------------------------------------------- */

double enclose_tv(double d, double rest)
{
    const double tv = pare_tanh_up(up_mul(d, 0.5));
    return d <= 100 ? up_min(tv, up_mul(rest, pare_expm1_up(up_mul(2, d)))) : tv;
}

/* What moves every weight of engine e alike, as a movement of its score. */
static double weight_rounding(const head_row *w, size_t e)
{
    const engine *const m = enclose_engine(w->h->c->wide, e);
    const size_t tiles = w->keys->count / TILE;
    const double range = up_fma(2, up_add(w->delta[0], w->delta[e]), w->range);
    const double ew = roundings(m, 0, 10 + 10 * tiles, 4);
    return up_fma(m->u, range, up_div(ew, down_sub(1, ew)));
}

/* max_j ev_j + TV diam(v): holds for movements of any size. */
static double coarse_move(const head_row *w, size_t e, double d0, double d)
{
    if (w->keys->count == 1) return w->v_radius[e];
    /* The exact weights beside the largest: each ratio is within e^(2 d0) of ours. */
    const double slack =
        up_fma((double)w->keys->count, enclose_engine(w->h->c->wide, 0)->tiny, w->others);
    const double rest = up_mul(slack, pare_exp_up(up_mul(2, d0)));
    return up_fma(enclose_tv(d, rest), w->diameter, w->v_radius[e]);
}

/* Our covariance C, and its distance from the exact one, both in the Frobenius norm; `grow` is the
 * factor between exact weights and ours. */
static double covariance_up(const head_row *w, double grow)
{
    const size_t n = w->keys->count, dk = w->d->dk, dv = w->d->dv, nh = w->h->at->nheads;
    const bool whole = n <= COVARIANCE_KEYS;
    double terms = 0, off = 0, lost = 0;
    const double tiny = enclose_engine(w->h->c->wide, 0)->tiny;
    for (size_t j = 0; j < n; j++) {
        const size_t row = key_row(w, j);
        const double *const k = part(&w->h->k, row, w->g), *const v = part(&w->h->v, row, w->g);
        const double p = w->s->p[j], k_off = w->s->k_off[j], v_off = w->s->v_off[j];
        const size_t at = row * nh + w->g;
        const double ek = up_add(w->h->k.r[0][at], lo_of(w, w->h->k.norm[at]));
        const double ev = up_add(w->h->v.r[0][at], up_add(lo_of(w, w->h->v.norm[at]), w->out_lo));
        for (size_t a = 0; whole && a < dv; a++) w->s->pv[j * dv + a] = p * (v[a] - w->out[a]);
        for (size_t b = 0; whole && b < dk; b++) w->s->kc[j * dk + b] = k[b] - w->s->c[b];
        const double far_k = up_add(k_off, ek), far_v = up_add(v_off, ev);
        const double apart = up_fma(ev, far_k, up_mul(v_off, ek)), both = up_mul(far_v, far_k);
        const double weight = up_add(p, 4 * tiny);
        terms = up_fma(weight, both, terms);
        lost = up_add(lost, up_fma(4 * tiny, both, 2 * tiny));
        off = up_fma(weight, apart, off);
    }
    if (!whole) return up_mul(terms, grow); /* the norms of its terms bound C too */
    pare_mat cov = pare_mat_of(w->s->cov, dv, dk);
    const pare_mat pv = pare_mat_of(w->s->pv, n, dv), kc = pare_mat_of(w->s->kc, n, dk);
    pare_gemm(&cov, 1, &pv, true, &kc, false, 0);
    off = up_fma(up_add(up(grow - 1), gamma_of(n + 5, PARE_UNIT_F64)), terms, off);
    off = up_fma(up_mul(lost, grow), up_sqrt((double)dv * (double)dk), off);
    return up_add(enclose_norm_up(cov.v, dv * dk), off);
}

/* The finer bound, for d <= 0.1; `coarse` bounds |o_i - exact|. */
static double fine_move(const head_row *w, size_t e, double d, double cov, double grow,
                        double coarse)
{
    const double each = weight_rounding(w, e), square = up_mul(up_mul(d, d), pare_exp_up(d));
    const double most = up_mul(square, 0.5);
    double first = 0, values = 0;
    for (size_t j = 0; j < w->keys->count; j++) {
        const key_view key = view_key(w, j);
        const radii v = value_radii(w, j);
        const double weight =
            up_mul(up_add(w->s->p[j], 4 * enclose_engine(w->h->c->wide, 0)->tiny), grow);
        const double moves = up_add(up_add(score_rest(w, &key, e), each), most);
        first = up_fma(weight, up_mul(moves, up_add(w->s->v_off[j], v.r[0])), first);
        values = up_fma(weight, v.r[e], values);
    }
    const double eq = w->h->q.r[e][w->i * w->h->at->nheads + w->g];
    first = up_fma(up_mul(fabs(w->d->scale), eq), cov, first);
    first = up_fma(pare_expm1_up(d), coarse, first);
    values = up_min(w->v_radius[e], up_mul(values, pare_exp_up(up_mul(2, d))));
    return up_fma(pare_exp_up(d), first, values);
}

/* What the engine's weighted sum adds: roundings, and weights and products that underflow. There
 * are two sums of n terms, one of the weights and one of the weighted values: plainly added up they
 * are off by a factor within gamma_n each. */
static double sum_local(const head_row *w, size_t e)
{
    const engine *const m = enclose_engine(w->h->c->wide, e);
    const size_t n = w->keys->count;
    const double each = up_mul(m->tiny, up_mul(32, (double)(n / TILE + 2)));
    const double size = up_add(w->v_reach[e], up_sqrt((double)w->d->dv));
    const double under = up_mul(each, up_mul((double)n + 2, size));
    return up_fma(roundings(m, 2 * n, 6, 4), w->v_reach[e], under);
}

radii enclose_head_radii(head_row *w)
{
    const size_t n = w->keys->count;
    double d[ENGINES];
    radii r;
    survey_keys(w);
    for (size_t e = 0; e < ENGINES; e++) d[e] = up_add(w->delta[e], weight_rounding(w, e));
    const double coarse = up_add(coarse_move(w, 0, d[0], d[0]), sum_local(w, 0));
    const double grow =
        up_mul(pare_exp_up(up_mul(2, d[0])), up_add(1, gamma_of(n + 3, PARE_UNIT_F64)));
    const bool fine = n > 1 && d[0] <= SMALL;
    const double cov = fine ? covariance_up(w, grow) : INFINITY;
    for (size_t e = 0; e < ENGINES; e++) {
        double move = coarse_move(w, e, d[0], d[e]);
        if (fine && d[e] <= SMALL) move = up_min(move, fine_move(w, e, d[e], cov, grow, coarse));
        /* weights are at most 1, or e^20 < 2^29 where all rows ask the same */
        const double sum = up_mul(w->v_reach[e], up_mul(0x1p29, (double)n));
        const double most = up_max(w->products[e], sum);
        r.r[e] = in_range(enclose_engine(w->h->c->wide, e), most, up_add(move, sum_local(w, e)));
    }
    return r;
}
