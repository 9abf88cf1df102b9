/* imat.h - interval matrices: a midpoint and a radius for every entry, so that products of stored
 * weights carry the rounding of having been formed. Rows are vectors: y = x M, M in x out. */
#ifndef PARE_SRC_DEPTH_IMAT_H
#define PARE_SRC_DEPTH_IMAT_H
#include "base/work.h"
#include <pare/linalg.h>

/* Zeros in the work's arena. After the first failure this and all functions below do nothing and
 * return empties. */
pare_mat work_matrix(pare_work *k, size_t r, size_t c);
/* v (rows x cols; NULL: zeros) as a stored weight of that type. */
pare_weight work_weight(pare_work *k, const double *v, size_t rows, size_t cols, pare_dtype t);

/* |exact - mid| <= rad entry by entry; rad.v NULL: the midpoints are the matrix itself. */
typedef struct imat {
    pare_mat mid, rad;
} imat;

imat imat_zero(pare_work *k, size_t rows, size_t cols);
imat imat_identity(pare_work *k, size_t n);
/* rows x cols of w from (r, c), transposed where `transpose`; zeros where w is absent. Exact. */
imat imat_weight(pare_work *k, const pare_weight *w, size_t r, size_t c, size_t rows, size_t cols,
                 bool transpose);
/* Entries [at, at + n) of a stored vector as a row; zeros where it is absent. */
imat imat_row(pare_work *k, const pare_weight *w, size_t at, size_t n);
imat imat_transposed(pare_work *k, const imat *a);
imat imat_part(const imat *a, size_t r, size_t c, size_t rows, size_t cols); /* a view */
imat imat_copy(pare_work *k, const imat *a);
imat imat_mul(pare_work *k, const imat *a, const imat *b);
imat imat_sum(pare_work *k, const imat *a, const imat *b);
imat imat_diff(pare_work *k, const imat *a, const imat *b);
imat imat_scaled(pare_work *k, const imat *a, double s);
/* Column j times the interval row's entry j. */
imat imat_scale_columns(pare_work *k, const imat *a, const imat *row);

/* Upper bounds of |entries|. */
pare_mat imat_abs(pare_work *k, const imat *a);
/* sup of nu(x M) / nu(x), of |u M v^T| over nu(u), nu(v) <= 1, of |x . row| over nu(x) <= 1, and
 * nu(row): in the largest entry and in the euclidean norm. */
pare_ub imat_map_inf(pare_work *k, const imat *a);
pare_ub imat_map_two(pare_work *k, const imat *a);
pare_ub imat_form_inf(pare_work *k, const imat *a);
pare_ub imat_sum_abs(pare_work *k, const imat *a); /* of all entries */
pare_ub imat_max_abs(pare_work *k, const imat *a);
pare_ub imat_fro(pare_work *k, const imat *a);
#endif
