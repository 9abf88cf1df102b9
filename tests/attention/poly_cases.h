/* poly_cases.h - plans of polynomial attention made by hand, and the function they stand for,
 * pair by pair. */
#ifndef POLY_CASES_H
#define POLY_CASES_H
#include "attention/poly_remez.h"
#include "attention/polynomial.h"
#include "linalg/matrix.h"
#include <pare_test.h>

typedef struct poly_case {
    size_t n, d, dv, chunk;
    pare_mat q, k, v, dy;
    pare_poly_plan plan;
    uint8_t *exact; /* NULL: none */
} poly_case;

static inline pare_mat normal_mat(pare_arena *a, size_t rows, size_t cols, double sigma,
                                  double mean, pare_rng *r)
{
    const pare_mat m = pare_mat_new(a, rows, cols);
    assert_non_null(m.v);
    for (size_t i = 0; i < rows * cols; i++)
        m.v[i] = (double)(float)(mean + sigma * pare_rng_normal(r)); /* exact in both engines */
    return m;
}

static inline double *midrange(pare_arena *a, const pare_mat *x)
{
    double *const c = pare_alloc(a, x->cols, sizeof *c);
    assert_non_null(c);
    for (size_t j = 0; j < x->cols; j++) {
        double lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < x->rows; i++) {
            lo = fmin(lo, pare_row(x, i)[j]);
            hi = fmax(hi, pare_row(x, i)[j]);
        }
        c[j] = (double)(float)(lo / 2 + hi / 2);
    }
    return c;
}

/* Distances of rows from the center, times `by`, from above; *most: the largest. */
static inline float *distances(pare_ub *most, pare_arena *a, const pare_mat *x,
                               const double *center, double by)
{
    float *const norm = pare_alloc(a, x->rows, sizeof *norm);
    assert_non_null(norm);
    *most = pare_ub_exact(0);
    for (size_t i = 0; i < x->rows; i++) {
        double sum = 0;
        for (size_t c = 0; c < x->cols; c++) {
            const double t = by * (pare_row(x, i)[c] - center[c]);
            sum += t * t;
        }
        norm[i] = (float)(sqrt(sum) * (1 + 1e-6));
        *most = pare_ub_max(*most, pare_ub_exact((double)norm[i]));
    }
    return norm;
}

static inline void measure(poly_case *c, pare_arena *a)
{
    pare_poly_plan *const p = &c->plan;
    p->query_norms = distances(&p->query, a, &c->q, p->qc, p->scale);
    p->key_norms = distances(&p->key, a, &c->k, p->kc, 1);
}

/* All monomials up to `degree` (or, with `some`, a set that is not all of them), Remez on
 * [-bound, bound]. */
static inline poly_case poly_case_new(pare_arena *a, size_t n, size_t d, size_t dv, size_t degree,
                                      bool some, double sigma, bool causal, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 1);
    poly_case c = {.n = n, .d = d, .dv = dv};
    c.q = normal_mat(a, n, d, sigma, 0.3, &r);
    c.k = normal_mat(a, n, d, sigma, -0.2, &r);
    c.v = normal_mat(a, n, dv, 1, 0.5, &r);
    c.dy = normal_mat(a, n, dv, 1, 0, &r);
    double *const coef = pare_alloc(a, degree + 1, sizeof *coef);
    double *const size = pare_alloc(a, d, sizeof *size);
    assert_true(coef && size);
    const poly_fit fit = poly_remez(1, degree);
    memcpy(coef, fit.c, (degree + 1) * sizeof *coef);
    size_t count = 1;
    for (size_t i = 1; i <= degree; i++) count = count * (d + i) / i;
    for (size_t i = 0; i < d; i++) size[i] = some ? 1e-6 * pow(0.9, (double)i) : 1e-6;
    c.plan = (pare_poly_plan){.kind = PARE_POLY_REMEZ,
                              .causal = causal,
                              .n = n,
                              .d = d,
                              .dv = dv,
                              .scale = 0.7,
                              .tolerance = 1,
                              .qc = midrange(a, &c.q),
                              .kc = midrange(a, &c.k),
                              .degree = degree,
                              .coef = coef};
    measure(&c, a);
    pare_ub tail;
    pare_err err = {0};
    assert_ok(pare_monomials_adaptive(&c.plan.table, &tail, a, size, d, 0,
                                      some ? count - d / 2 : count, &err),
              &err);
    assert_int_equal(c.plan.table.power[c.plan.table.count - 1], degree);
    return c;
}

/* w_j p(q'_i.k'_j), or what stands for it: without the common factor of w. */
static inline double poly_weight(const poly_case *c, const double *q, const double *k, bool direct)
{
    const pare_poly_plan *const p = &c->plan;
    double logw = 0, x = 0, sum = 0;
    double *const phi = malloc(p->table.count * sizeof *phi);
    assert_non_null(phi);
    for (size_t e = 0; e < c->d; e++) {
        logw += p->scale * p->qc[e] * (k[e] - p->kc[e]);
        x += p->scale * (q[e] - p->qc[e]) * (k[e] - p->kc[e]);
    }
    for (size_t e = 0; e < p->table.count; e++) {
        const size_t v = p->table.var[e];
        phi[e] = e ? phi[p->table.parent[e]] * p->scale * (q[v] - p->qc[v]) * (k[v] - p->kc[v]) : 1;
        sum += p->coef[p->table.power[e]] * p->table.weight[e] * phi[e];
    }
    free(phi);
    return exp(logw) * (direct ? exp(x) : sum);
}

static inline bool is_heavy(const poly_case *c, size_t j)
{
    for (size_t i = 0; i < c->plan.nheavy; i++)
        if (c->plan.heavy[i] == j) return true;
    return false;
}

/* Row i of the result. */
static inline void poly_result(const poly_case *c, size_t i, double *y)
{
    const size_t seen = c->plan.causal ? i + 1 : c->n;
    const bool whole = c->plan.kind == PARE_POLY_EXACT || (c->exact && c->exact[i]);
    double den = 0;
    memset(y, 0, c->dv * sizeof *y);
    for (size_t j = 0; j < seen; j++) {
        const bool near = c->plan.causal && i / c->chunk == j / c->chunk;
        const double w =
            poly_weight(c, pare_row(&c->q, i), pare_row(&c->k, j), whole || near || is_heavy(c, j));
        den += w;
        for (size_t e = 0; e < c->dv; e++) y[e] += w * pare_row(&c->v, j)[e];
    }
    for (size_t e = 0; e < c->dv; e++) y[e] /= den;
}

/* sum of dy y */
static inline double poly_loss(const poly_case *c)
{
    double y[64], loss = 0;
    for (size_t i = 0; i < c->n; i++) {
        poly_result(c, i, y);
        for (size_t e = 0; e < c->dv; e++) loss += y[e] * pare_row(&c->dy, i)[e];
    }
    return loss;
}
#endif
