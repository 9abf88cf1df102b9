/* imat.c - interval matrices by midpoint and radius.
 *
 * Product. With |A - A'| <= r, |B - B'| <= s and C = fl(A' B'), n the inner length,
 *     |A B - C| <= gamma_n |A'||B'| + |A'| s + r (|B'| + s) + n 2^-1074
 *               <= (|A'| + r)(s + gamma |B'|) + r |B'| + n 2^-1074
 * entry by entry, for any order of summation. The right side is a sum of products of nonnegative
 * numbers, computed in f64 and raised by the factor 1 / (1 - gamma) of its own roundings. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "imat.h"
#include <float.h>
#include <math.h>
#include <string.h>

pare_mat work_matrix(pare_work *k, size_t r, size_t c)
{
    if (!k->st) pare_work_keep(k, pare_stopped(k->exec, k->err)); /* every step allocates */
    if (k->st) return (pare_mat){0};
    const pare_mat m = pare_mat_new(k->arena, r, c);
    if (!m.v) pare_work_keep(k, pare_no_memory(k->err));
    return m.v ? m : (pare_mat){0};
}

pare_weight work_weight(pare_work *k, const double *v, size_t rows, size_t cols, pare_dtype t)
{
    void *const data = pare_work_alloc(k, rows * cols + 1, pare_dtype_size(t));
    for (size_t i = 0; data && v && i < rows * cols; i++) {
        if (t == PARE_F32)
            ((float *)data)[i] = (float)v[i];
        else
            ((double *)data)[i] = v[i];
    }
    return (pare_weight){t, rows, cols, data};
}

static imat new_imat(pare_work *k, size_t rows, size_t cols, bool radii)
{
    imat m = {work_matrix(k, rows, cols), {0}};
    if (radii) m.rad = work_matrix(k, rows, cols);
    return k->st ? (imat){0} : m;
}

/* One rounding above a nonnegative number; nan is inf. */
static double above(double x)
{
    return x == 0 ? 0 : x <= DBL_MAX ? nextafter(x, INFINITY) : INFINITY;
}

static double add_up(double x, double y)
{
    return pare_ub_add((pare_ub){x}, (pare_ub){y}).v;
}

/* ---- making ---------------------------------------------------------------------------------- */

imat imat_zero(pare_work *k, size_t rows, size_t cols)
{
    return new_imat(k, rows, cols, false);
}

imat imat_identity(pare_work *k, size_t n)
{
    imat m = new_imat(k, n, n, false);
    for (size_t i = 0; !k->st && i < n; i++) pare_row_mut(&m.mid, i)[i] = 1;
    return m;
}

imat imat_transposed(pare_work *k, const imat *a)
{
    if (k->st) return (imat){0};
    imat m = new_imat(k, a->mid.cols, a->mid.rows, a->rad.v != NULL);
    for (size_t i = 0; !k->st && i < a->mid.rows; i++)
        for (size_t j = 0; j < a->mid.cols; j++) {
            pare_row_mut(&m.mid, j)[i] = pare_row(&a->mid, i)[j];
            if (a->rad.v) pare_row_mut(&m.rad, j)[i] = pare_row(&a->rad, i)[j];
        }
    return m;
}

imat imat_weight(pare_work *k, const pare_weight *w, size_t r, size_t c, size_t rows, size_t cols,
                 bool transpose)
{
    imat m = new_imat(k, rows, cols, false);
    if (!k->st && pare_has(w)) pare_weight_widen(&m.mid, w, r, c);
    return transpose ? imat_transposed(k, &m) : m;
}

imat imat_row(pare_work *k, const pare_weight *w, size_t at, size_t n)
{
    imat m = new_imat(k, 1, n, false);
    for (size_t j = 0; !k->st && pare_has(w) && j < n; j++) m.mid.v[j] = pare_weight_at(w, at + j);
    return m;
}

imat imat_part(const imat *a, size_t r, size_t c, size_t rows, size_t cols)
{
    imat m = {0};
    if (!a->mid.v) return m;
    m.mid = pare_mat_part(&a->mid, r, c, rows, cols);
    if (a->rad.v) m.rad = pare_mat_part(&a->rad, r, c, rows, cols);
    return m;
}

static void copy_mat(pare_mat *to, const pare_mat *from)
{
    for (size_t i = 0; i < from->rows; i++)
        memcpy(pare_row_mut(to, i), pare_row(from, i), from->cols * sizeof(double));
}

