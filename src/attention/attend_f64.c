/* Plain softmax attention in f64, which every faster kernel is held against.
 *
 *   y_i = sum_j p_ij v_j,   p_ij = exp(s_ij - max_j s_ij) / sum_j exp(s_ij - max_j s_ij),
 *   s_ij = scale q_i . k_j  over the visible j;  y_i = 0 when nothing is visible.
 *
 * Full and causal rows go in blocks through gemm; windows and graphs row by row over their keys. */
#include <pare/attention.h>
#include <pare/elementary.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ROWS = 32 }; /* queries per block: fixed, so that bits do not depend on threads */

typedef struct job {
    pare_mat y;
    const pare_mat *q, *k, *v;
    double scale;
    const pare_pattern *p;
    const pare_graph *g;
    atomic_bool no_memory;
} job;

/* Turns scores into weights, in place; the caller knows n > 0. */
static void softmax(double *s, size_t n)
{
    double top = s[0], sum = 0;
    for (size_t j = 1; j < n; j++)
        if (s[j] > top) top = s[j];
    for (size_t j = 0; j < n; j++) sum += s[j] = pare_exp(s[j] - top);
    for (size_t j = 0; j < n; j++) s[j] /= sum;
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static void sparse_row(job *w, size_t i, const pare_keys *keys, double *s)
{
    double *const y = pare_row_mut(&w->y, i);
    for (size_t c = 0; c < w->y.cols; c++) y[c] = 0;
    if (keys->count == 0) return;
    for (size_t j = 0; j < keys->count; j++)
        s[j] = w->scale * dot(pare_row(w->q, i), pare_row(w->k, pare_key(keys, j)), w->q->cols);
    softmax(s, keys->count);
    for (size_t j = 0; j < keys->count; j++) {
        const double *const v = pare_row(w->v, pare_key(keys, j));
        for (size_t c = 0; c < w->y.cols; c++) y[c] += s[j] * v[c];
    }
}

/* Rows [r0, r0 + rows) against keys [0, nk): nk covers the longest of them. */
static void unit_run(job *w, size_t r0, size_t rows, size_t nk, double *s)
{
    pare_mat p = pare_mat_of(s, rows, nk);
    const pare_mat q = pare_mat_part(w->q, r0, 0, rows, w->q->cols);
    const pare_mat k = pare_mat_part(w->k, 0, 0, nk, w->k->cols);
    const pare_mat v = pare_mat_part(w->v, 0, 0, nk, w->v->cols);
    pare_gemm(&p, w->scale, &q, false, &k, true, 0);
    for (size_t r = 0; r < rows; r++) {
        const size_t seen = pare_visible(w->p, NULL, w->q->rows, r0 + r).count;
        double *const row = pare_row_mut(&p, r);
        softmax(row, seen);
        for (size_t j = seen; j < nk; j++) row[j] = 0;
    }
    pare_mat y = pare_mat_part(&w->y, r0, 0, rows, w->y.cols);
    pare_gemm(&y, 1, &p, false, &v, false, 0);
}

static void block(void *ctx, size_t b)
{
    job *const w = ctx;
    const size_t n = w->q->rows, r0 = b * ROWS, rows = n - r0 < ROWS ? n - r0 : ROWS;
    const bool dense = w->p->kind == PARE_FULL || w->p->kind == PARE_CAUSAL;
    const size_t nk = dense ? pare_visible(w->p, NULL, n, r0 + rows - 1).count : n;
    double *const s = malloc((dense ? rows * nk : nk) * sizeof *s);
    if (!s) {
        atomic_store(&w->no_memory, true);
        return;
    }
    if (dense) {
        unit_run(w, r0, rows, nk, s);
    } else {
        for (size_t i = r0; i < r0 + rows; i++) {
            const pare_keys keys = pare_visible(w->p, w->g, n, i);
            sparse_row(w, i, &keys, s);
        }
    }
    free(s);
}

pare_status pare_attend_f64(pare_mat *y, const pare_mat *q, const pare_mat *k, const pare_mat *v,
                            double scale, const pare_pattern *p, const pare_graph *g,
                            const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    job w = {.y = *y, .q = q, .k = k, .v = v, .scale = scale, .p = p, .g = g};
    const pare_status st = pare_parallel_until(exec, (q->rows + ROWS - 1) / ROWS, block, &w, err);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : st;
}
