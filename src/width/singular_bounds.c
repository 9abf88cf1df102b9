/* singular_bounds.c - all singular values of a matrix, enclosed: LAPACK's, with their residuals.
 *
 * For any U (m x k), S = diag(s) >= 0, V (n x k), k = min(m, n), and E = A - U S V^T:
 *
 *     s_i smin(U) smin(V) - |E|_F  <=  sigma_i(A)  <=  s_i |U|_2 |V|_2 + |E|_F,
 *
 * and with D = U^T U - I:
 *
 *     1 - |D|_F <= smin(U)^2,     |U|_2^2 <= 1 + |D|_F.
 *
 * The three residuals are
 * computed; a product with inner dimension p is off by at most gamma_{p+2} |A|_F |B|_F, and by what
 * its terms lose below the smallest normal number: at most 2^-1022 each, p of them in an entry, and
 * no memory holds 2^48 entries, so (p + 2) 2^-990 is more than their Frobenius norm. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "prove.h"
#include <math.h>

pare_ub fro_norm(const pare_mat *m)
{
    pare_ub sum = pare_ub_exact(0);
    if (m->ld == m->cols) return vector_norm(m->v, m->rows * m->cols);
    for (size_t i = 0; i < m->rows; i++) {
        const pare_ub row = vector_norm(pare_row(m, i), m->cols);
        sum = pare_ub_fma(row, row, sum);
    }
    return pare_ub_sqrt(sum);
}

/* The plain sum where no square over- or underflows: a term is rounded at most n + 4 times. */
pare_ub vector_norm(const double *v, size_t n)
{
    const pare_weight row = {PARE_F64, 1, n, v};
    const double sum = pare_squares(v, n);
    if (!(sum > 0x1p-800 && sum < 0x1p1000)) return n ? pare_norm_fro(&row) : pare_ub_exact(0);
    const pare_ub lost = pare_ub_mul(pare_ub_exact((double)n), pare_ub_exact(0x1p-1022));
    const pare_ub all = pare_ub_add(pare_ub_exact(sum), lost);
    return pare_ub_sqrt(pare_ub_fma(pare_gamma(n + 4, PARE_UNIT_F64), all, all));
}

pare_ub product_rounding(size_t inner, pare_ub a, pare_ub b)
{
    const pare_ub lost = pare_ub_mul(pare_ub_exact((double)inner + 2), pare_ub_exact(0x1p-990));
    return pare_ub_fma(pare_gamma(inner + 2, PARE_UNIT_F64), pare_ub_mul(a, b), lost);
}

/* A computed difference of doubles is within one unit of the exact one. */
static pare_ub difference_norm(const pare_mat *m)
{
    return pare_ub_mul(fro_norm(m), pare_ub_exact(1 + 0x1p-51));
}

/* |Q^T Q - I|_F for q with k columns (or rows, `rows` true). */
static pare_ub orthogonality_error(pare_work *w, const pare_mat *q, bool rows)
{
    pare_mat g = mat_mul(w, q, !rows, q, rows);
    if (w->st) return pare_ub_inf();
    for (size_t i = 0; i < g.rows; i++) pare_row_mut(&g, i)[i] -= 1;
    const pare_ub size = fro_norm(q);
    return pare_ub_add(difference_norm(&g), product_rounding(rows ? q->cols : q->rows, size, size));
}

/* |A - U S V^T|_F */
static pare_ub svd_residual(pare_work *w, const pare_mat *a, const svd_factors *f)
{
    pare_mat us = mat_copy(w, &f->u), e = mat_copy(w, a);
    if (w->st) return pare_ub_inf();
    for (size_t i = 0; i < us.rows; i++)
        for (size_t j = 0; j < us.cols; j++) pare_row_mut(&us, i)[j] *= f->s[j];
    const pare_ub left = fro_norm(&us), right = fro_norm(&f->vt);
    pare_gemm(&e, -1, &us, false, &f->vt, false, 1);
    /* A is a term of the same sums; the scaling rounds once more. */
    const pare_ub parts = pare_ub_add(product_rounding(f->n + 2, left, right),
                                      product_rounding(f->n + 2, fro_norm(a), pare_ub_exact(1)));
    return pare_ub_add(difference_norm(&e), parts);
}

singular_bounds singular_bounds_of(pare_work *w, const pare_mat *a)
{
    singular_bounds out = {.n = a->rows < a->cols ? a->rows : a->cols};
    const pare_mat whole = mat_copy(w, a); /* without gaps */
    const svd_factors f = svd_of(w, &whole);
    out.low = vec_zeros(w, out.n);
    out.high = pare_work_alloc(w, out.n, sizeof *out.high);
    const pare_ub du = orthogonality_error(w, &f.u, false),
                  dv = orthogonality_error(w, &f.vt, true), e = svd_residual(w, &whole, &f);
    if (w->st) return (singular_bounds){0};
    const pare_ub one = pare_ub_exact(1);
    const pare_ub grow = pare_ub_sqrt(pare_ub_mul(pare_ub_add(one, du), pare_ub_add(one, dv)));
    for (size_t i = 0; i < out.n; i++) {
        out.high[i] = pare_ub_fma(pare_ub_exact(f.s[i]), grow, e);
        if (!(du.v < 1) || !(dv.v < 1)) continue;
        const double low = f.s[i] * sqrt(1 - du.v) * sqrt(1 - dv.v) * (1 - 0x1p-48) - e.v;
        if (low > 0) out.low[i] = low * (1 - 0x1p-48);
    }
    return out;
}

pare_ub spectral_norm(pare_work *w, const pare_mat *m)
{
    if (w->st) return pare_ub_inf();
    if (!m->v || m->rows == 0 || m->cols == 0) return pare_ub_exact(0);
    const pare_mark mark = pare_arena_mark(w->arena);
    const singular_bounds s = singular_bounds_of(w, m);
    const pare_ub norm = w->st ? pare_ub_inf() : s.high[0];
    pare_arena_reset(w->arena, mark);
    return norm;
}
