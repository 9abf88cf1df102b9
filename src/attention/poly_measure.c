/* poly_measure.c - what a plan of polynomial attention depends on: centers of queries and keys,
 * their largest norms, heavy keys (handled exactly), and the bound B on the other scores. */
#include "linalg/bounds.h"
#include "poly.h"
#include <math.h>
#include <stdlib.h>

typedef struct ranked {
    float norm;
    size_t row;
} ranked;

static int longer_first(const void *a, const void *b)
{
    const ranked *const x = a, *const y = b;
    return x->norm != y->norm ? (x->norm < y->norm ? 1 : -1)
                              : (x->row > y->row) - (x->row < y->row);
}

static int ascending(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* The `count` longest keys become heavy; with `some` and no count, SOME of them in a long
 * sequence. */
static pare_status choose_heavy(pare_poly_plan *p, pare_arena *a, const float *norm, size_t count,
                                bool some, pare_err *err)
{
    enum { SOME = 8 };
    p->heavy = NULL;
    p->nheavy = 0;
    if (count == 0 && some && p->n > 64 * SOME) count = SOME;
    if (count > p->n) count = p->n;
    if (count == 0) return PARE_OK;
    ranked *const all = pare_alloc(a, p->n, sizeof *all);
    size_t *const rows = pare_alloc(a, count, sizeof *rows);
    if (!all || !rows) return pare_no_memory(err);
    for (size_t j = 0; j < p->n; j++) all[j] = (ranked){norm[j], j};
    qsort(all, p->n, sizeof *all, longer_first);
    for (size_t h = 0; h < count; h++) rows[h] = all[h].row;
    qsort(rows, count, sizeof *rows, ascending);
    p->heavy = rows;
    p->nheavy = count;
    p->key = pare_ub_exact(count < p->n ? (double)all[count].norm : 0);
    return PARE_OK;
}

static pare_ub largest(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        if (!(x[i] <= most)) most = x[i];
    return pare_ub_exact((double)most);
}

/* Column means of rows a fixed distance apart, at most MEAN_ROWS of them: a center like any other,
 * which a single long row does not move. */
static void column_means(float *c, const pare_mat32 *x)
{
    enum { MEAN_ROWS = 4096 };
    const size_t step = x->rows / MEAN_ROWS + 1;
    for (size_t k = 0; k < x->cols; k++) {
        double sum = 0, count = 0;
        for (size_t i = 0; i < x->rows; i += step, count++) sum += (double)x->v[i * x->ld + k];
        c[k] = (float)(sum / count);
    }
}

/* The centers as f32 numbers, midranges or means; *box = sum_c |scale| max|q_c - qc_c| max|k_c -
 * kc_c|. */
static pare_status centers(pare_poly_plan *p, pare_ub *box, double *coordinate, float *c, bool mean,
                           pare_arena *a, const pare_mat32 *q, const pare_mat32 *k,
                           const pare_exec *exec, pare_err *err)
{
    const size_t d = p->d;
    float *const e = pare_alloc(a, 4 * d, sizeof *e);
    double *const center = pare_alloc(a, 2 * d, sizeof *center);
    if (!e || !center) return pare_no_memory(err);
    pare_status st;
    if ((st = poly_column_ranges(e, e + d, q, "queries", exec, err)) ||
        (st = poly_column_ranges(e + 2 * d, e + 3 * d, k, "keys", exec, err)))
        return st;
    *box = pare_ub_exact(0);
    if (mean) column_means(c, q), column_means(c + d, k);
    for (size_t i = 0; i < d; i++) {
        pare_ub radius[2];
        for (size_t side = 0; side < 2; side++) {
            const double l = (double)e[2 * side * d + i], h = (double)e[(2 * side + 1) * d + i];
            if (!mean) c[side * d + i] = (float)(0.5 * l + 0.5 * h);
            const double mid = center[side * d + i] = (double)c[side * d + i];
            radius[side] = pare_ub_of(fmax(h - mid, mid - l));
        }
        const pare_ub x = pare_ub_mul(pare_ub_exact(p->scale), pare_ub_mul(radius[0], radius[1]));
        coordinate[i] = x.v;
        *box = pare_ub_add(*box, x);
    }
    p->qc = center;
    p->kc = center + d;
    return PARE_OK;
}

pare_status poly_measure(pare_poly_plan *p, double *coordinate, bool mean, pare_arena *a,
                         const pare_mat32 *q, const pare_mat32 *k, size_t heavy,
                         const pare_exec *exec, pare_err *err)
{
    float *const c = pare_alloc(a, 2 * p->d, sizeof *c);
    float *const qn = pare_alloc(a, p->n, sizeof *qn), *const kn = pare_alloc(a, p->n, sizeof *kn);
    pare_ub box;
    if (!c || !qn || !kn) return pare_no_memory(err);
    pare_status st = centers(p, &box, coordinate, c, mean, a, q, k, exec, err);
    if (st) return st;
    const poly_side queries = {.from = q, .center = c, .by = (float)p->scale, .norm = qn};
    const poly_side keys = {.from = k, .center = c + p->d, .by = 1, .norm = kn};
    poly_center(&queries, exec);
    poly_center(&keys, exec);
    p->query_norms = qn;
    p->key_norms = kn;
    p->query = largest(qn, p->n);
    p->key = largest(kn, p->n);
    st = choose_heavy(p, a, kn, heavy, mean, err);
    p->B = pare_ub_min(box, pare_ub_mul(p->query, p->key));
    return st;
}
