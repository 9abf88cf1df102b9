/* rounding.c - the rounding bound, underflow included (docs/theory/length.md "Rounding").
 *
 * Let u be the oracle's unit roundoff. A logit is off by at most
 *
 *     lambda = gamma_{dk+4} sum_c |q_c k_c| + tiny (sum_c |q_c| + sum_c |k_c|):
 *
 * an entry of a query that is lost when it is scaled, or of either when the engine takes it for 0,
 * was below tiny but is multiplied by one of the other's. (Products that are lost, 2 dk + 2 times
 * tiny, are less than 2^-40 of the 4 u in theta below.) Subtracting the largest logit adds u times
 * the range of the logits, e^x adds exp_err u, and an engine that goes through the keys of a call
 * in pieces rescales at most m times, (exp_err + 1) u each: every weight of a call is its exact
 * value times e^+-delta, up to a factor common to the call,
 *
 *     delta = lambda + u (range + 2 lambda) + (exp_err + 1) u (m + 2).
 *
 * Sums of at most m + 2 terms add gamma_{m+4}. In a native plan the common factor is e^(m_t), which
 * the call returns off by at most lambda and its own rounding; with a reference it cancels in
 * acc / w and r / w, whose three parts each carry delta. The merge (f64) adds gamma_{6 parts+8} of
 * f64 (a part may be rescaled once for every other: e^x within 3 u, two products, a sum), u64 times
 * the range for what the exponents of the scale factors lose, and the rounding of the result. So
 * acc / w and r / w are sums whose terms are within e^+-theta,
 *
 *     theta = 2 delta + 2 gamma_{m+4} + lambda + gamma64_{6 parts+8} + u64 range + 4 u,
 *
 * and a ratio of such sums obeys
 *
 *     |y' - y| <= (e^(2 theta) - 1) sum_j p_j |v_j|.
 *
 * Underflow. What is below the smallest normal number is lost: a weight of a call is off by tiny
 * more, and so is a product of weight and value, whatever the value is (tiny (|v| + 1) together),
 * and the result once more; an engine whose e^-x is 0 from exp_flush on may lose as much as that
 * where tiny stands from here on. Native: at most m of them in a sum that is divided by the row's
 * own weight, at least 1 in the call that has the largest logit, and every other call's is
 * multiplied by a factor of at most 1:
 *
 *     absent = 4 (n + (m + 4) parts) tiny.
 *
 * With a reference, weights are those of a softmax: a call's sum is off by m tiny, is divided by
 * w = 1 / (s + d), where d is the call's own part of the row's sum D and s <= m counts the rows at
 * the reference's logit (its own and those without a key), and by D in the end: by
 *
 *     m (s + d) tiny / D <= m tiny (m / D + d / D),
 *
 * and all d add up to D. Rows with D < w_min do not pass; and D >= e^(max_logit - c), where the
 * reference's logit c is 0, or that of a key the row sees, or q times a mean of such keys, off by
 * no more than its own rounding: so D >= min(1, e^max_logit) but for that. Over all calls
 *
 *     absent = 4 (n + (m + 4) m parts) tiny / D.
 *
 * A merge by a call (strict) takes log r - log w for a logit: both are off by delta + gamma, the
 * logs and their difference are rounded (at most e^+-flush: 10 u flush), and the call's own weights
 * and sums once more: 6 delta + 6 gamma_{m+4} + 10 u flush for each level of the tree. */
#include "rounding.h"
#include "numbers.h"
#include <math.h>
#include "base/support.h"
#include "attend_plan.h"
#include "linalg/bounds.h"
#include "linalg/elementary.h"
#include <stdatomic.h>
#include <stdlib.h>

static double gamma_of(double n, double u)
{
    return n * u < 1 ? n * u / (1 - n * u) : INFINITY;
}

