/* lstsq.c - least squares of least norm: singular values under rcond * largest count as zero. */
#include "matrix.h"
#include "blas.h"
#include <lapacke.h>
#include <string.h>

/* dgelsd on copies stored by columns: at is a^T by rows; bt holds the right-hand sides in its rows,
 * each of max(m, n) numbers, and receives the solutions. dgelsd refuses to work for no
 * right-hand side at all, so that one of zeros is added: the rank is still wanted. */
static pare_status solve(pare_mat *x, size_t *rank, const pare_mat *a, const pare_mat *b,
                         double rcond, pare_arena *scratch, pare_err *err)
{
    const size_t m = a->rows, n = a->cols, p = b->cols;
    const size_t sides = p > 0 ? p : 1, tall = m > n ? m : n;
    pare_mat at = pare_mat_new(scratch, n, m), bt = pare_mat_new(scratch, sides, tall);
    double *s = pare_alloc(scratch, m < n ? m : n, sizeof *s);
    if (!at.v || !bt.v || !s) return pare_no_memory(err);
    pare_mat_transpose(&at, a);
    pare_mat right = pare_mat_part(&bt, 0, 0, p, m);
    pare_mat_transpose(&right, b);
    pare_blas_one_thread();
    lapack_int found = 0;
    const int info =
        LAPACKE_dgelsd(LAPACK_COL_MAJOR, pare_blas_int(m), pare_blas_int(n), pare_blas_int(sides),
                       at.v, pare_blas_ld(&at), bt.v, pare_blas_ld(&bt), s, rcond, &found);
    const pare_status st = pare_lapack_status(info, "dgelsd", a, err);
    if (st != PARE_OK) return st;
    if (rank) *rank = (size_t)found;
    const pare_mat left = pare_mat_part(&bt, 0, 0, p, n);
    pare_mat_transpose(x, &left);
    return PARE_OK;
}

pare_status pare_lstsq(pare_mat *x, size_t *rank, const pare_mat *a, const pare_mat *b,
                       double rcond, pare_arena *scratch, pare_err *err)
{
    PARE_ASSERT(a->rows == b->rows && x->rows == a->cols && x->cols == b->cols);
    if (rank) *rank = 0;
    if (a->rows == 0 || a->cols == 0) {
        for (size_t i = 0; i < x->rows; i++)
            for (size_t j = 0; j < x->cols; j++) pare_row_mut(x, i)[j] = 0;
        return PARE_OK;
    }
    pare_status st = pare_require_finite(a, "lstsq", err);
    if (st == PARE_OK) st = pare_require_finite(b, "lstsq, right-hand side", err);
    if (st != PARE_OK) return st;
    const pare_mark mark = pare_arena_mark(scratch);
    st = solve(x, rank, a, b, rcond, scratch, err);
    pare_arena_reset(scratch, mark);
    return st;
}
