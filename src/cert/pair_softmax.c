/* pair_softmax.c - one row of one softmax head, while queries, keys and values move.
 *
 * Scores move by b_j, |b_j| <= d_j (pair_heads.c), weights from p to p'. With u_j = V z_j at the
 * doubles and V a_j what a value moves by, a head's output changes by
 *     sum_j p'_j V a_j + sum_j (p'_j - p_j) u_j,
 * and sum_j (p_j - 1/n) V z_j, its distance from uniform attention, by
 *     sum_j (p'_j - 1/n) V a_j + sum_j (p'_j - p_j) u_j.
 * The last sum, the swing, is at most the least of
 *   - TV diam(u), TV = tanh(max d / 2)                        (enclose_weights.c:
 * half-oscillation);
 *   - entry by entry the exact maximum over the box of scores (vertex_softmax.c), added up over the
 *     heads before a norm is taken;
 *   - for small d its first order: with C = sum_j p_j (u_j - o)(key_j - c)^T and a the movement of
 *     the query's row, |C a| + sum_j p_j |u_j - o| e_j, where e_j are the parts of d_j that are not
 *     linear in a; and e^d times that with sum_j p_j |u_j - o| d^2 e^d / 2 beside it
 *     (enclose_weights.c has the identity).
 *
 * The difference of f's and g's head, when both have the same V. For any two ways of weighting,
 *     sum p^f z^f V - sum p^g z^g V = sum_j p^f_j V (z^f_j - z^g_j) + sum_j (p^f_j - p^g_j) V
 * z^g_j. With w_j >= the variation of z^f_j - z^g_j this varies by at most |V| sum_j p'^f_j w_j +
 * TV_f diam(u^f - u^g) + 2 TV(p'^f, p'^g) |V| max r_g + S diam(u^g), S >= half of |(p'^f - p'^g) -
 * (p^f - p^g)|_1. Of course S <= TV_f + TV_g. And with scores s^f, s^g that move by b^f, b^g, e >=
 * |b^f - b^g|, D half the range of s^f - s^g: Lemma.  S <= e / 2 + (D + e) d,   d the smaller of
 * max d^f, max d^g. Proof. Along t in [0, 1] the derivative of softmax(s^f + t b^f) - softmax(s^g +
 * t b^g) is, with means <.> under the weights of each, p^f (b^f - b^g - <b^f - b^g>_f)  +  [ p^f
 * (b^g - <b^g>_f) - p^g (b^g - <b^g>_g) ]. Half the l1 norm of the first is at most e / 2 (a mean
 * deviation is at most half the range 2 e, times 1/2). The second is the change of a derivative of
 * softmax between scores whose difference X has half range <= D + e; along that way its derivative
 * is p ((X - <X>)(Y - <Y>) - cov(X, Y)), Y = b^g, of l1 norm at most 2 <|X - <X>| |Y - <Y>|> <= 2
 * (D + e) d, as a standard deviation is at most half a range. The same with f and g exchanged.  []
 * So what is left is of first order in what tells the streams apart. Exchanging f and g gives
 * another bound; the least counts.
 *
 * Rounding. Scores at the doubles are known within eta, so computed weights are within off of the
 * exact ones in l1: both enlarge the boxes and the sums. */
#include "linalg/bounds.h"
#include "linalg/elementary.h"
#include "pair_heads.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct row_room { /* of one path */
    double *s;            /* scores at the doubles */
    double *e, *p;        /* e^(s - top), weights */
    double *d;            /* how far scores move */
    lever *far;
} row_room;

typedef struct spare {
    row_room path[2];
    double *centre;     /* widest vector */
    double *low, *high; /* vertex: weights */
    double *c;
    uint32_t *order, *place;
    double *mean, *key_mean; /* o, and of the keys */
    double *cov, *turned;    /* dout x dk, dout x din */
    double *pv, *kc;         /* count x dout, count x dk */
} spare;

/* One row of one path. */
typedef struct row_view {
    const head_view *v;
    const row_room *m;
    const pare_keys *keys;
    size_t i, n;
    double eta, off;      /* of scores; of weights, l1 */
    double most, tv;      /* largest d; total variation of p' from p */
    double far_most;      /* largest part of d that is linear in the query's row */
    double rest_most;     /* largest of the other parts */
    dist r_most, r_least; /* of the visible rows */
} row_view;

static size_t key_at(const row_view *w, size_t j)
{
    return pare_key(w->keys, j);
}

