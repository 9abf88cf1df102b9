/* jl.c - queries and keys by random projection (Theorem 3.3 of Shirzad 2024;
 * Johnson-Lindenstrauss).
 *
 * Claim, as it is true: M (d x D) with independent entries N(0, 1/d). For unit x, y
 *
 *     P(|Mx . My - x . y| > eps) <= 2 exp(-(d/2) (eps - ln(1 + eps))),
 *
 * because the product of two correlated normals is (1+r)/2 u^2 - (1-r)/2 w^2 and the log of its
 * moment function is at most that of u^2. So  d >= 2 ln(2 m / delta) / (eps - ln(1 + eps))  serves
 * m pairs at once, |error| <= eps |q||k|, with probability 1 - delta. delta = 1 says only that such
 * a map exists. Equal pairs count once: with kappa different rows at most kappa^2 pairs.
 * (The printed multiplicative form is false for nearly orthogonal pairs: docs/errata.md.)
 *
 * At practical widths that d is larger than D. What is done: the best of some draws, judged by what
 * softmax sees - the half-oscillation of the score error within a row - on the stream that the
 * layers before, already cut, give. The certificate speaks of the map as drawn. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t pare_jl_dim(double pairs, double eps, double delta)
{
    PARE_ASSERT(pairs >= 1 && eps > 0 && delta > 0 && delta <= 1);
    /* eps - ln(1 + eps) cancels for small eps; below 1e-5 its series eps^2/2 - eps^3/3 is exact to
     * the last bits. */
    const double rate =
        eps < 1e-5 ? eps * eps * (0.5 - eps / 3) : eps - pare_log_up(nextafter(1 + eps, INFINITY));
    const double d = ceil(2 * pare_log_up(2 * pairs / delta) / rate);
    return d >= 0x1p63 ? SIZE_MAX : d < 1 ? 1 : (size_t)d;
}

pare_mat jl_map(pare_work *w, size_t d, size_t from, pare_rng *rng)
{
    pare_mat m = mat_zeros(w, d, from);
    for (size_t i = 0; !w->st && i < d; i++)
        for (size_t j = 0; j < from; j++)
            pare_row_mut(&m, i)[j] = pare_rng_normal(rng) / sqrt((double)d);
    return m;
}

static net_head projected(pare_work *w, const net_head *hd, const pare_mat *m)
{
    net_head out = *hd;
    out.wq = mat_mul(w, m, false, &hd->wq, false);
    out.wk = mat_mul(w, m, false, &hd->wk, false);
    out.bq = mat_vec(w, m, false, hd->bq, NULL);
    return out;
}

net_head jl_search(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g,
                   size_t d, jl_draws *draws)
{
    const double *const scores = head_scores(w, hd, h, g);
    pare_mat best = mat_zeros(w, d, hd->wq.rows);
    draws->best = draws->first = INFINITY;
    for (size_t t = 0; !w->st && t < draws->trials; t++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat m = jl_map(w, d, hd->wq.rows, &draws->rng);
        const net_head trial = projected(w, hd, &m);
        const double *const s = head_scores(w, &trial, h, g);
        if (w->st) break;
        const double off = score_half_range(scores, s, g);
        if (t == 0) draws->first = off;
        if (t == 0 || off < draws->best) {
            draws->best = off;
            memcpy(best.v, m.v, d * hd->wq.rows * sizeof(double));
        }
        pare_arena_reset(w->arena, mark);
    }
    return projected(w, hd, &best);
}

/* ---- different rows ------------------------------------------------------------------------- */

typedef struct row_at {
    const double *v;
    size_t cols;
    size_t row;
} row_at;

static int by_bits(const void *a, const void *b)
{
    const row_at *const x = a, *const y = b;
    return memcmp(x->v, y->v, x->cols * sizeof(double));
}

/* The number of each row's class. */
static size_t *classes_of(pare_work *w, size_t *count, const pare_mat *h)
{
    row_at *const rows = pare_work_alloc(w, h->rows, sizeof *rows);
    size_t *const cls = pare_work_alloc(w, h->rows, sizeof *cls);
    *count = 0;
    if (w->st) return NULL;
    for (size_t i = 0; i < h->rows; i++) rows[i] = (row_at){pare_row(h, i), h->cols, i};
    qsort(rows, h->rows, sizeof *rows, by_bits);
    for (size_t i = 0; i < h->rows; i++) {
        if (i == 0 || by_bits(&rows[i - 1], &rows[i]) != 0) ++*count;
        cls[rows[i].row] = *count - 1;
    }
    return cls;
}

size_t *jl_representatives(pare_work *w, size_t *count, const pare_mat *h)
{
    const size_t *const cls = classes_of(w, count, h);
    size_t *const first = pare_work_alloc(w, *count, sizeof *first);
    for (size_t i = h->rows; !w->st && i-- > 0;) first[cls[i]] = i;
    return first;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void jl_distinct(pare_work *w, size_t *rows, size_t *pairs, const pare_mat *h, const pare_graph *g)
{
    const size_t *const cls = classes_of(w, rows, h);
    const size_t m = g->ptr[g->n];
    uint64_t *const pair = pare_work_alloc(w, m, sizeof *pair);
    *pairs = 0;
    if (w->st) return;
    for (size_t i = 0; i < g->n; i++)
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
            pair[e] = (uint64_t)cls[i] * *rows + cls[g->idx[e]];
    qsort(pair, m, sizeof *pair, by_number);
    for (size_t e = 0; e < m; e++) *pairs += e == 0 || pair[e] != pair[e - 1];
}
