/* blas.h - private to linalg: the border to BLAS and LAPACK, and what several files need there. */
#ifndef PARE_LINALG_BLAS_H
#define PARE_LINALG_BLAS_H
#include <pare/linalg.h>

/* The one place where a size becomes BLAS's int; a size that does not fit stops the program. */
int pare_blas_int(size_t n);
/* A leading dimension as BLAS wants it: at least 1, at least the row length. */
int pare_blas_ld(const pare_mat *m);
/* Sets OpenBLAS to one thread, once; called before any BLAS or LAPACK work. */
void pare_blas_one_thread(void);

/* Upper triangle of g += t^T t (by_rows: inner index is the row of t) or t t^T. */
void pare_blas_gram_add(pare_mat *g, const pare_mat *t, bool by_rows);
/* y = g x for a symmetric g of which the upper triangle is read. */
void pare_blas_symv_upper(double *y, const pare_mat *g, const double *x);

/* PARE_ERR_NONFINITE naming `what`, its shape and the first bad entry; LAPACK may hang on one. */
PARE_MUST_USE pare_status pare_require_finite(const pare_mat *a, const char *what, pare_err *err);
/* Turns LAPACK's info into a status: memory, or "gave up". A negative info is our mistake. */
PARE_MUST_USE pare_status pare_lapack_status(int info, const char *routine, const pare_mat *a,
                                             pare_err *err);
/* A contiguous copy; v is NULL when memory is out. */
pare_mat pare_mat_copy(pare_arena *scratch, const pare_mat *a);
/* out = a^T. */
void pare_mat_transpose(pare_mat *out, const pare_mat *a);
#endif
