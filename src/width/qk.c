/* qk.c - queries and keys in fewer dimensions (docs/theory/width.md section 2).
 *
 * The best bilinear form of rank d, in the metric of the data (qk_optimal).
 *
 * Softmax sees only B = [Wq bq]^T Wk, and of its scores only differences within a row. Let Cq be
 * the second moment of [h, 1] over the queries and Ck the covariance of keys within neighborhoods.
 * Then  |Cq^1/2 (B - B^) Ck^1/2|_F  over rank(B^) <= d is least for the truncated singular value
 * decomposition, and the least value is the root of the squares of what was cut off (Eckart-Young):
 * no other choice of d dimensions does better in this metric. Were queries and their keys
 * independent, its square would be the mean squared error of the scores that softmax sees. For
 * d >= rank nothing is lost.
 *
 * qk_bounds_of makes the pair a theorem. Its metric is the two matrices Rq, Rk of doubles that this
 * file computes as roots of Cq and Ck; whatever they are, with S the computed Rq B Rk and every
 * form B^ of rank d,
 *
 *     |Rq (B - B^) Rk|_F  >=  sqrt(sum_{i > d} sigma_i(S)^2) - |S - Rq B Rk|_F,
 *
 * sigma_i from below (singular_bounds.c) and the second term by the rounding of three products.
 * That Rq and Rk are the roots of the data's moments is true up to rounding only: what is proven
 * is about this metric, and about the head's stored (or folded) f64 weights.
 *
 * Without loss, in an affine basis of the input (qk_exact). With h = U x + mu the scores are
 *
 *     (Wq U x_i + Wq mu + bq) . (Wk U x_j + Wk mu);
 *
 * the part with Wk mu is the same for all j, so softmax does not see it. With P the left singular
 * vectors of Wk U,
 *
 *     Wq' = P^T Wq U,     bq' = P^T (Wq mu + bq),     Wk' = P^T Wk U
 *
 * is exact, has rank(Wk U) <= d dimensions, and keeps bq (Wq' = I, Wk' = U^T Wq^T Wk U of
 * Proposition 4.1 of Shirzad 2024, which has no biases, would not). */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "balance.h"
#include "prove.h"
#include <math.h>

#define RIDGE    1e-10 /* of the largest eigenvalue: directions that the data never takes */
#define ROUNDING 1e-12 /* of the largest singular value */

/* [h, 1]^T [h, 1] / n */
static pare_mat query_moment(pare_work *w, const pare_mat *h)
{
    const pare_mat one = mat_append_col(w, h, NULL);
    pare_mat c = mat_zeros(w, h->cols + 1, h->cols + 1);
    if (!w->st) pare_gemm(&c, 1 / (double)h->rows, &one, true, &one, false, 0);
    return c;
}

/* sum over rows and keys (h_j - mean)(h_j - mean)^T / m = (sum_j in_j h_j h_j^T
 * - sum_i deg_i mean_i mean_i^T) / m would cancel; so the differences are formed, a block of rows
 * at a time. */
static pare_mat key_covariance(pare_work *w, const pare_mat *h, const pare_graph *g)
{
    enum { EDGES = 4096 };
    const size_t d = h->cols, m = g->ptr[g->n];
    pare_mat c = mat_zeros(w, d, d);
    double *const mean = vec_zeros(w, d);
    size_t filled = 0, longest = 0;
    for (size_t i = 0; i < g->n; i++)
        if (g->ptr[i + 1] - g->ptr[i] > longest) longest = g->ptr[i + 1] - g->ptr[i];
    pare_mat rows = mat_zeros(w, EDGES + longest, d);
    for (size_t i = 0; !w->st && i < g->n; i++) {
        const size_t from = g->ptr[i], to = g->ptr[i + 1];
        for (size_t j = 0; j < d; j++) mean[j] = 0;
        for (size_t e = from; e < to; e++)
            for (size_t j = 0; j < d; j++) mean[j] += pare_row(h, g->idx[e])[j];
        for (size_t e = from; e < to; e++, filled++)
            for (size_t j = 0; j < d; j++)
                pare_row_mut(&rows, filled)[j] =
                    pare_row(h, g->idx[e])[j] - mean[j] / (double)(to - from);
        if (filled < EDGES && i + 1 < g->n) continue;
        const pare_mat block = pare_mat_part(&rows, 0, 0, filled, d);
        if (filled > 0) pare_gemm(&c, 1 / (double)m, &block, true, &block, false, 1);
        filled = 0;
    }
    return c;
}