/* ---- scores --------------------------------------------------------------------------------- */

static double score_rounding(const row_view *w, size_t row)
{
    const heads *const h = w->v->h;
    const size_t nh = h->at->nheads, a = w->i * nh + w->v->g, b = row * nh + w->v->g;
    const double q = h->q.norm[a], k = h->k.norm[b], eq = h->q.r[0][a], ek = h->k.r[0][b];
    const double moved = up_add(up_mul(eq, up_add(k, ek)), up_mul(q, ek));
    const double sum = up_fma(gamma_of(w->v->d->dk + 4, PARE_UNIT_F64), up_mul(q, k), moved);
    return up_fma(fabs(w->v->d->scale), sum, 0x1p-900);
}

static void weigh(row_view *w)
{
    const heads *const h = w->v->h;
    const double *const q = part(&h->q, w->i, w->v->g);
    double top = -INFINITY, low = INFINITY, sum = 0;
    for (size_t j = 0; j < w->n; j++) {
        const double *const k = part(&h->k, key_at(w, j), w->v->g);
        double s = 0;
        for (size_t c = 0; c < w->v->d->dk; c++) s += q[c] * k[c];
        w->m->s[j] = s * w->v->d->scale;
        top = fmax(top, w->m->s[j]);
        low = fmin(low, w->m->s[j]);
        w->eta = up_max(w->eta, score_rounding(w, key_at(w, j)));
    }
    for (size_t j = 0; j < w->n; j++) sum += w->m->e[j] = pare_exp(w->m->s[j] - top);
    for (size_t j = 0; j < w->n; j++) w->m->p[j] = w->m->e[j] / sum;
    /* the difference to the largest rounds, exp is within 2^-52 */
    w->eta = up_add(w->eta, up_fma(0x1p-52, up(top - low), 0x1p-47));
    const double tiny = up_mul((double)w->n, 0x1p-1000);
    w->off = up_add(up_add(w->eta, tiny), gamma_of(w->n + 4, PARE_UNIT_F64));
    if (!isfinite(sum)) w->eta = w->off = INFINITY;
}

/* |scale a^T Wq^T Wk b| */
static double bilinear(const head_view *v, dist a, dist b)
{
    if (v->turned) {
        const double both = up_mul(up_mul(v->o->q2, v->o->k2), fabs(v->d->scale));
        return up_mul(both, up_mul(a.two, b.two));
    }
    return up_min(up_mul(v->o->qk2, up_mul(a.two, b.two)), up_mul(v->o->qk1, up_mul(a.max, b.max)));
}

/* |scale Wk^T q_i|, or |scale Wk^T (q_i - q'_i)| for a second path. */
static lever turn_of(const row_view *w, const row_view *other)
{
    const head_view *const v = w->v;
    const size_t nh = v->h->at->nheads, at = w->i * nh + v->g;
    if (v->turned) {
        const side *const q = &v->h->q;
        double size = up_add(q->norm[at], q->r[0][at]);
        if (other) {
            const side *const t = &other->v->h->q;
            const double apart =
                enclose_distance_up(part(q, w->i, v->g), part(t, w->i, v->g), v->d->dk);
            size = up_add(apart, up_add(q->r[0][at], t->r[0][at]));
        }
        return (lever){up_mul(up_mul(fabs(v->d->scale), v->o->k2), size), INFINITY};
    }
    const double *const t = pare_row(&v->turn, w->i);
    if (!other) return lever_raise(lever_of(t, v->turn.cols), v->turn_off[w->i], v->turn.cols);
    const double off = up_add(v->turn_off[w->i], other->v->turn_off[w->i]);
    const lever apart = lever_apart(t, pare_row(&other->v->turn, w->i), v->turn.cols);
    return lever_raise(apart, off, v->turn.cols);
}

