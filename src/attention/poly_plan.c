/* The plan of polynomial attention: centres, sizes, and the cheapest polynomial that is likely to
 * be proven within the tolerance - or exact attention, with the reason.
 *
 * The plan decides only about speed. Taylor polynomials are judged by what their proof would give
 * on a sample of queries and keys; the proof itself is made when the plan is carried out, row by
 * row. Remez polynomials (and chosen monomials) are proven here, for all rows at once. */
#include "poly.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 48, KEYS = 96 }; /* of the sample, at most */

enum { ADAPTIVE_MOST = 20000 }; /* monomials that are looked for */
#define ADAPTIVE_BOX 6.0        /* beyond it the tail of the series blows up */
#define UNEQUAL      4.0        /* the largest coordinate beside the smallest */
#define CALL_WORK    9e6        /* of the plan and the tables of the proof */

/* Chosen monomials come in short runs, which cost more. */
static double adaptive_work(const pare_poly_plan *p, size_t features)
{
    return CALL_WORK + 1.5 * poly_cost((double)p->n, features, p->d, p->dv + 1, p->causal);
}

/* So many of them may cost less than `work`. */
static size_t adaptive_most(const pare_poly_plan *p, double work)
{
    const double none = adaptive_work(p, 0), each = adaptive_work(p, 1) - none;
    return (size_t)fmax(1, fmin(ADAPTIVE_MOST, (work - none) / each));
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

static bool is_heavy(const pare_poly_plan *p, size_t j)
{
    for (size_t h = 0; h < p->nheavy; h++)
        if (p->heavy[h] == j) return true;
    return false;
}

static void take_sample(sample *s, const pare_poly_plan *p, const pare_mat32 *q,
                        const pare_mat32 *k)
{
    s->nq = p->n < QUERIES ? p->n : QUERIES;
    s->nk = p->n < KEYS ? p->n : KEYS;
    double top = -INFINITY;
    for (size_t j = 0; j < s->nk; j++) {
        const size_t row = spread(j, KEYS, p->n);
        double norm = 0, a = 0;
        for (size_t c = 0; c < p->d; c++) {
            const double x = at(k, row, c) - p->kc[c];
            norm += x * x;
            a += p->scale * p->qc[c] * x;
        }
        s->kn[j] = fmin(sqrt(norm), p->key.v);
        s->heavy[j] = is_heavy(p, row);
        s->w[j] = a;
        top = fmax(top, a);
    }
    for (size_t j = 0; j < s->nk; j++) s->w[j] = exp(s->w[j] - top);
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

typedef struct odds {
    double lengths, moments; /* shares of rows that either proof leaves to the exact kernel */
} odds;

/* What the proof of a Taylor polynomial would say of the sample. */
static odds odds_of(const sample *s, const pare_poly_plan *p, size_t g, size_t features)
{
    odds o = {0, 0};
    double power[KEYS];
    for (size_t j = 0; j < s->nk; j++) power[j] = s->w[j] * poly_power(s->kn[j], g ? g - 1 : 1);
    for (size_t i = 0; i < s->nq; i++) {
        double lengths = 0, moment = 0;
        for (size_t j = 0; j < s->nk; j++) {
            const double x = s->x[i * KEYS + j];
            if (s->heavy[j]) continue; /* it is weighed by e^x itself */
            lengths += power[j] * (g ? x * x : 1);
            moment += s->w[j] * poly_power(fabs(x), g + 1);
        }
        const double B = s->qn[i] * p->key.v, kappa = poly_kappa(g, B);
        const double noise = 0x1p-24 * (120 * exp(B) + (double)features * poly_power(B, g));
        const double room = (0.97 * p->tolerance - noise) * s->sum[i] / kappa;
        lengths *= poly_power(s->qn[i], g ? g - 1 : 1);
        o.lengths += !(lengths <= room);
        o.moments += !(moment <= room);
    }
    o.lengths /= (double)s->nq;
    o.moments = g % 2 ? o.moments / (double)s->nq : o.lengths;
    return o;
}

/* ---- choice --------------------------------------------------------------------------------- */

typedef struct choice {
    pare_poly_kind kind;
    size_t degree;
    double work, left; /* share of rows expected to be exact */
    poly_fit fit;
    pare_monomials table; /* adaptive */
    pare_ub eps;
} choice;

typedef struct search {
    const pare_poly_opts *o;
    pare_poly_plan *p;
    double pairs, exact; /* its work */
    choice best;
    double *coordinate; /* d: sizes of the products of single coordinates */
    size_t too_large;   /* smallest degree beyond the memory; 0: none met */
} search;

static void offer(search *s, const choice *c)
{
    if (c->work < s->best.work) s->best = *c;
}

/* Degree 1 needs monomials of degree 2 for its proof. */
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
                .work = CALL_WORK + poly_cost(n, r, p->d, p->dv + 2, p->causal)};
    if (!(c.work < s->best.work)) return; /* nor will it with rows left over */
    const odds o = odds_of(m, p, g, r);
    double left = o.lengths * s->exact;
    c.left = o.lengths;
    if (o.moments < o.lengths && poly_fits(next, 1, p->max_bytes)) {
        const double by =
            o.moments * s->exact + poly_moment_cost(n, o.lengths * n, next, p->d, p->causal);
        if (by < left) left = by, c.left = o.moments;
    }
    if (c.left >= 0.5) return; /* then all rows are exact */
    c.work += left;
    offer(s, &c);
}

