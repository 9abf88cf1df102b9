/* Matrices while a cut is made (matrices.h). */
#include "matrices.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

void w_fail(work *w, pare_status st, const char *fmt, ...)
{
    char text[400];
    if (w->st) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    w->st = pare_fail(w->err, st, "%s", text);
}

/* Every step of a construction allocates: who takes room looks at the stop flag. */
void *w_alloc(work *w, size_t count, size_t size)
{
    if (!w->st) w->st = pare_stopped(w->exec, w->err);
    if (w->st) return NULL;
    void *const p = pare_alloc(w->a, count > 0 ? count : 1, size);
    if (!p) w->st = pare_no_memory(w->err);
    return p;
}

pare_mat w_mat(work *w, size_t rows, size_t cols)
{
    pare_mat m = {0};
    if (!w->st) w->st = pare_stopped(w->exec, w->err);
    if (w->st) return m;
    m = pare_mat_new(w->a, rows, cols);
    if (!m.v) w->st = pare_no_memory(w->err);
    return m;
}

double *w_vec(work *w, size_t n)
{
    return w_alloc(w, n, sizeof(double));
}

pare_mat w_identity(work *w, size_t n)
{
    pare_mat m = w_mat(w, n, n);
    for (size_t i = 0; !w->st && i < n; i++) pare_row_mut(&m, i)[i] = 1;
    return m;
}

pare_mat w_copy(work *w, const pare_mat *m)
{
    pare_mat c = w_mat(w, m->rows, m->cols);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        memcpy(pare_row_mut(&c, i), pare_row(m, i), m->cols * sizeof *m->v);
    return c;
}

pare_mat w_transpose(work *w, const pare_mat *m)
{
    pare_mat t = w_mat(w, m->cols, m->rows);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(&t, j)[i] = pare_row(m, i)[j];
    return t;
}

pare_mat w_mul(work *w, const pare_mat *a, bool ta, const pare_mat *b, bool tb)
{
    pare_mat c = w_mat(w, ta ? a->cols : a->rows, tb ? b->rows : b->cols);
    if (!w->st) pare_gemm(&c, 1, a, ta, b, tb, 0);
    return c;
}

pare_mat w_mul3(work *w, const pare_mat *a, bool ta, const pare_mat *b, const pare_mat *c, bool tc)
{
    const pare_mat ab = w_mul(w, a, ta, b, false);
    return w_mul(w, &ab, false, c, tc);
}

double *w_apply(work *w, const pare_mat *a, bool ta, const double *x, const double *y)
{
    const size_t n = ta ? a->cols : a->rows, k = ta ? a->rows : a->cols;
    double *const out = w_vec(w, n);
    if (w->st) return NULL;
    if (y) memcpy(out, y, n * sizeof *y);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            out[i] += (ta ? pare_row(a, j)[i] : pare_row(a, i)[j]) * x[j];
    return out;
}

pare_mat w_dense(work *w, const pare_mat *x, const pare_mat *m, const double *b)
{
    pare_mat y = w_mat(w, x->rows, m->rows);
    if (w->st) return y;
    const pare_mat whole = m->ld == m->cols ? *m : w_copy(w, m);
    if (w->st) return y;
    const pare_weight weight = {PARE_F64, m->rows, m->cols, whole.v};
    const pare_weight bias = {PARE_F64, 1, m->rows, b};
    w->st = pare_dense_f64(&y, x, &weight, &bias, w->exec, w->err);
    return y;
}

pare_mat w_take_rows(work *w, const pare_mat *m, const size_t *which, size_t n)
{
    pare_mat t = w_mat(w, n, m->cols);
    for (size_t i = 0; !w->st && i < n; i++)
        memcpy(pare_row_mut(&t, i), pare_row(m, which[i]), m->cols * sizeof *m->v);
    return t;
}

pare_mat w_take_cols(work *w, const pare_mat *m, const size_t *which, size_t n)
{
    pare_mat t = w_mat(w, m->rows, n);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        for (size_t j = 0; j < n; j++) pare_row_mut(&t, i)[j] = pare_row(m, i)[which[j]];
    return t;
}

