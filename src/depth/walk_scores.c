/* walk_scores.c - what is known of the scores of a head over tokens of a given reach: how far those
 * of one row are apart, how far two rows differ, how far a mean query moves them. Lemmas T and R
 * (walk_attention.c) make distances between rows of weights of it. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "walk.h"
#include <math.h>

pare_ub softmax_variation(pare_ub range)
{
    return pare_ub_tanh(pare_ub_mul(range, pare_ub_exact(0.25)));
}

pare_mat euclidean_norm_of_map(pare_work *k, const token_norm *in, const imat *m)
{
    const bool turned = in->kind == NORM_BOX && in->q.mid.v;
    const imat t = turned ? imat_mul(k, &in->back, m) : *m;
    if (k->st) return (pare_mat){0};
    pare_mat col = work_matrix(k, in->k, 1);
    pare_ub sum = {0};
    for (size_t i = 0; !k->st && in->kind != NORM_TWO && i < in->d; i++) {
        const imat row = imat_part(&t, i, 0, 1, t.mid.cols);
        const pare_ub size = imat_fro(k, &row);
        if (in->kind == NORM_BOX) col.v[i] = size.v;
        sum = pare_ub_add(sum, size);
    }
    if (k->st || in->kind == NORM_BOX) return col;
    const pare_ub two = imat_map_two(k, m), root = pare_ub_sqrt(pare_ub_exact((double)in->d));
    if (k->st) return col;
    col.v[0] = in->kind == NORM_TWO ? two.v : pare_ub_min(sum, pare_ub_mul(root, two)).v;
    return col;
}

static pare_ub length_of(pare_work *k, const imat *row, const pare_mat *col, const pare_mat *w)
{
    const pare_ub at_centre = imat_fro(k, row);
    const pare_mat more = up_mul(k, w, col);
    return k->st ? pare_ub_inf() : pare_ub_add(at_centre, (pare_ub){more.v[0]});
}

/* |q_i| or |k_j| of a rotary head: (c m + m0) and what w adds. */
pare_ub rotary_length(pare_work *k, const token_norm *at, const imat *m, const imat *m0,
                      const token_set *r)
{
    const imat moved = imat_mul(k, &r->c, m), row = imat_sum(k, &moved, m0);
    const pare_mat col = euclidean_norm_of_map(k, at, m);
    return length_of(k, &row, &col, &r->w);
}

/* size of c B + l as a functional, plus w |B|: what multiplies differences of keys. */
pare_mat slope(pare_work *k, const token_norm *at, const imat *b, const imat *l, const token_set *r)
{
    const imat moved = imat_mul(k, &r->c, b), row = imat_sum(k, &moved, l);
    const pare_mat centre = norm_of_functional(k, at, &row), form = norm_of_form(k, at, b);
    const pare_mat rest = up_mul(k, &r->w, &form);
    return up_sum(k, &centre, &rest);
}

static pare_ub turning_range(pare_work *k, const token_norm *at, const eff_head *h,
                             const token_set *r)
{
    const pare_ub q = rotary_length(k, at, &h->q, &h->q0, r);
    const pare_ub key = rotary_length(k, at, &h->k, &h->k0, r);
    return pare_ub_mul(pare_ub_exact(2 * fabs(h->scale)), pare_ub_mul(q, key));
}

pare_ub score_range(pare_work *k, const token_norm *at, const eff_head *h, const token_set *r)
{
    if (h->rotary) return turning_range(k, at, h, r);
    const pare_mat s = slope(k, at, &h->b, &h->l, r);
    return k->st ? pare_ub_inf() : up_dot(&s, &r->d);
}

/* d B d: how much the scores of two rows can differ beside what is constant in a row. */
pare_ub interaction(pare_work *k, const token_norm *at, const imat *b, const pare_mat *d)
{
    const pare_mat form = norm_of_form(k, at, b), half = up_mul(k, d, &form);
    return k->st ? pare_ub_inf() : up_dot(&half, d);
}

pare_ub contraction(pare_work *k, const token_norm *at, const eff_head *h, const token_set *r,
                    mask_facts s)
{
    const pare_ub one = pare_ub_exact(1);
    if (!s.full || h->rotary) return one;
    if (h->query != QUERY_EACH) return pare_ub_exact(0);
    return pare_ub_min(one, softmax_variation(interaction(k, at, &h->b, &r->d)));
}

/* With x_k = c_k + w_k (..), mu_k w_k the mean's distance from c_k and s_k w_k the standard
 * deviation, mu_k^2 + s_k^2 <= 1 (Bhatia and Davis), the covariance of the mean query's scores with
 * a token is at most the token's deviation times sum_j |c B + l|_j w_j + sum_ij |B_ij| w_i w_j mu_i
 * s_j, and mu_i s_j <= (mu_i^2 + s_j^2) / 2 makes the last sum at most half of sum_i max(row i,
 * column i) of the matrix |B_ij| w_i w_j. */
pare_ub mean_query(pare_work *k, const token_norm *at, const eff_head *h, const token_set *r)
{
    const token_norm box = at->kind == NORM_BOX ? *at : norm_plain(NORM_BOX, at->d);
    const imat moved = imat_mul(k, &r->c, &h->b), row = imat_sum(k, &moved, &h->l);
    const pare_mat form = norm_of_form(k, &box, &h->b), fixed = norm_of_functional(k, &box, &row);
    pare_ub sum = pare_ub_exact(0), half = pare_ub_exact(0);
    if (k->st) return pare_ub_inf();
    for (size_t i = 0; i < at->d; i++) {
        pare_ub across = pare_ub_exact(0), down = pare_ub_exact(0);
        const pare_ub wi = {r->w.v[at->k == 1 ? 0 : i]};
        for (size_t j = 0; j < at->d; j++) {
            const pare_ub wj = {r->w.v[at->k == 1 ? 0 : j]};
            across = pare_ub_fma((pare_ub){pare_row(&form, i)[j]}, wj, across);
            down = pare_ub_fma((pare_ub){pare_row(&form, j)[i]}, wj, down);
        }
        half = pare_ub_fma(wi, pare_ub_max(across, down), half);
        sum = pare_ub_fma(wi, (pare_ub){fixed.v[i]}, sum);
    }
    return pare_ub_fma(pare_ub_exact(0.5), half, sum);
}
