/* poly_plan.c - the plan of polynomial attention: the cheapest polynomial that is likely to be
 * proven within the tolerance, or exact attention, with the reason.
 *
 * The plan decides only about speed. Taylor polynomials are judged by what their bounds would be on
 * a sample of queries and keys; the bounds themselves are computed row by row when the plan is
 * executed. Remez polynomials (and adaptive monomials) are proven here, for all rows at once. */
#include "linalg/bounds.h"
#include "poly.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 48, KEYS = 96 }; /* of the sample, at most */

enum { ADAPTIVE_MOST = 20000 }; /* monomials that are searched */
#define ADAPTIVE_BOX 6.0        /* beyond it the tail of the series is too large */
#define UNEQUAL      4.0        /* ratio of the largest coordinate to the smallest */
#define CALL_COST    9e6        /* of the plan and the tables of the bounds */

/* Adaptive monomials come in short runs, which cost more. */
static double adaptive_cost(const pare_poly_plan *p, size_t features)
{
    return CALL_COST + 1.5 * poly_cost((double)p->n, features, p->d, p->dv + 1, p->causal);
}

/* ---- a sample ------------------------------------------------------------------------------- */

typedef struct sample {
    size_t nq, nk;
    double qn[QUERIES], kn[KEYS], w[KEYS];
    bool heavy[KEYS];
    double x[QUERIES * KEYS];
    double sum[QUERIES]; /* of w e^x */
} sample;

static double at(const pare_mat32 *m, size_t i, size_t c)
{
    return (double)m->v[i * m->ld + c];
}

static size_t spread(size_t i, size_t of, size_t n)
{
    return n <= of ? i : i * n / of;
}

static void take_sample(sample *s, const pare_poly_plan *p, const pare_mat32 *q,
                        const pare_mat32 *k)
{
    s->nq = p->n < QUERIES ? p->n : QUERIES;
    s->nk = p->n < KEYS ? p->n : KEYS;
    double largest = -INFINITY;
    for (size_t j = 0; j < s->nk; j++) {
        const size_t row = spread(j, KEYS, p->n);
        double norm = 0, a = 0;
        for (size_t c = 0; c < p->d; c++) {
            const double x = at(k, row, c) - p->kc[c];
            norm += x * x;
            a += p->scale * p->qc[c] * x;
        }
        s->kn[j] = fmin(sqrt(norm), p->key.v);
        s->heavy[j] = false;
        for (size_t h = 0; h < p->nheavy; h++) s->heavy[j] = s->heavy[j] || p->heavy[h] == row;
        s->w[j] = a;
        largest = fmax(largest, a);
    }
    for (size_t j = 0; j < s->nk; j++) s->w[j] = exp(s->w[j] - largest);
    for (size_t i = 0; i < s->nq; i++) {
        const size_t row = spread(i, QUERIES, p->n);
        double norm = 0;
        for (size_t c = 0; c < p->d; c++) {
            const double y = p->scale * (at(q, row, c) - p->qc[c]);
            norm += y * y;
        }
        s->qn[i] = sqrt(norm);
        s->sum[i] = 0;
        for (size_t j = 0; j < s->nk; j++) {
            const size_t key = spread(j, KEYS, p->n);
            double x = 0;
            for (size_t c = 0; c < p->d; c++)
                x += p->scale * (at(q, row, c) - p->qc[c]) * (at(k, key, c) - p->kc[c]);
            s->x[i * KEYS + j] = x;
            s->sum[i] += s->w[j] * exp(x);
        }
    }
}

typedef struct failures {
    double lengths, moments; /* shares of rows that either bound leaves to the exact kernel */
} failures;

