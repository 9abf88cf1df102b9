/* oracle_checked.c - an oracle whose answers are computed again in f64, row by row, and compared.
 *
 * For one query with n visible keys, u the sum of both unit roundoffs and e = exp_err: scores are
 * off by at most
 *
 *     lambda = gamma_{dk+3} max_j sum_c |q_c k_jc| + what underflows;
 *
 * subtracting the largest adds u times their range, e^x adds e u, and an engine that takes the keys
 * in pieces rescales at most n times, (e + 1) u each. So each weight is its exact value times
 * e^+-delta,
 *
 *     delta = lambda + u (range + 2 lambda) + (e + 1) u (n + 2),
 *
 * up to a factor common to the row: the ratio y is free of it, and in acc and l it is the error of
 * m, at most lambda. Sums of n terms add g = gamma_{2n+8}:
 *
 *     |y' - y| <= (e^(2 delta) (1 + g) - 1) sum_j p_j |v_j| + n (n + 4) tiny (max|v| + 1),
 *
 * and the same with weights e^(s - m) in the place of p for acc and l. The bound is convex in u and
 * 0 at 0, so the roundings of the engine and of this check may be added in u. */
#include "attention/oracle_calls.h"
#include "oracle_wrappers.h"
#include "linalg/bounds.h"
#include "linalg/elementary.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct checked {
    pare_oracle inner;
    pare_oracle_check *check;
    pare_oracle_caps caps;
    pare_call *calls; /* since the last barrier */
    uint64_t *number;
    size_t n, capacity;
} checked;

static void caps(void *self, pare_oracle_caps *out)
{
    const checked *const o = self;
    o->inner.ops->caps(o->inner.self, out);
    out->features &= ~(uint32_t)PARE_ORC_ADD; /* what is not written cannot be checked */
}

static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    checked *const o = self;
    pare_oracle_check *const c = o->check;
    if (n > o->capacity - o->n) {
        const size_t capacity = 2 * o->capacity + n;
        pare_call *const grown = realloc(o->calls, capacity * sizeof *grown);
        if (grown) o->calls = grown;
        uint64_t *const number = realloc(o->number, capacity * sizeof *number);
        if (number) o->number = number;
        if (!grown || !number) return pare_no_memory(err);
        o->capacity = capacity;
    }
    const pare_status st = o->inner.ops->evaluate(o->inner.self, calls, n, err);
    if (st) return st;
    for (size_t i = 0; i < n; i++) {
        /* every call, or evenly the fraction that is requested */
        const double before = (double)c->calls * c->fraction;
        const bool chosen = floor(before + c->fraction) > floor(before);
        if (calls[i].kind != PARE_CALL_STRICT && chosen) {
            o->number[o->n] = c->calls;
            o->calls[o->n++] = calls[i];
        }
        c->calls++;
    }
    return PARE_OK;
}

/* ---- one row in f64 -------------------------------------------------------------------------- */

typedef struct row {
    const checked *o;
    uint64_t number;
    const pare_call *call;
    pare_call_partial p;
    size_t i, n;              /* the query, and how many keys it sees */
    double *w;                /* weights e^(s - row_max) */
    double row_max, sum;      /* of the scores, of the weights */
    double factor, underflow; /* of the bound: times sum w |v|, and times max |v| + 1 */
} row;

static double at(const checked *o, const void *v, size_t i)
{
    return o->caps.dtype == PARE_F32 ? (double)((const float *)v)[i] : ((const double *)v)[i];
}

static double gamma_of(double n, double u)
{
    return n * u < 1 ? n * u / (1 - n * u) : INFINITY;
}

