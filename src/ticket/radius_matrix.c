/* radius_matrix.c - matrices known up to a radius in the Frobenius norm.
 *
 * With |A - A'| <= r, |B - B'| <= s (all norms Frobenius, A' and B' the midpoints, n the inner
 * length) and C = fl(A' B'),
 *     |A B - C| <= gamma_n |A'||B'| + |A'| s + r (|B'| + s) + n rows cols 2^-1074,
 * for any order of summation. Sums and multiples are off by u times the length of what was
 * computed. A product that leaves the range has radius +inf, and so have its norms. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "radius_matrix.h"
#include <math.h>
#include <string.h>

static const pare_ub nothing = {0};

rmat rmat_new(pare_work *p, size_t rows, size_t cols)
{
    rmat m = {{0}, nothing};
    if (!p->st) p->st = pare_stopped(p->exec, p->err);
    if (p->st) return m;
    m.mid = pare_mat_new(p->arena, rows, cols);
    if (!m.mid.v) pare_work_keep(p, pare_no_memory(p->err));
    return m;
}

rmat rmat_weight(pare_work *p, const pare_weight *w, size_t r, size_t c, size_t rows, size_t cols)
{
    rmat m = rmat_new(p, rows, cols);
    if (!p->st && pare_has(w)) pare_weight_widen(&m.mid, w, r, c);
    return m;
}

rmat rmat_column(pare_work *p, const pare_weight *w, size_t at, size_t n)
{
    rmat m = rmat_new(p, n, 1);
    for (size_t i = 0; !p->st && pare_has(w) && i < n; i++) m.mid.v[i] = pare_weight_at(w, at + i);
    return m;
}

rmat rmat_identity(pare_work *p, size_t n)
{
    rmat m = rmat_new(p, n, n);
    for (size_t i = 0; !p->st && i < n; i++) pare_row_mut(&m.mid, i)[i] = 1;
    return m;
}

rmat rmat_beside(pare_work *p, const rmat *a, const rmat *b)
{
    if (p->st) return (rmat){{0}, nothing};
    const size_t left = a->mid.cols, right = b->mid.cols;
    PARE_ASSERT(a->mid.rows == b->mid.rows);
    rmat m = rmat_new(p, a->mid.rows, left + right);
    for (size_t i = 0; !p->st && i < m.mid.rows; i++) {
        double *const to = pare_row_mut(&m.mid, i);
        memcpy(to, pare_row(&a->mid, i), left * sizeof *to);
        memcpy(to + left, pare_row(&b->mid, i), right * sizeof *to);
    }
    m.off = pare_ub_add(a->off, b->off);
    return m;
}

rmat rmat_part(const rmat *a, size_t r, size_t c, size_t rows, size_t cols)
{
    const rmat none = {{0}, nothing};
    return a->mid.v ? (rmat){pare_mat_part(&a->mid, r, c, rows, cols), a->off} : none;
}

/* ---- norms ----------------------------------------------------------------------------------- */

static bool all_finite(const pare_mat *m)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            if (!isfinite(pare_row(m, i)[j])) return false;
    return true;
}

static pare_ub row_norm(const pare_mat *m, size_t i)
{
    const pare_weight row = {PARE_F64, 1, m->cols, pare_row(m, i)};
    return m->cols ? pare_norm_fro(&row) : nothing;
}

/* Of the midpoints. */
static pare_ub fro(const pare_mat *m)
{
    pare_ub sum = nothing;
    if (m->ld == m->cols && m->rows * m->cols > 0) {
        const pare_weight w = {PARE_F64, m->rows, m->cols, m->v};
        return pare_norm_fro(&w);
    }
    for (size_t i = 0; i < m->rows; i++) {
        const pare_ub r = row_norm(m, i);
        sum = pare_ub_fma(r, r, sum);
    }
    return pare_ub_sqrt(sum);
}

pare_ub rmat_fro(const rmat *a)
{
    return a->mid.v ? pare_ub_add(fro(&a->mid), a->off) : pare_ub_inf();
}

pare_ub rmat_max(const rmat *a)
{
    pare_ub most = nothing;
    if (!a->mid.v) return pare_ub_inf();
    for (size_t i = 0; i < a->mid.rows; i++)
        for (size_t j = 0; j < a->mid.cols; j++)
            most = pare_ub_max(most, pare_ub_exact(pare_row(&a->mid, i)[j]));
    return pare_ub_add(most, a->off);
}

pare_ub rmat_max_row2(const rmat *a)
{
    pare_ub most = nothing;
    if (!a->mid.v) return pare_ub_inf();
    for (size_t i = 0; i < a->mid.rows; i++) most = pare_ub_max(most, row_norm(&a->mid, i));
    return pare_ub_add(most, a->off);
}

