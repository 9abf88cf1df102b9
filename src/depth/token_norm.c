/* token_norm.c - see token_norm.h.
 *
 * Inverse of a basis. Let e >= |q q^T - I|_2, e < 1. Then q^-1 = q^T (q q^T)^-1 and
 *     |q^-1 - q^T|_2 <= |q|_2 e / (1 - e) <= sqrt(1 + e) e / (1 - e),
 * which bounds every entry of the difference. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "token_norm.h"
#include <math.h>

token_norm norm_plain(norm_kind kind, size_t d)
{
    return (token_norm){.kind = kind, .d = d, .k = kind == NORM_BOX ? d : 1};
}

token_norm norm_in_basis(pare_work *k, const pare_mat *q)
{
    token_norm r = norm_plain(NORM_BOX, q->rows);
    const imat basis = {*q, {0}}, transposed = imat_transposed(k, &basis),
               one = imat_identity(k, q->rows);
    const imat gram = imat_mul(k, &basis, &transposed), off = imat_diff(k, &gram, &one);
    const pare_ub e = imat_fro(k, &off);
    if (k->st || !(e.v < 0.5)) return r;
    const pare_ub root = pare_ub_sqrt(pare_ub_add(pare_ub_exact(1), e));
    const pare_ub off_by = pare_ub_div(pare_ub_mul(root, e), nextafter(1 - e.v, 0));
    r.q = basis;
    r.back = transposed;
    r.back.rad = up_row(k, q->rows * q->cols, off_by.v);
    r.back.rad.rows = q->cols;
    r.back.rad.cols = r.back.rad.ld = q->rows;
    return r;
}

imat map_in_bases(pare_work *k, const token_norm *in, const token_norm *out, const imat *m)
{
    if (k->st) return (imat){0};
    const imat left = in->q.mid.v ? imat_mul(k, &in->back, m) : *m;
    return out->q.mid.v ? imat_mul(k, &left, &out->q) : left;
}

static pare_mat one_entry(pare_work *k, pare_ub v)
{
    return up_row(k, 1, v.v);
}

pare_mat norm_of_map(pare_work *k, const token_norm *in, const token_norm *out, const imat *m)
{
    if (k->st) return (pare_mat){0};
    if (in->kind == NORM_INF) return one_entry(k, imat_map_inf(k, m));
    if (in->kind == NORM_TWO) return one_entry(k, imat_map_two(k, m));
    const imat t = map_in_bases(k, in, out, m);
    return imat_abs(k, &t);
}

/* M_1, ..., M_n one above the other. */
static imat stacked(pare_work *k, const imat *const *m, size_t n)
{
    const size_t rows = m[0]->mid.rows, cols = m[0]->mid.cols;
    imat all = {work_matrix(k, n * rows, cols), work_matrix(k, n * rows, cols)};
    for (size_t h = 0; !k->st && h < n; h++)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++) {
                pare_row_mut(&all.mid, h * rows + i)[j] = pare_row(&m[h]->mid, i)[j];
                if (m[h]->rad.v)
                    pare_row_mut(&all.rad, h * rows + i)[j] = pare_row(&m[h]->rad, i)[j];
            }
    return all;
}

pare_mat norm_of_stack(pare_work *k, const token_norm *in, const token_norm *out,
                       const imat *const *m, size_t n)
{
    pare_mat sum = work_matrix(k, in->k, out->k);
    if (n == 0 || k->st) return sum;
    const imat all = in->kind == NORM_BOX ? (imat){0} : stacked(k, m, n);
    /* the largest column sum of the stack is what we want; of each alone it would be more */
    if (in->kind == NORM_INF) return one_entry(k, imat_map_inf(k, &all));
    for (size_t h = 0; !k->st && h < n; h++) {
        const pare_mat one = norm_of_map(k, in, out, m[h]);
        up_add(k, &sum, &one);
    }
    if (in->kind == NORM_BOX || k->st) return sum;
    const pare_ub root = pare_ub_sqrt(pare_ub_exact((double)n));
    const pare_ub both = pare_ub_mul(root, imat_map_two(k, &all));
    return k->st ? sum : one_entry(k, pare_ub_min((pare_ub){sum.v[0]}, both));
}

pare_mat norm_of_form(pare_work *k, const token_norm *in, const imat *b)
{
    if (k->st) return (pare_mat){0};
    if (in->kind == NORM_INF) return one_entry(k, imat_form_inf(k, b));
    if (in->kind == NORM_TWO) return one_entry(k, imat_map_two(k, b));
    if (!in->q.mid.v) return imat_abs(k, b);
    const imat right = imat_transposed(k, &in->back), half = imat_mul(k, b, &right);
    const imat t = imat_mul(k, &in->back, &half);
    return imat_abs(k, &t);
}

