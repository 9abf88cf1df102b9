/* attn_stats_rows.c - distances of rows to their nearest constant matrix (Res), and rotary
 * positions of rows. */
#include "base/support.h"
#include "linalg/matrix.h"
#include "attn_stats.h"
#include <math.h>
#include <string.h>

double widest_column_range(const pare_mat *m, const bool *counts)
{
    double most = 0;
    for (size_t c = 0; c < m->cols; c++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < m->rows; i++) {
            if (counts && !counts[i]) continue;
            low = fmin(low, pare_row(m, i)[c]);
            high = fmax(high, pare_row(m, i)[c]);
        }
        if (high - low > most) most = high - low;
    }
    return most;
}

/* ---- Res ------------------------------------------------------------------------------------- */

typedef struct centres { /* of each column */
    double *mean, *median, *midrange;
} centres;

static void find_centres(centres *c, const pare_mat *m, double *column)
{
    const size_t n = m->rows;
    for (size_t k = 0; k < m->cols; k++) {
        c->mean[k] = 0;
        for (size_t i = 0; i < n; i++) c->mean[k] += column[i] = pare_row(m, i)[k];
        c->mean[k] /= (double)n;
        pare_sort_doubles(column, n);
        c->median[k] = (column[(n - 1) / 2] + column[n / 2]) / 2;
        c->midrange[k] = column[0] / 2 + column[n - 1] / 2;
    }
}

/* sqrt(largest column sum x largest row sum) of |m - 1 y^T|; `sums`: a buffer for the columns. */
static double norm_around(const pare_mat *m, const double *y, double *sums)
{
    double rows = 0, cols = 0;
    memset(sums, 0, m->cols * sizeof *sums);
    for (size_t i = 0; i < m->rows; i++) {
        double s = 0;
        for (size_t k = 0; k < m->cols; k++) {
            const double off = fabs(pare_row(m, i)[k] - y[k]);
            s += off;
            sums[k] += off;
        }
        rows = fmax(rows, s);
    }
    for (size_t k = 0; k < m->cols; k++) cols = fmax(cols, sums[k]);
    return sqrt(rows * cols);
}

pare_status residual_norm_1inf(double *out, const pare_mat *m, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    const size_t d = m->cols;
    double *const v = a ? pare_alloc(a, 4 * d + m->rows + 1, sizeof *v) : NULL;
    *out = 0;
    if (v && m->rows > 0) {
        centres c = {v, v + d, v + 2 * d};
        find_centres(&c, m, v + 4 * d);
        *out = fmin(norm_around(m, c.mean, v + 3 * d), fmin(norm_around(m, c.median, v + 3 * d),
                                                            norm_around(m, c.midrange, v + 3 * d)));
    }
    pare_arena_free(a);
    return v ? PARE_OK : pare_no_memory(err);
}

double varying_share(const pare_mat *m)
{
    const double all = pare_mat_fro_est(m);
    double common = 0; /* |1 mean^T|_F^2 */
    for (size_t k = 0; k < m->cols; k++) {
        double s = 0;
        for (size_t i = 0; i < m->rows; i++) s += pare_row(m, i)[k];
        common += s * s / (double)m->rows;
    }
    return all > 0 ? fmax(0, 1 - common / (all * all)) : 0;
}

/* ---- positions ------------------------------------------------------------------------------- */

void rotate_rows(pare_mat *x, const pare_attn *a, const pare_head *h, bool interleaved)
{
    for (size_t i = 0; i < x->rows; i++) {
        double *const v = pare_row_mut(x, i);
        for (size_t f = 0; f < h->planes; f++) {
            const double angle = (double)i * pare_weight_at(&a->freqs, h->freq + f);
            const size_t one = interleaved ? 2 * f : f,
                         two = interleaved ? 2 * f + 1 : f + h->planes;
            const double s = sin(angle), c = cos(angle), p = v[one], q = v[two];
            v[one] = p * c - q * s;
            v[two] = p * s + q * c;
        }
    }
}