/* Without gaps between the rows. */
static pare_mat packed(pare_work *p, const pare_mat *m)
{
    if (m->ld == m->cols) return *m;
    const rmat copy = rmat_new(p, m->rows, m->cols);
    for (size_t i = 0; !p->st && i < m->rows; i++)
        memcpy(copy.mid.v + i * m->cols, pare_row(m, i), m->cols * sizeof(double));
    return copy.mid;
}

pare_ub rmat_two(pare_work *p, const rmat *a)
{
    if (p->st || !a->mid.v) return pare_ub_inf();
    pare_ub norm = nothing;
    if (a->mid.rows == 0 || a->mid.cols == 0) return a->off;
    const pare_ub size = fro(&a->mid);
    if (a->mid.rows == 1 || a->mid.cols == 1 || size.v == 0) return pare_ub_add(size, a->off);
    if (isinf(a->off.v) || !all_finite(&a->mid)) return pare_ub_inf();
    const pare_mark mark = pare_arena_mark(p->arena);
    const pare_mat m = packed(p, &a->mid);
    const pare_weight w = {PARE_F64, m.rows, m.cols, m.v};
    pare_err why = {0};
    if (!p->st) {
        const pare_status st = pare_norm_spectral(&norm, &w, p->arena, &why);
        if (st == PARE_ERR_MEMORY) pare_work_keep(p, pare_no_memory(p->err));
        if (st) norm = pare_ub_inf(); /* what cannot be factored has its Frobenius norm still */
    }
    pare_arena_reset(p->arena, mark);
    return p->st ? pare_ub_inf() : pare_ub_add(pare_ub_min(norm, size), a->off);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* One rounding of everything that was computed. */
static pare_ub rounded(const pare_mat *m)
{
    const pare_ub size = fro(m);
    return isinf(size.v) ? size : pare_ub_mul(pare_ub_exact(PARE_UNIT_F64), size);
}

rmat rmat_scaled(pare_work *p, const rmat *a, double s)
{
    if (p->st || s == 1) return *a;
    rmat m = rmat_new(p, a->mid.rows, a->mid.cols);
    for (size_t i = 0; !p->st && i < m.mid.rows; i++)
        for (size_t j = 0; j < m.mid.cols; j++)
            pare_row_mut(&m.mid, i)[j] = s * pare_row(&a->mid, i)[j];
    const pare_ub lost = pare_ub_mul(pare_ub_exact((double)m.mid.rows * (double)m.mid.cols),
                                     pare_ub_exact(0x1p-1074)); /* below the smallest numbers */
    m.off = pare_ub_fma(pare_ub_exact(s), a->off, pare_ub_add(rounded(&m.mid), lost));
    return m;
}

static rmat combined(pare_work *p, const rmat *a, const rmat *b, double sign)
{
    if (p->st) return (rmat){{0}, nothing};
    PARE_ASSERT(a->mid.rows == b->mid.rows && a->mid.cols == b->mid.cols);
    rmat m = rmat_new(p, a->mid.rows, a->mid.cols);
    for (size_t i = 0; !p->st && i < m.mid.rows; i++)
        for (size_t j = 0; j < m.mid.cols; j++)
            pare_row_mut(&m.mid, i)[j] = pare_row(&a->mid, i)[j] + sign * pare_row(&b->mid, i)[j];
    m.off = pare_ub_add(pare_ub_add(a->off, b->off), rounded(&m.mid));
    return m;
}

rmat rmat_sum(pare_work *p, const rmat *a, const rmat *b)
{
    return combined(p, a, b, 1);
}

rmat rmat_diff(pare_work *p, const rmat *a, const rmat *b)
{
    return combined(p, a, b, -1);
}

rmat rmat_mul(pare_work *p, const rmat *a, bool transpose, const rmat *b)
{
    if (p->st) return (rmat){{0}, nothing};
    const size_t rows = transpose ? a->mid.cols : a->mid.rows,
                 n = transpose ? a->mid.rows : a->mid.cols;
    PARE_ASSERT(n == b->mid.rows);
    rmat m = rmat_new(p, rows, b->mid.cols);
    if (p->st) return m;
    if (n > 0 && rows > 0 && b->mid.cols > 0)
        pare_gemm(&m.mid, 1, &a->mid, transpose, &b->mid, false, 0);
    const pare_ub fa = fro(&a->mid), fb = fro(&b->mid);
    const pare_ub tiny = pare_ub_mul(pare_ub_exact((double)rows * (double)b->mid.cols),
                                     pare_ub_exact((double)n * 0x1p-1074));
    pare_ub off = pare_ub_fma(pare_gamma(n + 1, PARE_UNIT_F64), pare_ub_mul(fa, fb), tiny);
    off = pare_ub_fma(fa, b->off, off);
    m.off = pare_ub_fma(a->off, pare_ub_add(fb, b->off), off);
    if (!all_finite(&m.mid)) m.off = pare_ub_inf();
    return m;
}
