/* Attention over a range of keys, left unnormalised, and the merge of such results.
 *
 * For disjoint ranges t with maxima m_t, sums l_t and vectors acc_t, and m = max_t m_t,
 *     y = sum_t e^(m_t - m) acc_t / sum_t e^(m_t - m) l_t
 * is attention over their union: exactly, in real numbers, whatever the ranges are. In f64 the
 * merge adds less than an f32 rounding to what the engine computed. */
#include "tiled.h"
#include <pare/elementary.h>
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
                         .sees = sight_of_stairs(vis0, q->rows, k->rows),
                         .kernel = &kernels[0],
                         .y = out->acc,
                         .m = out->m,
                         .l = out->l};
    return tiled_attend(&d, exec, err);
}

enum { COLUMNS = 64 }; /* at a time: the sums live on the stack */

static void merge_columns(float *y, const pare_partial *parts, size_t count, size_t i, size_t c,
                          size_t n, double top)
{
    double sum[COLUMNS] = {0}, weight = 0;
    for (size_t t = 0; t < count; t++) {
        const double m = (double)parts[t].m[i];
        if (m == -INFINITY && parts[t].l[i] == 0) continue; /* saw nothing */
        const double f = pare_exp(m - top);
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
        double top = -INFINITY;
        bool seen = false;
        for (size_t t = 0; t < count; t++) {
            if ((double)parts[t].m[i] > top) top = (double)parts[t].m[i];
            if (!(parts[t].l[i] == 0)) seen = true;
        }
        if (!seen) memset(row, 0, y->cols * sizeof *row);
        for (size_t c = 0; seen && c < y->cols; c += COLUMNS)
            merge_columns(row + c, parts, count, i, c,
                          y->cols - c < COLUMNS ? y->cols - c : COLUMNS, top);
    }
}
