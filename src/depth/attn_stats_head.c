/* attn_stats_head.c - statistics of one head on one sequence: the distances between the rows of
 * its attention matrix P, and to simpler rows.
 *
 * Rows go in blocks of ROWS: their scores against all keys are one product; a graph's rows are
 * scored key by key, so that nothing of size n x n is ever made of one. */
#include "attn_stats.h"
#include <math.h>
#include <string.h>

enum { ROWS = 64 };

typedef struct head_look {
    const head_inputs *v;
    head_stats *s;
    size_t n;
    pare_mat score;               /* ROWS x n */
    double *logit, *p, *alt, *pa; /* n: of one row's keys */
    pare_mat y;                   /* n x dv: outputs of the head */
    bool *counts;                 /* n: rows that see a key */
    pare_mat logits, weights;     /* n x n, where pairs are compared */
} head_look;

/* ---- scores ---------------------------------------------------------------------------------- */

static void product(pare_mat *out, const head_inputs *v, size_t first, size_t rows)
{
    const pare_mat some = pare_mat_part(&v->q, first, 0, rows, v->q.cols);
    pare_mat to = pare_mat_part(out, 0, 0, rows, v->k.rows);
    pare_gemm(&to, v->h->scale, &some, false, &v->k, true, 0);
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

/* The scores of query row i with its keys: from the block's product, or one by one. */
static void gather(double *out, const head_look *l, size_t i, const pare_keys *keys)
{
    const head_inputs *const v = l->v;
    for (size_t j = 0; j < keys->count; j++) {
        const size_t at = pare_key(keys, j);
        out[j] = v->graph ? v->h->scale * dot(pare_row(&v->q, i), pare_row(&v->k, at), v->q.cols)
                          : pare_row(&l->score, i % ROWS)[at];
    }
}

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

static void soften(double *p, const double *a, size_t n)
{
    double top = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++)
        if (a[j] > top) top = a[j];
    for (size_t j = 0; j < n; j++) sum += p[j] = exp(a[j] - top);
    for (size_t j = 0; j < n; j++) p[j] /= sum;
}

/* ---- one row --------------------------------------------------------------------------------- */

static double total_variation(const double *p, const double *q, size_t n)
{
    double s = 0;
    for (size_t j = 0; j < n; j++) s += fabs(p[j] - (q ? q[j] : 1.0 / (double)n));
    return s / 2;
}

static double entropy_of(const double *p, size_t n)
{
    double s = 0;
    for (size_t j = 0; j < n; j++)
        if (p[j] > 0) s -= p[j] * log(p[j]);
    return s;
}

/* The row beside one whose scores are the same for all rows. */
static void compare(head_look *l, const double *scores, const pare_keys *keys, double *tv,
                    double *widest)
{
    if (!scores) return;
    for (size_t j = 0; j < keys->count; j++) l->alt[j] = scores[pare_key(keys, j)];
    *widest = fmax(*widest, range_of(l->logit, l->alt, keys->count));
    soften(l->pa, l->alt, keys->count);
    *tv += total_variation(l->p, l->pa, keys->count);
}

static void one_row(head_look *l, size_t i)
{
    const head_inputs *const v = l->v;
    head_stats *const s = l->s;
    const pare_keys keys = pare_visible(&v->m->pattern, v->graph, l->n, i);
    if (keys.count == 0) return;
    l->counts[i] = true;
    s->rows++;
    gather(l->logit, l, i, &keys);
    const double range = range_of(l->logit, NULL, keys.count);
    s->range += range;
    s->range_max = fmax(s->range_max, range);
    soften(l->p, l->logit, keys.count);
    s->tv_uniform += total_variation(l->p, NULL, keys.count);
    if (keys.count > 1) {
        s->wide++;
        s->entropy += entropy_of(l->p, keys.count) / log((double)keys.count);
    }
    compare(l, v->constq, &keys, &s->tv_constq, &s->constq_max);
    compare(l, v->meanq, &keys, &s->tv_meanq, &s->meanq_max);
    double *const y = pare_row_mut(&l->y, i);
    for (size_t j = 0; j < keys.count; j++) {
        const double *const value = pare_row(&v->v, pare_key(&keys, j));
        for (size_t c = 0; c < v->v.cols; c++) y[c] += l->p[j] * value[c];
    }
    for (size_t j = 0; l->weights.v && j < keys.count; j++)
        pare_row_mut(&l->weights, i)[pare_key(&keys, j)] = l->p[j];
}

static void all_rows(head_look *l)
{
    const head_inputs *const v = l->v;
    for (size_t first = 0; first < l->n; first += ROWS) {
        const size_t rows = l->n - first < ROWS ? l->n - first : ROWS;
        if (!v->graph) product(&l->score, v, first, rows);
        for (size_t i = 0; i < rows; i++) {
            if (l->logits.v)
                memcpy(pare_row_mut(&l->logits, first + i), pare_row(&l->score, i),
                       l->n * sizeof(double));
            one_row(l, first + i);
        }
    }
}

