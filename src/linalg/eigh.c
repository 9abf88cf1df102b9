/* eigh.c - symmetric eigenvalues and vectors by divide and conquer. The lower triangle is read. */
#include "matrix.h"
#include "blas.h"
#include <lapacke.h>

pare_status pare_eigh(double *w, pare_mat *v, const pare_mat *a, pare_arena *scratch, pare_err *err)
{
    const size_t n = a->rows;
    PARE_ASSERT(a->cols == n && (!v || (v->rows == n && v->cols == n)));
    if (n == 0) return PARE_OK;
    pare_status st = pare_require_finite(a, "eigh", err);
    if (st != PARE_OK) return st;
    const pare_mark mark = pare_arena_mark(scratch);
    pare_mat work = pare_mat_copy(scratch, a);
    if (!work.v) return pare_no_memory(err);
    pare_blas_one_thread();
    /* Our lower triangle is the upper one of a matrix stored by columns. */
    const int info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, v ? 'V' : 'N', 'U', pare_blas_int(n), work.v,
                                    pare_blas_ld(&work), w);
    st = pare_lapack_status(info, "dsyevd", a, err);
    if (st == PARE_OK && v) pare_mat_transpose(v, &work); /* vectors came back in rows of memory */
    pare_arena_reset(scratch, mark);
    return st;
}
