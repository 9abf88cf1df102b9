/* reference.c - the logit of the zero reference (docs/theory/length.md "The zero reference").
 *
 * With lmax + log M <= -log w_min, no reference of logit 0 can weigh less than w_min beside M keys,
 * nor can the keys of a row weigh less than w_min beside it: 0 is proven safe. Otherwise the
 * largest logit of a few visible keys is tried. It only has to be close to the row's log-sum-exp,
 * and rows for which it is not are detected by their weights. */
#include "linalg/bounds.h"
#include "modes.h"
#include "numbers.h"
#include <math.h>

enum { PROBES = 32 };

/* |x|^2 in f64, in independent chains of four. */
static double squared_norm(pare_dtype t, const void *x, size_t at, size_t cols)
{
    double4 s[2] = {{0}};
    size_t c = 0;
    for (; t == PARE_F32 && c + 8 <= cols; c += 8)
#pragma GCC unroll 2
        for (size_t e = 0; e < 2; e++) {
            const float *const from = (const float *)x + at + c + 4 * e;
            const double4 v = __builtin_convertvector(*(const float4 *)from, double4);
            s[e] += v * v;
        }
    for (; c < cols; c++) s[0][c % 4] += num_at(t, x, at + c) * num_at(t, x, at + c);
    s[0] += s[1];
    return (s[0][0] + s[0][1]) + (s[0][2] + s[0][3]);
}

/* At least |x|^2, however it is rounded: f32 arithmetic is a good deal faster. */
static double squared_norm_bound(const float *x, size_t cols)
{
    float4 s[4] = {{0}};
    float rest = 0;
    size_t c = 0;
    for (; c + 16 <= cols; c += 16)
#pragma GCC unroll 4
        for (size_t e = 0; e < 4; e++)
            s[e] += *(const float4 *)(x + c + 4 * e) * *(const float4 *)(x + c + 4 * e);
    for (; c < cols; c++) rest += x[c] * x[c];
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    const double sum = (double)((s[0][0] + s[0][1]) + (s[0][2] + s[0][3]) + rest);
    return sum * (1 + (double)(cols + 8) * 0x1p-23) + (double)(cols + 8) * 0x1p-125;
}

/* At least the largest norm of a row. */
static double max_norm(const length_run *r, const void *x, size_t ld, size_t cols)
{
    double most = 0;
    for (size_t i = 0; i < r->in.n; i++) {
        const bool f32 = r->in.caps.dtype == PARE_F32;
        if (f32 && squared_norm_bound((const float *)x + i * ld, cols) <= most) continue;
        most = fmax(most, squared_norm(r->in.caps.dtype, x, i * ld, cols));
    }
    return sqrt(most) * (1 + (double)(cols + 4) * 0x1p-52);
}

double reference_logit(const length_run *r, double c)
{
    return r->in.caps.dtype == PARE_F32 ? (double)(float)c : c;
}

static void probe_rows(length_run *r, size_t at, size_t first, size_t end)
{
    const head_state *const h = &r->heads[at];
    for (size_t i = first; i < end; i++) {
        const pare_keys keys = pare_visible(r->in.pattern, r->in.graph, r->in.n, i);
        const size_t probes = keys.count < PROBES ? keys.count : PROBES;
        double best = keys.count ? -INFINITY : 0;
        for (size_t x = 0; x < probes; x++) {
            const size_t k = probes > 1 ? x * (keys.count - 1) / (probes - 1) : 0;
            best = fmax(best, run_logit(r, &h->job, i, pare_key(&keys, k)));
        }
        if (!keys.list && keys.count)
            best = fmax(best, run_logit(r, &h->job, i, i)); /* its own key */
        h->ref_logit[i] = reference_logit(r, best);
    }
}

pare_status reference_choose(length_run *r)
{
    double lmax = 0;
    for (size_t i = 0; i < r->in.nheads; i++) {
        const pare_length_job *const j = &r->heads[i].job;
        r->heads[i].lmax =
            max_norm(r, j->q, j->ldq, j->dk) * max_norm(r, j->k, j->ldk, j->dk) * (1 + 0x1p-50);
        lmax = fmax(lmax, r->heads[i].lmax);
    }
    r->stats->lmax = lmax;
    if (r->in.rule.plain) return PARE_OK;
    const bool safe = lmax + pare_log_up((double)r->in.rule.m) <= -pare_log_up(r->in.caps.w_min);
    pare_reference ref = r->in.opts.reference;
    if (ref == PARE_REF_AUTO)
        ref = safe ? PARE_REF_ZERO : r->in.caps.w_min > 0x1p-40 ? PARE_REF_MEAN : PARE_REF_PROBE;
    r->stats->reference = ref;
    if (ref == PARE_REF_ZERO) return PARE_OK;
    for (size_t i = 0; i < r->in.nheads; i++) {
        r->heads[i].ref_logit = pare_alloc(r->arena, r->in.n, sizeof(double));
        if (!r->heads[i].ref_logit) return pare_no_memory(r->in.err);
    }
    if (ref == PARE_REF_PROBE) run_for_rows(r, probe_rows);
    return PARE_OK;
}
