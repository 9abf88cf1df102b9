/* poly_prepare.c - what a call of polynomial attention prepares: centers and weights of the keys,
 * centers of the values, and the numbers of the error bound. O(n (d + dv)). */
#include "poly.h"
#include <math.h>
#include "base/vmath.h"
#include <pare/attention.h>
#include <string.h>

#define SMALLEST_RADIUS 0x1p-80 /* of a column of values around its center, unless it is 0 */
#define LARGEST_RADIUS  0x1p60
#define MAX_DEPTH       100.0 /* bits that a weight, and its product with a value, may lose */
#define MAX_ROUNDINGS   1e5 /* in a weight: beyond it the first order of the bound is not enough */

/* Values around their midranges; *fit: f32 can sum numbers of their size. */
static pare_status center_values(poly_job *w, pare_arena *a, bool *fit, const pare_exec *exec,
                                 pare_err *err)
{
    float *const low = pare_alloc(a, w->dv, sizeof *low);
    float *const high = pare_alloc(a, w->dv, sizeof *high);
    w->center = pare_alloc(a, w->dv, sizeof *w->center);
    if (!low || !high || !w->center) return pare_no_memory(err);
    const pare_status st = poly_column_ranges(low, high, w->v, "values", exec, err);
    w->sizes.spread = w->sizes.value_radius = w->least_radius = 1;
    *fit = true;
    for (size_t c = 0; !st && c < w->dv; c++) {
        const double l = (double)low[c], h = (double)high[c];
        w->center[c] = (float)(0.5 * l + 0.5 * h);
        const double radius = fmax(h - (double)w->center[c], (double)w->center[c] - l);
        if (!(radius > 0)) continue;
        w->least_radius = fmin(w->least_radius, radius);
        w->sizes.value_radius = fmax(w->sizes.value_radius, radius);
        w->sizes.spread = fmax(w->sizes.spread, 2 * radius / (h - l) * (1 + 0x1p-40));
        if (!(radius >= SMALLEST_RADIUS && radius <= LARGEST_RADIUS)) *fit = false;
    }
    return st;
}

static double larger(double a, double b)
{
    return b > a ? b : a;
}

/* The largest norm of a key, heavy keys included. */
static double longest_key(const pare_poly_plan *p)
{
    double most = p->key.v;
    for (size_t h = 0; h < p->nheavy; h++) most = larger(most, (double)p->key_norms[p->heavy[h]]);
    return most;
}

/* A power of two brings both sides to one size: their powers then neither overflow nor
 * underflow. */
double poly_balance(const pare_poly_plan *p)
{
    const double ratio = p->query.v > 0 && p->key.v > 0 ? p->query.v / p->key.v : 1;
    return exp2(round(log2(ratio) / 2));
}

/* How queries and keys are centered, and log_weight_j = scale qc.k'_j; *fit: their factors are
 * normal f32 numbers. */
static pare_status center_sides(poly_job *w, pare_arena *a, double *log_weight, bool *fit,
                                const pare_exec *exec, pare_err *err)
{
    const pare_poly_plan *const p = w->plan;
    float *const c = pare_alloc(a, 3 * w->d, sizeof *c), *const with32 = c ? c + 2 * w->d : NULL;
    double *const with = pare_alloc(a, w->d, sizeof *with), squares = 0;
    if (!c || !with) return pare_no_memory(err);
    for (size_t i = 0; i < w->d; i++) {
        c[i] = (float)p->qc[i];
        c[w->d + i] = (float)p->kc[i];
    }
    const double size = poly_balance(p);
    w->queries = (poly_side){.from = w->q, .center = c, .by = (float)(p->scale / size)};
    w->keys = (poly_side){.from = w->k, .center = c + w->d, .by = (float)size};
    /* a subnormal factor has lost digits, and one beyond the largest number is infinite */
    *fit = (p->scale == 0 || isnormal(w->queries.by)) && isnormal(w->keys.by);
    if (!*fit) return PARE_OK;
    poly_side k = w->keys;
    k.a = log_weight;
    for (size_t i = 0; i < w->d; i++) {
        with[i] = p->scale * p->qc[i];
        with32[i] = (float)(with[i] / (double)k.by);
        squares += with[i] * with[i];
    }
    /* In f32 a is off by at most (d + 6) u |with| |k'|: little where queries are nearly centered.
     * In f64 by 2^-29 of that: needed where the terms of a product are large and cancel. */
    const double most = sqrt(squares) * longest_key(p), off = ((double)w->d + 6) * most;
    w->sizes.depth = most < 1 ? off : off * 0x1p-29;
    if (most < 1)
        k.with32 = with32;
    else
        k.with = with;
    poly_center(&k, exec);
    w->q_size = (float)(1 / size);
    w->k_size = (float)size;
    return PARE_OK;
}

