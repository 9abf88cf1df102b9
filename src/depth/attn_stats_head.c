/* attn_stats_head.c - statistics of one head on one sequence: the distances between the rows of
 * its attention matrix P, and to simpler rows.
 *
 * Rows go in blocks of ROWS: their scores against all keys are one product; a graph's rows are
 * scored key by key, so that nothing of size n x n is ever made of one. */
#include "linalg/matrix.h"
#include "attn_stats.h"
#include "imat.h"
#include <math.h>
#include <string.h>

enum { ROWS = 64 };

typedef struct head_job {
    const head_inputs *v;
    head_stats *s;
    size_t n;
    pare_mat score;               /* ROWS x n */
    double *logit, *p, *alt, *pa; /* n: of one row's keys */
    pare_mat y;                   /* n x dv: outputs of the head */
    bool *counts;                 /* n: rows that see a key */
    pare_mat logits, weights;     /* n x n, where pairs are compared */
} head_job;

/* ---- scores ---------------------------------------------------------------------------------- */

static double range_of(const double *a, const double *minus, size_t n)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t j = 0; j < n; j++) {
        const double v = minus ? a[j] - minus[j] : a[j];
        if (v < low) low = v;
        if (v > high) high = v;
    }
    return n ? high - low : 0;
}

static void softmax(double *p, const double *a, size_t n)
{
    double row_max = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++)
        if (a[j] > row_max) row_max = a[j];
    for (size_t j = 0; j < n; j++) sum += p[j] = exp(a[j] - row_max);
    for (size_t j = 0; j < n; j++) p[j] /= sum;
}

/* ---- one row --------------------------------------------------------------------------------- */

static double total_variation(const double *p, const double *q, size_t n)
{
    double s = 0;
    for (size_t j = 0; j < n; j++) s += fabs(p[j] - (q ? q[j] : 1.0 / (double)n));
    return s / 2;
}

/* The row beside one whose scores are the same for all rows. */
static void compare_row(head_job *l, const double *scores, const pare_keys *keys, double *tv,
                        double *widest)
{
    if (!scores) return;
    for (size_t j = 0; j < keys->count; j++) l->alt[j] = scores[pare_key(keys, j)];
    *widest = fmax(*widest, range_of(l->logit, l->alt, keys->count));
    softmax(l->pa, l->alt, keys->count);
    *tv += total_variation(l->p, l->pa, keys->count);
}

static void measure_row(head_job *l, size_t i)
{
    const head_inputs *const v = l->v;
    head_stats *const s = l->s;
    const pare_keys keys = pare_visible(&v->m->pattern, v->graph, l->n, i);
    if (keys.count == 0) return;
    l->counts[i] = true;
    s->rows++;
    for (size_t j = 0; j < keys.count; j++) {
        const size_t at = pare_key(&keys, j);
        if (v->graph) { /* key by key: nothing of size n x n is made of a graph */
            double dot = 0;
            for (size_t c = 0; c < v->q.cols; c++)
                dot += pare_row(&v->q, i)[c] * pare_row(&v->k, at)[c];
            l->logit[j] = v->h->scale * dot;
        } else {
            l->logit[j] = pare_row(&l->score, i % ROWS)[at];
        }
    }
    const double range = range_of(l->logit, NULL, keys.count);
    s->range += range;
    s->range_max = fmax(s->range_max, range);
    softmax(l->p, l->logit, keys.count);
    s->tv_uniform += total_variation(l->p, NULL, keys.count);
    if (keys.count > 1) {
        s->wide++;
        double entropy = 0;
        for (size_t j = 0; j < keys.count; j++)
            if (l->p[j] > 0) entropy -= l->p[j] * log(l->p[j]);
        s->entropy += entropy / log((double)keys.count);
    }
    compare_row(l, v->constq, &keys, &s->tv_constq, &s->constq_max);
    compare_row(l, v->meanq, &keys, &s->tv_meanq, &s->meanq_max);
    double *const y = pare_row_mut(&l->y, i);
    for (size_t j = 0; j < keys.count; j++) {
        const double *const value = pare_row(&v->v, pare_key(&keys, j));
        for (size_t c = 0; c < v->v.cols; c++) y[c] += l->p[j] * value[c];
    }
    for (size_t j = 0; l->weights.v && j < keys.count; j++)
        pare_row_mut(&l->weights, i)[pare_key(&keys, j)] = l->p[j];
}

static void measure_rows(head_job *l)
{
    const head_inputs *const v = l->v;
    for (size_t first = 0; first < l->n; first += ROWS) {
        const size_t rows = l->n - first < ROWS ? l->n - first : ROWS;
        if (!v->graph) { /* the scores of a block of rows against all keys are one product */
            const pare_mat q = pare_mat_part(&v->q, first, 0, rows, v->q.cols);
            pare_mat to = pare_mat_part(&l->score, 0, 0, rows, v->k.rows);
            pare_gemm(&to, v->h->scale, &q, false, &v->k, true, 0);
        }
        for (size_t i = 0; i < rows; i++) {
            if (l->logits.v)
                memcpy(pare_row_mut(&l->logits, first + i), pare_row(&l->score, i),
                       l->n * sizeof(double));
            measure_row(l, first + i);
        }
    }
}

/* ---- pairs of rows --------------------------------------------------------------------------- */

/* The largest distance of two rows. `tv`: total variation (tau); else the range of their difference
 * (rho): adding to a row or to a column of the logits changes no double difference, so biases and
 * shifts need not be removed. */
