/* relu_pair.c - bounds for two layers of a ReLU source that replace one layer (Otsuka 2025, Lemma
 * 2, made explicit; docs/theory/ticket.md "ReLU layers (Lemma 2)"; found by fit_relu.c).
 *
 * Claim. Let every row of B (n x d) have at most one entry that is not 0, and no bias there; rows
 * of zeros may have one. Then for all x, with x = x+ - x-, B+ = max(B, 0), B- = min(B, 0),
 *     A relu(B x + c) + a = W+ x+ - W- x- + g,      W+ = A B+,  W- = A B-,  g = a + A relu(c)
 *     W x + b - (A relu(B x + c) + a) = E+ x+ - E- x- + e,
 *     E+ = W - W+,   E- = W - W-,   e = b - g.
 * So its length is at most |[E+, -E-]| |x| + |e|, as |(x+, x-)| = |x|; |E+| |x| + |e| where x has
 * no negative entry (behind another relu). And two rows x, y are moved apart by at most
 * |[W+, -W-]| |x - y|, since (x+, x-) moves by no more than x.
 * Proof. relu(B_kj x_j) = B+_kj x+_j - B-_kj x-_j: a unit passes on one sign of one input. For
 * numbers of unlike signs (x - 0)^2 + (0 - |y|)^2 <= (x + |y|)^2.  []
 * A unit that reads two inputs does not separate: then the two layers are bounded as such, and that
 * is refused here. */
#include "bounds.h"
#include <math.h>

/* Rows of B with one input and no bias, or with a bias alone. */
static bool separates(const pare_dense *inner, size_t *bad)
{
    const size_t n = inner->w.rows, d = inner->w.cols;
    for (size_t k = 0; k < n; k++) {
        size_t reads = 0;
        for (size_t j = 0; j < d; j++) reads += pare_weight_at(&inner->w, k * d + j) != 0;
        const bool biased = pare_has(&inner->b) && pare_weight_at(&inner->b, k) != 0;
        *bad = k;
        if (reads + (biased ? 1 : 0) > 1) return false;
    }
    return true;
}

/* max(B, 0) or min(B, 0), and relu(c) as a column. */
static rmat one_sign(pare_work *p, const pare_weight *w, size_t rows, size_t cols, double sign)
{
    const rmat m = pare_has(w) && w->cols == cols ? rmat_weight(p, w, 0, 0, rows, cols)
                                                  : rmat_column(p, w, 0, rows);
    for (size_t i = 0; !p->st && i < m.mid.rows * m.mid.cols; i++)
        if (m.mid.v[i] * sign < 0) m.mid.v[i] = 0;
    return m;
}

/* s A B, B of one sign. */
static rmat passed_on(pare_work *p, const rmat *a, const pare_dense *inner, double sign, double s)
{
    const rmat b = one_sign(p, &inner->w, inner->w.rows, inner->w.cols, sign);
    const rmat ab = rmat_mul(p, a, false, &b);
    return rmat_scaled(p, &ab, s);
}

relu_maps relu_pair_maps(pare_work *p, const pare_dense *f, const pare_dense *inner,
                         const pare_dense *outer, bool after_relu)
{
    const size_t o = f->w.rows, d = f->w.cols, n = inner->w.rows;
    relu_maps m = {.f = rmat_weight(p, &f->w, 0, 0, o, d), .f_bias = rmat_column(p, &f->b, 0, o)};
    const rmat a = rmat_weight(p, &outer->w, 0, 0, o, n), bias = rmat_column(p, &outer->b, 0, o);
    const rmat c = one_sign(p, &inner->b, n, 1, 1), ac = rmat_mul(p, &a, false, &c);
    const rmat pos = passed_on(p, &a, inner, 1, 1), ep = rmat_diff(p, &m.f, &pos);
    m.g_bias = rmat_sum(p, &bias, &ac);
    m.e_bias = rmat_diff(p, &m.f_bias, &m.g_bias);
    m.g = pos;
    m.e = ep;
    if (after_relu) return m;
    const rmat neg = passed_on(p, &a, inner, -1, -1), sum = rmat_sum(p, &m.f, &neg);
    const rmat en = rmat_scaled(p, &sum, -1); /* -E- = -(W - W-) = -(W + neg) */
    m.g = rmat_beside(p, &pos, &neg);
    m.e = rmat_beside(p, &ep, &en);
    return m;
}

dense_sizes relu_pair_sizes(pare_work *p, const pare_dense *f, const pare_dense *inner,
                            const pare_dense *outer, bool after_relu, char *why)
{
    dense_sizes s = {0};
    size_t bad = 0;
    if (outer->w.rows != f->w.rows || inner->w.cols != f->w.cols || outer->w.cols != inner->w.rows)
        bounds_refuse(why, "two layers of the ticket do not stand for one of the target");
    else if (!separates(inner, &bad))
        bounds_refuse(why, "hidden unit %zu of a ReLU ticket reads more than one input", bad);
    if (*why) return s;
    const pare_mark mark = pare_arena_mark(p->arena);
    const relu_maps m = relu_pair_maps(p, f, inner, outer, after_relu);
    s.f = affine_sizes(p, &m.f, &m.f_bias);
    s.g = affine_sizes(p, &m.g, &m.g_bias);
    s.e = affine_sizes(p, &m.e, &m.e_bias);
    s.row_f = rmat_max_row2(&m.f);
    s.row_g = rmat_max_row2(&m.g);
    s.max_f = rmat_max(&m.f_bias);
    s.max_g = rmat_max(&m.g_bias);
    s.w_max = rmat_max(&m.f);
    s.e_max = rmat_max(&m.e);
    pare_arena_reset(p->arena, mark);
    return s;
}
