/* softmax_tv.c - Lemma A, the total variation of a perturbed softmax (replaces Lemmas 5 and 8 of
 * Otsuka 2025; docs/errata.md). With p = softmax(l), p' = softmax(l + e) over the same keys and r
 * = max e - min e,
 *     TV(p, p') = sum |p_k - p'_k| / 2 <= tanh(r / 4).
 * Proof. Let A be the keys whose weight grows. The odds of A grow by e^r at most, so
 *     TV = P'(A) - P(A) <= max over a of  a e^r / (a e^r + 1 - a) - a  =  tanh(r / 4),
 * attained at a = 1 / (1 + e^(r/2)).  []
 * p - p' = TV (mu - nu) for two probability vectors, so for any vectors y_k
 *     |sum (p_k - p'_k) y_k| <= tanh(r / 4) diam{y_k} <= 2 tanh(r / 4) rho
 * where all y_k lie in a ball of radius rho. No sqrt(d), no condition on r, no number of keys. */
#include "linalg/bounds.h"
#include <pare/ticket.h>
#include "bounds.h"

pare_ub pare_softmax_moves(pare_ub range)
{
    return pare_ub_tanh(pare_ub_mul(range, pare_ub_exact(0.25)));
}