/* The first d rows (or columns) of `from`, row r times sqrt(s_r), times `inverse`. */
static pare_mat factor(pare_work *w, const pare_mat *from, bool columns, const double *s, size_t d,
                       const pare_mat *inverse)
{
    pare_mat scaled = mat_zeros(w, d, inverse->rows);
    for (size_t r = 0; !w->st && r < d; r++)
        for (size_t j = 0; j < scaled.cols; j++)
            pare_row_mut(&scaled, r)[j] =
                sqrt(s[r]) * (columns ? pare_row(from, j)[r] : pare_row(from, r)[j]);
    return mat_mul(w, &scaled, false, inverse, false);
}

/* |Cq^1/2 (B - B^) Ck^1/2|_F of two heads. */
static double objective(pare_work *w, const net_head *a, const net_head *b, const sym_roots *cq,
                        const sym_roots *ck)
{
    const pare_mat qa = mat_append_col(w, &a->wq, a->bq), qb = mat_append_col(w, &b->wq, b->bq);
    pare_mat gap = mat_mul(w, &qa, true, &a->wk, false);
    if (!w->st) pare_gemm(&gap, -1, &qb, true, &b->wk, false, 1);
    const pare_mat whitened = mat_mul3(w, &cq->root, false, &gap, &ck->root, false);
    return w->st ? NAN : fabs(a->scale) * pare_mat_fro_est(&whitened);
}

/* Cq^1/2 B Ck^1/2 */
static pare_mat whitened_scores(pare_work *w, const net_head *hd, const sym_roots *cq,
                                const sym_roots *ck)
{
    const pare_mat wq = mat_append_col(w, &hd->wq, hd->bq),
                   form = mat_mul(w, &wq, true, &hd->wk, false);
    return mat_mul3(w, &cq->root, false, &form, &ck->root, false);
}

double *qk_singular_values(pare_work *w, size_t *n, const net_head *hd, const pare_mat *h,
                           const pare_graph *g)
{
    const pare_mat moment = query_moment(w, h), within = key_covariance(w, h, g);
    const sym_roots cq = sym_roots_of(w, &moment, RIDGE), ck = sym_roots_of(w, &within, RIDGE);
    const pare_mat whitened = whitened_scores(w, hd, &cq, &ck);
    const svd_factors s = svd_of(w, &whitened);
    for (size_t i = 0; !w->st && i < s.n; i++) s.s[i] *= fabs(hd->scale);
    *n = w->st ? 0 : s.n;
    return s.s;
}

/* ---- enclosed ------------------------------------------------------------------------------- */

/* What fl(left middle right) may be off by, where `middle` itself is off by `off` (|.|_F). */
static pare_ub sandwich_off(const pare_mat *left, const pare_mat *middle, pare_ub off,
                            const pare_mat *right)
{
    const pare_ub l = fro_norm(left), m = fro_norm(middle), r = fro_norm(right);
    const pare_ub first = pare_ub_fma(l, off, product_rounding(left->cols, l, m));
    /* |fl(left middle)| <= |left||middle| + its own rounding */
    const pare_ub inner = pare_ub_add(pare_ub_mul(l, m), product_rounding(left->cols, l, m));
    return pare_ub_fma(first, r, product_rounding(right->rows, inner, r));
}