/* The rows of the sample whose bounds for a Taylor polynomial would fail. */
static failures expected_failures(const sample *s, const pare_poly_plan *p, size_t g,
                                  size_t features)
{
    failures o = {0, 0};
    double power[KEYS];
    for (size_t j = 0; j < s->nk; j++) power[j] = s->w[j] * poly_power(s->kn[j], g ? g - 1 : 1);
    for (size_t i = 0; i < s->nq; i++) {
        double lengths = 0, moment = 0;
        for (size_t j = 0; j < s->nk; j++) {
            const double x = s->x[i * KEYS + j];
            if (s->heavy[j]) continue; /* it has an exact weight */
            lengths += power[j] * (g ? x * x : 1);
            moment += s->w[j] * poly_power(fabs(x), g + 1);
        }
        const double B = s->qn[i] * p->key.v, kappa = poly_kappa(g, B);
        const double noise = 0x1p-24 * (120 * exp(B) + (double)features * poly_power(B, g));
        const double limit = (0.97 * p->tolerance - noise) * s->sum[i] / kappa;
        lengths *= poly_power(s->qn[i], g ? g - 1 : 1);
        o.lengths += !(lengths <= limit);
        o.moments += !(moment <= limit);
    }
    o.lengths /= (double)s->nq;
    o.moments = g % 2 ? o.moments / (double)s->nq : o.lengths;
    return o;
}

/* ---- choice --------------------------------------------------------------------------------- */

typedef struct choice {
    pare_poly_kind kind;
    size_t degree;
    double cost, left; /* share of rows expected to be exact */
    poly_fit fit;
    pare_monomials table; /* adaptive */
    pare_ub eps;
} choice;

typedef struct search {
    const pare_poly_opts *o;
    pare_poly_plan *p;
    double exact; /* cost of exact attention */
    choice best;
    double *coordinate; /* d: sizes of the products of single coordinates */
    size_t too_large;   /* smallest degree beyond the memory; 0: none met */
} search;

static void keep_if_cheaper(search *s, const choice *c)
{
    if (c->cost < s->best.cost) s->best = *c;
}

/* Degree 1 needs monomials of degree 2 for its bound. */
static size_t table_degree(pare_poly_kind kind, size_t g)
{
    return kind == PARE_POLY_TAYLOR && g == 1 ? 2 : g;
}

static void try_taylor(search *s, const sample *m, size_t g)
{
    const pare_poly_plan *const p = s->p;
    const size_t r = pare_monomials_count(p->d, table_degree(PARE_POLY_TAYLOR, g));
    const size_t next = pare_monomials_count(p->d, g + 1);
    if (!poly_fits(r, p->dv + 2, p->max_bytes)) {
        if (!s->too_large) s->too_large = g;
        return;
    }
    const double n = (double)p->n;
    choice c = {.kind = PARE_POLY_TAYLOR,
                .degree = g,
                .cost = CALL_COST + poly_cost(n, r, p->d, p->dv + 2, p->causal)};
    if (!(c.cost < s->best.cost)) return; /* even without exact rows */
    const failures o = expected_failures(m, p, g, r);
    double left = o.lengths * s->exact;
    c.left = o.lengths;
    if (o.moments < o.lengths && poly_fits(next, 1, p->max_bytes)) {
        const double by =
            o.moments * s->exact + poly_moment_cost(n, o.lengths * n, next, p->d, p->causal);
        if (by < left) left = by, c.left = o.moments;
    }
    if (c.left >= 0.5) return; /* then all rows are exact */
    c.cost += left;
    keep_if_cheaper(s, &c);
}

/* Adaptive monomials pay where coordinates are of unequal size. */
static pare_status try_adaptive(search *s, pare_arena *a, pare_err *err)
{
    const pare_poly_plan *const p = s->p;
    double box = 0, largest = 0, least = INFINITY;
    for (size_t c = 0; c < p->d; c++) {
        box += s->coordinate[c];
        largest = fmax(largest, s->coordinate[c]), least = fmin(least, s->coordinate[c]);
    }
    const bool asked = s->o->kind == PARE_POLY_ADAPTIVE;
    if (!(box <= ADAPTIVE_BOX) || (!asked && !(largest > UNEQUAL * least))) return PARE_OK;
    choice c = {.kind = PARE_POLY_ADAPTIVE};
    const double noise = 0x1p-24 * 200 * exp(p->B.v), limit = 0.97 * p->tolerance - noise;
    pare_ub tail;
    if (!(limit > 0)) return PARE_OK;
    /* as many monomials as cost less than the best so far */
    const double none = adaptive_cost(p, 0), each = adaptive_cost(p, 1) - none;
    const double most = fmax(1, fmin(ADAPTIVE_MOST, (s->best.cost - none) / each));
    const pare_status st = pare_monomials_adaptive(&c.table, &tail, a, s->coordinate, p->d,
                                                   2 * limit * exp(-p->B.v), (size_t)most, err);
    if (st) return st;
    const size_t r = c.table.count;
    c.degree = c.table.degree;
    c.eps = pare_ub_mul(tail, pare_ub_exp(p->B));
    c.cost = adaptive_cost(p, r);
    if (c.degree <= POLY_F32_DEGREE && poly_fits(r, p->dv + 1, p->max_bytes) &&
        poly_variation(c.eps).v + noise <= p->tolerance)
        keep_if_cheaper(s, &c);
    return PARE_OK;
}