/* Weights in the unit of their chunk: the difference is rounded once. False: the smallest weight in
 * the largest unit, or its product with a value, may underflow f32, and e^x may make it large
 * again. */
static bool weigh_keys(poly_job *w, const double *log_weight)
{
    double high = -INFINITY, low = INFINITY, depth = 0;
    for (size_t j = 0; !w->plan->causal && j < w->n; j++) high = larger(high, log_weight[j]);
    for (size_t t = 0; t < w->chunks; t++) {
        const size_t first = t * POLY_KEYS, end = chunk_end(w, t);
        for (size_t j = first; w->plan->causal && j < end; j++) high = larger(high, log_weight[j]);
        w->shift[t] = high;
        for (size_t j = first; j < end; j++) {
            w->w[j] = (float)(log_weight[j] - high);
            depth = larger(depth, -(double)w->w[j]);
            low = log_weight[j] < low ? log_weight[j] : low;
        }
    }
    pare_exp_f32(w->w, w->w, w->n);
    w->sizes.depth += depth;
    return (high - low) / 0.6931 - log2(w->least_radius) <= MAX_DEPTH &&
           w->sizes.depth <= MAX_ROUNDINGS;
}

static bool job_memory(poly_job *w, pare_arena *a)
{
    const size_t n = w->n, h4 = padded(w->plan->nheavy, TILE_STEP);
    w->w = pare_alloc(a, n, sizeof *w->w);
    w->sum = pare_alloc(a, n, sizeof *w->sum);
    w->bound = pare_alloc(a, n, sizeof *w->bound);
    w->shift = pare_alloc(a, w->chunks, sizeof *w->shift);
    w->weight = pare_alloc(a, w->chunks, sizeof *w->weight);
    w->factor = pare_alloc(a, w->table.ld, sizeof *w->factor);
    w->moment_factor = pare_alloc(a, w->table.ld, sizeof *w->moment_factor);
    if (w->plan->nheavy) {
        w->heavy = pare_alloc(a, n, sizeof *w->heavy);
        w->heavy_k = pare_alloc(a, h4 * w->d, sizeof *w->heavy_k);
        w->heavy_u = pare_alloc(a, h4 * w->cols4, sizeof *w->heavy_u);
        if (!w->heavy || !w->heavy_k || !w->heavy_u) return false;
    }
    return w->w && w->sum && w->bound && w->shift && w->weight && w->factor && w->moment_factor;
}

pare_status poly_job_new(poly_job *w, pare_arena *a, bool *fit, const pare_exec *exec,
                         pare_err *err)
{
    const pare_poly_plan *const p = w->plan;
    pare_status st = poly_table_new(&w->table, a, &p->table, err);
    if (st) return st;
    w->moment = p->kind == PARE_POLY_TAYLOR;
    w->cols = w->dv + 1 + (w->moment ? 1 : 0);
    w->cols4 = padded(w->cols, TILE_STEP);
    w->chunks = (w->n + POLY_KEYS - 1) / POLY_KEYS;
    if (!job_memory(w, a)) return pare_no_memory(err);
    double *const log_weight = w->bound; /* not needed at the same time */
    if ((st = center_values(w, a, fit, exec, err)) || !*fit ||
        (st = center_sides(w, a, log_weight, fit, exec, err)) || !*fit)
        return st;
    const size_t level = p->degree ? 2 : 0; /* degree of the moment's quadratic form */
    for (size_t e = 0; e < p->table.count; e++) {
        w->factor[e] = p->table.weight[e] * p->coef[p->table.power[e]];
        w->moment_factor[e] = p->table.power[e] == level ? p->table.weight[e] : 0;
    }
    *fit = weigh_keys(w, log_weight);
    if (!*fit) return PARE_OK;
    for (size_t h = 0; h < p->nheavy; h++) {
        const size_t j = p->heavy[h];
        w->heavy[j] = 1;
        poly_centered_rows(w->heavy_k + h * w->d, &w->keys, j, 1);
        poly_weighted_values(w->heavy_u + h * w->cols4, w, j, 1, false);
    }
    w->sizes.q = p->query.v * (double)w->q_size;
    w->sizes.key = p->key.v * (double)w->k_size;
    w->sizes.all_keys = longest_key(p) * (double)w->k_size;
    w->sizes.flush = p->causal ? 1 : POLY_FLUSH;
    poly_proof_new(&w->proof, p, &w->sizes);
    return PARE_OK;
}