pare_mat norm_of_functional(pare_work *k, const token_norm *in, const imat *l)
{
    if (k->st) return (pare_mat){0};
    if (in->kind == NORM_INF) return one_entry(k, imat_sum_abs(k, l));
    if (in->kind == NORM_TWO) return one_entry(k, imat_fro(k, l));
    if (!in->q.mid.v) return imat_abs(k, l);
    const imat right = imat_transposed(k, &in->back), t = imat_mul(k, l, &right);
    return imat_abs(k, &t);
}

pare_mat norm_of_row(pare_work *k, const token_norm *at, const imat *row)
{
    if (k->st) return (pare_mat){0};
    if (at->kind == NORM_INF) return one_entry(k, imat_max_abs(k, row));
    if (at->kind == NORM_TWO) return one_entry(k, imat_fro(k, row));
    if (!at->q.mid.v) return imat_abs(k, row);
    const imat t = imat_mul(k, row, &at->q);
    return imat_abs(k, &t);
}

/* ---- rows ------------------------------------------------------------------------------------ */

pare_mat up_row(pare_work *k, size_t n, double value)
{
    pare_mat r = work_matrix(k, 1, n);
    for (size_t i = 0; !k->st && i < n; i++) r.v[i] = pare_ub_exact(value).v;
    return r;
}

pare_mat up_mul(pare_work *k, const pare_mat *x, const pare_mat *m)
{
    if (k->st) return (pare_mat){0};
    PARE_ASSERT(x->cols == m->rows);
    pare_mat y = work_matrix(k, 1, m->cols);
    for (size_t i = 0; !k->st && i < m->rows; i++) {
        const pare_ub s = {x->v[i]};
        if (s.v == 0) continue; /* m may be infinite, but nothing goes through it */
        for (size_t j = 0; j < m->cols; j++)
            y.v[j] = pare_ub_fma(s, (pare_ub){pare_row(m, i)[j]}, (pare_ub){y.v[j]}).v;
    }
    return y;
}

typedef pare_ub pick(pare_ub a, pare_ub b);

static pare_mat entry_by_entry(pare_work *k, const pare_mat *x, const pare_mat *y, pick *fn)
{
    if (k->st) return (pare_mat){0};
    PARE_ASSERT(x->cols == y->cols && x->rows == 1 && y->rows == 1);
    pare_mat z = work_matrix(k, 1, x->cols);
    for (size_t i = 0; !k->st && i < x->cols; i++)
        z.v[i] = fn((pare_ub){x->v[i]}, (pare_ub){y->v[i]}).v;
    return z;
}

pare_mat up_sum(pare_work *k, const pare_mat *x, const pare_mat *y)
{
    return entry_by_entry(k, x, y, pare_ub_add);
}

pare_mat up_min(pare_work *k, const pare_mat *x, const pare_mat *y)
{
    return entry_by_entry(k, x, y, pare_ub_min);
}

pare_mat up_max(pare_work *k, const pare_mat *x, const pare_mat *y)
{
    return entry_by_entry(k, x, y, pare_ub_max);
}

void up_add(pare_work *k, pare_mat *x, const pare_mat *y)
{
    if (k->st) return;
    PARE_ASSERT(x->rows == y->rows && x->cols == y->cols);
    for (size_t i = 0; i < x->rows * x->cols; i++)
        x->v[i] = pare_ub_add((pare_ub){x->v[i]}, (pare_ub){y->v[i]}).v;
}

pare_mat up_scale(pare_work *k, const pare_mat *x, pare_ub s)
{
    if (k->st) return (pare_mat){0};
    pare_mat z = work_matrix(k, 1, x->cols);
    for (size_t i = 0; !k->st && i < x->cols; i++) {
        const bool nothing = x->v[i] == 0 || s.v == 0;
        z.v[i] = nothing ? 0 : pare_ub_mul((pare_ub){x->v[i]}, s).v;
    }
    return z;
}

pare_ub up_dot(const pare_mat *x, const pare_mat *y)
{
    pare_ub s = {0};
    if (!x->v || !y->v) return pare_ub_inf();
    PARE_ASSERT(x->cols == y->cols);
    for (size_t i = 0; i < x->cols; i++)
        if (x->v[i] != 0 && y->v[i] != 0)
            s = pare_ub_fma((pare_ub){x->v[i]}, (pare_ub){y->v[i]}, s);
    return s;
}