static double largest_pair(const pare_mat *a, bool tv)
{
    double most = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t k = 0; k < i; k++)
            most = fmax(most, tv ? total_variation(pare_row(a, i), pare_row(a, k), a->cols)
                                 : range_of(pare_row(a, i), pare_row(a, k), a->cols));
    return most;
}

/* Rows of Res(Z) B Res(Z)^T: queries and keys minus those of the midrange row. */
static double theta_of(pare_work *w, const head_inputs *v)
{
    const size_t n = v->q.rows, dk = v->q.cols;
    pare_mat q = work_matrix(w, ROWS, dk), k = work_matrix(w, n, dk), e = work_matrix(w, ROWS, n);
    double theta = 0;
    if (w->st) return NAN;
    for (size_t j = 0; j < n; j++)
        for (size_t c = 0; c < dk; c++) pare_row_mut(&k, j)[c] = pare_row(&v->k, j)[c] - v->kmid[c];
    for (size_t first = 0; first < n; first += ROWS) {
        const size_t rows = n - first < ROWS ? n - first : ROWS;
        for (size_t i = 0; i < rows; i++)
            for (size_t c = 0; c < dk; c++)
                pare_row_mut(&q, i)[c] = pare_row(&v->q, first + i)[c] - v->qmid[c];
        const pare_mat some = pare_mat_part(&q, 0, 0, rows, dk);
        pare_mat to = pare_mat_part(&e, 0, 0, rows, n);
        pare_gemm(&to, v->h->scale, &some, false, &k, true, 0);
        for (size_t i = 0; i < rows; i++) theta = fmax(theta, range_of(pare_row(&e, i), NULL, n));
    }
    return theta;
}

/* ---- what goes through wo -------------------------------------------------------------------- */

/* The widest column of the rows times wo. */
static double widest_output(pare_work *w, const head_inputs *v, const pare_mat *rows,
                            const bool *counts)
{
    if (w->st) return 0;
    if (!pare_has(&v->a->wo)) return widest_column_range(rows, counts);
    pare_mat wo = work_matrix(w, v->a->dout, v->h->dv);
    pare_mat y = work_matrix(w, rows->rows, v->a->dout);
    if (w->st) return 0;
    pare_weight_widen(&wo, &v->a->wo, 0, v->h->o);
    pare_gemm(&y, 1, rows, false, &wo, true, 0);
    return widest_column_range(&y, counts);
}

/* ---- centered logits: the range that a polynomial covers ------------------------------------- */

/* Largest |entry| of each column around its midrange, and the longest centered row. */
static double center_columns(double *widths, const pare_mat *m)
{
    double longest = 0;
    for (size_t c = 0; c < m->cols; c++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < m->rows; i++) {
            low = fmin(low, pare_row(m, i)[c]);
            high = fmax(high, pare_row(m, i)[c]);
        }
        widths[2 * c] = (high - low) / 2;
        widths[2 * c + 1] = low / 2 + high / 2;
    }
    for (size_t i = 0; i < m->rows; i++) {
        double s = 0;
        for (size_t c = 0; c < m->cols; c++) {
            const double x = pare_row(m, i)[c] - widths[2 * c + 1];
            s += x * x;
        }
        longest = fmax(longest, sqrt(s));
    }
    return longest;
}

static double largest_centered_score(pare_work *w, const head_inputs *v)
{
    const size_t dk = v->q.cols;
    double *const widths = pare_work_alloc(w, 4 * dk, sizeof *widths), sum = 0;
    if (w->st) return 0;
    const double longest = center_columns(widths, &v->q) * center_columns(widths + 2 * dk, &v->k);
    for (size_t c = 0; c < dk; c++) sum += widths[2 * c] * widths[2 * (dk + c)];
    return fabs(v->h->scale) * fmin(sum, longest);
}

/* ---- all of it ------------------------------------------------------------------------------- */

pare_status head_stats_of(head_stats *out, const head_inputs *v, pare_err *err)
{
    pare_work w = {.arena = pare_arena_new(), .err = err};
    if (!w.arena) return pare_no_memory(err);
    const size_t n = v->q.rows;
    const bool tau = v->pairs && v->m->pattern.kind == PARE_FULL;
    head_job l = {.v = v,
                  .s = out,
                  .n = n,
                  .score = work_matrix(&w, ROWS, v->graph ? 0 : n),
                  .logit = pare_work_alloc(&w, n, sizeof *l.logit),
                  .p = pare_work_alloc(&w, n, sizeof *l.p),
                  .alt = pare_work_alloc(&w, n, sizeof *l.alt),
                  .pa = pare_work_alloc(&w, n, sizeof *l.pa),
                  .counts = pare_work_alloc(&w, n, sizeof *l.counts),
                  .y = work_matrix(&w, n, v->v.cols)};
    if (v->pairs) l.logits = work_matrix(&w, n, n);
    if (tau) l.weights = work_matrix(&w, n, n);
    *out = (head_stats){.theta = NAN, .rho = NAN, .tau = NAN};
    if (!w.st) measure_rows(&l);
    if (!w.st && v->pairs) out->rho = largest_pair(&l.logits, false);
    if (!w.st && tau) out->tau = largest_pair(&l.weights, true);
    if (v->qmid) out->theta = theta_of(&w, v);
    out->res_out = widest_output(&w, v, &l.y, l.counts) / 2;
    out->diam = widest_output(&w, v, &v->v, NULL);
    out->poly_b = largest_centered_score(&w, v);
    pare_arena_free(w.arena);
    return w.st;
}