imat imat_copy(pare_work *k, const imat *a)
{
    if (k->st) return (imat){0};
    imat m = new_imat(k, a->mid.rows, a->mid.cols, a->rad.v != NULL);
    if (k->st) return m;
    copy_mat(&m.mid, &a->mid);
    if (a->rad.v) copy_mat(&m.rad, &a->rad);
    return m;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* s + gamma |B|, or gamma |B| alone, rounded up. */
static pare_mat widened_right(pare_work *k, const imat *b, double gamma)
{
    pare_mat m = work_matrix(k, b->mid.rows, b->mid.cols);
    for (size_t i = 0; !k->st && i < m.rows; i++)
        for (size_t j = 0; j < m.cols; j++) {
            const double g = above(gamma * fabs(pare_row(&b->mid, i)[j]));
            pare_row_mut(&m, i)[j] = b->rad.v ? add_up(g, pare_row(&b->rad, i)[j]) : g;
        }
    return m;
}

static pare_mat plain_abs(pare_work *k, const pare_mat *a)
{
    pare_mat m = work_matrix(k, a->rows, a->cols);
    for (size_t i = 0; !k->st && i < m.rows; i++)
        for (size_t j = 0; j < m.cols; j++) pare_row_mut(&m, i)[j] = fabs(pare_row(a, i)[j]);
    return m;
}

pare_mat imat_abs(pare_work *k, const imat *a)
{
    pare_mat m = k->st ? (pare_mat){0} : plain_abs(k, &a->mid);
    for (size_t i = 0; !k->st && a->rad.v && i < m.rows; i++)
        for (size_t j = 0; j < m.cols; j++)
            pare_row_mut(&m, i)[j] = add_up(pare_row(&m, i)[j], pare_row(&a->rad, i)[j]);
    return m;
}

static bool all_zero(const pare_mat *m)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            if (pare_row(m, i)[j] != 0) return false;
    return true;
}

static imat product(pare_work *k, const imat *a, const imat *b)
{
    const size_t n = a->mid.cols;
    imat c = new_imat(k, a->mid.rows, b->mid.cols, true);
    const double gamma = pare_gamma(n + 2, PARE_UNIT_F64).v;
    const pare_mat left = imat_abs(k, a), right = widened_right(k, b, gamma);
    if (k->st) return (imat){0};
    pare_gemm(&c.mid, 1, &a->mid, false, &b->mid, false, 0);
    pare_gemm(&c.rad, 1, &left, false, &right, false, 0);
    if (a->rad.v) {
        const pare_mat size = plain_abs(k, &b->mid);
        if (k->st) return (imat){0};
        pare_gemm(&c.rad, 1, &a->rad, false, &size, false, 1);
    }
    const double raise = 1 + 4 * gamma + 8 * PARE_UNIT_F64, under = 4.0 * (double)n * 0x1p-1074;
    for (size_t i = 0; i < c.rad.rows * c.rad.cols; i++)
        c.rad.v[i] = above(above(c.rad.v[i] * raise) + under);
    return c;
}

imat imat_mul(pare_work *k, const imat *a, const imat *b)
{
    if (k->st) return (imat){0};
    PARE_ASSERT(a->mid.cols == b->mid.rows);
    const bool nothing = (!a->rad.v && all_zero(&a->mid)) || (!b->rad.v && all_zero(&b->mid));
    if (nothing) return imat_zero(k, a->mid.rows, b->mid.cols);
    return product(k, a, b);
}

/* a + sign b. Where the sum is exact (equal entries, zeros) no radius is added. */
static imat combined(pare_work *k, const imat *a, const imat *b, double sign)
{
    if (k->st) return (imat){0};
    PARE_ASSERT(a->mid.rows == b->mid.rows && a->mid.cols == b->mid.cols);
    imat c = new_imat(k, a->mid.rows, a->mid.cols, true);
    for (size_t i = 0; !k->st && i < c.mid.rows; i++)
        for (size_t j = 0; j < c.mid.cols; j++) {
            const double x = pare_row(&a->mid, i)[j], y = sign * pare_row(&b->mid, i)[j];
            const double s = x + y, part = s - x, lost = (x - (s - part)) + (y - part);
            double r = lost == 0 ? 0 : above(fabs(s) * PARE_UNIT_F64);
            if (a->rad.v) r = add_up(r, pare_row(&a->rad, i)[j]);
            if (b->rad.v) r = add_up(r, pare_row(&b->rad, i)[j]);
            pare_row_mut(&c.mid, i)[j] = s;
            pare_row_mut(&c.rad, i)[j] = isfinite(s) ? r : INFINITY;
        }
    return c;
}

