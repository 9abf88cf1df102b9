/* partial.c - attention over a range of keys, left unnormalized, and its gradients.
 *
 * The backward pass of a block of queries over a range of keys recomputes the weights from the
 * rows' lse over all their keys: the gradients of ranges that cover all keys add up to the
 * whole. */
#include "rows_f64.h"
#include "tiled.h"
#include "attend.h"
#include "linalg/matrix.h"
#include <math.h>

pare_status pare_attend_partial_f32(pare_partial *out, const pare_mat32 *q, const pare_mat32 *k,
                                    const pare_mat32 *v, float scale, int64_t vis0,
                                    const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(q->cols == k->cols && k->rows == v->rows);
    PARE_ASSERT(out->acc.rows == q->rows && out->acc.cols == v->cols && out->m && out->l);
    tile_kernel kernels[3];
    tile_kernels(kernels);
    const tiled_job d = {.q = q,
                         .k = k,
                         .v = v,
                         .scale = scale,
                         .mask = staircase_mask(vis0, q->rows, k->rows),
                         .kernel = &kernels[0],
                         .y = out->acc,
                         .m = out->m,
                         .l = out->l};
    return tiled_attend(&d, exec, err);
}

/* ---- backward -------------------------------------------------------------------------------- */

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
                                  .mask = staircase_mask(vis0, q->rows, k->rows),
                                  .kernel = &kernels[0]};
    return tiled_backward(&w, exec, err);
}

void pare_attend_partial_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy,
                                      const pare_mat *q, const pare_mat *k, const pare_mat *v,
                                      const pare_mat *y, const double *lse, double scale,
                                      int64_t vis0)
{
    const key_mask mask = staircase_mask(vis0, q->rows, k->rows);
    for (size_t i = 0; i < q->rows; i++) {
        const int64_t end = mask.vis0 == PARE_VIS_ALL ? (int64_t)k->rows : mask.vis0 + (int64_t)i;
        const double mean = dot_f64(pare_row(dy, i), pare_row(y, i), v->cols);
        for (size_t j = 0; (int64_t)j < end && j < k->rows; j++) {
            const double p = exp(scale * dot_f64(pare_row(q, i), pare_row(k, j), q->cols) - lse[i]);
            const double t = scale * p * (dot_f64(pare_row(dy, i), pare_row(v, j), v->cols) - mean);
            add_scaled_f64(pare_row_mut(dv, j), p, pare_row(dy, i), v->cols);
            add_scaled_f64(pare_row_mut(dq, i), t, pare_row(k, j), q->cols);
            add_scaled_f64(pare_row_mut(dk, j), t, pare_row(q, i), q->cols);
        }
    }
}
