/* poly_f64.c - the reference form of polynomial attention: f64, plain loops, one thread; bounds are
 * those of real arithmetic.
 *
 * Taylor polynomials of odd degree are certified row by row by the moment itself,
 *
 *     |y_i - exact_i| <= kappa(B_i) sum_j w_j x_ij^(g+1) / den_i  of the range of the values,
 *
 * B_i = |q'_i| max |k'_j|; all others by the relative error of the plan. */
#include "poly.h"
#include "rows_f64.h"
#include "polynomial.h"
#include "linalg/bounds.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include <math.h>
#include <string.h>

enum { CHUNK = 64 };

/* ---- the plan ------------------------------------------------------------------------------- */

static double norm_of(const double *x, const double *c, double by, size_t d)
{
    double s = 0;
    for (size_t i = 0; i < d; i++) s += by * (x[i] - c[i]) * by * (x[i] - c[i]);
    return sqrt(s);
}

static pare_status midranges(double *c, const pare_mat *x, const char *what, pare_err *err)
{
    for (size_t k = 0; k < x->cols; k++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < x->rows; i++) {
            const double v = pare_row(x, i)[k];
            if (!isfinite(v))
                return pare_fail(err, PARE_ERR_NONFINITE, "%s: row %zu, column %zu is %s", what, i,
                                 k, isnan(v) ? "nan" : "infinite");
            low = fmin(low, v);
            high = fmax(high, v);
        }
        c[k] = 0.5 * (low + high);
    }
    return PARE_OK;
}

static double radius(const pare_mat *x, const double *c, size_t k)
{
    double most = 0;
    for (size_t i = 0; i < x->rows; i++) most = fmax(most, fabs(pare_row(x, i)[k] - c[k]));
    return most;
}

/* The longest keys become heavy, one by one; O(n heavy). */
static pare_status choose_heavy(pare_poly_plan *p, pare_arena *a, const pare_mat *k, size_t count,
                                pare_err *err)
{
    uint8_t *const taken = pare_alloc(a, p->n + 1, sizeof *taken);
    size_t *const rows = pare_alloc(a, count + 1, sizeof *rows);
    if (!taken || !rows) return pare_no_memory(err);
    if (count > p->n) count = p->n;
    for (size_t h = 0; h <= count; h++) {
        double most = -1;
        size_t which = 0;
        for (size_t j = 0; j < p->n; j++) {
            const double s = taken[j] ? -1 : norm_of(pare_row(k, j), p->kc, 1, p->d);
            if (s >= most) most = s, which = j;
        }
        p->key = pare_ub_of(most < 0 ? 0 : most * (1 + 0x1p-40));
        if (h < count) taken[which] = 1;
    }
    for (size_t j = 0; j < p->n; j++)
        if (taken[j]) rows[p->nheavy++] = j;
    p->heavy = rows;
    return PARE_OK;
}

pare_status pare_poly_plan_f64(pare_poly_plan *out, pare_arena *a, const pare_mat *q,
                               const pare_mat *k, size_t dv, double scale, const pare_pattern *p,
                               const pare_poly_opts *opts, pare_err *err)
{
    PARE_ASSERT(q->rows == k->rows && q->cols == k->cols && opts->tolerance > 0);
    PARE_ASSERT(p->kind == PARE_FULL || p->kind == PARE_CAUSAL);
    *out = (pare_poly_plan){.kind = PARE_POLY_EXACT,
                            .causal = p->kind == PARE_CAUSAL,
                            .n = q->rows,
                            .d = q->cols,
                            .dv = dv,
                            .scale = scale,
                            .tolerance = opts->tolerance};
    if (out->n > 0) {
        double *const qc = pare_alloc(a, 2 * out->d, sizeof *qc);
        if (!qc) return pare_no_memory(err);
        double *const kc = qc + out->d;
        out->qc = qc;
        out->kc = kc;
        pare_status st = midranges(qc, q, "queries", err);
        if (!st) st = midranges(kc, k, "keys", err);
        if (!st) st = choose_heavy(out, a, k, opts->heavy, err);
        if (st) return st;
        double box = 0, most = 0;
        for (size_t i = 0; i < out->d; i++)
            box += fabs(scale) * radius(q, qc, i) * radius(k, kc, i);
        for (size_t i = 0; i < out->n; i++)
            most = fmax(most, norm_of(pare_row(q, i), qc, scale, out->d));
        out->query = pare_ub_of(most * (1 + 0x1p-40));
        out->B = pare_ub_min(pare_ub_of(box * (1 + 0x1p-40)), pare_ub_mul(out->query, out->key));
    }
    /* The smallest degree that meets the tolerance for every row, or the one that is forced. */
    const bool forced = opts->degree >= 0;
    const size_t first = forced ? (size_t)opts->degree : 0, last = forced ? first : POLY_F32_DEGREE;
    poly_fit fit;
    bool found = false;
    for (size_t g = first; out->n > 0 && opts->kind != PARE_POLY_EXACT && !found && g <= last;
         g++) {
        fit = opts->kind == PARE_POLY_TAYLOR ? poly_taylor(out->B.v, g) : poly_remez(out->B.v, g);
        found = forced || poly_variation(fit.error).v <= out->tolerance;
    }
    if (!found) {
        snprintf(out->why, sizeof out->why, "exact: logits may reach %.3g", out->B.v);
        return PARE_OK;
    }
    double *const coef = pare_alloc(a, fit.degree + 1, sizeof *coef);
    if (!coef) return pare_no_memory(err);
    memcpy(coef, fit.c, (fit.degree + 1) * sizeof *coef);
    out->kind = opts->kind == PARE_POLY_TAYLOR ? PARE_POLY_TAYLOR : PARE_POLY_REMEZ;
    out->degree = fit.degree;
    out->coef = coef;
    out->eps = fit.error;
    out->tv = poly_variation(fit.error);
    snprintf(out->why, sizeof out->why, "%s degree %zu, %zu features",
             pare_poly_kind_name(out->kind), fit.degree, pare_monomials_count(out->d, fit.degree));
    return pare_monomials_graded(&out->table, a, out->d, fit.degree, err);
}

