/* radius_matrix.h - a matrix known up to a radius: |exact - mid|_F <= off. One number for the
 * rounding of a whole product is enough here: the errors of tickets are far above it. */
#ifndef PARE_SRC_TICKET_RADIUS_MATRIX_H
#define PARE_SRC_TICKET_RADIUS_MATRIX_H
#include "base/work.h"
#include <pare/linalg.h>

/* Its threads and stop flag, for what is a part of a step that is reported as a whole. */
#define WORK_QUIET(p) ((const pare_exec[]){pare_silent((p)->exec)})

typedef struct rmat {
    pare_mat mid;
    pare_ub off;
} rmat;

rmat rmat_new(pare_work *p, size_t rows, size_t cols); /* exact zeros */
/* rows x cols of w from (r, c), exact; zeros where w is absent. */
rmat rmat_weight(pare_work *p, const pare_weight *w, size_t r, size_t c, size_t rows, size_t cols);
/* Entries [at, at + n) of a stored vector as a column; zeros where it is absent. */
rmat rmat_column(pare_work *p, const pare_weight *w, size_t at, size_t n);
rmat rmat_identity(pare_work *p, size_t n);
rmat rmat_beside(pare_work *p, const rmat *a, const rmat *b); /* [a b] */
rmat rmat_scaled(pare_work *p, const rmat *a, double s);
/* op(a) b; op is the transpose where `transpose`. */
rmat rmat_mul(pare_work *p, const rmat *a, bool transpose, const rmat *b);
rmat rmat_sum(pare_work *p, const rmat *a, const rmat *b);
rmat rmat_diff(pare_work *p, const rmat *a, const rmat *b);
/* Some rows or columns of it: a view. */
rmat rmat_part(const rmat *a, size_t r, size_t c, size_t rows, size_t cols);

pare_ub rmat_two(pare_work *p, const rmat *a); /* |a|_2 */
pare_ub rmat_fro(const rmat *a);
pare_ub rmat_max(const rmat *a);      /* largest |entry| */
pare_ub rmat_max_row2(const rmat *a); /* largest length of a row */
#endif