qk_bounds qk_bounds_of(pare_work *w, const net_head *a, const net_head *b, const pare_mat *h,
                       const pare_graph *g)
{
    qk_bounds out = {.reached = pare_ub_inf()};
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat moment = query_moment(w, h), within = key_covariance(w, h, g);
    const sym_roots cq = sym_roots_of(w, &moment, RIDGE), ck = sym_roots_of(w, &within, RIDGE);
    const pare_mat qa = mat_append_col(w, &a->wq, a->bq), qb = mat_append_col(w, &b->wq, b->bq);
    const pare_mat form = mat_mul(w, &qa, true, &a->wk, false);
    pare_mat gap = mat_copy(w, &form);
    if (!w->st) pare_gemm(&gap, -1, &qb, true, &b->wk, false, 1);
    const pare_mat whitened = mat_mul3(w, &cq.root, false, &form, &ck.root, false);
    const pare_mat lost = mat_mul3(w, &cq.root, false, &gap, &ck.root, false);
    const singular_bounds s = singular_bounds_of(w, &whitened);
    if (!w->st) {
        const pare_ub own = product_rounding(qa.rows, fro_norm(&qa), fro_norm(&a->wk));
        const pare_ub other = product_rounding(qb.rows + 2, fro_norm(&qb), fro_norm(&b->wk));
        const pare_ub sum = product_rounding(qb.rows + 2, fro_norm(&form), pare_ub_exact(1));
        const pare_ub off_form = sandwich_off(&cq.root, &form, own, &ck.root);
        const pare_ub off_gap =
            sandwich_off(&cq.root, &gap, pare_ub_add(own, pare_ub_add(other, sum)), &ck.root);
        double squares = 0;
        for (size_t i = b->wq.rows; i < s.n; i++) squares += s.low[i] * s.low[i];
        /* Products, sums and the root round at most n + 2 times, by 2^-53 each. */
        const double tail =
            isfinite(squares) ? sqrt(squares) * (1 - (double)(s.n + 4) * 0x1p-50) : 0;
        const double low = tail - off_form.v, scale = fabs(a->scale);
        if (a->scale == b->scale)
            out.reached = pare_ub_mul(pare_ub_exact(scale), pare_ub_add(fro_norm(&lost), off_gap));
        /* As a certificate writes it: one part in 1e4 lower, for the last bits of another CPU. */
        out.least = low > 0 ? scale * low * (1 - 1e-4) : 0;
    }
    pare_arena_reset(w->arena, mark);
    return out;
}

net_head qk_optimal(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g,
                    size_t d, qk_fit *fit)
{
    net_head out = *hd;
    const pare_mat moment = query_moment(w, h), within = key_covariance(w, h, g);
    const sym_roots cq = sym_roots_of(w, &moment, RIDGE), ck = sym_roots_of(w, &within, RIDGE);
    const pare_mat whitened = whitened_scores(w, hd, &cq, &ck);
    const svd_factors s = svd_of(w, &whitened);
    if (w->st) return out;
    const size_t k = d < s.n ? d : s.n;
    pare_mat q = factor(w, &s.u, true, s.s, k, &cq.inverse);
    out.wk = factor(w, &s.vt, false, s.s, k, &ck.inverse);
    balance_pair(w, &q, &out.wk); /* a small spread of the keys makes their map huge */
    out.wq = mat_first_cols(w, &q, h->cols);
    out.bq = vec_zeros(w, k);
    for (size_t i = 0; !w->st && i < k; i++) out.bq[i] = pare_row(&q, i)[h->cols];
    if (!fit || w->st) return out;
    double tail = 0, head = 0;
    for (size_t r = 0; r < s.n; r++) *(r < k ? &head : &tail) += s.s[r] * s.s[r];
    fit->rank = svd_rank(&s, ROUNDING);
    fit->least = fabs(hd->scale) * sqrt(tail);
    fit->total = fabs(hd->scale) * sqrt(head + tail);
    fit->objective = objective(w, hd, &out, &cq, &ck);
    return out;
}

net_head qk_reduced(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g,
                    size_t d, pare_width_head *note)
{
    qk_fit fit = {0, NAN, NAN, NAN};
    const net_head out = qk_optimal(w, hd, h, g, d, &fit);
    const double *const before = head_scores(w, hd, h, g);
    const double *const after = head_scores(w, &out, h, g);
    if (w->st) return out;
    note->scores_est = score_half_range(before, after, g);
    note->objective_est = fit.objective;
    note->least_est = fit.least;
    return out;
}

/* ---- without loss --------------------------------------------------------------------------- */

net_head qk_exact(pare_work *w, const net_head *hd, const basis *b)
{
    net_head out = *hd;
    const pare_mat keys = mat_mul(w, &hd->wk, false, &b->u, false);
    const pare_mat queries = mat_mul(w, &hd->wq, false, &b->u, false);
    const double *const shift = mat_vec(w, &hd->wq, false, b->mu, hd->bq);
    const svd_factors s = svd_of(w, &keys);
    if (w->st) return out;
    const size_t rank = svd_rank(&s, ROUNDING);
    const pare_mat p = mat_first_cols(w, &s.u, rank > 0 ? rank : 1);
    out.wq = mat_mul(w, &p, true, &queries, false);
    out.wk = mat_mul(w, &p, true, &keys, false);
    out.bq = mat_vec(w, &p, true, shift, NULL);
    return out;
}