static void try_remez(search *s, size_t g)
{
    const pare_poly_plan *const p = s->p;
    const size_t r = pare_monomials_count(p->d, g);
    choice c = {.kind = PARE_POLY_REMEZ, .degree = g};
    if (!poly_fits(r, p->dv + 1, p->max_bytes) || !(p->B.v <= POLY_REMEZ_BOUND)) return;
    c.work = CALL_WORK + poly_cost((double)p->n, r, p->d, p->dv + 1, p->causal);
    if (!(c.work < s->best.work)) return;
    c.fit = poly_remez(p->B.v, g);
    const double noise = 0x1p-24 * (200 * exp(p->B.v) + (double)r * poly_power(p->B.v, g));
    if (poly_variation(c.fit.error).v + noise <= s->p->tolerance || s->o->degree >= 0) offer(s, &c);
}

/* Chosen monomials pay where coordinates are of unequal size. */
static pare_status try_adaptive(search *s, pare_arena *a, pare_err *err)
{
    const pare_poly_plan *const p = s->p;
    double box = 0, most = 0, least = INFINITY;
    for (size_t c = 0; c < p->d; c++) {
        box += s->coordinate[c];
        most = fmax(most, s->coordinate[c]), least = fmin(least, s->coordinate[c]);
    }
    const bool asked = s->o->kind == PARE_POLY_ADAPTIVE;
    if (!(box <= ADAPTIVE_BOX) || (!asked && !(most > UNEQUAL * least))) return PARE_OK;
    choice c = {.kind = PARE_POLY_ADAPTIVE};
    const double noise = 0x1p-24 * 200 * exp(p->B.v), room = 0.97 * p->tolerance - noise;
    pare_ub tail;
    if (!(room > 0)) return PARE_OK;
    const pare_status st =
        pare_monomials_adaptive(&c.table, &tail, a, s->coordinate, p->d, 2 * room * exp(-p->B.v),
                                adaptive_most(p, s->best.work), err);
    if (st) return st;
    const size_t r = c.table.count;
    c.degree = c.table.degree;
    c.eps = pare_ub_mul(tail, pare_ub_exp(p->B));
    c.work = adaptive_work(p, r);
    if (c.degree <= POLY_F32_DEGREE && poly_fits(r, p->dv + 1, p->max_bytes) &&
        poly_variation(c.eps).v + noise <= p->tolerance)
        offer(s, &c);
    return PARE_OK;
}

