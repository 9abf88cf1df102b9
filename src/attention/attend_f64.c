/* attend_f64.c - plain softmax attention in f64, forward and backward: the reference for every
 * faster kernel.
 *
 *     s_ij = scale q_i.k_j  over the visible j,
 *     p_ij = e^(s_ij - lse_i),   lse_i = log sum_j e^(s_ij),
 *     y_i  = sum_j p_ij v_j;     y_i = 0 where nothing is visible.
 *
 * Backward, over the visible pairs:
 *
 *     t_ij = scale p_ij (dy_i.v_j - dy_i.y_i),
 *     dv_j = sum_i p_ij dy_i,   dq_i = sum_j t_ij k_j,   dk_j = sum_i t_ij q_i,
 *
 * once by queries for dq and once by keys for dk and dv, so that every sum has one owner and one
 * order. The forward pass without lse is blocked: full and causal rows by gemm. */
#include "rows_f64.h"
#include "attend.h"
#include "base/support.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ROWS = 32 }; /* of one unit of work: fixed, so that bits do not depend on threads */

typedef struct job {
    pare_mat y; /* forward: written */
    double *lse;
    pare_mat *dq, *dk, *dv; /* backward: added to */
    const pare_mat *dy, *q, *k, *v, *saved_y;
    const double *saved_lse;
    double scale;
    const pare_pattern *p;
    const pare_graph *g;
    const pare_transposed_graph *transpose;
    atomic_bool no_memory;
} job;

static size_t units(size_t rows)
{
    return (rows + ROWS - 1) / ROWS;
}

static double score(const job *w, size_t i, size_t j)
{
    return w->scale * dot_f64(pare_row(w->q, i), pare_row(w->k, j), w->q->cols);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Turns n > 0 scores into weights, in place. */
static void softmax(double *s, size_t n)
{
    double row_max = s[0], sum = 0;
    for (size_t j = 1; j < n; j++)
        if (s[j] > row_max) row_max = s[j];
    for (size_t j = 0; j < n; j++) sum += s[j] = pare_exp(s[j] - row_max);
    for (size_t j = 0; j < n; j++) s[j] /= sum;
}

static void attend_unit(void *ctx, size_t b)
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
    if (dense) { /* keys [0, nk): nk covers the longest row */
        pare_mat p = pare_mat_of(s, rows, nk), y = pare_mat_part(&w->y, r0, 0, rows, w->y.cols);
        const pare_mat q = pare_mat_part(w->q, r0, 0, rows, w->q->cols);
        const pare_mat k = pare_mat_part(w->k, 0, 0, nk, w->k->cols);
        const pare_mat v = pare_mat_part(w->v, 0, 0, nk, w->v->cols);
        pare_gemm(&p, w->scale, &q, false, &k, true, 0);
        for (size_t r = 0; r < rows; r++) {
            const size_t visible = pare_visible(w->p, NULL, n, r0 + r).count;
            double *const row = pare_row_mut(&p, r);
            softmax(row, visible);
            for (size_t j = visible; j < nk; j++) row[j] = 0;
        }
        pare_gemm(&y, 1, &p, false, &v, false, 0);
    }
    for (size_t i = r0; !dense && i < r0 + rows; i++) { /* over its own keys */
        const pare_keys keys = pare_visible(w->p, w->g, n, i);
        double *const y = pare_row_mut(&w->y, i);
        for (size_t c = 0; c < w->y.cols; c++) y[c] = 0;
        if (keys.count == 0) continue;
        for (size_t j = 0; j < keys.count; j++) s[j] = score(w, i, pare_key(&keys, j));
        softmax(s, keys.count);
        for (size_t j = 0; j < keys.count; j++)
            add_scaled_f64(y, s[j], pare_row(w->v, pare_key(&keys, j)), w->y.cols);
    }
    free(s);
}

pare_status pare_attend_f64(pare_mat *y, const pare_attention_args *x, const pare_exec *exec,
                            pare_err *err)
{
    const pare_mat *const q = x->q, *const k = x->k, *const v = x->v;
    const pare_pattern *const p = x->pattern;
    const pare_graph *const g = x->graph;
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    job w = {.y = *y, .q = q, .k = k, .v = v, .scale = x->scale, .p = p, .g = g};
    const pare_status st = pare_parallel_until(exec, units(q->rows), attend_unit, &w, err);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : st;
}