pare_mat w_first_cols(work *w, const pare_mat *m, size_t n)
{
    if (w->st) return (pare_mat){0};
    const pare_mat part = pare_mat_part(m, 0, 0, m->rows, n);
    return w_copy(w, &part);
}

double *w_col_means(work *w, const pare_mat *m)
{
    double *const mean = w_vec(w, m->cols);
    if (w->st) return NULL;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) mean[j] += pare_row(m, i)[j];
    for (size_t j = 0; m->rows > 0 && j < m->cols; j++) mean[j] /= (double)m->rows;
    return mean;
}

pare_mat w_centred(work *w, const pare_mat *m, const double *mean)
{
    pare_mat c = w_copy(w, m);
    for (size_t i = 0; !w->st && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(&c, i)[j] -= mean[j];
    return c;
}

w_svd_of w_svd(work *w, const pare_mat *a)
{
    w_svd_of s = {.n = a->rows < a->cols ? a->rows : a->cols};
    s.u = w_mat(w, a->rows, s.n);
    s.vt = w_mat(w, s.n, a->cols);
    s.s = w_vec(w, s.n);
    if (!w->st) w->st = pare_svd(&s.u, s.s, &s.vt, a, w->a, w->err);
    return s;
}

size_t w_rank(const w_svd_of *s, double cut)
{
    size_t r = 0;
    while (r < s->n && s->s[r] > cut * s->s[0]) r++;
    return r;
}

/* v diag(f) v^T */
static pare_mat rebuilt(work *w, const pare_mat *v, const double *f)
{
    pare_mat scaled = w_copy(w, v);
    for (size_t i = 0; !w->st && i < v->rows; i++)
        for (size_t j = 0; j < v->cols; j++) pare_row_mut(&scaled, i)[j] *= f[j];
    return w_mul(w, &scaled, false, v, true);
}

w_root_of w_root(work *w, const pare_mat *g, double ridge)
{
    const size_t n = g->rows;
    w_root_of r = {0};
    pare_mat v = w_mat(w, n, n), even = w_mat(w, n, n);
    double *const root = w_vec(w, n), *const inverse = w_vec(w, n);
    for (size_t i = 0; !w->st && i < n; i++)
        for (size_t j = 0; j < n; j++)
            pare_row_mut(&even, i)[j] = (pare_row(g, i)[j] + pare_row(g, j)[i]) / 2;
    if (!w->st) w->st = pare_eigh(root, &v, &even, w->a, w->err);
    if (w->st) return r;
    /* Of nothing at all: the square of the inverse must still be a number. */
    const double most = n > 0 && root[n - 1] > 1e-250 ? root[n - 1] : 1e-250;
    for (size_t i = 0; i < n; i++) {
        root[i] = sqrt((root[i] > 0 ? root[i] : 0) + ridge * most);
        inverse[i] = 1 / root[i];
    }
    r.root = rebuilt(w, &v, root);
    r.inverse = rebuilt(w, &v, inverse);
    return r;
}

double w_norm_est(work *w, const pare_mat *a)
{
    if (w->st || a->rows == 0 || a->cols == 0) return 0;
    double *const s = w_vec(w, a->rows < a->cols ? a->rows : a->cols);
    if (!w->st) w->st = pare_svd(NULL, s, NULL, a, w->a, w->err);
    return w->st ? NAN : s[0];
}

double w_length(const double *v, size_t n)
{
    double length = 0;
    for (size_t i = 0; i < n; i++) length = hypot(length, v[i]);
    return length;
}

double w_even(double q, double k)
{
    const double by = sqrt(q) / sqrt(k);
    return by > 0 && by < INFINITY ? by : 1;
}

double w_fro(const pare_mat *a)
{
    double sum = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) sum += pare_row(a, i)[j] * pare_row(a, i)[j];
    return sqrt(sum);
}

double w_largest(const pare_mat *a)
{
    double most = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) most = fmax(most, fabs(pare_row(a, i)[j]));
    return most;
}
