/* matrices.c - matrices and vectors of a construction, on a pare_work (matrices.h). */
#include "linalg/matrix.h"
#include "matrices.h"
#include <math.h>
#include <string.h>

pare_mat mat_zeros(pare_work *w, size_t rows, size_t cols)
{
    pare_mat m = {0};
    if (!w->st) w->st = pare_stopped(w->exec, w->err);
    if (w->st) return m;
    m = pare_mat_new(w->arena, rows, cols);
    if (!m.v) w->st = pare_no_memory(w->err);
    return m;
}

double *vec_zeros(pare_work *w, size_t n)
{
    return pare_work_alloc(w, n, sizeof(double));
}

pare_mat mat_identity(pare_work *w, size_t n)
{
    pare_mat m = mat_zeros(w, n, n);
    for (size_t i = 0; !w->st && i < n; i++) pare_row_mut(&m, i)[i] = 1;
    return m;
}

pare_mat mat_copy(pare_work *w, const pare_mat *m)
{
    pare_mat c = mat_zeros(w, m->rows, m->cols);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        memcpy(pare_row_mut(&c, i), pare_row(m, i), m->cols * sizeof *m->v);
    return c;
}

pare_mat mat_transpose(pare_work *w, const pare_mat *m)
{
    pare_mat t = mat_zeros(w, m->cols, m->rows);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(&t, j)[i] = pare_row(m, i)[j];
    return t;
}

double *vec_copy(pare_work *w, const double *v, size_t n)
{
    double *const c = vec_zeros(w, n);
    if (!w->st) memcpy(c, v, n * sizeof *c);
    return c;
}

pare_mat mat_append_col(pare_work *w, const pare_mat *m, const double *b)
{
    pare_mat all = mat_zeros(w, m->rows, m->cols + 1);
    for (size_t i = 0; !w->st && i < m->rows; i++) {
        memcpy(pare_row_mut(&all, i), pare_row(m, i), m->cols * sizeof *m->v);
        pare_row_mut(&all, i)[m->cols] = b ? b[i] : 1;
    }
    return all;
}

pare_mat mat_mul(pare_work *w, const pare_mat *a, bool ta, const pare_mat *b, bool tb)
{
    pare_mat c = mat_zeros(w, ta ? a->cols : a->rows, tb ? b->rows : b->cols);
    if (!w->st) pare_gemm(&c, 1, a, ta, b, tb, 0);
    return c;
}

pare_mat mat_mul3(pare_work *w, const pare_mat *a, bool ta, const pare_mat *b, const pare_mat *c,
                  bool tc)
{
    const pare_mat ab = mat_mul(w, a, ta, b, false);
    return mat_mul(w, &ab, false, c, tc);
}

double *mat_vec(pare_work *w, const pare_mat *a, bool ta, const double *x, const double *y)
{
    const size_t n = ta ? a->cols : a->rows, k = ta ? a->rows : a->cols;
    double *const out = vec_zeros(w, n);
    if (w->st) return NULL;
    if (y) memcpy(out, y, n * sizeof *y);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            out[i] += (ta ? pare_row(a, j)[i] : pare_row(a, i)[j]) * x[j];
    return out;
}

pare_mat affine_rows(pare_work *w, const pare_mat *x, const pare_mat *m, const double *b)
{
    pare_mat y = mat_zeros(w, x->rows, m->rows);
    if (w->st) return y;
    const pare_mat whole = m->ld == m->cols ? *m : mat_copy(w, m);
    if (w->st) return y;
    const pare_weight weight = {PARE_F64, m->rows, m->cols, whole.v};
    const pare_weight bias = {PARE_F64, 1, m->rows, b};
    w->st = pare_dense_f64(&y, x, &weight, &bias, w->exec, w->err);
    return y;
}

pare_mat mat_take_rows(pare_work *w, const pare_mat *m, const size_t *which, size_t n)
{
    pare_mat t = mat_zeros(w, n, m->cols);
    for (size_t i = 0; !w->st && i < n; i++)
        memcpy(pare_row_mut(&t, i), pare_row(m, which[i]), m->cols * sizeof *m->v);
    return t;
}

pare_mat mat_take_cols(pare_work *w, const pare_mat *m, const size_t *which, size_t n)
{
    pare_mat t = mat_zeros(w, m->rows, n);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        for (size_t j = 0; j < n; j++) pare_row_mut(&t, i)[j] = pare_row(m, i)[which[j]];
    return t;
}

pare_mat mat_first_cols(pare_work *w, const pare_mat *m, size_t n)
{
    if (w->st) return (pare_mat){0};
    const pare_mat part = pare_mat_part(m, 0, 0, m->rows, n);
    return mat_copy(w, &part);
}

enum { COLUMNS = 64 }; /* of a product, in one piece of work */

typedef struct product {
    pare_mat *c;
    const pare_mat *a, *b;
    double alpha;
} product;

