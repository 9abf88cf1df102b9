/* rrr.c - reduced-rank regression in a metric: of all maps of rank d from what the small net has to
 * what the large one had, the one with the least squares (docs/theory/width.md section 9).
 *
 *     P = Phi - mean,     T = (Y - mean) G^1/2,     B = (P^T P + ridge)^-1 P^T T
 *     V = the d leading eigenvectors of B^T P^T P B
 *     h^ = (phi - mean) C,     C = B V
 *     y ~ U h^ + mean,         U = G^-1/2 V
 *
 * Then every coordinate is scaled to unit variance. Hence the rank guard: a coordinate that the
 * data does not have would be rounding noise, scaled to the size of the others. */
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>

#define RIDGE_DATA   1e-9  /* of the mean eigenvalue of P^T P */
#define RIDGE_METRIC 1e-4  /* of the largest eigenvalue of G */
#define GUARD        1e-12 /* of the largest eigenvalue of the fit */

typedef struct eigen { /* ascending */
    double *w;
    pare_mat v;
} eigen;

static eigen eigen_of(pare_work *w, const pare_mat *a)
{
    eigen e = {vec_zeros(w, a->rows), mat_zeros(w, a->rows, a->rows)};
    if (!w->st) w->st = pare_eigh(e.w, &e.v, a, w->arena, w->err);
    return e;
}

/* (a + ridge)^-1 b; directions that are not there at all give 0. */
static pare_mat ridge_solve(pare_work *w, const pare_mat *a, const pare_mat *b)
{
    const eigen e = eigen_of(w, a);
    pare_mat c = mat_mul(w, &e.v, true, b, false);
    double trace = 0;
    for (size_t i = 0; !w->st && i < a->rows; i++) trace += fmax(e.w[i], 0);
    const double ridge = RIDGE_DATA * trace / (double)(a->rows ? a->rows : 1);
    for (size_t i = 0; !w->st && i < c.rows; i++) {
        const double by = fmax(e.w[i], 0) + ridge;
        for (size_t j = 0; j < c.cols; j++)
            pare_row_mut(&c, i)[j] = by > 0 ? pare_row(&c, i)[j] / by : 0;
    }
    return mat_mul(w, &e.v, false, &c, false);
}

/* The leading eigenvectors, at most d, at least 1, none that is noise. */
static pare_mat leading_vectors(pare_work *w, const pare_mat *fit, size_t d)
{
    const eigen e = eigen_of(w, fit);
    if (w->st) return (pare_mat){0};
    const size_t n = fit->rows;
    const double floor = GUARD * fmax(e.w[n - 1], 1e-300);
    size_t k = 0;
    while (k < d && k < n && e.w[n - 1 - k] > floor) k++;
    if (k == 0) k = 1;
    pare_mat v = mat_zeros(w, n, k);
    for (size_t i = 0; !w->st && i < n; i++)
        for (size_t j = 0; j < k; j++) pare_row_mut(&v, i)[j] = pare_row(&e.v, i)[n - 1 - j];
    return v;
}

pare_mat metric_root(pare_work *w, const pare_mat *g, pare_mat *inverse)
{
    const sym_roots r = sym_roots_of(w, g, RIDGE_METRIC);
    if (inverse) *inverse = r.inverse;
    return r.root;
}

rrr_fit rrr(pare_work *w, const pare_mat *phi, const pare_mat *y, size_t d, const pare_mat *g)
{
    rrr_fit f = {.from = mat_col_means(w, phi), .to = mat_col_means(w, y)};
    const pare_mat p = mat_centered(w, phi, f.from), t = mat_centered(w, y, f.to);
    const pare_mat moment = mat_mul(w, &p, true, &p, false);
    pare_mat inverse = {0}, cross = mat_mul(w, &p, true, &t, false);
    if (g) {
        const pare_mat root = metric_root(w, g, &inverse);
        cross = mat_mul(w, &cross, false, &root, false);
    }
    if (w->st) return f;
    const pare_mat b = ridge_solve(w, &moment, &cross);
    const pare_mat fit = mat_mul3(w, &b, true, &moment, &b, false);
    const pare_mat v = leading_vectors(w, &fit, d);
    f.c = mat_mul(w, &b, false, &v, false);
    f.u = g ? mat_mul(w, &inverse, false, &v, false) : v;
    /* Unit variance: column j of c by 1 / s_j, of u by s_j. */
    const pare_mat variance = mat_mul3(w, &f.c, true, &moment, &f.c, false);
    for (size_t j = 0; !w->st && j < f.c.cols; j++) {
        const double s = sqrt(fmax(pare_row(&variance, j)[j] / (double)phi->rows, 1e-30));
        for (size_t i = 0; i < f.c.rows; i++) pare_row_mut(&f.c, i)[j] /= s;
        for (size_t i = 0; i < f.u.rows; i++) pare_row_mut(&f.u, i)[j] *= s;
    }
    return f;
}

pare_mat rrr_coords(pare_work *w, const rrr_fit *f, const pare_mat *phi)
{
    const pare_mat p = mat_centered(w, phi, f->from);
    return mat_mul(w, &p, false, &f->c, false);
}

double *rrr_offset(pare_work *w, const rrr_fit *f)
{
    double *const b = mat_vec(w, &f->c, true, f->from, NULL);
    for (size_t i = 0; !w->st && i < f->c.cols; i++) b[i] = -b[i];
    return b;
}
