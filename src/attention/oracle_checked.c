/* An oracle that is not believed: what comes out of it is computed again in f64, row by row.
 *
 * For one query with n visible keys, u the sum of both unit roundoffs and e = exp_err: scores are
 * off by at most lambda = gamma_{dk+3} max_j sum_c |q_c k_jc| + what underflows; subtracting the
 * largest adds u times their range, e^x adds e u, and an engine that goes through the keys in
 * pieces rescales at most n times, (e + 1) u each. So each weight is its exact value times
 * e^+-delta, delta = lambda + u (range + 2 lambda) + (e + 1) u (n + 2), up to a factor common to
 * the row: the ratio y is free of it, and in acc and l it is the error of m, at most lambda. Sums
 * of n terms add g = gamma_{2n+8}.
 *     |y' - y| <= (e^(2 delta) (1 + g) - 1) sum_j p_j |v_j| + n (n + 4) tiny (max|v| + 1),
 * and the same with weights e^(s - m) in the place of p for acc and l. The bound is convex in u
 * and 0 at 0, so the roundings of the engine and of the referee may be added in u. */
#include "oracle_calls.h"
#include <pare/elementary.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct checked {
    pare_oracle inner;
    pare_oracle_check *check;
    pare_oracle_caps caps;
    pare_call *calls; /* since the last barrier */
    uint64_t *number;
    size_t n, room;
} checked;

static void caps(void *self, pare_oracle_caps *out)
{
    const checked *const o = self;
    o->inner.ops->caps(o->inner.self, out);
    out->features &= ~(uint32_t)PARE_ORC_ADD; /* what is not written cannot be looked at */
}

static bool make_room(checked *o, size_t more)
{
    if (more <= o->room - o->n) return true;
    const size_t room = 2 * o->room + more;
    pare_call *const calls = realloc(o->calls, room * sizeof *calls);
    if (calls) o->calls = calls;
    uint64_t *const number = realloc(o->number, room * sizeof *number);
    if (number) o->number = number;
    if (!calls || !number) return false;
    o->room = room;
    return true;
}

/* Every call, or evenly the fraction that is asked for. */
static bool chosen(const pare_oracle_check *c)
{
    const double before = (double)c->calls * c->fraction;
    return floor(before + c->fraction) > floor(before);
}

static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    checked *const o = self;
    if (!make_room(o, n)) return pare_no_memory(err);
    const pare_status st = o->inner.ops->evaluate(o->inner.self, calls, n, err);
    if (st) return st;
    for (size_t i = 0; i < n; i++) {
        if (calls[i].kind != PARE_CALL_STRICT && chosen(o->check)) {
            o->number[o->n] = o->check->calls;
            o->calls[o->n++] = calls[i];
        }
        o->check->calls++;
    }
    return PARE_OK;
}

/* ---- one row in f64 -------------------------------------------------------------------------- */

typedef struct row {
    const checked *o;
    uint64_t number;
    const pare_call *call;
    pare_call_partial p;
    size_t i, n;           /* the query, and how many keys it sees */
    double *w;             /* weights e^(s - top) */
    double top, sum;       /* of the scores, of the weights */
    double factor, absent; /* of the bound: times sum w |v|, and what underflows, times max |v| */
} row;

static double at(const checked *o, const void *v, size_t i)
{
    return o->caps.dtype == PARE_F32 ? (double)((const float *)v)[i] : ((const double *)v)[i];
}

static double gamma_of(double n, double u)
{
    return n * u < 1 ? n * u / (1 - n * u) : INFINITY;
}

static double bias(const row *r, size_t j)
{
    const pare_call_qkv *const a = &r->call->u.a;
    if (r->call->kind != PARE_CALL_QKV || !a->bias) return 0;
    return at(r->o, a->bias, r->i * a->n + j);
}

