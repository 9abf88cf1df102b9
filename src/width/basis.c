/* basis.c - affine bases of a point of the stream: h ~ U h^ + mu with orthonormal columns in U.
 *
 * Affine beats linear by one dimension (one-hot features have rank 7 and affine rank 6). Least
 * squares use the singular values of the centered rows, not their Gram matrix: directions of
 * relative size 1e-8 must be visible for a cut to be exact. For the largest residual (a hard
 * problem) the rows are weighted,
 *
 *     w_i <- w_i exp(eta (r_i / max r)^2 / sqrt(t)),
 *
 * r_i the residual of row i, and the best basis of all iterations is kept. */
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>
#include <string.h>

size_t basis_dim(const basis *b)
{
    return b->u.cols;
}

basis basis_identity(pare_work *w, size_t d)
{
    return (basis){mat_identity(w, d), vec_zeros(w, d)};
}

/* The first d right singular vectors as columns. */
static pare_mat leading_directions(pare_work *w, const svd_factors *s, size_t d)
{
    if (w->st) return (pare_mat){0};
    const pare_mat first = pare_mat_part(&s->vt, 0, 0, d, s->vt.cols);
    return mat_transpose(w, &first);
}

basis basis_pca(pare_work *w, const pare_mat *h, size_t d, bool center)
{
    basis b = {.mu = center ? mat_col_means(w, h) : vec_zeros(w, h->cols)};
    const pare_mat rows = mat_centered(w, h, b.mu);
    const svd_factors s = svd_of(w, &rows);
    if (w->st) return b;
    /* Directions that are not rounding alone; at least 1, because a stream needs a width. */
    const double largest_side = (double)(h->rows > h->cols ? h->rows : h->cols);
    const double floor = largest_side * 0x1p-52 * fmax(s.n ? s.s[0] : 0, pare_mat_max_abs(h));
    size_t rank = 0;
    while (rank < s.n && s.s[rank] > floor) rank++;
    if (rank == 0) rank = 1;
    b.u = leading_directions(w, &s, d < rank ? d : rank);
    return b;
}

basis basis_within(pare_work *w, const pare_mat *h, double tol, bool center)
{
    basis b = {.mu = center ? mat_col_means(w, h) : vec_zeros(w, h->cols)};
    const pare_mat rows = mat_centered(w, h, b.mu);
    const svd_factors s = svd_of(w, &rows);
    const pare_mat c = affine_rows(w, &rows, &s.vt, NULL); /* coordinates */
    double *const left = vec_zeros(w, h->rows);            /* squares behind the first d */
    if (w->st) return b;
    size_t d = s.n;
    for (; d > 1; d--) {
        double worst = 0;
        for (size_t i = 0; i < h->rows; i++) {
            left[i] += pare_row(&c, i)[d - 1] * pare_row(&c, i)[d - 1];
            worst = fmax(worst, left[i]);
        }
        if (!(sqrt(worst) <= tol)) break;
    }
    b.u = leading_directions(w, &s, d);
    return b;
}

pare_mat basis_coords(pare_work *w, const basis *b, const pare_mat *h)
{
    const pare_mat rows = mat_centered(w, h, b->mu), ut = mat_transpose(w, &b->u);
    return affine_rows(w, &rows, &ut, NULL);
}

/* Distances of the rows from the subspace. */
static double *row_residuals(pare_work *w, const basis *b, const pare_mat *h)
{
    const pare_mat rows = mat_centered(w, h, b->mu), c = basis_coords(w, b, h);
    const pare_mat back = affine_rows(w, &c, &b->u, NULL);
    double *const r = vec_zeros(w, h->rows);
    for (size_t i = 0; !w->st && i < h->rows; i++) {
        for (size_t j = 0; j < h->cols; j++) {
            const double off = pare_row(&rows, i)[j] - pare_row(&back, i)[j];
            r[i] += off * off;
        }
        r[i] = sqrt(r[i]);
    }
    return r;
}

double basis_residual(pare_work *w, const basis *b, const pare_mat *h)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const double *const r = row_residuals(w, b, h);
    double worst = w->st ? NAN : 0;
    for (size_t i = 0; !w->st && i < h->rows; i++) worst = fmax(worst, r[i]);
    pare_arena_reset(w->arena, mark);
    return worst;
}

/* ---- the largest residual ------------------------------------------------------------------- */

enum { ITERATIONS = 60 };
#define ETA 2.0

/* Weighted least squares: weights sum to 1. */
static basis weighted_pca(pare_work *w, const pare_mat *h, const double *weight, size_t d)
{
    basis b = {.mu = vec_zeros(w, h->cols)};
    for (size_t i = 0; !w->st && i < h->rows; i++)
        for (size_t j = 0; j < h->cols; j++) b.mu[j] += weight[i] * pare_row(h, i)[j];
    pare_mat rows = mat_centered(w, h, b.mu);
    for (size_t i = 0; !w->st && i < h->rows; i++)
        for (size_t j = 0; j < h->cols; j++) pare_row_mut(&rows, i)[j] *= sqrt(weight[i]);
    const pare_mat gram = mat_mul(w, &rows, true, &rows, false);
    b.u = mat_zeros(w, h->cols, d);
    leading_eigenvectors(w, &b.u, NULL, &gram);
    return b;
}

/* Raises the weights of the worst rows; returns the largest residual. */
static double reweight(double *weight, const double *r, size_t n, size_t step)
{
    double worst = 0, sum = 0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, r[i]);
    if (!(worst > 0)) return worst;
    for (size_t i = 0; i < n; i++) {
        weight[i] *= exp(ETA * (r[i] / worst) * (r[i] / worst) / sqrt((double)step + 1));
        sum += weight[i];
    }
    for (size_t i = 0; i < n; i++) weight[i] /= sum;
    return worst;
}

basis basis_minmax(pare_work *w, const pare_mat *h, size_t d)
{
    basis best = basis_pca(w, h, d, true);
    double least = basis_residual(w, &best, h);
    double *const weight = vec_zeros(w, h->rows);
    if (w->st || basis_dim(&best) < d) return best; /* nothing is left over */
    for (size_t i = 0; i < h->rows; i++) weight[i] = 1 / (double)h->rows;
    for (size_t t = 0; !w->st && t < ITERATIONS && least > 0; t++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const basis b = weighted_pca(w, h, weight, d);
        const double *const r = row_residuals(w, &b, h);
        const double worst = w->st ? INFINITY : reweight(weight, r, h->rows, t);
        if (worst < least) {
            least = worst;
            memcpy(best.u.v, b.u.v, h->cols * d * sizeof(double));
            memcpy(best.mu, b.mu, h->cols * sizeof(double));
        }
        if (!w->st) pare_arena_reset(w->arena, mark);
    }
    return best;
}
