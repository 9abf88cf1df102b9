/* Two layers of a ReLU source in the place of one (Lemma 2 of the paper, made explicit; spec
 * section 6.1).
 *
 * Claim. Let every row of B (n x d) have at most one entry that is not 0, and no bias there; rows
 * of zeros may have one. Then for all x, with x = x+ - x-, B+ = max(B, 0), B- = min(B, 0),
 *     W x + b - (A relu(B x + c) + a) = E+ x+ - E- x- + e,
 *     E+ = W - A B+,   E- = W - A B-,   e = b - a - A relu(c),
 * so its length is at most |[E+, -E-]| |x| + |e|, as |(x+, x-)| = |x|; |E+| |x| + |e| where x has
 * no negative entry (behind another relu).
 * Proof. relu(B_kj x_j) = B+_kj x+_j - B-_kj x-_j: a unit passes on one sign of one input.  []
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
static rmat one_sign(proof *p, const pare_weight *w, size_t rows, size_t cols, double sign)
{
    const rmat m = pare_has(w) && w->cols == cols ? rmat_weight(p, w, 0, 0, rows, cols)
                                                  : rmat_column(p, w, 0, rows);
    for (size_t i = 0; !p->st && i < m.mid.rows * m.mid.cols; i++)
        if (m.mid.v[i] * sign < 0) m.mid.v[i] = 0;
    return m;
}

static rmat left_over(proof *p, const rmat *w, const rmat *a, const rmat *b)
{
    const rmat ab = rmat_mul(p, a, false, b);
    return rmat_diff(p, w, &ab);
}

dense_sizes relu_pair_sizes(proof *p, const pare_dense *f, const pare_dense *inner,
                            const pare_dense *outer, bool after_relu, char *why)
{
    const size_t o = f->w.rows, d = f->w.cols, n = inner->w.rows;
    const pare_ub unknown = pare_ub_inf();
    dense_sizes s = {.g = {unknown, unknown, unknown}, .row_g = unknown, .max_g = unknown};
    size_t bad = 0;
    if (outer->w.rows != o || inner->w.cols != d || outer->w.cols != n) {
        bounds_refuse(why, "two layers of the ticket do not stand for one of the target");
        return s;
    }
    if (!separates(inner, &bad)) {
        bounds_refuse(why, "hidden unit %zu of a ReLU ticket reads more than one input", bad);
        return s;
    }
    const pare_mark mark = pare_arena_mark(p->a);
    const rmat w = rmat_weight(p, &f->w, 0, 0, o, d), b = rmat_column(p, &f->b, 0, o);
    const rmat a = rmat_weight(p, &outer->w, 0, 0, o, n), bias = rmat_column(p, &outer->b, 0, o);
    const rmat pos = one_sign(p, &inner->w, n, d, 1), neg = one_sign(p, &inner->w, n, d, -1);
    const rmat c = one_sign(p, &inner->b, n, 1, 1), e_c = rmat_mul(p, &a, false, &c);
    const rmat ep = left_over(p, &w, &a, &pos), en = left_over(p, &w, &a, &neg);
    const rmat minus = rmat_scaled(p, &en, -1), both = rmat_beside(p, &ep, &minus);
    const rmat without = rmat_diff(p, &b, &bias), e = rmat_diff(p, &without, &e_c);
    s.f = (affine){rmat_two(p, &w), rmat_fro(&b), unknown};
    s.e = (affine){after_relu ? rmat_two(p, &ep) : rmat_two(p, &both), rmat_fro(&e), unknown};
    s.row_f = rmat_max_row2(&w);
    s.max_f = rmat_max(&b);
    s.w_max = rmat_max(&w);
    s.e_max = after_relu ? rmat_max(&ep) : rmat_max(&both);
    pare_arena_reset(p->a, mark);
    return s;
}
