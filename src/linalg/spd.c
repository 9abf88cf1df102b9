/* spd.c - the inverse of a symmetric positive definite matrix, by Cholesky factors. */
#include "matrix.h"
#include "blas.h"
#include <lapacke.h>

pare_status pare_spd_inverse(pare_mat *inverse, const pare_mat *a, pare_err *err)
{
    const size_t n = a->rows;
    PARE_ASSERT(a->cols == n && inverse->rows == n && inverse->cols == n && inverse->v != a->v);
    if (n == 0) return PARE_OK;
    pare_status st = pare_require_finite(a, "inverse", err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) pare_row_mut(inverse, i)[j] = pare_row(a, i)[j];
    pare_blas_one_thread();
    /* Our lower triangle is the upper one of a matrix stored by columns. */
    const int order = pare_blas_int(n), ld = pare_blas_ld(inverse);
    int info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', order, inverse->v, ld);
    if (info > 0)
        return pare_fail(err, PARE_ERR_INPUT, "a matrix of %zu rows is not positive definite", n);
    if (info == 0) info = LAPACKE_dpotri(LAPACK_COL_MAJOR, 'U', order, inverse->v, ld);
    st = pare_lapack_status(info, "dpotri", a, err);
    for (size_t i = 0; st == PARE_OK && i < n; i++) /* LAPACK has filled one triangle */
        for (size_t j = i + 1; j < n; j++) pare_row_mut(inverse, i)[j] = pare_row(inverse, j)[i];
    return st;
}
