/* What a call of polynomial attention prepares: centred queries, keys and values, weights of the
 * keys, and the numbers of the proof. O(n (d + dv)). */
#include "poly.h"
#include <math.h>
#include <pare/vmath.h>
#include <string.h>

#define SMALLEST 0x1p-80 /* distance of a value from the centre, unless it is 0 */
#define LARGEST  0x1p60
#define DEEPEST  100.0 /* binary digits that a weight, and its product with a value, may sink */
#define UNSURE   1e5   /* units of rounding in a weight: beyond it the proof's first order ends */

/* Values around their midranges; false: they are of a size that f32 cannot sum. */
static pare_status centre_values(poly_job *w, pare_arena *a, bool *fit, const pare_exec *exec,
                                 pare_err *err)
{
    float *const low = pare_alloc(a, w->dv, sizeof *low), *const high =
                                                              pare_alloc(a, w->dv, sizeof *high);
    w->centre = pare_alloc(a, w->dv, sizeof *w->centre);
    if (!low || !high || !w->centre) return pare_no_memory(err);
    const pare_status st = poly_column_ranges(low, high, w->v, "values", exec, err);
    w->sizes.spread = w->sizes.away = w->least = 1;
    *fit = true;
    for (size_t c = 0; !st && c < w->dv; c++) {
        const double l = (double)low[c], h = (double)high[c];
        w->centre[c] = (float)(0.5 * l + 0.5 * h);
        const double away = fmax(h - (double)w->centre[c], (double)w->centre[c] - l);
        if (away > 0) w->least = fmin(w->least, away);
        w->sizes.away = fmax(w->sizes.away, away);
        if (away > 0) w->sizes.spread = fmax(w->sizes.spread, 2 * away / (h - l) * (1 + 0x1p-40));
        if (away > 0 && !(away >= SMALLEST && away <= LARGEST)) *fit = false;
    }
    return st;
}

static double larger(double a, double b)
{
    return b > a ? b : a;
}

/* The distance of a from the chunk's unit is rounded once. False: the smallest weight in the
 * largest unit, or its product with a value, may be lost in f32, and e^x may make it large again.
 */
static bool weigh_keys(poly_job *w, const double *a)
{
    double top = -INFINITY, low = INFINITY, depth = 0;
    for (size_t j = 0; !w->plan->causal && j < w->n; j++) top = larger(top, a[j]);
    for (size_t t = 0; t < w->chunks; t++) {
        const size_t first = t * POLY_KEYS, end = chunk_end(w, t);
        for (size_t j = first; w->plan->causal && j < end; j++) top = larger(top, a[j]);
        w->shift[t] = top;
        for (size_t j = first; j < end; j++) {
            w->w[j] = (float)(a[j] - top);
            depth = larger(depth, -(double)w->w[j]);
            low = a[j] < low ? a[j] : low;
        }
    }
    pare_exp_f32(w->w, w->w, w->n);
    w->sizes.depth += depth;
    return (top - low) / 0.6931 - log2(w->least) <= DEEPEST && w->sizes.depth <= UNSURE;
}

static void mark_heavy(poly_job *w)
{
    const pare_poly_plan *const p = w->plan;
    for (size_t h = 0; h < p->nheavy; h++) {
        const size_t j = p->heavy[h];
        w->heavy[j] = 1;
        poly_centered_rows(w->heavy_k + h * w->d, &w->keys, j, 1);
        poly_weighted_values(w->heavy_u + h * w->cols4, w, j, 1, false);
    }
}

/* Heavy keys among them. */
static double longest_key(const pare_poly_plan *p)
{
    double most = p->key.v;
    for (size_t h = 0; h < p->nheavy; h++) most = larger(most, (double)p->key_norms[p->heavy[h]]);
    return most;
}

static void measure_norms(poly_job *w)
{
    const pare_poly_plan *const p = w->plan;
    w->sizes.q = p->query.v * (double)w->q_size;
    w->sizes.key = p->key.v * (double)w->k_size;
    w->sizes.all_keys = longest_key(p) * (double)w->k_size;
}