static pare_status look(search *s, const sample *m, pare_arena *a, pare_err *err)
{
    const bool taylor = s->o->kind == PARE_POLY_AUTO || s->o->kind == PARE_POLY_TAYLOR;
    const bool remez = s->o->kind == PARE_POLY_AUTO || s->o->kind == PARE_POLY_REMEZ;
    const size_t from = s->o->degree >= 0 ? (size_t)s->o->degree : 0;
    const size_t to = s->o->degree >= 0 ? from : POLY_F32_DEGREE;
    for (size_t g = from; g <= to; g++) {
        if (taylor) try_taylor(s, m, g);
        if (remez) try_remez(s, g);
    }
    const bool chosen = s->o->kind == PARE_POLY_AUTO || s->o->kind == PARE_POLY_ADAPTIVE;
    return chosen && s->o->degree < 0 ? try_adaptive(s, a, err) : PARE_OK;
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

static void stay_exact(const search *s)
{
    pare_poly_plan *const p = s->p;
    p->kind = PARE_POLY_EXACT;
    if (!(p->query.v * p->key.v <= POLY_F32_LOGITS))
        snprintf(p->why, sizeof p->why, "exact: centred logits may reach %.3g", p->B.v);
    else if (s->best.kind != PARE_POLY_EXACT)
        snprintf(p->why, sizeof p->why,
                 "exact: %zu tokens are too few, degree %zu (%zu features) would be %.3g times "
                 "slower",
                 p->n, s->best.degree, pare_monomials_count(p->d, s->best.degree),
                 s->best.work / s->exact);
    else if (s->too_large)
        snprintf(p->why, sizeof p->why, "exact: degree %zu and more needs more memory than allowed",
                 s->too_large);
    else
        snprintf(p->why, sizeof p->why,
                 "exact: no degree up to %d meets %.2g (logits may reach %.3g)", POLY_F32_DEGREE,
                 p->tolerance, p->B.v);
}

static pare_status adopt(const search *s, pare_arena *a, pare_err *err)
{
    pare_poly_plan *const p = s->p;
    const choice *const c = &s->best;
    const bool adaptive = c->kind == PARE_POLY_ADAPTIVE;
    const size_t top = table_degree(c->kind, c->degree);
    const poly_fit fit = c->kind == PARE_POLY_REMEZ ? c->fit : poly_taylor(p->B.v, c->degree);
    double *const coef = pare_alloc(a, top + 1, sizeof *coef);
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
    return adaptive ? PARE_OK : pare_monomials_graded(&p->table, a, p->d, top, err);
}

/* The best polynomial around the plan's centres; false: none pays. */
static pare_status find(bool *found, search *s, pare_arena *a, const pare_mat32 *q,
                        const pare_mat32 *k, pare_err *err)
{
    pare_status st = PARE_OK;
    sample *const m = malloc(sizeof *m);
    if (!m) return pare_no_memory(err);
    s->best = (choice){.kind = PARE_POLY_EXACT, .work = INFINITY};
    if (s->p->query.v * s->p->key.v <= POLY_F32_LOGITS) {
        take_sample(m, s->p, q, k);
        st = look(s, m, a, err);
    }
    free(m);
    *found = s->best.kind != PARE_POLY_EXACT && (s->best.work < s->exact || s->o->always);
    return st;
}

/* Midranges first; where nothing fits around them a few long rows may be to blame: then means, and
 * the longest keys apart. */
static pare_status decide(search *s, pare_arena *a, const pare_mat32 *q, const pare_mat32 *k,
                          const pare_exec *exec, pare_err *err)
{
    bool found = false;
    pare_status st = PARE_OK;
    for (int mean = 0; mean < 2 && !st && !found; mean++) {
        if (mean && s->best.kind != PARE_POLY_EXACT) break; /* it fits, and is slower */
        st = poly_measure(s->p, s->coordinate, mean, a, q, k, s->o->heavy, exec, err);
        if (!st) st = find(&found, s, a, q, k, err);
    }
    if (st || found) return st ? st : adopt(s, a, err);
    stay_exact(s);
    return PARE_OK;
}

/* NULL, or why exact attention is all there is to say. */
static const char *needs_no_plan(const pare_poly_plan *p, const pare_poly_opts *o)
{
    if (o->kind == PARE_POLY_EXACT) return "as asked";
    if (p->n == 0 || p->d == 0) return "nothing to sum";
    if (p->scale != 0 && !isnormal((float)p->scale)) return "the scale is beyond f32";
    return NULL;
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
    if (p->kind != PARE_FULL && p->kind != PARE_CAUSAL) {
        snprintf(out->why, sizeof out->why, "exact: the pattern is a %s",
                 p->kind == PARE_WINDOW ? "window" : "graph");
        return PARE_OK;
    }
    const char *const why = needs_no_plan(out, opts);
    if (why) {
        snprintf(out->why, sizeof out->why, "exact: %s", why);
        return PARE_OK;
    }
    const double n = (double)out->n;
    search s = {.o = opts, .p = out, .pairs = out->causal ? n * n / 2 : n * n};
    s.exact = poly_exact_cost(s.pairs, out->d, dv);
    if (s.exact < CALL_WORK && !opts->always) { /* not even worth a plan */
        snprintf(out->why, sizeof out->why, "exact: %zu tokens are too few", out->n);
        return PARE_OK;
    }
    s.coordinate = pare_alloc(a, out->d, sizeof *s.coordinate);
    return s.coordinate ? decide(&s, a, q, k, exec, err) : pare_no_memory(err);
}
