/* The way back of one tile: a block of queries over a range of keys, whose weights are computed
 * anew from the rows' log-sums over all their keys. Tiles of a cover add up to the whole gradient.
 */
#include "tiled_backward.h"
#include <math.h>

pare_status pare_attend_partial_backward_f32(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                             const pare_mat32 *dy, const pare_mat32 *q,
                                             const pare_mat32 *k, const pare_mat32 *v,
                                             const pare_mat32 *y, const float *lse, float scale,
                                             int64_t vis0, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(dq->rows == q->rows && y->rows == q->rows && dy->rows == q->rows);
    PARE_ASSERT(dk->rows == k->rows && dv->rows == k->rows && v->rows == k->rows);
    tile_kernel kernels[3];
    tile_kernels(kernels);
    const tiled_backward_job w = {.dq = *dq,
                                  .dk = *dk,
                                  .dv = *dv,
                                  .dy = dy,
                                  .q = q,
                                  .k = k,
                                  .v = v,
                                  .y = y,
                                  .lse = lse,
                                  .scale = scale,
                                  .sees = sight_of_stairs(vis0, q->rows, k->rows),
                                  .kernel = &kernels[0]};
    return tiled_backward(&w, exec, err);
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static void add_times(double *to, double by, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += by * x[i];
}

void pare_attend_partial_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy,
                                      const pare_mat *q, const pare_mat *k, const pare_mat *v,
                                      const pare_mat *y, const double *lse, double scale,
                                      int64_t vis0)
{
    const sight s = sight_of_stairs(vis0, q->rows, k->rows);
    for (size_t i = 0; i < q->rows; i++) {
        const int64_t end = s.vis0 == PARE_VIS_ALL ? (int64_t)k->rows : s.vis0 + (int64_t)i;
        const double mean = dot(pare_row(dy, i), pare_row(y, i), v->cols);
        for (size_t j = 0; (int64_t)j < end && j < k->rows; j++) {
            const double p = exp(scale * dot(pare_row(q, i), pare_row(k, j), q->cols) - lse[i]);
            const double t = scale * p * (dot(pare_row(dy, i), pare_row(v, j), v->cols) - mean);
            add_times(pare_row_mut(dv, j), p, pare_row(dy, i), v->cols);
            add_times(pare_row_mut(dq, i), t, pare_row(k, j), q->cols);
            add_times(pare_row_mut(dk, j), t, pare_row(q, i), q->cols);
        }
    }
}