/* ---- pairs of rows --------------------------------------------------------------------------- */

/* Adding to a row or to a column of the logits changes no double difference: biases and shifts need
 * not be taken away. */
static double rho_of(const pare_mat *a)
{
    double most = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t k = 0; k < i; k++)
            most = fmax(most, range_of(pare_row(a, i), pare_row(a, k), a->cols));
    return most;
}

static double tau_of(const pare_mat *p)
{
    double most = 0;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t k = 0; k < i; k++)
            most = fmax(most, total_variation(pare_row(p, i), pare_row(p, k), p->cols));
    return most;
}

/* Rows of Res(Z) B Res(Z)^T: queries and keys minus those of the midrange row. */
static pare_status theta_of(double *out, const head_inputs *v, pare_arena *a, pare_err *err)
{
    const size_t n = v->q.rows, dk = v->q.cols;
    pare_mat q = pare_mat_new(a, ROWS, dk), k = pare_mat_new(a, n, dk),
             e = pare_mat_new(a, ROWS, n);
    if (!q.v || !k.v || !e.v) return pare_no_memory(err);
    *out = 0;
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
        for (size_t i = 0; i < rows; i++) *out = fmax(*out, range_of(pare_row(&e, i), NULL, n));
    }
    return PARE_OK;
}

/* ---- what goes through wo -------------------------------------------------------------------- */

static pare_status widest_through(double *out, const head_inputs *v, const pare_mat *rows,
                                  const bool *counts, pare_arena *a, pare_err *err)
{
    if (!pare_has(&v->a->wo)) {
        *out = widest_column_range(rows, counts);
        return PARE_OK;
    }
    pare_mat w = pare_mat_new(a, v->a->dout, v->h->dv), y = pare_mat_new(a, rows->rows, v->a->dout);
    if (!w.v || !y.v) return pare_no_memory(err);
    pare_weight_widen(&w, &v->a->wo, 0, v->h->o);
    pare_gemm(&y, 1, rows, false, &w, true, 0);
    *out = widest_column_range(&y, counts);
    return PARE_OK;
}

/* ---- centred logits: what a polynomial has to cover ------------------------------------------ */

/* Largest |entry| of each column around its midrange, and the longest centred row. */
static double token_set(double *widths, const pare_mat *m)
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

static pare_status centred_reach(double *out, const head_inputs *v, pare_arena *a, pare_err *err)
{
    const size_t dk = v->q.cols;
    double *const wide = pare_alloc(a, 4 * dk + 1, sizeof *wide), sum = 0;
    if (!wide) return pare_no_memory(err);
    const double longest = token_set(wide, &v->q) * token_set(wide + 2 * dk, &v->k);
    for (size_t c = 0; c < dk; c++) sum += wide[2 * c] * wide[2 * (dk + c)];
    *out = fabs(v->h->scale) * fmin(sum, longest);
    return PARE_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool alloc_buffers(head_look *l, pare_arena *a)
{
    const head_inputs *const v = l->v;
    const size_t n = l->n, wide = v->graph ? 0 : n;
    l->score = pare_mat_new(a, ROWS, wide);
    l->logit = pare_alloc(a, n, sizeof *l->logit);
    l->p = pare_alloc(a, n, sizeof *l->p);
    l->alt = pare_alloc(a, n, sizeof *l->alt);
    l->pa = pare_alloc(a, n, sizeof *l->pa);
    l->counts = pare_alloc(a, n, sizeof *l->counts);
    l->y = pare_mat_new(a, n, v->v.cols);
    const bool tau = v->pairs && v->m->pattern.kind == PARE_FULL;
    if (v->pairs) l->logits = pare_mat_new(a, n, n);
    if (tau) l->weights = pare_mat_new(a, n, n);
    return l->score.v && l->logit && l->p && l->alt && l->pa && l->counts && l->y.v &&
           (!v->pairs || l->logits.v) && (!tau || l->weights.v);
}

pare_status head_stats_of(head_stats *out, const head_inputs *v, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    head_look l = {.v = v, .s = out, .n = v->q.rows};
    *out = (head_stats){.theta = NAN, .rho = NAN, .tau = NAN};
    pare_status st = a && alloc_buffers(&l, a) ? PARE_OK : pare_no_memory(err);
    if (!st) all_rows(&l);
    if (!st && v->pairs) out->rho = rho_of(&l.logits);
    if (!st && l.weights.v) out->tau = tau_of(&l.weights);
    if (!st && v->qmid) st = theta_of(&out->theta, v, a, err);
    if (!st) st = widest_through(&out->res_out, v, &l.y, l.counts, a, err);
    if (!st) st = widest_through(&out->diam, v, &v->v, NULL, a, err);
    if (!st) st = centred_reach(&out->poly_b, v, a, err);
    out->res_out /= 2;
    pare_arena_free(a);
    return st;
}