/* ---- the pass ------------------------------------------------------------------------------- */

typedef struct reference {
    const pare_poly_plan *p;
    const pare_mat *q, *k, *v;
    pare_monomials m; /* of the plan, and of degree g + 1 where moments are taken */
    bool moments;
    double *a, *sums, *x, *phi, *out; /* logs of weights; m.count x (dv + 1); d; m.count; dv + 1 */
    double shift;                     /* of the sums; -inf: empty */
    uint8_t *heavy;
} reference;

static void monomials(double *phi, const pare_monomials *m, const double *x)
{
    phi[0] = 1;
    for (size_t e = 1; e < m->count; e++) phi[e] = phi[m->parent[e]] * x[m->var[e]];
}

static void center_row(double *x, const double *from, const double *c, double by, size_t d)
{
    for (size_t i = 0; i < d; i++) x[i] = by * (from[i] - c[i]);
}

/* Adds e^(a + x) [v, 1] of one key; r->x is the query. */
static void add_exact_key(reference *r, size_t j)
{
    double s = r->a[j] - r->shift;
    for (size_t i = 0; i < r->p->d; i++) s += r->x[i] * (pare_row(r->k, j)[i] - r->p->kc[i]);
    const double w = pare_exp(s);
    for (size_t c = 0; c < r->p->dv; c++) r->out[c] += w * pare_row(r->v, j)[c];
    r->out[r->p->dv] += w;
}

/* Row i from the sums, heavy keys before `before`, and keys [from, to) exactly. Returns its
 * bound. */
static double polynomial_row(reference *r, double *y, size_t i, size_t before, size_t from,
                             size_t to)
{
    const pare_poly_plan *const p = r->p;
    const size_t cols = p->dv + 1;
    double moment = 0;
    memset(r->out, 0, cols * sizeof *r->out);
    center_row(r->x, pare_row(r->q, i), p->qc, p->scale, p->d);
    monomials(r->phi, &r->m, r->x);
    for (size_t e = 0; e < r->m.count; e++) {
        const double f = r->m.weight[e] * r->phi[e], *const s = r->sums + e * cols;
        if (r->m.power[e] > p->degree)
            moment += f * s[cols - 1];
        else
            for (size_t c = 0; c < cols; c++) r->out[c] += p->coef[r->m.power[e]] * f * s[c];
    }
    for (size_t h = 0; h < p->nheavy && p->heavy[h] < before; h++) add_exact_key(r, p->heavy[h]);
    for (size_t j = from; j < to; j++) add_exact_key(r, j);
    for (size_t c = 0; c < p->dv; c++) y[c] = r->out[c] / r->out[p->dv];
    if (!(r->out[p->dv] > 0)) return INFINITY;
    if (!r->moments) return p->tv.v;
    const double B = norm_of(pare_row(r->q, i), p->qc, p->scale, p->d) * p->key.v;
    return poly_kappa(p->degree, B) * fmax(moment, 0) / r->out[p->dv];
}

static void exact_row(const reference *r, double *y, size_t i, size_t visible)
{
    const pare_poly_plan *const p = r->p;
    const double *const q = pare_row(r->q, i);
    double row_max = -INFINITY, sum = 0;
    memset(y, 0, p->dv * sizeof *y);
    for (size_t j = 0; j < visible; j++)
        row_max = fmax(row_max, dot_f64(q, pare_row(r->k, j), p->d) * p->scale);
    for (size_t j = 0; j < visible; j++) {
        const double w = pare_exp(dot_f64(q, pare_row(r->k, j), p->d) * p->scale - row_max);
        sum += w;
        add_scaled_f64(y, w, pare_row(r->v, j), p->dv);
    }
    for (size_t c = 0; c < p->dv; c++) y[c] /= sum;
}