/* |scale| |Wq| |x_j - their middle| for keys that turn. */
static void turned_levers(lever *far, const row_view *w, const side *minus, double *centre)
{
    const head_view *const v = w->v;
    const side *const k = &v->h->k;
    const size_t nh = v->h->at->nheads, dk = v->d->dk;
    memset(centre, 0, dk * sizeof *centre);
    for (size_t j = 0; j < w->n; j++)
        for (size_t c = 0; c < dk; c++) {
            const size_t row = key_at(w, j);
            const double less = minus ? part(minus, row, v->g)[c] : 0;
            centre[c] += (part(k, row, v->g)[c] - less) / (double)w->n;
        }
    for (size_t j = 0; j < w->n; j++) {
        const size_t row = key_at(w, j);
        double off = k->r[0][row * nh + v->g], sum = 0;
        for (size_t c = 0; c < dk; c++) {
            const double less = minus ? part(minus, row, v->g)[c] : 0;
            const double x = part(k, row, v->g)[c] - less - centre[c];
            sum += x * x;
            off = up_fma(0x1p-51, up_add(fabs(x), fabs(less)), off);
        }
        if (minus) off = up_add(off, minus->r[0][row * nh + v->g]);
        const double two = up_add(up_mul(sqrt(sum), 1 + 0x1p-40), off);
        far[j] = (lever){up_mul(up_mul(fabs(v->d->scale), v->o->q2), two), INFINITY};
    }
}

static void key_levers(const row_view *w, double *centre)
{
    const head_view *const v = w->v;
    if (!v->moves)
        memset(w->m->far, 0, w->n * sizeof *w->m->far);
    else if (v->turned)
        turned_levers(w->m->far, w, NULL, centre);
    else if (w->n == v->u.rows)
        memcpy(w->m->far, v->far, w->n * sizeof *w->m->far);
    else
        far_from_middle(w->m->far, &v->key, v->key_off, w->keys, centre);
}

/* The box of the scores. */
static void boxes(row_view *w, double *centre)
{
    const head_view *const v = w->v;
    const dist query = v->rq[w->i];
    const lever turn = turn_of(w, NULL);
    key_levers(w, centre);
    w->r_most = dist_of(0);
    w->r_least = dist_of(INFINITY);
    for (size_t j = 0; j < w->n; j++) {
        const dist r = v->r[key_at(w, j)];
        const double linear = lever_move(w->m->far[j], query);
        const double rest = up_add(lever_move(turn, r), bilinear(v, query, r));
        w->m->d[j] = up_add(linear, rest);
        w->most = up_max(w->most, w->m->d[j]);
        w->far_most = up_max(w->far_most, linear);
        w->rest_most = up_max(w->rest_most, rest);
        w->r_most = dist_max(w->r_most, r);
        w->r_least = dist_min(w->r_least, r);
    }
    w->tv = w->n == 1 ? 0 : enclose_tv(w->most, INFINITY);
}

/* ---- swings --------------------------------------------------------------------------------- */

/* Entry k of the visible values, and their order. */
static void gather(const row_view *w, const spare *t, size_t k)
{
    const head_view *const v = w->v;
    const size_t rows = v->u.rows;
    const uint32_t *const order = v->order + k * rows;
    size_t at = 0;
    for (size_t j = 0; j < w->n; j++) t->c[j] = pare_row(&v->u, key_at(w, j))[k];
    for (size_t i = 0; i < rows; i++)
        if (t->place[order[i]] != UINT32_MAX) t->order[at++] = t->place[order[i]];
}

/* How far sum_j p_j c_j may rise: from its value at the doubles to the most of the box. */
static double rise(const row_view *w, const spare *t)
{
    const double least = t->c[t->order[w->n - 1]], range = up(t->c[t->order[0]] - least);
    double now = 0;
    for (size_t j = 0; j < w->n; j++) now += w->m->p[j] * (t->c[j] - least);
    const double most = vertex_softmax(t->c, t->order, t->low, t->high, w->n);
    const double off = up_mul(up_add(w->off, gamma_of(w->n + 3, PARE_UNIT_F64)), range);
    const double more = most - now;
    return up_add(more > 0 ? up(more) : 0, up_add(off, 0x1p-900));
}

static void reverse(const spare *t, size_t n)
{
    for (size_t j = 0; j < n; j++) t->c[j] = -t->c[j];
    for (size_t a = 0; a < n / 2; a++) {
        const uint32_t x = t->order[a];
        t->order[a] = t->order[n - 1 - a];
        t->order[n - 1 - a] = x;
    }
}