/* The cheapest polynomial around the plan's centers; *found: it pays. */
static pare_status find_best(bool *found, search *s, pare_arena *a, const pare_mat32 *q,
                             const pare_mat32 *k, pare_err *err)
{
    const pare_poly_kind kind = s->o->kind;
    const bool any = kind == PARE_POLY_AUTO, forced = s->o->degree >= 0;
    const size_t from = forced ? (size_t)s->o->degree : 0, to = forced ? from : POLY_F32_DEGREE;
    pare_status st = PARE_OK;
    sample *const m = malloc(sizeof *m);
    if (!m) return pare_no_memory(err);
    s->best = (choice){.kind = PARE_POLY_EXACT, .cost = INFINITY};
    if (s->p->query.v * s->p->key.v <= POLY_F32_LOGITS) {
        take_sample(m, s->p, q, k);
        for (size_t g = from; g <= to; g++) {
            if (any || kind == PARE_POLY_TAYLOR) try_taylor(s, m, g);
            if (!any && kind != PARE_POLY_REMEZ) continue;
            const pare_poly_plan *const p = s->p;
            const size_t r = pare_monomials_count(p->d, g);
            choice c = {.kind = PARE_POLY_REMEZ, .degree = g};
            if (!poly_fits(r, p->dv + 1, p->max_bytes) || !(p->B.v <= POLY_REMEZ_BOUND)) continue;
            c.cost = CALL_COST + poly_cost((double)p->n, r, p->d, p->dv + 1, p->causal);
            if (!(c.cost < s->best.cost)) continue;
            c.fit = poly_remez(p->B.v, g);
            const double noise = 0x1p-24 * (200 * exp(p->B.v) + (double)r * poly_power(p->B.v, g));
            if (poly_variation(c.fit.error).v + noise <= p->tolerance || forced)
                keep_if_cheaper(s, &c);
        }
        if ((any || kind == PARE_POLY_ADAPTIVE) && !forced) st = try_adaptive(s, a, err);
    }
    free(m);
    *found = s->best.kind != PARE_POLY_EXACT && (s->best.cost < s->exact || s->o->always);
    return st;
}

/* ---- the plan ------------------------------------------------------------------------------- */

const char *pare_poly_kind_name(pare_poly_kind k)
{
    static const char *const names[] = {"auto", "exact", "taylor", "remez", "adaptive"};
    return names[k];
}

bool pare_poly_degree(size_t *degree, pare_ub *tv, double B, double variation)
{
    poly_fit fit;
    const bool found = poly_least_degree(&fit, B, variation, POLY_MAX_DEGREE);
    *degree = fit.degree;
    *tv = poly_variation(fit.error);
    return found;
}

static void explain_exact(const search *s)
{
    pare_poly_plan *const p = s->p;
    p->kind = PARE_POLY_EXACT;
    if (!(p->query.v * p->key.v <= POLY_F32_LOGITS))
        snprintf(p->why, sizeof p->why, "exact: centered logits may reach %.3g", p->B.v);
    else if (s->best.kind != PARE_POLY_EXACT)
        snprintf(p->why, sizeof p->why,
                 "exact: %zu tokens are too few, degree %zu (%zu features) would be %.3g times "
                 "slower",
                 p->n, s->best.degree, pare_monomials_count(p->d, s->best.degree),
                 s->best.cost / s->exact);
    else if (s->too_large)
        snprintf(p->why, sizeof p->why, "exact: degree %zu and more needs more memory than allowed",
                 s->too_large);
    else
        snprintf(p->why, sizeof p->why,
                 "exact: no degree up to %d meets %.2g (logits may reach %.3g)", POLY_F32_DEGREE,
                 p->tolerance, p->B.v);
}

