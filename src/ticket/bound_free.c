/* bound_free.c - Theorem B: one attention layer, for all rows of bounded length
 * (docs/theory/ticket.md "Theorem B: one attention layer, all inputs"), with biases, many heads,
 * shared keys and values, rotary positions, and inputs that differ already.
 *
 * Claim. If |x_i| <= f, |x~_i| <= g, |x_i - x~_i| <= d for every token, then for any number of
 * tokens and any pattern
 *   |out_i - out~_i| <= sum_h [ 2 min(f |V_h|, g |V~_h|) tanh(lambda_h / 2)
 *                             + min(|V_h| d + g |E^v_h|, |V~_h| d + f |E^v_h|) ] + bias
 * where lambda_h bounds the change of a score up to what is constant in its row:
 *   plain   s_ik = [x_i 1] G x_k:   |[x 1] G| d + d |G_0| g + |[x~ 1] E| g, or with the roles of
 *           the models changed over;
 *   rotary  s_ik = R_i q_i . R_k k_k:   |q||k - k~| + |q - q~||k~|, or changed over.
 * For d = 0 and no biases this is 2 alpha |V| tanh(alpha^2 |E^q| / 2) + alpha |E^v|.
 * Proof. Errors of scores are at most lambda up to a constant of the row, so their range is 2
 * lambda at most; p X V - p~ X~ V~ = (p - p~) X V + p~ (X V - X~ V~); Lemma A for the first, and p~
 * is a convex combination. A row without keys gives bo in both models; one with keys adds all value
 * biases, since weights sum to 1.  []
 * Cost: none, once the norms are known. */
#include "linalg/bounds.h"
#include <pare/ticket.h>
#include "bounds.h"

static pare_ub times(pare_ub a, pare_ub b)
{
    return pare_ub_mul(a, b);
}

static pare_ub plus(pare_ub a, pare_ub b)
{
    return pare_ub_add(a, b);
}

span span_tightened(span s)
{
    s.g = pare_ub_min(s.g, plus(s.f, s.d));
    s.f = pare_ub_min(s.f, plus(s.g, s.d));
    s.d = pare_ub_min(s.d, plus(s.f, s.g));
    return s;
}

pare_ub affine_at(const affine *m, pare_ub x)
{
    const pare_ub one = pare_ub_sqrt(pare_ub_fma(x, x, pare_ub_exact(1)));
    return pare_ub_min(pare_ub_fma(m->w, x, m->b), times(m->whole, one));
}

static pare_ub plain_scores(const head_sizes *h, span s)
{
    const pare_ub by_f =
        plus(plus(times(affine_at(&h->g, s.f), s.d), times(times(s.d, h->g.w), s.g)),
             times(affine_at(&h->ge, s.g), s.g));
    const pare_ub by_g =
        plus(plus(times(affine_at(&h->gt, s.f), s.d), times(times(s.d, h->gt.w), s.g)),
             times(affine_at(&h->ge, s.f), s.f));
    return pare_ub_min(by_f, by_g);
}

/* |m x - m~ x~| */
static pare_ub map_moves(const affine *f, const affine *g, const affine *e, span s)
{
    return pare_ub_min(pare_ub_fma(f->w, s.d, affine_at(e, s.g)),
                       pare_ub_fma(g->w, s.d, affine_at(e, s.f)));
}

static pare_ub turning_scores(const head_sizes *h, span s)
{
    const pare_ub dq = map_moves(&h->q, &h->qt, &h->qe, s),
                  dk = map_moves(&h->k, &h->kt, &h->ke, s);
    const pare_ub by_f = plus(times(affine_at(&h->q, s.f), dk), times(dq, affine_at(&h->kt, s.g)));
    const pare_ub by_g = plus(times(affine_at(&h->qt, s.g), dk), times(dq, affine_at(&h->k, s.f)));
    return pare_ub_min(by_f, by_g);
}

pare_ub head_scores_move(const head_sizes *h, span s)
{
    return h->factored ? turning_scores(h, s) : plain_scores(h, s);
}

static pare_ub head_moves(const head_sizes *h, span s)
{
    const pare_ub two = pare_ub_exact(2);
    const pare_ub moved = pare_softmax_perturbation(times(two, head_scores_move(h, s)));
    const pare_ub radius = pare_ub_min(times(s.f, h->v), times(s.g, h->vt));
    const pare_ub values = pare_ub_min(pare_ub_fma(h->v, s.d, times(s.g, h->ve)),
                                       pare_ub_fma(h->vt, s.d, times(s.f, h->ve)));
    return pare_ub_fma(times(two, radius), moved, values);
}

span attn_move(const attn_sizes *m, span s)
{
    span y = {pare_ub_exact(0), pare_ub_exact(0), pare_ub_exact(0), 0};
    for (size_t h = 0; h < m->nheads; h++) {
        y.f = pare_ub_fma(m->heads[h].v, s.f, y.f);
        y.g = pare_ub_fma(m->heads[h].vt, s.g, y.g);
        y.d = plus(y.d, head_moves(&m->heads[h], s));
    }
    y.f = plus(y.f, m->bias);
    y.g = plus(y.g, m->bias_g);
    y.d = plus(y.d, m->bias_e);
    if (m->may_be_empty) {
        y.f = pare_ub_max(y.f, m->empty);
        y.g = pare_ub_max(y.g, m->empty_g);
        y.d = pare_ub_max(y.d, m->empty_e);
    }
    return span_tightened(y);
}