/* Adds the largest swing of every entry to `to`. */
static void vertex_swings(const row_view *w, const spare *t, double *to)
{
    const head_view *const v = w->v;
    double off = 0;
    for (size_t k = 0; !v->order && k < v->u.cols; k++) to[k] = INFINITY;
    if (!v->order) return;
    for (size_t i = 0; i < v->u.rows; i++) t->place[i] = UINT32_MAX;
    for (size_t j = 0; j < w->n; j++) {
        const double reach = up_add(w->m->d[j], w->eta);
        t->place[key_at(w, j)] = (uint32_t)j;
        t->low[j] = w->m->e[j] * pare_exp(-reach);
        t->high[j] = w->m->e[j] * pare_exp(reach) + 0x1p-900;
        off = up_max(off, v->u_off[key_at(w, j)]);
    }
    const double moved = up_mul(up_mul(2, w->tv), off);
    for (size_t k = 0; k < v->u.cols; k++) {
        gather(w, t, k);
        double swing = rise(w, t);
        reverse(t, w->n);
        swing = up_max(swing, rise(w, t));
        to[k] = up_add(to[k], up_add(swing, moved));
    }
}

/* C = sum_j p_j (u_j - o)(k_j - c)^T, then times scale Wq: how far C a can be. `terms` >= the sum
 * of the norms of its terms, `wrong` what its factors are off by. */
static dist covariance_move(const row_view *w, const spare *t, const pare_mat *wq, double terms,
                            double wrong)
{
    const head_view *const v = w->v;
    const size_t dout = v->u.cols, dk = v->d->dk;
    const dist a = v->rq[w->i];
    pare_mat cov = pare_mat_of(t->cov, dout, dk);
    const pare_mat pv = pare_mat_of(t->pv, w->n, dout), kc = pare_mat_of(t->kc, w->n, dk);
    pare_gemm(&cov, 1, &pv, true, &kc, false, 0);
    const double own = up_fma(gamma_of(w->n + 6, PARE_UNIT_F64), terms, wrong);
    const double fro = up_add(enclose_norm_up(cov.v, dout * dk), own), scale = fabs(v->d->scale);
    const double plain = up_mul(up_mul(scale, v->o->q2), up_mul(fro, a.two));
    if (v->turned) return dist_of(plain);
    pare_mat full = pare_mat_of(t->turned, dout, wq->cols);
    pare_gemm(&full, v->d->scale, &cov, false, wq, false, 0);
    const double rounds = up_mul(gamma_of(dk + 4, PARE_UNIT_F64), up_mul(fro, v->o->fq));
    const double off = up_mul(scale, up_fma(v->o->q2, own, rounds));
    dist y = {up_mul(up_add(enclose_norm_up(full.v, dout * wq->cols), off), a.two), 0};
    for (size_t k = 0; k < dout; k++) {
        const lever row = lever_raise(lever_of(pare_row(&full, k), wq->cols), off, wq->cols);
        y.max = up_max(y.max, lever_move(row, a));
    }
    return dist_min(y, dist_of(plain));
}

static void means(const row_view *w, const spare *t)
{
    const size_t dout = w->v->u.cols, dk = w->v->d->dk;
    memset(t->mean, 0, dout * sizeof *t->mean);
    memset(t->key_mean, 0, dk * sizeof *t->key_mean);
    for (size_t j = 0; j < w->n; j++) {
        const double *const u = pare_row(&w->v->u, key_at(w, j));
        const double *const k = part(&w->v->h->k, key_at(w, j), w->v->g);
        for (size_t c = 0; c < dout; c++) t->mean[c] += w->m->p[j] * u[c];
        for (size_t c = 0; c < dk; c++) t->key_mean[c] += w->m->p[j] * k[c];
    }
}