rounding rounding_of(const pare_oracle_caps *caps, const row_facts *f)
{
    const bool f32 = caps->dtype == PARE_F32;
    const double u = f32 ? 0x1p-24 : 0x1p-53, tiny = f32 ? 0x1p-126 : 0x1p-1022;
    const double dk = (double)f->dk, sum = gamma_of(f->m + 4, u);
    const double lambda = gamma_of(dk + 4, u) * f->size + tiny * f->entries;
    const double flush = isfinite(caps->exp_flush) ? caps->exp_flush + 2 : 800;
    const double gap = fmin(f->range + 2 * lambda, flush);
    const double delta = lambda + u * gap + (caps->exp_err + 1) * u * (f->m + 2);
    const double theta = 2 * delta + 2 * sum + lambda + gamma_of(6 * f->parts + 8, 0x1p-53) +
                         0x1p-53 * gap + 4 * u + f->merges * (6 * delta + 6 * sum + 10 * u * flush);
    /* 2^-40: for the few roundings of f64 in the facts and here, and for lost products */
    const double factor = pare_expm1_up(2 * theta * (1 + 0x1p-40));
    const double beside = f->native ? 1 : f->m; /* the reference's rows in a call */
    const double off =
        f->size * (2 * factor + 8 * u) + 2 * lambda + 0x1p-30;      /* of c, of max_logit */
    const double near = pare_exp_down(fmin(f->max_logit, 0) - off); /* nan: the other one */
    const double least = f->native ? 1 : fmax(near, caps->w_min);
    const double lost = fmax(tiny, pare_exp_up(2 * delta - caps->exp_flush));
    const double absent =
        4 * (f->n + (f->m + 4) * f->parts * beside) * lost / least * (1 + 0x1p-40);
    return (rounding){isnan(factor) ? INFINITY : factor, isnan(absent) ? INFINITY : absent};
}

double rounding_bound(const rounding *r, double mean, double largest)
{
    /* either is 2^-40 too large: more than the roundings here */
    const double b = r->factor * mean + r->absent * (largest + 1);
    return b >= 0 ? b : INFINITY;
}

/* ---- of a whole job, row by row -------------------------------------------------------------- */

typedef struct bounded_job {
    const pare_length_job *job;
    const pare_pattern *p;
    const pare_graph *g;
    pare_oracle_caps caps;
    double *bound;
    atomic_bool no_memory;
    double m, parts, merges;
    bool native;
} bounded_job;

typedef struct logits {
    double max, min;
    double size, entries; /* the largest sums |q k|, |q| + |k| */
} logits;

/* Of row i, in f64; also one by one into w. */
static logits logits_of(const bounded_job *d, size_t i, const pare_keys *keys, double *w)
{
    logits out = {.max = -INFINITY, .min = INFINITY};
    const pare_length_job *const j = d->job;
    const double scale = fabs(j->scale), up = 1 + gamma_of((double)j->dk, 0x1p-53);
    for (size_t x = 0; x < keys->count; x++) {
        double s = 0, a = 0, e = 0;
        for (size_t c = 0; c < j->dk; c++) {
            const double q = num_at(d->caps.dtype, j->q, i * j->ldq + c);
            const double k = num_at(d->caps.dtype, j->k, pare_key(keys, x) * j->ldk + c);
            s += q * k;
            a += fabs(q * k);
            e += scale * fabs(q) + fabs(k);
        }
        w[x] = j->scale * s;
        out.max = fmax(out.max, w[x]);
        out.min = fmin(out.min, w[x]);
        out.size = fmax(out.size, scale * a * up);
        out.entries = fmax(out.entries, e * up);
    }
    return out;
}

/* What f64 makes of the logits is within lambda of them, and u lambda is nothing beside lambda:
 * range and max_logit are taken as they are computed. */
static double row_bound(const bounded_job *d, size_t i, double *w)
{
    const pare_length_job *const j = d->job;
    const pare_keys keys = pare_visible(d->p, d->g, j->n, i);
    const pare_oracle_caps own = {.dtype = PARE_F64, .exp_flush = INFINITY, .exp_err = 2};
    double sum = 0, most = 0, largest = 0;
    if (!keys.count) return 0;
    const logits at = logits_of(d, i, &keys, w);
    row_facts f = {.dk = j->dk + 1,
                   .size = at.size,
                   .entries = at.entries,
                   .range = fmax(at.max, 0) - fmin(at.min, 0),
                   .max_logit = at.max,
                   .n = (double)keys.count,
                   .m = (double)keys.count,
                   .native = true};
    const rounding mine = rounding_of(&own, &f); /* this function itself, in f64 */
    f.m = d->m, f.parts = d->parts, f.merges = d->merges, f.native = d->native;
    const rounding e = rounding_of(&d->caps, &f);
    for (size_t x = 0; x < keys.count; x++) sum += w[x] = pare_exp(w[x] - at.max);
    for (size_t c = 0; c < j->dv; c++) {
        double s = 0;
        for (size_t x = 0; x < keys.count; x++) {
            const double v = fabs(num_at(d->caps.dtype, j->v, pare_key(&keys, x) * j->ldv + c));
            s += w[x] * v;
            largest = fmax(largest, v);
        }
        most = fmax(most, s / sum);
    }
    const double mean = most * (1 + mine.factor) + mine.absent * (largest + 1); /* >= sum p |v| */
    return rounding_bound(&e, fmin(mean, largest), largest);
}

