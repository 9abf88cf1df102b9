/* mat.c - matrices as views, and the checks every factorization makes at its border. */
#include "matrix.h"
#include "blas.h"
#include <lapacke.h>
#include <math.h>
#include <string.h>

pare_mat pare_mat_new(pare_arena *a, size_t rows, size_t cols)
{
    size_t count;
    pare_mat m = pare_mat_of(NULL, rows, cols);
    if (!pare_mul(&count, rows, cols)) return m;
    /* An empty matrix still has an address, so that NULL means only "no memory". */
    m.v = pare_alloc(a, count > 0 ? count : 1, sizeof *m.v);
    return m;
}

pare_mat pare_mat_part(const pare_mat *m, size_t r, size_t c, size_t rows, size_t cols)
{
    PARE_ASSERT(r <= m->rows && rows <= m->rows - r);
    PARE_ASSERT(c <= m->cols && cols <= m->cols - c);
    const bool empty = rows == 0 || cols == 0; /* no address beyond the matrix is formed */
    return (pare_mat){rows, cols, m->ld, empty ? m->v : m->v + r * m->ld + c};
}

pare_mat pare_mat_copy(pare_arena *scratch, const pare_mat *a)
{
    pare_mat m = pare_mat_new(scratch, a->rows, a->cols);
    if (!m.v || a->cols == 0) return m;
    for (size_t i = 0; i < a->rows; i++)
        memcpy(pare_row_mut(&m, i), pare_row(a, i), a->cols * sizeof *a->v);
    return m;
}

void pare_mat_transpose(pare_mat *out, const pare_mat *a)
{
    enum { tile = 32 }; /* both sides stay in the first cache */
    PARE_ASSERT(out->rows == a->cols && out->cols == a->rows);
    for (size_t i0 = 0; i0 < a->rows; i0 += tile)
        for (size_t j0 = 0; j0 < a->cols; j0 += tile)
            for (size_t i = i0; i < a->rows && i < i0 + tile; i++)
                for (size_t j = j0; j < a->cols && j < j0 + tile; j++)
                    pare_row_mut(out, j)[i] = pare_row(a, i)[j];
}

pare_status pare_require_finite(const pare_mat *a, const char *what, pare_err *err)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            if (!isfinite(pare_row(a, i)[j]))
                return pare_fail(err, PARE_ERR_NONFINITE,
                                 "%s: the [%zu, %zu] matrix holds %g at (%zu, %zu)", what, a->rows,
                                 a->cols, pare_row(a, i)[j], i, j);
    return PARE_OK;
}

pare_status pare_lapack_status(int info, const char *routine, const pare_mat *a, pare_err *err)
{
    if (info == 0) return PARE_OK;
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return pare_no_memory(err);
    PARE_ASSERT(info > 0);
    return pare_fail(err, PARE_ERR_NUMERIC, "%s of a [%zu, %zu] matrix did not converge (info %d)",
                     routine, a->rows, a->cols, info);
}

double pare_mat_max_abs(const pare_mat *m)
{
    double most = 0;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) most = fmax(most, fabs(pare_row(m, i)[j]));
    return most;
}

double pare_mat_fro_est(const pare_mat *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) sum += pare_row(m, i)[j] * pare_row(m, i)[j];
    return sqrt(sum);
}