/* The swing to first order, with all that is beyond it. */
static dist fine_swing(const row_view *w, const spare *t, const pare_mat *wq)
{
    const head_view *const v = w->v;
    const size_t dout = v->u.cols, dk = v->d->dk, nh = v->h->at->nheads;
    const double d = up_fma(2, w->far_most, w->rest_most); /* from the mean of the keys */
    if (!(d <= 0.5) || !(w->off <= 0.01)) return dist_of(INFINITY);
    const double grow = up_mul(pare_exp_up(up_mul(2, w->eta)), 1 + 0x1p-30);
    const double square = up_mul(up_mul(up_mul(d, d), pare_exp_up(d)), 0.5);
    const lever turn = turn_of(w, NULL);
    double terms = 0, wrong = 0, far = 0, big = 0, u_off = 0;
    dist sum = dist_of(0);
    means(w, t);
    for (size_t j = 0; j < w->n; j++) {
        const size_t row = key_at(w, j);
        const double *const u = pare_row(&v->u, row), *const k = part(&v->h->k, row, v->g);
        const double p = up_mul(up_add(w->m->p[j], 0x1p-900), grow),
                     ek = v->h->k.r[0][row * nh + v->g];
        dist off = {enclose_distance_up(u, t->mean, dout), 0};
        for (size_t c = 0; c < dout; c++) {
            t->pv[j * dout + c] = w->m->p[j] * (u[c] - t->mean[c]);
            off.max = up_max(off.max, up(fabs(u[c] - t->mean[c])));
        }
        for (size_t c = 0; c < dk; c++) t->kc[j * dk + c] = k[c] - t->key_mean[c];
        off = dist_add(off, dist_of(v->u_off[row]));
        const double key = up_add(enclose_distance_up(k, t->key_mean, dk), ek);
        const dist r = v->r[row];
        const double rest = up_add(lever_move(turn, r), bilinear(v, v->rq[w->i], r));
        sum = dist_add(sum, dist_mul(up_mul(p, up_add(rest, square)), off));
        terms = up_fma(p, up_mul(off.two, key), terms);
        wrong = up_fma(p, up_add(up_mul(v->u_off[row], key), up_mul(off.two, ek)), wrong);
        far = up_max(far, off.two);
        big = up_max(big, enclose_norm_up(u, dout));
        u_off = up_max(u_off, v->u_off[row]);
    }
    wrong = up_fma(up(grow - 1), terms, up_add(wrong, 0x1p-800));
    const double sums = up_mul(gamma_of(2 * w->n + 8, PARE_UNIT_F64), up_mul(2, big));
    const double middle = up_add(up_fma(w->off, far, sums), u_off); /* |o - mean| */
    sum = dist_add(sum, dist_of(up_mul(pare_expm1_up(d), middle)));
    if (v->moves) sum = dist_add(sum, covariance_move(w, t, wq, terms, wrong));
    return dist_tidy(dist_mul(pare_exp_up(d), sum), dout);
}

/* The diameter of the visible values. */
static dist diameter(const row_view *w, const spare *t)
{
    const head_view *const v = w->v;
    if (w->n == v->u.rows) return v->diameter;
    const size_t d = v->u.cols;
    dist far = dist_of(0);
    means(w, t);
    for (size_t j = 0; j < w->n; j++) {
        const double *const u = pare_row(&v->u, key_at(w, j));
        dist off = {enclose_distance_up(u, t->mean, d), 0};
        for (size_t c = 0; c < d; c++) off.max = up_max(off.max, up(fabs(u[c] - t->mean[c])));
        far = dist_max(far, dist_add(off, dist_of(v->u_off[key_at(w, j)])));
    }
    return dist_min(v->diameter, dist_mul(2, far));
}

/* ---- what a head moves by ------------------------------------------------------------------- */

/* sum_j p'_j x_j for distances x of the visible rows. */
static dist weighted(const row_view *w, const dist *x)
{
    dist sum = dist_of(0), most = dist_of(0), least = dist_of(INFINITY);
    for (size_t j = 0; j < w->n; j++) {
        const dist one = x[key_at(w, j)];
        sum = dist_add(sum, dist_mul(w->m->p[j], one));
        most = dist_max(most, one);
        least = dist_min(least, one);
    }
    const dist spread = {up(most.two - least.two), up(most.max - least.max)};
    sum = dist_add(sum, dist_add(dist_mul(w->off, most), dist_mul(w->tv, spread)));
    return dist_min(most, sum);
}

/* sum_j |p'_j - 1/n| r_j */
static dist from_uniform(const row_view *w)
{
    const double share = 1 / (double)w->n;
    dist sum = dist_of(0);
    double half = 0;
    for (size_t j = 0; j < w->n; j++) {
        const double apart = up_add(up(fabs(w->m->p[j] - share)), 0x1p-52);
        half = up_fma(0.5, apart, half);
        sum = dist_add(sum, dist_mul(apart, w->v->r[key_at(w, j)]));
    }
    const double more = up_fma(2, w->tv, w->off), tv = up_add(half, up_mul(0.5, more));
    sum = dist_add(sum, dist_mul(more, w->r_most));
    return dist_min(sum, dist_mul(up_mul(2, up_min(1, tv)), w->r_most));
}

typedef struct job {
    const head_pair *h;
    head_sums *s;
    pare_mat wq[2];
    size_t widest; /* vector */
    atomic_bool no_memory;
} job;