static pare_status adopt_best(const search *s, pare_arena *a, pare_err *err)
{
    pare_poly_plan *const p = s->p;
    const choice *const c = &s->best;
    const bool adaptive = c->kind == PARE_POLY_ADAPTIVE;
    const size_t degree = table_degree(c->kind, c->degree);
    const poly_fit fit = c->kind == PARE_POLY_REMEZ ? c->fit : poly_taylor(p->B.v, c->degree);
    double *const coef = pare_alloc(a, degree + 1, sizeof *coef);
    if (!coef) return pare_no_memory(err);
    memcpy(coef, fit.c, (c->degree + 1) * sizeof *coef);
    p->kind = c->kind;
    p->degree = c->degree;
    p->coef = coef;
    p->eps = adaptive ? c->eps : fit.error;
    p->tv = poly_variation(p->eps);
    snprintf(p->why, sizeof p->why, "%s degree %zu, %zu features, logits up to %.3g",
             pare_poly_kind_name(c->kind), c->degree,
             adaptive ? c->table.count : pare_monomials_count(p->d, c->degree), p->B.v);
    p->table = c->table;
    return adaptive ? PARE_OK : pare_monomials_graded(&p->table, a, p->d, degree, err);
}

pare_status pare_poly_plan_f32(pare_poly_plan *out, pare_arena *a, const pare_mat32 *q,
                               const pare_mat32 *k, size_t dv, double scale, const pare_pattern *p,
                               const pare_poly_opts *opts, const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(q->rows == k->rows && q->cols == k->cols && opts->tolerance > 0);
    *out = (pare_poly_plan){.kind = PARE_POLY_EXACT,
                            .causal = p->kind == PARE_CAUSAL,
                            .n = q->rows,
                            .d = q->cols,
                            .dv = dv,
                            .scale = scale,
                            .tolerance = opts->tolerance,
                            .max_bytes = opts->max_bytes ? opts->max_bytes : PARE_POLY_BYTES};
    const char *why = NULL;
    if (p->kind == PARE_WINDOW || p->kind == PARE_GRAPH)
        why = p->kind == PARE_WINDOW ? "the pattern is a window" : "the pattern is a graph";
    else if (opts->kind == PARE_POLY_EXACT)
        why = "as asked";
    else if (out->n == 0 || out->d == 0)
        why = "nothing to sum";
    else if (scale != 0 && !isnormal((float)scale))
        why = "the scale is beyond f32";
    if (why) {
        snprintf(out->why, sizeof out->why, "exact: %s", why);
        return PARE_OK;
    }
    const double n = (double)out->n, pairs = out->causal ? n * n / 2 : n * n;
    search s = {.o = opts, .p = out, .exact = poly_exact_cost(pairs, out->d, dv)};
    if (s.exact < CALL_COST && !opts->always) { /* a plan would cost more */
        snprintf(out->why, sizeof out->why, "exact: %zu tokens are too few", out->n);
        return PARE_OK;
    }
    s.coordinate = pare_alloc(a, out->d, sizeof *s.coordinate);
    if (!s.coordinate) return pare_no_memory(err);
    /* Midranges first. Where nothing fits around them, a few long rows may be the reason: then
     * means, and the longest keys become heavy. */
    bool found = false;
    pare_status st = PARE_OK;
    for (int mean = 0; mean < 2 && !st && !found; mean++) {
        if (mean && s.best.kind != PARE_POLY_EXACT) break; /* it fits, and is slower */
        st = poly_measure(out, s.coordinate, mean, a, q, k, opts->heavy, exec, err);
        if (!st) st = find_best(&found, &s, a, q, k, err);
    }
    if (st || found) return st ? st : adopt_best(&s, a, err);
    explain_exact(&s);
    return PARE_OK;
}
