/* fit_problems.h - what the tests of fits share. */
#ifndef FIT_PROBLEMS_H
#define FIT_PROBLEMS_H
#include "linalg/matrix.h"
#include "ticket/fit.h"
#include <pare_test.h>

static inline const int32_t *drawn(pare_arena *a, uint64_t seed, uint64_t stream, size_t count)
{
    int32_t *const w = pare_alloc(a, count + 1, sizeof *w);
    assert_non_null(w);
    pare_source_weights(w, seed, stream, 0, count);
    return w;
}

static inline double largest(const pare_mat *m)
{
    double most = 0;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) most = fmax(most, fabs(pare_row(m, i)[j]));
    return most;
}
#endif