static void product_block(void *self, size_t block)
{
    const product *const p = self;
    const size_t at = block * COLUMNS, left = p->c->cols - at, n = left < COLUMNS ? left : COLUMNS;
    pare_mat c = pare_mat_part(p->c, 0, at, p->c->rows, n);
    const pare_mat b = pare_mat_part(p->b, 0, at, p->b->rows, n);
    pare_gemm(&c, p->alpha, p->a, true, &b, false, 1);
}

void mat_add_product(pare_work *w, pare_mat *c, double alpha, const pare_mat *a, const pare_mat *b)
{
    product p = {c, a, b, alpha};
    if (!w->st) pare_parallel(w->exec, (c->cols + COLUMNS - 1) / COLUMNS, product_block, &p);
}

double *mat_col_means(pare_work *w, const pare_mat *m)
{
    double *const mean = vec_zeros(w, m->cols);
    if (w->st) return NULL;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) mean[j] += pare_row(m, i)[j];
    for (size_t j = 0; m->rows > 0 && j < m->cols; j++) mean[j] /= (double)m->rows;
    return mean;
}

pare_mat mat_centered(pare_work *w, const pare_mat *m, const double *mean)
{
    pare_mat c = mat_copy(w, m);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(&c, i)[j] -= mean[j];
    return c;
}

svd_factors svd_of(pare_work *w, const pare_mat *a)
{
    svd_factors s = {.n = a->rows < a->cols ? a->rows : a->cols};
    s.u = mat_zeros(w, a->rows, s.n);
    s.vt = mat_zeros(w, s.n, a->cols);
    s.s = vec_zeros(w, s.n);
    if (!w->st) w->st = pare_svd(&s.u, s.s, &s.vt, a, w->arena, w->err);
    return s;
}

size_t svd_rank(const svd_factors *s, double cut)
{
    size_t r = 0;
    while (r < s->n && s->s[r] > cut * s->s[0]) r++;
    return r;
}

void leading_eigenvectors(pare_work *w, pare_mat *u, double *values, const pare_mat *g)
{
    const size_t n = g->rows;
    pare_mat v = mat_zeros(w, n, n);
    double *const ascending = vec_zeros(w, n);
    if (!w->st && n > 0) w->st = pare_eigh(ascending, &v, g, w->arena, w->err);
    for (size_t k = 0; !w->st && k < u->cols; k++) {
        if (values) values[k] = ascending[n - 1 - k];
        for (size_t i = 0; i < n; i++) pare_row_mut(u, i)[k] = pare_row(&v, i)[n - 1 - k];
    }
}

/* v diag(f) v^T */
static pare_mat from_eigen(pare_work *w, const pare_mat *v, const double *f)
{
    pare_mat scaled = mat_copy(w, v);
    for (size_t i = 0; !w->st && i < v->rows; i++)
        for (size_t j = 0; j < v->cols; j++) pare_row_mut(&scaled, i)[j] *= f[j];
    return mat_mul(w, &scaled, false, v, true);
}

sym_roots sym_roots_of(pare_work *w, const pare_mat *g, double ridge)
{
    const size_t n = g->rows;
    sym_roots r = {0};
    pare_mat v = mat_zeros(w, n, n), even = mat_zeros(w, n, n);
    double *const root = vec_zeros(w, n), *const inverse = vec_zeros(w, n);
    for (size_t i = 0; !w->st && i < n; i++)
        for (size_t j = 0; j < n; j++)
            pare_row_mut(&even, i)[j] = (pare_row(g, i)[j] + pare_row(g, j)[i]) / 2;
    if (!w->st) w->st = pare_eigh(root, &v, &even, w->arena, w->err);
    if (w->st) return r;
    /* For g = 0 the square of the inverse must still be a number. */
    const double most = n > 0 && root[n - 1] > 1e-250 ? root[n - 1] : 1e-250;
    for (size_t i = 0; i < n; i++) {
        root[i] = sqrt((root[i] > 0 ? root[i] : 0) + ridge * most);
        inverse[i] = 1 / root[i];
    }
    r.root = from_eigen(w, &v, root);
    r.inverse = from_eigen(w, &v, inverse);
    return r;
}

double mat_norm_est(pare_work *w, const pare_mat *a)
{
    if (w->st || a->rows == 0 || a->cols == 0) return 0;
    double *const s = vec_zeros(w, a->rows < a->cols ? a->rows : a->cols);
    if (!w->st) w->st = pare_svd(NULL, s, NULL, a, w->arena, w->err);
    return w->st ? NAN : s[0];
}

double vec_norm_est(const double *v, size_t n)
{
    double length = 0;
    for (size_t i = 0; i < n; i++) length = hypot(length, v[i]);
    return length;
}

double balance_factor(double q, double k)
{
    const double by = sqrt(q) / sqrt(k);
    return by > 0 && by < INFINITY ? by : 1;
}

double max_row_norm(const pare_mat *a, const pare_mat *minus)
{
    double most = 0;
    for (size_t i = 0; i < a->rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < a->cols; j++) {
            const double x = pare_row(a, i)[j] - (minus ? pare_row(minus, i)[j] : 0);
            sum += x * x;
        }
        most = fmax(most, sqrt(sum));
    }
    return most;
}
