/* imat.h - interval matrices: a midpoint and a radius for every entry, so that products of stored
 * weights carry the rounding of having been formed. Rows are vectors: y = x M, M in x out. */
#ifndef PARE_SRC_DEPTH_IMAT_H
#define PARE_SRC_DEPTH_IMAT_H
#include <pare/model.h>

/* Where results go, and the first thing that went wrong: after it every function does nothing and
 * returns empties, so that a proof reads straight down and asks once. */
typedef struct calc {
    pare_arena *a;
    pare_err *err;
    pare_status st;
    const pare_exec *exec; /* for its stop flag; may be NULL */
} calc;
void calc_fail(calc *k, pare_status st);        /* keeps the first */
pare_mat calc_mat(calc *k, size_t r, size_t c); /* zeros */

/* |exact - mid| <= rad entry by entry; rad.v NULL: the midpoints are the matrix itself. */
typedef struct imat {
    pare_mat mid, rad;
} imat;

imat imat_zero(calc *k, size_t rows, size_t cols);
imat imat_identity(calc *k, size_t n);
/* rows x cols of w from (r, c), turned where `turn`; zeros where w is absent. Exact. */
imat imat_weight(calc *k, const pare_weight *w, size_t r, size_t c, size_t rows, size_t cols,
                 bool turn);
/* Entries [at, at + n) of a stored vector as a row; zeros where it is absent. */
imat imat_row(calc *k, const pare_weight *w, size_t at, size_t n);
imat imat_turned(calc *k, const imat *a);
imat imat_part(const imat *a, size_t r, size_t c, size_t rows, size_t cols); /* a view */
imat imat_copy(calc *k, const imat *a);
imat imat_mul(calc *k, const imat *a, const imat *b);
imat imat_sum(calc *k, const imat *a, const imat *b);
imat imat_diff(calc *k, const imat *a, const imat *b);
imat imat_scaled(calc *k, const imat *a, double s);
/* Column j times the interval row's entry j. */
imat imat_columns(calc *k, const imat *a, const imat *row);

/* Upper bounds of |entries|. */
pare_mat imat_abs(calc *k, const imat *a);
/* sup of nu(x M) / nu(x), of |u M v^T| over nu(u), nu(v) <= 1, of |x . row| over nu(x) <= 1, and
 * nu(row): in the largest entry and in the euclidean norm. */
pare_ub imat_map_inf(calc *k, const imat *a);
pare_ub imat_map_two(calc *k, const imat *a);
pare_ub imat_form_inf(calc *k, const imat *a);
pare_ub imat_sum_abs(calc *k, const imat *a); /* of all entries */
pare_ub imat_max_abs(calc *k, const imat *a);
pare_ub imat_fro(calc *k, const imat *a);
#endif