static void own_row(const job *k, row_view *w, const spare *t, size_t p)
{
    const size_t i = w->i;
    const op *const v = &w->v->o->v;
    head_sums *const s = k->s;
    dist swing = dist_mul(w->tv, diameter(w, t));
    if (k->h->covariance && w->n > 1) swing = dist_min(swing, fine_swing(w, t, &k->wq[p]));
    s->own[p][i] = dist_add(s->own[p][i], op_move(v, weighted(w, w->v->r)));
    s->rest[p][i] = dist_add(s->rest[p][i], op_move(v, from_uniform(w)));
    s->swing[p][i] = dist_add(s->swing[p][i], swing);
    if (w->n > 1) vertex_swings(w, t, pare_row_mut(&s->vertex[p], i));
}

/* ---- the difference of two heads with the same values --------------------------------------- */

/* Half of |(p'^f - p'^g) - (p^f - p^g)|_1, and of |p'^f - p'^g|_1. */
typedef struct weights_apart {
    double second, tv;
} weights_apart;

/* e: how far b^f and b^g may be apart. */
static double score_difference(const head_pair *h, const row_view w[2], const spare *t)
{
    const size_t i = w[0].i;
    const lever between = turn_of(&w[0], &w[1]), turn = turn_of(&w[1], NULL);
    const bool moves = w[0].v->moves;
    lever *const far = (lever *)(void *)t->pv; /* free here, and large enough */
    double one = 0, two = 0;
    if (h->o->scored && moves && w[0].v->turned)
        turned_levers(far, &w[0], &w[1].v->h->k, t->centre);
    for (size_t j = 0; j < w[0].n; j++) {
        const size_t row = key_at(&w[0], j);
        const dist rf = w[0].v->r[row], v = h->z->v[row];
        const double sum = up_add(w[0].m->d[j], w[1].m->d[j]);
        double x = up_add(lever_move(between, rf), lever_move(turn, v));
        if (h->o->scored && moves) {
            const lever key = w[0].v->turned ? far[j] : h->far[row];
            const dist vq = h->vq[i], rq = w[1].v->rq[i];
            x = up_add(x, up_add(lever_move(w[0].m->far[j], vq), lever_move(key, rq)));
            x = up_add(x, up_add(bilinear(w[0].v, vq, rf), bilinear(w[0].v, rq, v)));
        } else {
            for (size_t p = 0; p < 2; p++) {
                const dist rq = w[p].v->rq[i], r = w[p].v->r[row];
                x = up_add(x, lever_move(w[p].m->far[j], rq));
                x = up_add(x, bilinear(w[p].v, rq, r));
            }
        }
        /* each holds up to a constant of its own: one of them must serve all keys */
        one = up_max(one, x);
        two = up_max(two, sum);
    }
    return up_min(one, two);
}

static weights_apart weights_between(const head_pair *h, const row_view w[2], const spare *t)
{
    const double e = score_difference(h, w, t), off = up_add(w[0].off, w[1].off);
    double low = INFINITY, high = -INFINITY, half = 0;
    for (size_t j = 0; j < w[0].n; j++) {
        const double apart = w[0].m->s[j] - w[1].m->s[j];
        low = fmin(low, apart);
        high = fmax(high, apart);
        half = up_fma(0.5, up(fabs(w[0].m->p[j] - w[1].m->p[j])), half);
    }
    const double eta = up_add(w[0].eta, w[1].eta);
    const double range = up_add(up_mul(0.5, up(high - low)), up_mul(1 + 0x1p-40, eta));
    const double sd =
        up_add(up_mul(0.5, e), up_mul(up_add(range, e), up_min(w[0].most, w[1].most)));
    weights_apart y = {.second = up_min(sd, up_add(w[0].tv, w[1].tv))};
    const double now = up_add(half, up_mul(0.5, off));
    y.tv = up_min(up_add(now, y.second), enclose_tv(up_add(range, e), INFINITY));
    return y;
}

/* P^x (z^f - z^g) + (P^f - P^g) z^y, x = w[a], y = w[1 - a]. */
static dist difference_by(const head_pair *h, const row_view w[2], const weights_apart *q,
                          const spare *t, size_t a)
{
    const row_view *const x = &w[a], *const y = &w[1 - a];
    const op *const v = &x->v->o->v;
    dist sum = op_move(v, weighted(x, h->z->v));
    sum = dist_add(sum, dist_mul(x->tv, h->diameter));
    sum = dist_add(sum, op_move(v, dist_mul(up_mul(2, q->tv), y->r_most)));
    return dist_add(sum, dist_mul(q->second, diameter(y, t)));
}

