/* matrices.h - matrices while a cut is made: an arena, threads, and one error that stays.
 *
 * The first failure is kept; everything after it does nothing and returns empty matrices, so that a
 * construction reads like its mathematics and is asked once at its end whether it went well. Who
 * reads entries by hand asks w->st first. */
#ifndef PARE_SRC_WIDTH_MATRICES_H
#define PARE_SRC_WIDTH_MATRICES_H
#include <pare/linalg.h>
#include <pare/attention.h>

typedef struct work {
    pare_arena *a;
    const pare_exec *exec;
    pare_err *err;
    pare_status st;
} work;

/* Its threads and stop flag, for what is a part of a step that is reported as a whole. */
#define W_QUIET(w) ((const pare_exec[]){pare_silent((w)->exec)})

void w_fail(work *w, pare_status st, const char *fmt, ...) PARE_PRINTF(3, 4);
void *w_alloc(work *w, size_t count, size_t size); /* zeroed; NULL only after a failure */
pare_mat w_mat(work *w, size_t rows, size_t cols); /* zeros */
double *w_vec(work *w, size_t n);
pare_mat w_identity(work *w, size_t n);
pare_mat w_copy(work *w, const pare_mat *m);
pare_mat w_transpose(work *w, const pare_mat *m);
/* op(a) op(b) */
pare_mat w_mul(work *w, const pare_mat *a, bool ta, const pare_mat *b, bool tb);
/* a b c; the transposes of the outer two where ta, tc. */
pare_mat w_mul3(work *w, const pare_mat *a, bool ta, const pare_mat *b, const pare_mat *c, bool tc);
/* op(a) x + y; y may be NULL (zeros). */
double *w_apply(work *w, const pare_mat *a, bool ta, const double *x, const double *y);
/* x m^T + b row by row, on all threads; b may be NULL. */
pare_mat w_dense(work *w, const pare_mat *x, const pare_mat *m, const double *b);
/* The rows (or columns) whose numbers are given. */
pare_mat w_take_rows(work *w, const pare_mat *m, const size_t *which, size_t n);
pare_mat w_take_cols(work *w, const pare_mat *m, const size_t *which, size_t n);
pare_mat w_first_cols(work *w, const pare_mat *m, size_t n);
double *w_col_means(work *w, const pare_mat *m);
pare_mat w_centred(work *w, const pare_mat *m, const double *mean);

typedef struct w_svd_of { /* a = u diag(s) vt */
    pare_mat u, vt;
    double *s;
    size_t n;
} w_svd_of;
w_svd_of w_svd(work *w, const pare_mat *a);
/* Singular values above `cut` times the largest. */
size_t w_rank(const w_svd_of *s, double cut);
/* Roots of a symmetric matrix that is not negative: g^1/2 and g^-1/2, eigenvalues raised by
 * `ridge` times the largest. */
typedef struct w_root_of {
    pare_mat root, inverse;
} w_root_of;
w_root_of w_root(work *w, const pare_mat *g, double ridge);
/* |v|_2 without over- or underflow on the way. */
double w_length(const double *v, size_t n);
/* What to multiply keys of length k with, and to divide queries of length q by, so that both have
 * the same length; 1 where one of them is nothing. */
double w_even(double q, double k);
double w_norm_est(work *w, const pare_mat *a); /* |a|_2 */
double w_fro(const pare_mat *a);
double w_largest(const pare_mat *a); /* of the |entries| */
#endif
