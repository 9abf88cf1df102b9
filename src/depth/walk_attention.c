/* walk_attention.c - Theorem 1, one attention sublayer.
 *
 * Lemmas (proofs: docs/theory/depth.md; P, P' row-stochastic):
 *   T. TV(softmax(a + b), softmax(a)) <= tanh(range(b) / 4).
 *   K. |(p - p') Z| <= TV(p, p') D(Z), for every norm, also coordinate by coordinate.
 *   R. rows of P Z differ by at most tau D(Z), tau <= tanh(rho / 4), rho = sup of
 *      (x_i - x_i') B (x_j - x_j') - for full attention; else tau <= 1.
 *   P. F(X) - F(Y) = P_Y (X - Y) V + (P_X - P_Y) X V, and the same with X, Y changed over.
 *
 * Write x_i = c + (what is left, at most w). Averages of tokens are within w of c as well, so
 * everything that c does is known exactly and only w and d are bounded. For f with heads and g
 * without, F(X) - G(Y) = [F(X) - G(X)] + [G(X) - G(Y)]; the second is linear in X - Y, and the
 * first, with K the constant row that is left over, is the least of
 *   1  heads -> uniform:    K + w(|T'| + sum |M'_j + V|) + sum_h tv_h d |V_h|
 *   2  heads as they are:   K + w(|T'| + sum |M'_j| + stack)
 *   3  heads -> own token:  K + w|T' + V| + sum_h d |V_h| + w sum |M'_j|
 *   4  all -> own token:    K + w|T' + sum M' + V| + d sum |M'_j + V| + sum_h tv_h d |V_h|
 * (primes: f minus g; V the sum of f's V_h, counted with M'_1). 3 and 4 need rows that see
 * something. Where heads pair up, Lemma P is used head by head.
 *
 * Under full attention G hands on X - Y token by token through T, and only its mean over the tokens
 * through M: that mean is bounded for itself (mean_of_head). Tokens that pull the weights to one
 * side stand against others that pull them to the other, so that it is about half as large. */
#include "linalg/bounds.h"
#include "walk.h"
#include <math.h>

/* ---- how the tokens of one model move -------------------------------------------------------- */

/* x m for rows of sizes. */
static void add_through(pare_work *k, pare_mat *to, const pare_mat *x, const token_norm *in,
                        const token_norm *out, const imat *m)
{
    const pare_mat map = norm_of_map(k, in, out, m), y = up_mul(k, x, &map);
    up_add(k, to, &y);
}

static pare_mat stack_of(pare_work *k, const eff_attn *e, const token_norm *in,
                         const token_norm *out)
{
    const imat **const v = pare_alloc(k->arena, e->nheads, sizeof *v);
    if (!v) pare_work_keep(k, pare_no_memory(k->err));
    for (size_t h = 0; !k->st && h < e->nheads; h++) v[h] = &e->heads[h].v;
    return norm_of_stack(k, in, out, v, e->nheads);
}

/* What a row that sees nothing is short of: c (all M + all V) + inside. */
static pare_mat missing(pare_work *k, const eff_attn *e, const imat *total, const imat *c,
                        const token_norm *out)
{
    const imat seen = imat_diff(k, total, &e->t), moved = imat_mul(k, c, &seen);
    const imat row = imat_sum(k, &moved, &e->inside);
    return norm_of_row(k, out, &row);
}

/* w the other way: all averages but for what they differ from the plain mean m = (U X)_i, so that m
 * goes through T + M + V as a whole. Needs rows that see something. */
static pare_mat around_mean(pare_work *k, const eff_attn *e, const imat *total,
                            const token_norm *in, const token_norm *out, const token_set *r)
{
    pare_mat w = work_matrix(k, 1, out->k);
    add_through(k, &w, &r->w, in, out, total);
    add_through(k, &w, &r->d, in, out, &e->t);
    for (size_t j = 1; j < e->npowers; j++) add_through(k, &w, &r->d, in, out, &e->mix[j]);
    for (size_t h = 0; h < e->nheads; h++) {
        const pare_mat part =
            up_scale(k, &r->d, softmax_variation(score_range(k, in, &e->heads[h], r)));
        add_through(k, &w, &part, in, out, &e->heads[h].v);
    }
    return w;
}