static bool job_memory(poly_job *w, pare_arena *a, double **weights)
{
    const size_t n = w->n, h4 = padded(w->plan->nheavy, TILE_STEP);
    w->w = pare_alloc(a, n, sizeof *w->w);
    w->sum = pare_alloc(a, n, sizeof *w->sum);
    w->bound = pare_alloc(a, n, sizeof *w->bound);
    w->shift = pare_alloc(a, w->chunks, sizeof *w->shift);
    w->weight = pare_alloc(a, w->chunks, sizeof *w->weight);
    w->by = pare_alloc(a, w->table.ld, sizeof *w->by);
    w->by_moment = pare_alloc(a, w->table.ld, sizeof *w->by_moment);
    *weights = w->bound; /* not needed at the same time */
    if (w->plan->nheavy) {
        w->heavy = pare_alloc(a, n, sizeof *w->heavy);
        w->heavy_k = pare_alloc(a, h4 * w->d, sizeof *w->heavy_k);
        w->heavy_u = pare_alloc(a, h4 * w->cols4, sizeof *w->heavy_u);
        if (!w->heavy || !w->heavy_k || !w->heavy_u) return false;
    }
    return w->w && w->sum && w->bound && w->shift && w->weight && w->by && w->by_moment;
}

static void set_factors(poly_job *w)
{
    const pare_poly_plan *const p = w->plan;
    const size_t level = p->degree ? 2 : 0;
    for (size_t e = 0; e < p->table.count; e++) {
        w->by[e] = p->table.weight[e] * p->coef[p->table.power[e]];
        w->by_moment[e] = p->table.power[e] == level ? p->table.weight[e] : 0;
    }
}

/* In f32 a is off by at most (d + 6) u |with| |k'|: little where queries are nearly centred. In f64
 * by 2^-29 of that: much where the parts of a product are long and cancel. */
static void choose_width(poly_job *w, poly_side *k, double *with, float *with32)
{
    const pare_poly_plan *const p = w->plan;
    double squares = 0;
    for (size_t i = 0; i < w->d; i++) {
        with[i] = p->scale * p->qc[i];
        with32[i] = (float)(with[i] / (double)k->by);
        squares += with[i] * with[i];
    }
    const double most = sqrt(squares) * longest_key(p);
    const double off = ((double)w->d + 6) * most;
    w->sizes.depth = most < 1 ? off : off * 0x1p-29;
    if (most < 1)
        k->with32 = with32;
    else
        k->with = with;
}

/* A power of two brings both sides to one size: their powers then neither leave f32 nor sink below
 * it. */
double poly_balance(const pare_poly_plan *p)
{
    const double ratio = p->query.v > 0 && p->key.v > 0 ? p->query.v / p->key.v : 1;
    return exp2(round(log2(ratio) / 2));
}

static pare_status centre_sides(poly_job *w, pare_arena *a, double *weights, bool *fit,
                                const pare_exec *exec, pare_err *err)
{
    const pare_poly_plan *const p = w->plan;
    float *const c = pare_alloc(a, 3 * w->d, sizeof *c);
    double *const with = pare_alloc(a, w->d, sizeof *with);
    if (!c || !with) return pare_no_memory(err);
    for (size_t i = 0; i < w->d; i++) {
        c[i] = (float)p->qc[i];
        c[w->d + i] = (float)p->kc[i];
    }
    const double size = poly_balance(p);
    w->queries = (poly_side){.from = w->q, .centre = c, .by = (float)(p->scale / size)};
    w->keys = (poly_side){.from = w->k, .centre = c + w->d, .by = (float)size};
    /* a factor below the normal numbers has lost digits, and one beyond the largest is none */
    *fit = (p->scale == 0 || isnormal(w->queries.by)) && isnormal(w->keys.by);
    if (!*fit) return PARE_OK;
    poly_side k = w->keys;
    k.a = weights;
    choose_width(w, &k, with, c + 2 * w->d);
    poly_center(&k, exec);
    w->q_size = (float)(1 / size);
    w->k_size = (float)size;
    return PARE_OK;
}

pare_status poly_job_new(poly_job *w, pare_arena *a, bool *fit, const pare_exec *exec,
                         pare_err *err)
{
    const pare_poly_plan *const p = w->plan;
    double *weights;
    pare_status st = poly_table_new(&w->table, a, &p->table, err);
    if (st) return st;
    w->moment = p->kind == PARE_POLY_TAYLOR;
    w->cols = w->dv + 1 + (w->moment ? 1 : 0);
    w->cols4 = padded(w->cols, TILE_STEP);
    w->chunks = (w->n + POLY_KEYS - 1) / POLY_KEYS;
    if (!job_memory(w, a, &weights)) return pare_no_memory(err);
    if ((st = centre_values(w, a, fit, exec, err)) || !*fit ||
        (st = centre_sides(w, a, weights, fit, exec, err)) || !*fit)
        return st;
    set_factors(w);
    *fit = weigh_keys(w, weights);
    if (!*fit) return PARE_OK;
    if (p->nheavy) mark_heavy(w);
    measure_norms(w);
    w->sizes.flush = p->causal ? 1 : POLY_FLUSH;
    poly_proof_new(&w->proof, p, &w->sizes);
    return PARE_OK;
}