static pare_status prepare(reference *r, pare_arena *a, pare_err *err)
{
    const pare_poly_plan *const p = r->p;
    const size_t cols = p->dv + 1;
    r->m = p->table;
    r->moments = p->kind == PARE_POLY_TAYLOR && p->degree % 2 == 1;
    if (r->moments) {
        const pare_status st = pare_monomials_graded(&r->m, a, p->d, p->degree + 1, err);
        if (st) return st;
    }
    r->a = pare_alloc(a, p->n, sizeof *r->a);
    r->heavy = pare_alloc(a, p->n, sizeof *r->heavy);
    r->x = pare_alloc(a, p->d, sizeof *r->x);
    r->out = pare_alloc(a, cols, sizeof *r->out);
    r->phi = pare_alloc(a, r->m.count, sizeof *r->phi);
    r->sums = pare_alloc(a, r->m.count, cols * sizeof *r->sums);
    if (!r->a || !r->heavy || !r->x || !r->out || !r->phi || !r->sums) return pare_no_memory(err);
    for (size_t h = 0; h < p->nheavy; h++) r->heavy[p->heavy[h]] = 1;
    for (size_t j = 0; j < p->n; j++)
        for (size_t c = 0; c < p->d; c++)
            r->a[j] += p->scale * p->qc[c] * (pare_row(r->k, j)[c] - p->kc[c]);
    r->shift = -INFINITY;
    return PARE_OK;
}

static void chunk_keys(reference *r, size_t from, size_t to)
{
    const size_t dv = r->p->dv;
    for (size_t j = from; j < to; j++) {
        if (r->heavy[j]) continue;
        const double w = pare_exp(r->a[j] - r->shift), *const v = pare_row(r->v, j);
        center_row(r->x, pare_row(r->k, j), r->p->kc, 1, r->p->d);
        monomials(r->phi, &r->m, r->x);
        for (size_t e = 0; e < r->m.count; e++) {
            double *const s = r->sums + e * (dv + 1);
            for (size_t c = 0; c < dv; c++) s[c] += w * r->phi[e] * v[c];
            s[dv] += w * r->phi[e];
        }
    }
}

pare_status pare_poly_attend_f64(pare_mat *y, double *bound, pare_poly_report *report,
                                 const pare_poly_plan *plan, const pare_mat *q, const pare_mat *k,
                                 const pare_mat *v, size_t chunk, pare_err *err)
{
    PARE_ASSERT(q->rows == plan->n && k->rows == plan->n && v->rows == plan->n);
    pare_poly_report unread, *const to = report ? report : &unread;
    *to = (pare_poly_report){.kind = plan->kind,
                             .degree = plan->degree,
                             .rows = plan->n,
                             .features = plan->table.count,
                             .worst_case =
                                 plan->kind == PARE_POLY_EXACT ? pare_ub_exact(0) : plan->tv};
    memcpy(to->why, plan->why, sizeof to->why);
    if (plan->n == 0) return PARE_OK;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    reference r = {.p = plan, .q = q, .k = k, .v = v};
    const pare_status st = plan->kind == PARE_POLY_EXACT ? PARE_OK : prepare(&r, a, err);
    const bool exact = plan->kind == PARE_POLY_EXACT;
    const size_t step = !plan->causal ? plan->n : chunk ? chunk : CHUNK;
    for (size_t from = 0; !st && from < plan->n; from += step) {
        const size_t end = plan->n - from < step ? plan->n : from + step;
        double shift = r.shift; /* the unit of the sums becomes that of the largest weight so far */
        for (size_t j = from; !exact && j < end; j++) shift = fmax(shift, r.a[j]);
        if (!exact && shift > r.shift) {
            const double rescale = r.shift == -INFINITY ? 0 : pare_exp(r.shift - shift);
            for (size_t i = 0; i < r.m.count * (plan->dv + 1); i++) r.sums[i] *= rescale;
            r.shift = shift;
        }
        if (!exact && !plan->causal) chunk_keys(&r, from, end);
        /* rows, from the sums of the keys before them (causal) or of all keys */
        for (size_t i = from; i < end; i++) {
            double *const row = pare_row_mut(y, i);
            double b = exact          ? INFINITY
                       : plan->causal ? polynomial_row(&r, row, i, from, from, i + 1)
                                      : polynomial_row(&r, row, i, plan->n, 0, 0);
            if (!(b <= plan->tolerance)) {
                exact_row(&r, row, i, plan->causal ? i + 1 : plan->n);
                b = 0;
                to->rows_exact++;
            }
            if (bound) bound[i] = b;
            to->proven = pare_ub_max(to->proven, pare_ub_exact(b));
        }
        if (!exact && plan->causal) chunk_keys(&r, from, end);
    }
    pare_arena_free(a);
    return st;
}

pare_status pare_poly_f64(pare_mat *y, double *bound, pare_poly_report *report,
                          const pare_attention_args *x, const pare_poly_opts *opts, pare_err *err)
{
    pare_poly_plan plan;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st =
        pare_poly_plan_f64(&plan, a, x->q, x->k, x->v->cols, x->scale, x->pattern, opts, err);
    if (!st) st = pare_poly_attend_f64(y, bound, report, &plan, x->q, x->k, x->v, 0, err);
    pare_arena_free(a);
    return st;
}
