/* statistics.c - what held-out inputs say about new ones (docs/format.md, the end of "Kinds"). Both
 * numbers of a claim are doubles, so they are exact; the balls are made smaller until they decide. */
#include "check.h"

/* P(at most k of n tries succeed), each with probability p: the sum of C(n, i) p^i (1 - p)^(n - i).
 * Each term is the one before it times (n - i + 1) p / (i (1 - p)). */
static void binomial_tail(arb_t out, size_t n, size_t k, double p, slong prec)
{
    arb_t term, odds, rest;
    arb_init(term);
    arb_init(odds);
    arb_init(rest);
    arb_set_d(odds, p);
    arb_sub_ui(rest, odds, 1, prec);
    arb_neg(rest, rest);
    arb_div(odds, odds, rest, prec);
    arb_pow_ui(term, rest, n, prec);
    arb_set(out, term);
    for (size_t i = 1; i <= k; i++) {
        arb_mul(term, term, odds, prec);
        arb_mul_ui(term, term, n - i + 1, prec);
        arb_div_ui(term, term, i, prec);
        arb_add(out, out, term, prec);
    }
    arb_clear(term);
    arb_clear(odds);
    arb_clear(rest);
}

/* Whether at most k of n tries succeed with probability at most 1 - confidence. */
bool share_is_enough(size_t draws, size_t left_out, double share, double confidence)
{
    bool enough = false, decided = false;
    if (!(share > 0)) return false;
    if (share >= 1) return true;
    arb_t tail, limit;
    arb_init(tail);
    arb_init(limit);
    for (slong prec = 256; !decided && prec <= 65536; prec *= 4) {
        arb_set_d(limit, confidence);
        arb_sub_ui(limit, limit, 1, prec);
        arb_neg(limit, limit);
        binomial_tail(tail, draws, left_out, share, prec);
        enough = arb_le(tail, limit);
        decided = enough || arb_gt(tail, limit);
    }
    arb_clear(tail);
    arb_clear(limit);
    return enough;
}

/* probability <= (N - k) / (N + 1), where N is below 2^53 */
bool probability_is_right(size_t draws, size_t left_out, double probability)
{
    arb_t p;
    arb_init(p);
    arb_set_d(p, probability);
    arb_mul_ui(p, p, draws + 1, 256);
    arb_sub_ui(p, p, draws - left_out, 256);
    const bool right = arb_is_nonpositive(p);
    arb_clear(p);
    return right;
}
