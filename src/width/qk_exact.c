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

net_head qk_exact(pare_work *w, const net_head *hd, const basis *b)
{
    net_head out = *hd;
    const pare_mat keys = mat_mul(w, &hd->wk, false, &b->u, false);
    const pare_mat queries = mat_mul(w, &hd->wq, false, &b->u, false);
    const double *const shift = mat_vec(w, &hd->wq, false, b->mu, hd->bq);
    const svd_factors s = svd_of(w, &keys);
    if (w->st) return out;
    const size_t rank = svd_rank(&s, CUT);
    const pare_mat p = mat_first_cols(w, &s.u, rank > 0 ? rank : 1);
    out.wq = mat_mul(w, &p, true, &queries, false);
    out.wk = mat_mul(w, &p, true, &keys, false);
    out.bq = mat_vec(w, &p, true, shift, NULL);
    return out;
}
