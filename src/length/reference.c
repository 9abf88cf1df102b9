/* The logit of the zero reference (docs/theory/length.md "The zero reference").
 *
 * With lmax + log M <= -log w_min, no reference of logit 0 can weigh less than w_min beside M keys,
 * nor can the keys of a row weigh less than w_min beside it: 0 is proven safe. Else the largest
 * logit of a few visible keys is tried; only closeness to the row's own log-sum matters, and rows
 * for which it was not close enough are found out by their weights. */
#include "group_codes.h"
#include "rounds.h"
#include <math.h>

enum { PROBES = 32 };

/* By fours, which do not wait for one another. */
static double square(pare_dtype t, const void *x, size_t at, size_t cols)
{
    typedef double quad __attribute__((vector_size(32), aligned(8), may_alias));
    typedef float quad32 __attribute__((vector_size(16), aligned(4), may_alias));
    quad s[2] = {{0}};
    size_t c = 0;
    for (; t == PARE_F32 && c + 8 <= cols; c += 8)
#pragma GCC unroll 2
        for (size_t e = 0; e < 2; e++) {
            const float *const from = (const float *)x + at + c + 4 * e;
            const quad v = __builtin_convertvector(*(const quad32 *)from, quad);
            s[e] += v * v;
        }
    for (; c < cols; c++) s[0][c % 4] += num_at(t, x, at + c) * num_at(t, x, at + c);
    s[0] += s[1];
    return (s[0][0] + s[0][1]) + (s[0][2] + s[0][3]);
}

/* More than the square, however it was rounded: a good deal faster. */
static double square_at_most(const float *x, size_t cols)
{
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    four s[4] = {{0}};
    float rest = 0;
    size_t c = 0;
    for (; c + 16 <= cols; c += 16)
#pragma GCC unroll 4
        for (size_t e = 0; e < 4; e++)
            s[e] += *(const four *)(x + c + 4 * e) * *(const four *)(x + c + 4 * e);
    for (; c < cols; c++) rest += x[c] * x[c];
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    const double sum = (double)((s[0][0] + s[0][1]) + (s[0][2] + s[0][3]) + rest);
    return sum * (1 + (double)(cols + 8) * 0x1p-23) + (double)(cols + 8) * 0x1p-125;
}

/* Largest norm of the rows, a little more than it. */
static double longest(const run *r, const void *x, size_t ld, size_t cols)
{
    double most = 0;
    for (size_t i = 0; i < r->n; i++) {
        const bool f32 = r->caps.dtype == PARE_F32;
        if (f32 && square_at_most((const float *)x + i * ld, cols) <= most) continue;
        most = fmax(most, square(r->caps.dtype, x, i * ld, cols));
    }
    return sqrt(most) * (1 + (double)(cols + 4) * 0x1p-52);
}

static double logit(const run *r, const pare_length_job *j, size_t i, size_t key)
{
    double s = 0;
    for (size_t c = 0; c < j->dk; c++)
        s += num_at(r->caps.dtype, j->q, i * j->ldq + c) *
             num_at(r->caps.dtype, j->k, key * j->ldk + c);
    return s;
}

double reference_logit(const run *r, double c)
{
    return r->caps.dtype == PARE_F32 ? (double)(float)c : c;
}

static void probe_stripe(run *r, size_t at, size_t first, size_t end)
{
    const head *const h = &r->heads[at];
    for (size_t i = first; i < end; i++) {
        const pare_keys keys = pare_visible(r->p, r->g, r->n, i);
        const size_t probes = keys.count < PROBES ? keys.count : PROBES;
        double best = keys.count ? -INFINITY : 0;
        for (size_t x = 0; x < probes; x++) {
            const size_t k = probes > 1 ? x * (keys.count - 1) / (probes - 1) : 0;
            best = fmax(best, logit(r, &h->job, i, pare_key(&keys, k)));
        }
        if (!keys.list && keys.count) best = fmax(best, logit(r, &h->job, i, i)); /* the own one */
        h->c[i] = reference_logit(r, best);
    }
}

static pare_status new_logits(run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        r->heads[i].c = pare_alloc(r->arena, r->n, sizeof(double));
        if (!r->heads[i].c) return pare_no_memory(r->err);
    }
    return PARE_OK;
}

pare_status reference_choose(run *r)
{
    double lmax = 0;
    for (size_t i = 0; i < r->count; i++) {
        const pare_length_job *const j = &r->heads[i].job;
        r->heads[i].lmax =
            longest(r, j->q, j->ldq, j->dk) * longest(r, j->k, j->ldk, j->dk) * (1 + 0x1p-50);
        lmax = fmax(lmax, r->heads[i].lmax);
    }
    r->stats->lmax = lmax;
    if (r->rule.plain) return PARE_OK;
    const bool safe = lmax + pare_log_up((double)r->rule.m) <= -pare_log_up(r->caps.w_min);
    pare_reference ref = r->o.reference;
    if (ref == PARE_REF_AUTO)
        ref = safe ? PARE_REF_ZERO : r->caps.w_min > 0x1p-40 ? PARE_REF_MEAN : PARE_REF_PROBE;
    r->stats->reference = ref;
    if (ref == PARE_REF_ZERO) return PARE_OK;
    const pare_status st = new_logits(r);
    if (!st && ref == PARE_REF_PROBE) run_rows(r, probe_stripe, r);
    return st;
}
