/* merge_partials.c - the merge of partial results: what their users rely on.
 *
 * For disjoint ranges t with maxima m_t, sums l_t and vectors acc_t, and m = max_t m_t,
 *
 *     y = sum_t e^(m_t - m) acc_t / sum_t e^(m_t - m) l_t
 *
 * is attention over their union: exactly, in real numbers, whatever the ranges are. In f64 the
 * merge adds less than an f32 rounding to what the engine computed. */
#include "merge_partials.h"
#include "linalg/elementary.h"
#include <math.h>
#include <string.h>

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
