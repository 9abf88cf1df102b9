/* qr.c - a = q r for a tall a.
 *
 * LAPACK sees our row-major a as a^T stored by columns. Its LQ factorization a^T = l q' is the QR
 * factorization a = q'^T l^T, and read by rows again both factors lie where we want them: no
 * transpose is made. */
#include "matrix.h"
#include "blas.h"
#include <lapacke.h>
#include <string.h>

pare_status pare_qr(pare_mat *q, pare_mat *r, const pare_mat *a, pare_arena *scratch, pare_err *err)
{
    const size_t m = a->rows, n = a->cols;
    PARE_ASSERT(m >= n && q->rows == m && q->cols == n && r->rows == n && r->cols == n);
    if (n == 0) return PARE_OK;
    pare_status st = pare_require_finite(a, "qr", err);
    if (st != PARE_OK) return st;
    const pare_mark mark = pare_arena_mark(scratch);
    double *tau = pare_alloc(scratch, n, sizeof *tau);
    if (!tau) return pare_no_memory(err);
    for (size_t i = 0; i < m; i++) memmove(pare_row_mut(q, i), pare_row(a, i), n * sizeof *q->v);
    pare_blas_one_thread();
    const int rows = pare_blas_int(n), cols = pare_blas_int(m), ld = pare_blas_ld(q);
    st = pare_lapack_status(LAPACKE_dgelqf(LAPACK_COL_MAJOR, rows, cols, q->v, ld, tau), "dgelqf",
                            a, err);
    if (st == PARE_OK) {
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) pare_row_mut(r, i)[j] = j < i ? 0 : pare_row(q, i)[j];
        st = pare_lapack_status(LAPACKE_dorglq(LAPACK_COL_MAJOR, rows, cols, rows, q->v, ld, tau),
                                "dorglq", a, err);
    }
    pare_arena_reset(scratch, mark);
    return st;
}
