/* partial.c - attention over a range of keys, left unnormalized; the merge of such results;
 * gradients.
 *
 * For disjoint ranges t with maxima m_t, sums l_t and vectors acc_t, and m = max_t m_t,
 *
 *     y = sum_t e^(m_t - m) acc_t / sum_t e^(m_t - m) l_t
 *
 * is attention over their union: exactly, in real numbers, whatever the ranges are. In f64 the
 * merge adds less than an f32 rounding to what the engine computed.
 *
 * The backward pass of a block of queries over a range of keys recomputes the weights from the
 * rows' lse over all their keys: the gradients of ranges that cover all keys add up to the
 * whole. */
#include "rows_f64.h"
#include "tiled.h"
#include "attend.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include <math.h>
#include <string.h>

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

enum { COLUMNS = 64 }; /* merged at a time: the sums are on the stack */

static void merge_columns(float *y, const pare_partial *parts, size_t count, size_t i, size_t c,
                          size_t n, double row_max)
{
    double sum[COLUMNS] = {0}, weight = 0;
    for (size_t t = 0; t < count; t++) {
        const double m = (double)parts[t].m[i];
        if (m == -INFINITY && parts[t].l[i] == 0) continue; /* saw no key */
        const double f = pare_exp(m - row_max);
        const float *const acc = parts[t].acc.v + i * parts[t].acc.ld + c;
        weight += f * (double)parts[t].l[i];
        for (size_t e = 0; e < n; e++) sum[e] += f * (double)acc[e];
    }
    for (size_t e = 0; e < n; e++) y[e] = (float)(sum[e] / weight);
}

void pare_merge_partials(pare_mat32 *y, const pare_partial *parts, size_t count)
{
    for (size_t t = 0; t < count; t++)
        PARE_ASSERT(parts[t].acc.rows == y->rows && parts[t].acc.cols == y->cols);
    for (size_t i = 0; i < y->rows; i++) {
        float *const row = y->v + i * y->ld;
        double row_max = -INFINITY;
        bool seen = false;
        for (size_t t = 0; t < count; t++) {
            if ((double)parts[t].m[i] > row_max) row_max = (double)parts[t].m[i];
            if (!(parts[t].l[i] == 0)) seen = true;
        }
        if (!seen) memset(row, 0, y->cols * sizeof *row);
        for (size_t c = 0; seen && c < y->cols; c += COLUMNS)
            merge_columns(row + c, parts, count, i, c,
                          y->cols - c < COLUMNS ? y->cols - c : COLUMNS, row_max);
    }
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
