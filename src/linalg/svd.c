/* svd.c - a = u diag(s) vt by divide and conquer.
 *
 * LAPACK counts by columns, so our row-major a is its a^T = v diag(s) u^T: we ask for the SVD of
 * that, and its "u" lands in our vt and its "vt" in our u without one transpose. */
#include "blas.h"
#include <lapacke.h>

pare_status pare_svd(pare_mat *u, double *s, pare_mat *vt, const pare_mat *a, pare_arena *scratch,
                     pare_err *err)
{
    const size_t k = a->rows < a->cols ? a->rows : a->cols;
    PARE_ASSERT((u == NULL) == (vt == NULL));
    PARE_ASSERT(!u || (u->rows == a->rows && u->cols == k));
    PARE_ASSERT(!vt || (vt->rows == k && vt->cols == a->cols));
    if (k == 0) return PARE_OK;
    pare_status st = pare_require_finite(a, "svd", err);
    if (st != PARE_OK) return st;
    const pare_mark mark = pare_arena_mark(scratch);
    pare_mat work = pare_mat_copy(scratch, a); /* dgesdd overwrites its input */
    if (!work.v) return pare_no_memory(err);
    pare_blas_one_thread();
    const int info =
        LAPACKE_dgesdd(LAPACK_COL_MAJOR, u ? 'S' : 'N', pare_blas_int(a->cols),
                       pare_blas_int(a->rows), work.v, pare_blas_ld(&work), s, vt ? vt->v : NULL,
                       vt ? pare_blas_ld(vt) : 1, u ? u->v : NULL, u ? pare_blas_ld(u) : 1);
    st = pare_lapack_status(info, "dgesdd", a, err);
    pare_arena_reset(scratch, mark);
    return st;
}