imat imat_sum(pare_work *k, const imat *a, const imat *b)
{
    return combined(k, a, b, 1);
}

imat imat_diff(pare_work *k, const imat *a, const imat *b)
{
    return combined(k, a, b, -1);
}

imat imat_scaled(pare_work *k, const imat *a, double s)
{
    if (k->st) return (imat){0};
    imat row = new_imat(k, 1, a->mid.cols, false);
    for (size_t j = 0; !k->st && j < row.mid.cols; j++) row.mid.v[j] = s;
    return imat_scale_columns(k, a, &row);
}

imat imat_scale_columns(pare_work *k, const imat *a, const imat *row)
{
    if (k->st) return (imat){0};
    PARE_ASSERT(row->mid.rows == 1 && row->mid.cols == a->mid.cols);
    imat c = new_imat(k, a->mid.rows, a->mid.cols, true);
    for (size_t i = 0; !k->st && i < c.mid.rows; i++)
        for (size_t j = 0; j < c.mid.cols; j++) {
            const double x = pare_row(&a->mid, i)[j], s = row->mid.v[j], p = x * s;
            const pare_ub rx = {a->rad.v ? pare_row(&a->rad, i)[j] : 0};
            const pare_ub rs = {row->rad.v ? row->rad.v[j] : 0};
            const bool exact = x == 0 || s == 0 || fabs(s) == 1;
            pare_ub r = {exact ? 0 : above(fabs(p) * PARE_UNIT_F64 + 0x1p-1074)};
            r = pare_ub_fma(pare_ub_exact(x), rs, r);
            r = pare_ub_fma(pare_ub_exact(s), rx, r);
            pare_row_mut(&c.mid, i)[j] = p;
            pare_row_mut(&c.rad, i)[j] = pare_ub_fma(rx, rs, r).v;
        }
    return c;
}

/* ---- norms ----------------------------------------------------------------------------------- */

static pare_weight as_weight(const pare_mat *m)
{
    return (pare_weight){PARE_F64, m->rows, m->cols, m->v};
}

pare_ub imat_map_inf(pare_work *k, const imat *a)
{
    const pare_mat m = imat_abs(k, a);
    const pare_weight w = as_weight(&m);
    return k->st ? pare_ub_inf() : pare_norm_max_col(&w);
}

pare_ub imat_sum_abs(pare_work *k, const imat *a)
{
    const pare_mat m = imat_abs(k, a);
    pare_ub s = {0};
    for (size_t i = 0; !k->st && i < m.rows * m.cols; i++) s = pare_ub_add(s, (pare_ub){m.v[i]});
    return k->st ? pare_ub_inf() : s;
}

pare_ub imat_max_abs(pare_work *k, const imat *a)
{
    const pare_mat m = imat_abs(k, a);
    const pare_weight w = as_weight(&m);
    return k->st ? pare_ub_inf() : pare_norm_max(&w);
}

pare_ub imat_fro(pare_work *k, const imat *a)
{
    const pare_mat m = imat_abs(k, a);
    const pare_weight w = as_weight(&m);
    return k->st ? pare_ub_inf() : pare_norm_fro(&w);
}

/* |mid|_2 + |rad|_F; and never more than the norms that need no factorization. */
pare_ub imat_map_two(pare_work *k, const imat *a)
{
    const imat copy = imat_copy(k, a);
    if (k->st) return pare_ub_inf();
    const pare_weight mid = as_weight(&copy.mid), rad = as_weight(&copy.rad);
    pare_ub two = pare_ub_inf();
    size_t where; /* products of finite weights may have overflowed: nothing is known then */
    const pare_status st = pare_weight_finite(&mid, &where)
                               ? pare_norm_spectral(&two, &mid, k->arena, k->err)
                               : PARE_OK;
    if (st) pare_work_keep(k, st);
    if (copy.rad.v) two = pare_ub_add(two, pare_norm_fro(&rad));
    return k->st ? pare_ub_inf() : pare_ub_min(two, imat_fro(k, a));
}

pare_ub imat_form_inf(pare_work *k, const imat *a)
{
    const pare_ub two = imat_map_two(k, a), sum = imat_sum_abs(k, a);
    if (k->st) return pare_ub_inf();
    const pare_ub sides = pare_ub_sqrt(
        pare_ub_mul(pare_ub_exact((double)a->mid.rows), pare_ub_exact((double)a->mid.cols)));
    return pare_ub_min(sum, pare_ub_mul(sides, two));
}