/* Scores, weights and the two numbers of the bound. */
static void weigh(row *r)
{
    const pare_call_partial *const p = &r->p;
    const bool f32 = r->o->caps.dtype == PARE_F32;
    const double u = (f32 ? PARE_UNIT_F32 : 0x1p-53) + 0x1p-53, tiny = f32 ? 0x1p-126 : 0x1p-1022;
    double low = INFINITY, size = 0, big = 0;
    r->top = -INFINITY;
    for (size_t j = 0; j < r->n; j++) {
        double s = bias(r, j), a = fabs(s);
        for (size_t c = 0; c < p->dk; c++) {
            const double q = at(r->o, p->q, r->i * p->ldq + c), k = at(r->o, p->k, j * p->ldk + c);
            s += q * k;
            a += fabs(q * k);
            big = fmax(big, fmax(fabs(q), fabs(k)));
        }
        r->w[j] = s;
        r->top = fmax(r->top, s);
        if (isfinite(s)) low = fmin(low, s); /* a bias of -inf hides exactly */
        if (isfinite(a)) size = fmax(size, a);
    }
    r->sum = 0;
    for (size_t j = 0; j < r->n; j++) r->sum += r->w[j] = pare_exp(r->w[j] - r->top);
    const double n = (double)r->n, dk = (double)p->dk;
    const double lambda = gamma_of(dk + 4, u) * size + (dk + 2) * tiny * (1 + big);
    const double range = fmin(r->top - low + 2 * lambda, 800);
    const double delta = lambda + u * range + (r->o->caps.exp_err + 1) * u * (n + 2);
    const double sums = gamma_of(2 * n + 8, u); /* ln(1 + sums) <= sums */
    r->factor = 1.000001 * pare_expm1_up(2 * delta + fmin(sums, pare_log_up(1 + sums)));
    r->absent = n * (n + 4) * tiny;
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

/* Columns of values, which may stand in two arrays, and of results. */
static size_t columns(const row *r)
{
    return r->p.dv + (r->call->kind == PARE_CALL_QKV ? r->call->u.a.dv2 : 0);
}

static double value(const row *r, size_t j, size_t c)
{
    const pare_call_qkv *const a = &r->call->u.a;
    if (c < r->p.dv) return at(r->o, r->p.v, j * r->p.ldv + c);
    return at(r->o, a->v2, j * a->dv2 + c - r->p.dv);
}

static double result(const row *r, size_t c)
{
    const pare_call_qkv *const a = &r->call->u.a;
    if (c < r->p.dv) return at(r->o, r->p.acc, r->i * r->p.ldacc + c);
    return at(r->o, a->y2, r->i * a->dv2 + c - r->p.dv);
}

/* Entry c of acc (or y). */
static pare_status check_entry(const row *r, size_t c, pare_err *err)
{
    const double l = r->p.m ? 1 : r->sum;
    double want = 0, size = 0, most = 0;
    for (size_t j = 0; j < r->n; j++) {
        const double v = value(r, j, c);
        if (r->w[j] == 0) continue;
        want += r->w[j] * v;
        size += r->w[j] * fabs(v);
        most = fmax(most, fabs(v));
    }
    return compare(r, r->p.m ? "acc" : "y", c, result(r, c), r->n ? want / l : 0,
                   r->factor * (r->n ? size / l : 0) + r->absent * (most + 1), err);
}

static pare_status check_row(row *r, pare_err *err)
{
    pare_status st = PARE_OK;
    weigh(r);
    if (r->p.m) {
        const double m = at(r->o, r->p.m, r->i), l = at(r->o, r->p.l, r->i);
        st = compare(r, "m", 0, m, r->top, r->n ? r->factor : 0, err);
        if (!st) st = compare(r, "l", 0, l, r->sum, r->factor * r->sum + r->absent, err);
    }
    for (size_t c = 0; c < columns(r) && !st; c++) st = check_entry(r, c, err);
    return st;
}

static pare_status check_call(const checked *o, const pare_call *call, uint64_t number,
                              pare_err *err)
{
    row r = {.o = o, .call = call, .number = number, .p = oracle_as_partial(call)};
    pare_status st = PARE_OK;
    r.w = malloc((r.p.nk ? r.p.nk : 1) * sizeof *r.w);
    if (!r.w) return pare_no_memory(err);
    for (r.i = 0; r.i < r.p.nq && !st; r.i++) {
        r.n = oracle_visible(&r.p, r.i);
        st = check_row(&r, err);
    }
    free(r.w);
    o->check->checked += !st;
    return st;
}

static pare_status barrier(void *self, pare_err *err)
{
    checked *const o = self;
    pare_status st = o->inner.ops->barrier(o->inner.self, err);
    for (size_t i = 0; i < o->n && !st; i++) st = check_call(o, &o->calls[i], o->number[i], err);
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