static token_set moved(pare_work *k, const eff_attn *e, const imat *total, const token_norm *in,
                       const token_norm *out, const token_set *r, mask_facts s)
{
    const imat through = imat_mul(k, &r->c, total), half = imat_sum(k, &through, &e->inside);
    token_set n = {imat_sum(k, &half, &e->outside), work_matrix(k, 1, out->k),
                   work_matrix(k, 1, out->k)};
    const pare_mat stack = stack_of(k, e, in, out), values = up_mul(k, &r->w, &stack);
    add_through(k, &n.w, &r->w, in, out, &e->t);
    add_through(k, &n.d, &r->d, in, out, &e->t);
    up_add(k, &n.w, &values);
    for (size_t j = 0; j < e->npowers; j++) {
        add_through(k, &n.w, &r->w, in, out, &e->mix[j]);
        if (!s.full) add_through(k, &n.d, &r->d, in, out, &e->mix[j]);
    }
    for (size_t h = 0; h < e->nheads; h++) {
        const pare_mat part = up_scale(k, &r->d, contraction(k, in, &e->heads[h], r, s));
        add_through(k, &n.d, &part, in, out, &e->heads[h].v);
    }
    if (!s.never_empty && (e->nheads || e->npowers)) {
        const pare_mat short_of = missing(k, e, total, &r->c, out);
        up_add(k, &n.w, &short_of);
    } else if (e->nheads || e->npowers) {
        const pare_mat other = around_mean(k, e, total, in, out, r);
        n.w = up_min(k, &n.w, &other);
    }
    const pare_mat twice = up_scale(k, &n.w, pare_ub_exact(2));
    n.d = s.never_empty ? up_min(k, &n.d, &twice) : twice;
    return n;
}

/* ---- how far the models move apart ----------------------------------------------------------- */

typedef struct gap {
    pare_work *k;
    const attn_pair *p;
    const token_norm *in, *out;
    const track *t;
    mask_facts s;
} gap;

/* The constant row that is left: c (T' + M' + V') + inside' + outside', V' by the caller. A row
 * that sees nothing has c T' + outside' instead; what is in between is below the larger. */
static pare_mat constants(const gap *g, const imat *v)
{
    pare_work *const k = g->k;
    const attn_pair *const p = g->p;
    const imat *const c = &g->t->x.c;
    imat own = imat_mul(k, c, &p->t);
    own = imat_sum(k, &own, &p->outside);
    imat seen = imat_mul(k, c, v);
    for (size_t j = 0; j < p->npowers; j++) {
        const imat m = imat_mul(k, c, &p->mix[j]);
        seen = imat_sum(k, &seen, &m);
    }
    seen = imat_sum(k, &seen, &p->inside);
    const imat both = imat_sum(k, &own, &seen);
    const pare_mat most = norm_of_row(k, g->out, &both);
    if (g->s.never_empty) return most;
    const pare_mat alone = norm_of_row(k, g->out, &own);
    return up_max(k, &most, &alone);
}

/* to += x |m| for one of x's sizes. */
static void spread(const gap *g, pare_mat *to, const pare_mat *x, const imat *m)
{
    add_through(g->k, to, x, g->in, g->out, m);
}

/* The mean over the tokens i of (P_i - U) X V, before V. P_i is softmax of a_i x_j, a_i = x_i B +
 * l. To first order in the scores (P_i - U) z is their covariance with z, which is linear in a_i:
 * the mean query is what counts. Second order: the integral of (1 - t) E_t[(s - mean)^2 (z - mean)]
 * over tilted weights, at most range^2 / 8 times the diameter of z. */
static pare_mat mean_of_head(const gap *g, const eff_head *h, const pare_mat *most)
{
    pare_work *const k = g->k;
    const token_set *const x = &g->t->x;
    if (g->in->kind == NORM_TWO || h->rotary || h->query != QUERY_EACH) return *most;
    const pare_ub range = score_range(k, g->in, h, x);
    const pare_ub second = pare_ub_mul(pare_ub_mul(range, range), pare_ub_exact(0.125));
    const pare_mat half = up_scale(k, &x->d, pare_ub_exact(0.5)), spreads = up_min(k, &x->w, &half);
    const pare_mat first = up_scale(k, &spreads, mean_query(k, g->in, h, x));
    const pare_mat rest = up_scale(k, &x->d, second), both = up_sum(k, &first, &rest);
    return up_min(k, most, &both);
}

/* sum_h (tv_h d, or d) |V_h|; `mean`: of their mean over the tokens. */
static void add_heads(const gap *g, pare_mat *to, bool uniform, bool mean)
{
    pare_work *const k = g->k;
    const token_set *const x = &g->t->x;
    for (size_t h = 0; h < g->p->f->nheads; h++) {
        const eff_head *const head = &g->p->f->heads[h];
        const pare_ub tv =
            uniform ? softmax_variation(score_range(k, g->in, head, x)) : pare_ub_exact(1);
        const pare_mat one = up_scale(k, &x->d, tv),
                       part = mean ? mean_of_head(g, head, &one) : one;
        spread(g, to, &part, &head->v);
    }
}