/* Scores, weights and the two numbers of the bound. */
static void compute_weights(row *r)
{
    const pare_call_partial *const p = &r->p;
    const pare_call_qkv *const qkv = &r->call->u.a;
    const bool biased = r->call->kind == PARE_CALL_QKV && qkv->bias;
    const bool f32 = r->o->caps.dtype == PARE_F32;
    const double u = (f32 ? PARE_UNIT_F32 : 0x1p-53) + 0x1p-53, tiny = f32 ? 0x1p-126 : 0x1p-1022;
    double low = INFINITY, size = 0, big = 0;
    r->row_max = -INFINITY;
    for (size_t j = 0; j < r->n; j++) {
        double s = biased ? at(r->o, qkv->bias, r->i * qkv->n + j) : 0, a = fabs(s);
        for (size_t c = 0; c < p->dk; c++) {
            const double q = at(r->o, p->q, r->i * p->ldq + c), k = at(r->o, p->k, j * p->ldk + c);
            s += q * k;
            a += fabs(q * k);
            big = fmax(big, fmax(fabs(q), fabs(k)));
        }
        r->w[j] = s;
        r->row_max = fmax(r->row_max, s);
        if (isfinite(s)) low = fmin(low, s); /* a bias of -inf hides exactly */
        if (isfinite(a)) size = fmax(size, a);
    }
    r->sum = 0;
    for (size_t j = 0; j < r->n; j++) r->sum += r->w[j] = pare_exp(r->w[j] - r->row_max);
    const double n = (double)r->n, dk = (double)p->dk;
    const double lambda = gamma_of(dk + 4, u) * size + (dk + 2) * tiny * (1 + big);
    const double range = fmin(r->row_max - low + 2 * lambda, 800);
    const double delta = lambda + u * range + (r->o->caps.exp_err + 1) * u * (n + 2);
    const double sums = gamma_of(2 * n + 8, u); /* ln(1 + sums) <= sums */
    r->factor = 1.000001 * pare_expm1_up(2 * delta + fmin(sums, pare_log_up(1 + sums)));
    r->underflow = n * (n + 4) * tiny;
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* got and want to within the bound; inf equals inf. */
static pare_status compare(const row *r, const char *what, size_t column, double got, double want,
                           double bound, pare_err *err)
{
    pare_oracle_check *const c = r->o->check;
    const double off = got == want ? 0 : fabs(got - want);
    if (!(off <= bound)) {
        static const char *const kinds[] = {"partial", "qkv", "strict"};
        return pare_fail(err, PARE_ERR_VERIFY,
                         "oracle call %llu (%s, %u queries, %u keys): %s of query %zu, column %zu, "
                         "is %.9g; the f64 referee says %.9g within %.3g",
                         (unsigned long long)r->number, kinds[r->call->kind], (unsigned)r->p.nq,
                         (unsigned)r->p.nk, what, r->i, column, got, want, bound);
    }
    c->deviation = fmax(c->deviation, off);
    if (bound > 0) c->used = fmax(c->used, off / bound);
    return PARE_OK;
}

/* Number c of a row of two arrays, the second behind the `split` columns of the first. */
static double split_at(const row *r, const void *first, size_t ld, const void *second, size_t i,
                       size_t c)
{
    const size_t split = r->p.dv;
    return c < split ? at(r->o, first, i * ld + c)
                     : at(r->o, second, i * r->call->u.a.dv2 + c - split);
}

static pare_status check_row(row *r, pare_err *err)
{
    const pare_call_partial *const p = &r->p;
    const pare_call_qkv *const qkv = &r->call->u.a;
    const size_t cols = p->dv + (r->call->kind == PARE_CALL_QKV ? qkv->dv2 : 0);
    pare_status st = PARE_OK;
    compute_weights(r);
    if (p->m) {
        const double m = at(r->o, p->m, r->i), l = at(r->o, p->l, r->i);
        st = compare(r, "m", 0, m, r->row_max, r->n ? r->factor : 0, err);
        if (!st) st = compare(r, "l", 0, l, r->sum, r->factor * r->sum + r->underflow, err);
    }
    for (size_t c = 0; c < cols && !st; c++) { /* acc or y */
        const double l = p->m ? 1 : r->sum;
        const double got = split_at(r, p->acc, p->ldacc, qkv->y2, r->i, c);
        double want = 0, size = 0, largest = 0;
        for (size_t j = 0; j < r->n; j++) {
            const double v = split_at(r, p->v, p->ldv, qkv->v2, j, c);
            if (r->w[j] == 0) continue;
            want += r->w[j] * v;
            size += r->w[j] * fabs(v);
            largest = fmax(largest, fabs(v));
        }
        st = compare(r, p->m ? "acc" : "y", c, got, r->n ? want / l : 0,
                     r->factor * (r->n ? size / l : 0) + r->underflow * (largest + 1), err);
    }
    return st;
}

static pare_status barrier(void *self, pare_err *err)
{
    checked *const o = self;
    pare_status st = o->inner.ops->barrier(o->inner.self, err);
    for (size_t i = 0; i < o->n && !st; i++) {
        row r = {.o = o, .call = &o->calls[i], .number = o->number[i]};
        r.p = oracle_partial_of(r.call);
        r.w = malloc((r.p.nk ? r.p.nk : 1) * sizeof *r.w);
        if (!r.w) st = pare_no_memory(err);
        for (r.i = 0; r.i < r.p.nq && !st; r.i++) {
            r.n = oracle_visible_keys(&r.p, r.i);
            st = check_row(&r, err);
        }
        free(r.w);
        o->check->checked += !st;
    }
    o->n = 0;
    return st;
}

static void destroy(void *self)
{
    checked *const o = self;
    pare_oracle_free(&o->inner);
    free(o->calls);
    free(o->number);
    free(o);
}

pare_status pare_oracle_checked(pare_oracle *out, pare_oracle inner, pare_oracle_check *check,
                                pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, destroy};
    checked *const o = malloc(sizeof *o);
    if (!o) {
        pare_oracle_free(&inner);
        return pare_no_memory(err);
    }
    *o = (checked){.inner = inner, .check = check};
    inner.ops->caps(inner.self, &o->caps);
    out->ops = &ops;
    out->self = o;
    return PARE_OK;
}
