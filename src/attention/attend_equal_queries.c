/* attend_equal_queries.c - attention when all queries are equal.
 *
 * The weight of a key, e^(score), is then the same for every query: a row is a weighted mean of the
 * values it sees, and the n x n scores are n numbers. Weights are taken relative to the smallest
 * score, e^(s - smallest) >= 1, so that no row vanishes whose keys all have small weights. This
 * works while the largest weight fits: in f64 for ranges of keys; in f32, with digits to spare for
 * its product with a value, for the lists of a graph. Otherwise it is attention as usual. */
#include <math.h>
#include "attend.h"
#include "linalg/elementary.h"
#include <stdlib.h>

#define MAX_SPREAD_F64 600.0 /* e^600 = 4e260 */
#define MAX_SPREAD_F32 20.0  /* e^20 = 5e8 */

/* Eight independent sums. */
static double dot(const float *a, const float *b, size_t n)
{
    double part[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++) part[l] += (double)a[i + l] * (double)b[i + l];
    for (; i < n; i++) part[0] += (double)a[i] * (double)b[i];
    return ((part[0] + part[4]) + (part[1] + part[5])) +
           ((part[2] + part[6]) + (part[3] + part[7]));
}

pare_status pare_attend_same_f32(pare_mat32 *y, const pare_attention_args32 *x,
                                 const pare_exec *exec, pare_err *err)
{
    const pare_mat32 *const q = x->q, *const k = x->k, *const v = x->v;
    const float scale = (float)x->scale;
    if (k->rows == 0) return PARE_OK;
    double *const w = malloc(k->rows * sizeof *w);
    if (!w) return pare_no_memory(err);
    const bool graph = x->pattern->kind == PARE_GRAPH;
    bool fits = true; /* the spread of the weights */
    double low = INFINITY, high = -INFINITY;
    for (size_t j = 0; j < k->rows && fits; j++) {
        w[j] = (double)scale * dot(q->v, k->v + j * k->ld, k->cols);
        fits = isfinite(w[j]);
        low = w[j] < low ? w[j] : low;
        high = w[j] > high ? w[j] : high;
    }
    fits = fits && high - low <= (graph ? MAX_SPREAD_F32 : MAX_SPREAD_F64);
    for (size_t j = 0; j < k->rows && fits; j++) w[j] = pare_exp(w[j] - low);
    if (fits && graph) { /* n products of weights and values must add up within f32 */
        double largest = 0;
        for (size_t j = 0; j < v->rows; j++)
            for (size_t c = 0; c < v->cols; c++)
                largest = fmax(largest, fabs((double)v->v[j * v->ld + c]));
        fits = largest * pare_exp(MAX_SPREAD_F32) * (double)v->rows <= 1e37;
    }
    const pare_status st = fits ? pare_mean_f32(y, v, w, x->pattern, x->graph, exec, err)
                                : pare_attend_f32(y, x, exec, err);
    free(w);
    return st;
}