/* way 1: every M' for itself, M'_1 with V. `mean`: of the mean over all tokens. */
static pare_mat heads_to_uniform(const gap *g, const pare_mat *constant, bool mean)
{
    pare_work *const k = g->k;
    pare_mat r = up_scale(k, constant, pare_ub_exact(1));
    spread(g, &r, &g->t->x.w, &g->p->t);
    for (size_t j = 0; j < g->p->npowers; j++) {
        const imat m = j == 0 ? imat_sum(k, &g->p->mix[0], &g->p->fv) : g->p->mix[j];
        spread(g, &r, &g->t->x.w, &m);
    }
    add_heads(g, &r, true, mean);
    return r;
}

static pare_mat heads_as_they_are(const gap *g, const pare_mat *constant)
{
    pare_work *const k = g->k;
    pare_mat r = up_scale(k, constant, pare_ub_exact(1));
    const pare_mat stack = stack_of(k, g->p->f, g->in, g->out);
    const pare_mat values = up_mul(k, &g->t->x.w, &stack);
    spread(g, &r, &g->t->x.w, &g->p->t);
    for (size_t j = 0; j < g->p->npowers; j++) spread(g, &r, &g->t->x.w, &g->p->mix[j]);
    up_add(k, &r, &values);
    return r;
}

static pare_mat heads_to_own_token(const gap *g, const pare_mat *constant)
{
    pare_work *const k = g->k;
    pare_mat r = up_scale(k, constant, pare_ub_exact(1));
    const imat t = imat_sum(k, &g->p->t, &g->p->fv);
    spread(g, &r, &g->t->x.w, &t);
    for (size_t j = 0; j < g->p->npowers; j++) spread(g, &r, &g->t->x.w, &g->p->mix[j]);
    add_heads(g, &r, false, false);
    return r;
}

static pare_mat all_to_own_token(const gap *g, const pare_mat *constant)
{
    pare_work *const k = g->k;
    pare_mat r = up_scale(k, constant, pare_ub_exact(1));
    imat t = imat_sum(k, &g->p->t, &g->p->fv);
    for (size_t j = 0; j < g->p->npowers; j++) {
        const imat m = j == 0 ? imat_sum(k, &g->p->mix[0], &g->p->fv) : g->p->mix[j];
        t = imat_sum(k, &t, &g->p->mix[j]);
        spread(g, &r, &g->t->x.d, &m);
    }
    spread(g, &r, &g->t->x.w, &t);
    add_heads(g, &r, true, false);
    return r;
}

/* |F(X) - G(X)| for a g without heads. */
static pare_mat replaced(const gap *g)
{
    pare_work *const k = g->k;
    if (g->p->same) return work_matrix(k, 1, g->out->k);
    const pare_mat constant = constants(g, &g->p->fv);
    const pare_mat one = heads_to_uniform(g, &constant, false),
                   two = heads_as_they_are(g, &constant);
    pare_mat least = up_min(k, &one, &two);
    if (!g->s.never_empty) return least;
    const pare_mat three = heads_to_own_token(g, &constant), four = all_to_own_token(g, &constant);
    least = up_min(k, &least, &three);
    return up_min(k, &least, &four);
}

/* Range of the change of a row's scores between f at X and g at Y, by Lemma P; the differences of
 * the weights themselves come on top. */
static pare_ub score_change(const gap *g, size_t h)
{
    pare_work *const k = g->k;
    const track *const t = g->t;
    const eff_head *const head = &g->p->g->heads[h], *const first = &g->p->f->heads[h];
    const pare_mat twice = up_scale(k, &t->e, pare_ub_exact(2)), both = up_sum(k, &t->x.d, &t->y.d);
    const pare_mat de = up_min(k, &twice, &both), form = norm_of_form(k, g->in, &head->b);
    const pare_mat moves = up_mul(k, &t->e, &form);
    const pare_mat from_y = slope(k, g->in, &head->b, &head->l, &t->y);
    const pare_mat from_x = slope(k, g->in, &head->b, &head->l, &t->x);
    pare_ub r = pare_ub_min(pare_ub_add(up_dot(&moves, &t->x.d), up_dot(&from_y, &de)),
                            pare_ub_add(up_dot(&moves, &t->y.d), up_dot(&from_x, &de)));
    if (g->p->same) return r;
    const pare_mat weights = slope(k, g->in, &g->p->b[h], &g->p->l[h], &t->x);
    r = pare_ub_add(r, up_dot(&weights, &t->x.d));
    if (first->query != head->query && (first->query == QUERY_MEAN || head->query == QUERY_MEAN))
        r = pare_ub_add(
            r, interaction(k, g->in, first->query == QUERY_MEAN ? &first->b : &head->b, &t->x.d));
    return r;
}

/* A rotary head at X and at Y: q R k changes by |q'| |k| + |q| |k'|, and its range by twice that.
 */
