/* matrices.h - matrices and vectors of a construction, on a pare_work.
 *
 * The first failure stays in w->st; everything after it does nothing and returns empty matrices.
 * Code that reads entries by hand asks w->st first. All memory comes from w->arena. */
#ifndef PARE_SRC_WIDTH_MATRICES_H
#define PARE_SRC_WIDTH_MATRICES_H
#include "base/work.h"
#include <pare/linalg.h>

/* The threads and the stop flag of w, without its progress: for a part of a step that is reported
 * as a whole. */
#define SILENT_EXEC(w) ((const pare_exec[]){pare_exec_silent((w)->exec)})

pare_mat mat_zeros(pare_work *w, size_t rows, size_t cols);
double *vec_zeros(pare_work *w, size_t n);
pare_mat mat_identity(pare_work *w, size_t n);
pare_mat mat_copy(pare_work *w, const pare_mat *m);
pare_mat mat_transpose(pare_work *w, const pare_mat *m);
double *vec_copy(pare_work *w, const double *v, size_t n);
/* [m b] with one more column; b NULL: ones. */
pare_mat mat_append_col(pare_work *w, const pare_mat *m, const double *b);
/* op(a) op(b), op the transpose where ta, tb. */
pare_mat mat_mul(pare_work *w, const pare_mat *a, bool ta, const pare_mat *b, bool tb);
/* op(a) b op(c) */
pare_mat mat_mul3(pare_work *w, const pare_mat *a, bool ta, const pare_mat *b, const pare_mat *c,
                  bool tc);
/* op(a) x + y; y may be NULL (zeros). */
double *mat_vec(pare_work *w, const pare_mat *a, bool ta, const double *x, const double *y);
/* x m^T + b row by row, on all threads; b may be NULL. */
pare_mat affine_rows(pare_work *w, const pare_mat *x, const pare_mat *m, const double *b);
/* The rows (or columns) with the given indices. */
pare_mat mat_take_rows(pare_work *w, const pare_mat *m, const size_t *which, size_t n);
pare_mat mat_take_cols(pare_work *w, const pare_mat *m, const size_t *which, size_t n);
pare_mat mat_first_cols(pare_work *w, const pare_mat *m, size_t n);
/* c += alpha a^T b, on all threads, some columns of c at a time. */
void mat_add_product(pare_work *w, pare_mat *c, double alpha, const pare_mat *a, const pare_mat *b);
double *mat_col_means(pare_work *w, const pare_mat *m);
pare_mat mat_centered(pare_work *w, const pare_mat *m, const double *mean); /* every row - mean */

typedef struct svd_factors { /* a = u diag(s) vt, s descending */
    pare_mat u, vt;
    double *s;
    size_t n;
} svd_factors;
svd_factors svd_of(pare_work *w, const pare_mat *a);
/* The number of singular values above `cut` times the largest. */
size_t svd_rank(const svd_factors *s, double cut);

/* The first u->cols eigenvectors of a symmetric g, the largest eigenvalue first; values may be
 * NULL. */
void leading_eigenvectors(pare_work *w, pare_mat *u, double *values, const pare_mat *g);

typedef struct sym_roots { /* of a positive semidefinite g: g^1/2 and g^-1/2 */
    pare_mat root, inverse;
} sym_roots;
/* Eigenvalues are raised by `ridge` times the largest. */
sym_roots sym_roots_of(pare_work *w, const pare_mat *g, double ridge);

static inline double vec_dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* The largest norm of a row of a, or of a - minus (may be NULL). */
double max_row_norm(const pare_mat *a, const pare_mat *minus);
/* |v|_2 without over- or underflow on the way. */
double vec_norm_est(const double *v, size_t n);
double mat_norm_est(pare_work *w, const pare_mat *a); /* |a|_2 */
/* The factor for keys of norm k, and the divisor for queries of norm q, that makes both norms
 * equal; 1 where one of them is 0. */
double balance_factor(double q, double k);
#endif