/* Rows with their lse. */
static void save_unit(void *ctx, size_t b)
{
    job *const w = ctx;
    for (size_t i = b * ROWS; i < w->q->rows && i < (b + 1) * ROWS; i++) {
        const pare_keys keys = pare_visible(w->p, w->g, w->q->rows, i);
        double row_max = -INFINITY, sum = 0;
        for (size_t j = 0; j < keys.count; j++) {
            const double s = score(w, i, pare_key(&keys, j));
            if (!(s <= row_max)) row_max = s;
        }
        for (size_t j = 0; j < keys.count; j++)
            sum += exp(score(w, i, pare_key(&keys, j)) - row_max);
        w->lse[i] = keys.count == 0 ? -INFINITY : row_max + log(sum);
        double *const y = pare_row_mut(&w->y, i);
        for (size_t c = 0; c < w->y.cols; c++) y[c] = 0;
        for (size_t j = 0; j < keys.count; j++) {
            const size_t key = pare_key(&keys, j);
            const double p = exp(score(w, i, key) - row_max) / sum;
            add_scaled_f64(y, p, pare_row(w->v, key), w->y.cols);
        }
    }
}

pare_status pare_attend_saving_f64(pare_mat *y, double *lse, const pare_mat *q, const pare_mat *k,
                                   const pare_mat *v, double scale, const pare_pattern *p,
                                   const pare_graph *g, const pare_exec *exec, pare_err *err)
{
    (void)err;
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    job w = {.y = *y, .lse = lse, .q = q, .k = k, .v = v, .scale = scale, .p = p, .g = g};
    pare_parallel(exec, units(q->rows), save_unit, &w);
    return PARE_OK;
}

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct pair {
    double p, t; /* weight; d loss / d (q_i.k_j) */
} pair;

static pair pair_of(const job *w, size_t i, size_t j)
{
    const size_t dv = w->v->cols;
    const double *const dy = pare_row(w->dy, i);
    const double p = exp(score(w, i, j) - w->saved_lse[i]);
    const double mean = dot_f64(dy, pare_row(w->saved_y, i), dv);
    return (pair){p, w->scale * p * (dot_f64(dy, pare_row(w->v, j), dv) - mean)};
}

static void queries_backward(void *ctx, size_t b)
{
    job *const w = ctx;
    const size_t n = w->q->rows, dk = w->q->cols;
    for (size_t i = b * ROWS; i < n && i < (b + 1) * ROWS; i++) {
        const pare_keys keys = pare_visible(w->p, w->g, n, i);
        for (size_t a = 0; a < keys.count; a++) {
            const size_t j = pare_key(&keys, a);
            add_scaled_f64(pare_row_mut(w->dq, i), pair_of(w, i, j).t, pare_row(w->k, j), dk);
        }
    }
}

static void add_pair(job *w, size_t i, size_t j)
{
    const pair x = pair_of(w, i, j);
    add_scaled_f64(pare_row_mut(w->dk, j), x.t, pare_row(w->q, i), w->q->cols);
    add_scaled_f64(pare_row_mut(w->dv, j), x.p, pare_row(w->dy, i), w->v->cols);
}

static void keys_backward(void *ctx, size_t b)
{
    job *const w = ctx;
    const pare_pattern *const p = w->p;
    const size_t n = w->q->rows;
    for (size_t j = b * ROWS; j < n && j < (b + 1) * ROWS; j++) {
        if (p->kind == PARE_GRAPH) {
            const pare_graph *const by_key = &w->transpose->by_key;
            for (size_t a = by_key->ptr[j]; a < by_key->ptr[j + 1]; a++)
                add_pair(w, by_key->idx[a], j);
            continue;
        }
        /* The queries that see key j: all, or those from j on until it leaves their window. */
        const size_t first = p->kind == PARE_FULL ? 0 : j;
        const bool leaves = p->kind == PARE_WINDOW && j >= p->sinks && n - j > p->window;
        for (size_t i = first; i < (leaves ? j + p->window : n); i++) add_pair(w, i, j);
    }
}

pare_status pare_attend_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy,
                                     const pare_mat *q, const pare_mat *k, const pare_mat *v,
                                     const pare_mat *y, const double *lse, double scale,
                                     const pare_pattern *p, const pare_graph *g,
                                     const pare_transposed_graph *transpose, const pare_exec *exec,
                                     pare_err *err)
{
    (void)err;
    const size_t n = q->rows;
    PARE_ASSERT(k->rows == n && v->rows == n && y->rows == n && dy->rows == n);
    PARE_ASSERT(dq->rows == n && dk->rows == n && dv->rows == n);
    PARE_ASSERT(q->cols == k->cols && dq->cols == q->cols && dk->cols == q->cols);
    PARE_ASSERT(v->cols == y->cols && dy->cols == v->cols && dv->cols == v->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == n && transpose && transpose->by_key.n == n));
    job w = {.dq = dq,
             .dk = dk,
             .dv = dv,
             .dy = dy,
             .q = q,
             .k = k,
             .v = v,
             .saved_y = y,
             .saved_lse = lse,
             .scale = scale,
             .p = p,
             .g = g,
             .transpose = transpose};
    pare_parallel(exec, units(n), queries_backward, &w);
    pare_parallel(exec, units(n), keys_backward, &w);
    return PARE_OK;
}