static void apart_row(const job *k, const row_view w[2], const spare *t)
{
    const head_pair *const h = k->h;
    const size_t i = w[0].i;
    const weights_apart q = weights_between(h, w, t);
    const dist f = difference_by(h, w, &q, t, 0), g = difference_by(h, w, &q, t, 1);
    k->s->apart[i] = dist_add(k->s->apart[i], dist_min(f, g));
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void one_row(const job *k, size_t i, const spare *t)
{
    const head_pair *const h = k->h;
    const enclose_ctx *const c = &h->c->c[0];
    const pare_keys keys = pare_visible(&c->m->pattern, c->graph, c->tokens, i);
    row_view w[2];
    if (keys.count == 0) return; /* nothing is visible: the head gives 0 */
    for (size_t p = 0; p < h->paths; p++) {
        if (!h->view[p].h) continue;
        w[p] =
            (row_view){.v = &h->view[p], .m = &t->path[p], .keys = &keys, .i = i, .n = keys.count};
        weigh(&w[p]);
        boxes(&w[p], t->centre);
        own_row(k, &w[p], t, p);
    }
    if (h->paired) apart_row(k, w, t);
}

enum { ROWS = 16 };

static bool spare_new(spare *t, pare_arena *a, const job *k)
{
    const head_view *const v = k->h->view[0].h ? &k->h->view[0] : &k->h->view[1];
    const size_t n = v->u.rows, dout = v->u.cols, w = k->widest;
    if (!a) return false;
    bool ok = true;
    for (size_t p = 0; p < 2; p++) {
        row_room *const m = &t->path[p];
        double **const lists[] = {&m->s, &m->e, &m->p, &m->d};
        for (size_t l = 0; l < 4; l++) ok = (*lists[l] = pare_alloc(a, n, sizeof(double))) && ok;
        ok = (m->far = pare_alloc(a, n, sizeof *m->far)) && ok;
    }
    double **const wide[] = {&t->centre, &t->mean, &t->key_mean};
    double **const many[] = {&t->low, &t->high, &t->c};
    for (size_t l = 0; l < 3; l++) {
        ok = (*wide[l] = pare_alloc(a, w, sizeof(double))) && ok;
        ok = (*many[l] = pare_alloc(a, n, sizeof(double))) && ok;
    }
    t->order = pare_alloc(a, n, sizeof *t->order);
    t->place = pare_alloc(a, n, sizeof *t->place);
    const bool cov = k->h->covariance;
    t->cov = pare_alloc(a, cov ? dout * w : 1, sizeof *t->cov);
    t->turned = pare_alloc(a, cov ? dout * w : 1, sizeof *t->turned);
    t->pv = pare_alloc(a, n, (dout + 2) * sizeof *t->pv);
    t->kc = pare_alloc(a, cov ? n * w : 1, sizeof *t->kc);
    return ok && t->order && t->place && t->cov && t->turned && t->pv && t->kc;
}

static void block(void *ctx, size_t b)
{
    job *const k = ctx;
    const size_t n = k->h->z->h[0].rows, end = n - b * ROWS < ROWS ? n : (b + 1) * ROWS;
    pare_arena *const a = pare_arena_new();
    spare t;
    if (spare_new(&t, a, k)) {
        for (size_t i = b * ROWS; i < end; i++) one_row(k, i, &t);
    } else {
        atomic_store(&k->no_memory, true);
    }
    pare_arena_free(a);
}

pare_status pair_softmax(const head_pair *h, head_sums *s, pare_err *err)
{
    job k = {.h = h, .s = s, .widest = h->z->h[0].cols + 1};
    for (size_t p = 0; p < h->paths; p++) {
        const head_view *const v = &h->view[p];
        if (!v->h) continue;
        const pare_status st = head_matrix(&k.wq[p], h->c->a, v->h->at, v->g, 'q', err);
        if (st != PARE_OK) return st;
        if (v->u.cols > k.widest) k.widest = v->u.cols;
        if (v->d->dk > k.widest) k.widest = v->d->dk;
    }
    pare_parallel(h->c->exec, (h->z->h[0].rows + ROWS - 1) / ROWS, block, &k);
    return atomic_load(&k.no_memory) ? pare_no_memory(err) : PARE_OK;
}
