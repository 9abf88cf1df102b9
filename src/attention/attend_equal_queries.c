/* Attention when every query is the same: a key's weight is e^(score) whoever asks, so what a row
 * sees is a mean with weights, and the n x n scores are n of them. Weights are taken from the
 * smallest score, e^(s - smallest) >= 1: sums of them cannot lose a row whose keys are all small.
 * That holds while the largest fits: in f64 for ranges, in f32 (and with digits to spare, also when
 * it multiplies a value) for the lists of a graph. Else it is attention like any other. */
#include <math.h>
#include <pare/elementary.h>
#include <pare/attention.h>
#include <stdlib.h>

#define MOST_RANGES 600.0 /* e^600 = 4e260 */
#define MOST_LISTS  20.0  /* e^20 = 5e8 */

/* Eight sums, so that none waits for another. */
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

/* Whether the weights fit; then they are in w. */
static bool weigh(double *w, const float *q, const pare_mat32 *k, float scale, double most)
{
    double low = INFINITY, top = -INFINITY;
    for (size_t j = 0; j < k->rows; j++) {
        w[j] = (double)scale * dot(q, k->v + j * k->ld, k->cols);
        if (!isfinite(w[j])) return false;
        low = w[j] < low ? w[j] : low;
        top = w[j] > top ? w[j] : top;
    }
    if (!(top - low <= most)) return false;
    for (size_t j = 0; j < k->rows; j++) w[j] = pare_exp(w[j] - low);
    return true;
}

/* Whether n products of weights and values add up within f32. */
static bool sums_fit(const pare_mat32 *v, double most)
{
    double largest = 0;
    for (size_t j = 0; j < v->rows; j++)
        for (size_t c = 0; c < v->cols; c++)
            largest = fmax(largest, fabs((double)v->v[j * v->ld + c]));
    return largest * pare_exp(most) * (double)v->rows <= 1e37;
}

pare_status pare_attend_same_f32(pare_mat32 *y, const pare_mat32 *q, const pare_mat32 *k,
                                 const pare_mat32 *v, float scale, const pare_pattern *p,
                                 const pare_graph *g, const pare_exec *exec, pare_err *err)
{
    if (k->rows == 0) return PARE_OK;
    double *const w = malloc(k->rows * sizeof *w);
    if (!w) return pare_no_memory(err);
    const bool lists = p->kind == PARE_GRAPH;
    const bool fits = weigh(w, q->v, k, scale, lists ? MOST_LISTS : MOST_RANGES) &&
                      (!lists || sums_fit(v, MOST_LISTS));
    const pare_status st = fits ? pare_mean_f32(y, v, w, p, g, exec, err)
                                : pare_attend_f32(y, q, k, v, scale, p, g, exec, err);
    free(w);
    return st;
}