static void bound_one(void *ctx, size_t i)
{
    bounded_job *const d = ctx;
    double *const w = malloc(d->job->n * sizeof *w);
    if (w)
        d->bound[i] = row_bound(d, i, w);
    else
        atomic_store(&d->no_memory, true);
    free(w);
}

/* The facts that follow from the mode and its calls. */
static pare_status set_call_facts(bounded_job *d, const pare_length_opts *opts, pare_err *err)
{
    pare_length_opts o = opts ? *opts : (pare_length_opts)PARE_LENGTH_OPTS_DEFAULT;
    call_rule r;
    const size_t n = d->job->n;
    const pare_status st = resolve_call_rule(&r, &o, &d->caps, n, d->p, err);
    if (st) return st;
    if (o.mode > PARE_LENGTH_STRICT)
        return pare_fail(err, PARE_ERR_INPUT, "length: mode %s has no rounding bound",
                         pare_length_mode_name(o.mode));
    d->native = o.mode == PARE_LENGTH_NATIVE || r.plain;
    d->m = rule_pads(&r, &d->caps) ? r.m : fmin(r.m, (double)n + 1);
    /* At most two parts for each block of keys, and those of a few halvings. */
    d->parts = 2 * ceil((double)n / fmax(d->m - 1, 1)) + 64;
    if (r.one_vector) d->parts *= 2; /* blocks of half the size */
    if (o.mode == PARE_LENGTH_STRICT)
        for (double left = d->parts; left > 1; left /= fmax(d->m - 1, 2)) d->merges++;
    return PARE_OK;
}

static double max_norm(const bounded_job *d, const void *x, size_t ld, size_t cols, bool entries)
{
    double most = 0;
    for (size_t i = 0; i < d->job->n; i++) {
        double s = 0;
        for (size_t c = 0; c < cols; c++) {
            const double v = num_at(d->caps.dtype, x, i * ld + c);
            s = entries ? fmax(s, fabs(v)) : s + v * v;
        }
        most = fmax(most, s);
    }
    return entries ? most : sqrt(most) * (1 + gamma_of((double)cols / 2, 0x1p-53));
}

/* sum |q k| <= |q| |k|, sum |k| <= sqrt(dk) |k|, and the mean of values is at most the largest. */
static double apriori_of(const bounded_job *d)
{
    const pare_length_job *const j = d->job;
    const double q = fabs(j->scale) * max_norm(d, j->q, j->ldq, j->dk, false);
    const double k = max_norm(d, j->k, j->ldk, j->dk, false), size = q * k;
    const row_facts f = {.dk = j->dk + 1,
                         .size = size,
                         .entries = sqrt((double)j->dk) * (q + k),
                         .range = 2 * size,
                         .max_logit = -size,
                         .n = (double)j->n,
                         .m = d->m,
                         .parts = d->parts,
                         .merges = d->merges,
                         .native = d->native};
    const rounding e = rounding_of(&d->caps, &f);
    const double v = max_norm(d, j->v, j->ldv, j->dv, true);
    return rounding_bound(&e, v, v);
}

pare_status rounding_row(double *bound, double *apriori, const pare_length_plan *plan,
                         const pare_length_job *j, size_t i, size_t rows, pare_err *err)
{
    bounded_job d = {.job = j, .p = &plan->pattern, .g = plan->graph, .caps = plan->caps};
    const pare_status st = set_call_facts(&d, &plan->opts, err);
    if (st) return st;
    d.m = fmax(d.m, (double)rows);
    double *const w = malloc(j->n * sizeof *w);
    if (!w) return pare_no_memory(err);
    *bound = row_bound(&d, i, w);
    *apriori = apriori_of(&d);
    free(w);
    return PARE_OK;
}

pare_status pare_length_rounding(double *bound, const pare_length_job *job, const pare_pattern *p,
                                 const pare_graph *g, const pare_oracle_caps *caps,
                                 const pare_length_opts *opts, const pare_exec *exec, pare_err *err)
{
    bounded_job d = {.job = job, .p = p, .g = g, .caps = *caps, .bound = bound};
    const pare_status st = set_call_facts(&d, opts, err);
    if (st) return st;
    const pare_status stopped = pare_parallel_until(exec, job->n, bound_one, &d, err);
    return atomic_load(&d.no_memory) ? pare_no_memory(err) : stopped;
}
