/* Queries and keys in an affine basis of their input, without loss (docs/theory/width.md section
 * 2).
 *
 * With h = U x + mu the scores are (Wq U x_i + Wq mu + bq) . (Wk U x_j + Wk mu); the last term does
 * not depend on j inside the bracket of the query, so softmax does not see it. With P the left
 * singular vectors of Wk U:  Wq' = P^T Wq U,  bq' = P^T (Wq mu + bq),  Wk' = P^T Wk U. Exact, of
 * rank(Wk U) <= d dimensions, and it keeps bq (the Wq' = I, Wk' = U^T Wq^T Wk U of
 * Proposition 4.1 of Shirzad 2024, which has no biases, would not). */
#include "cuts.h"

#define CUT 1e-12 /* of the largest singular value: rounding */

net_head qk_exact(work *w, const net_head *hd, const basis *b)
{
    net_head out = *hd;
    const pare_mat keys = w_mul(w, &hd->wk, false, &b->u, false);
    const pare_mat queries = w_mul(w, &hd->wq, false, &b->u, false);
    const double *const shift = w_apply(w, &hd->wq, false, b->mu, hd->bq);
    const w_svd_of s = w_svd(w, &keys);
    if (w->st) return out;
    const size_t rank = w_rank(&s, CUT);
    const pare_mat p = w_first_cols(w, &s.u, rank > 0 ? rank : 1);
    out.wq = w_mul(w, &p, true, &queries, false);
    out.wk = w_mul(w, &p, true, &keys, false);
    out.bq = w_apply(w, &p, true, shift, NULL);
    return out;
}