static pare_ub turning_change(const gap *g, const eff_head *h)
{
    pare_work *const k = g->k;
    const track *const t = g->t;
    const pare_mat qn = euclidean_norm_of_map(k, g->in, &h->q),
                   kn = euclidean_norm_of_map(k, g->in, &h->k);
    const pare_mat dq = up_mul(k, &t->e, &qn), dk = up_mul(k, &t->e, &kn);
    const pare_ub key = rotary_length(k, g->in, &h->k, &h->k0, &t->x);
    const pare_ub query = rotary_length(k, g->in, &h->q, &h->q0, &t->y);
    if (k->st) return pare_ub_inf();
    const pare_ub sum =
        pare_ub_fma((pare_ub){dq.v[0]}, key, pare_ub_mul(query, (pare_ub){dk.v[0]}));
    return pare_ub_mul(pare_ub_exact(2 * fabs(h->scale)), sum);
}

/* Lemma P, all heads: e |V| + tv min(d_X, d_Y) |V|, and what V' adds. */
static pare_mat head_by_head(const gap *g)
{
    pare_work *const k = g->k;
    const track *const t = g->t;
    pare_mat r = work_matrix(k, 1, g->out->k);
    const pare_mat nearest = up_min(k, &t->x.d, &t->y.d);
    imat total = imat_zero(k, g->p->f->din, g->p->f->dout);
    for (size_t h = 0; h < g->p->f->nheads; h++) {
        const eff_head *const head = &g->p->g->heads[h];
        const pare_ub change = head->rotary ? turning_change(g, head) : score_change(g, h);
        const pare_mat turn = up_scale(k, &nearest, softmax_variation(change));
        const pare_mat both = up_sum(k, &t->e, &turn);
        spread(g, &r, &both, &head->v);
        if (g->p->same) continue;
        spread(g, &r, &t->x.w, &g->p->v[h]);
        total = imat_sum(k, &total, &g->p->v[h]);
    }
    if (g->p->same) return r;
    const pare_mat constant = constants(g, &total);
    up_add(k, &r, &constant);
    spread(g, &r, &t->x.w, &g->p->t);
    for (size_t j = 0; j < g->p->npowers; j++) spread(g, &r, &t->x.w, &g->p->mix[j]);
    return r;
}

/* Nothing but where both are: |c_X - c_Y| + w_X + w_Y. */
static pare_mat far_apart(pare_work *k, const token_norm *at, const token_set *x,
                          const token_set *y)
{
    const imat between = imat_diff(k, &x->c, &y->c);
    const pare_mat centres = norm_of_row(k, at, &between), wide = up_sum(k, &x->w, &y->w);
    return up_sum(k, &centres, &wide);
}

/* The mean over the tokens of f's minus g's, where g is without heads and every token sees all:
 * what it was goes through T + M as a whole, and what F and G give on X differs by `replaced` on
 * average. */
static pare_mat mean_apart(const gap *g, const pare_mat *was)
{
    pare_work *const k = g->k;
    imat total = g->p->g->t;
    pare_mat m = work_matrix(k, 1, g->out->k);
    for (size_t j = 0; j < g->p->g->npowers; j++) total = imat_sum(k, &total, &g->p->g->mix[j]);
    spread(g, &m, was, &total);
    if (g->p->same) return m;
    const pare_mat constant = constants(g, &g->p->fv);
    const pare_mat local = heads_to_uniform(g, &constant, true);
    up_add(k, &m, &local);
    return m;
}

track walk_attention(pare_work *k, const attn_pair *p, const token_norm *out, const track *t,
                     mask_facts s)
{
    const gap g = {k, p, &t->at, out, t, s};
    const eff_attn *const after = p->g;
    track n = {.at = *out};
    if (k->st) return n;
    n.x = moved(k, p->f, &p->ft, &t->at, out, &t->x, s);
    n.y = moved(k, after, &p->gt, &t->at, out, &t->y, s);
    n.e = far_apart(k, out, &n.x, &n.y);
    if (after->nheads > 0 && !p->paired) return n;
    const bool means = s.full && after->nheads == 0;
    const pare_mat *const mean = means && t->m.v ? &t->m : &t->e;
    pare_mat e = work_matrix(k, 1, out->k);
    spread(&g, &e, &t->e, &after->t);
    for (size_t j = 0; j < after->npowers; j++) spread(&g, &e, mean, &after->mix[j]);
    const pare_mat local = p->paired ? head_by_head(&g) : replaced(&g);
    up_add(k, &e, &local);
    n.e = up_min(k, &n.e, &e);
    if (!means) return n;
    const pare_mat m = mean_apart(&g, mean);
    n.m = up_min(k, &m, &n.e);
    return n;
}
