/* length.c - attention of N tokens through an oracle of M: checks the inputs and chooses the
 * mode. */
#include "modes.h"
#include "numbers.h"
#include <math.h>
#include <string.h>

/* ---- inputs ---------------------------------------------------------------------------------- */

/* 0 times every number is 0 or nan; several independent chains of sums. */
static bool all_finite(pare_dtype t, const void *x, size_t n)
{
    const float *const f = x;
    const double *const d = x;
    float4 zeros[4] = {{0}};
    double zero = 0;
    size_t c = 0;
    for (; t == PARE_F32 && c + 16 <= n; c += 16) {
        __builtin_prefetch(f + c + 1024);
#pragma GCC unroll 4
        for (size_t e = 0; e < 4; e++) zeros[e] += *(const float4 *)(f + c + 4 * e) * 0.0F;
    }
    for (; t == PARE_F32 && c < n; c++) zero += (double)f[c] * 0;
    for (; c < n; c++) zero += d[c] * 0;
    const float4 all = (zeros[0] + zeros[1]) + (zeros[2] + zeros[3]);
    return zero + (double)(all[0] + all[1] + all[2] + all[3]) == 0;
}

static pare_status check_numbers(const length_run *r, size_t at, const char *what, const void *x,
                                 size_t ld, size_t cols)
{
    const pare_dtype t = r->in.caps.dtype;
    if (ld == cols && all_finite(t, x, r->in.n * cols)) return PARE_OK;
    for (size_t i = 0; i < r->in.n; i++) {
        const char *const row = (const char *)x + i * ld * pare_dtype_size(t);
        for (size_t c = all_finite(t, row, cols) ? cols : 0; c < cols; c++)
            if (!isfinite(num_at(t, row, c)))
                return pare_fail(r->in.err, PARE_ERR_NONFINITE,
                                 "length: %s of head %zu: row %zu, column %zu is not finite", what,
                                 at, i, c);
    }
    return PARE_OK;
}

/* What is finite when it is scaled was so before. */
static pare_status scale_queries(length_run *r, size_t at, pare_length_job *j)
{
    if (j->scale == 1) return check_numbers(r, at, "q", j->q, j->ldq, j->dk);
    const pare_dtype type = r->in.caps.dtype;
    const size_t size = pare_dtype_size(type);
    const bool single = type == PARE_F32 && fabs(j->scale) >= 0x1p-126; /* a normal f32 */
    bool finite = true;
    char *const q = run_alloc_aligned(r, r->in.n * j->dk, size);
    if (!q) return pare_no_memory(r->in.err);
    for (size_t i = 0; i < r->in.n; i++) {
        char *const row = q + i * j->dk * size;
        const char *const from = (const char *)j->q + i * j->ldq * size;
        const float *const f = (const float *)(const void *)from;
        float *const y = (float *)(void *)row;
        size_t c = 0;
        for (; single && c + 4 <= j->dk; c += 4)
            *(float4 *)(y + c) = *(const float4 *)(f + c) * (float)j->scale;
        for (; single && c < j->dk; c++) y[c] = f[c] * (float)j->scale;
        for (; c < j->dk; c++) num_put(type, row, c, num_at(type, from, c) * j->scale);
        if (!all_finite(type, row, j->dk)) finite = false;
    }
    if (!finite) {
        const pare_status st = check_numbers(r, at, "q", j->q, j->ldq, j->dk);
        return st ? st : check_numbers(r, at, "scaled q", q, j->dk, j->dk);
    }
    j->q = q;
    j->ldq = j->dk;
    j->scale = 1;
    return PARE_OK;
}

static pare_status take_jobs(length_run *r, const pare_length_job *jobs)
{
    pare_status st = PARE_OK;
    r->heads = pare_alloc(r->arena, r->in.nheads, sizeof *r->heads);
    if (!r->heads) return pare_no_memory(r->in.err);
    for (size_t i = 0; i < r->in.nheads && !st; i++) {
        pare_length_job *const j = &r->heads[i].job;
        *j = jobs[i];
        r->heads[i].run = r;
        PARE_ASSERT(j->n == r->in.n && j->ldq >= j->dk && j->ldk >= j->dk && j->ldv >= j->dv &&
                    j->ldy >= j->dv && j->dk >= 1);
        st = scale_queries(r, i, j);
        if (!st) st = check_numbers(r, i, "k", j->k, j->ldk, j->dk);
        if (!st) st = check_numbers(r, i, "v", j->v, j->ldv, j->dv);
    }
    return st;
}

/* ---- the run --------------------------------------------------------------------------------- */

pare_status pare_length_attend(const pare_oracle *orc, const pare_length_opts *opts,
                               const pare_length_layer *layer, pare_length_stats *stats,
                               const pare_exec *exec, pare_err *err)
{
    const pare_length_job *const jobs = layer->jobs;
    const size_t count = layer->count;
    const pare_pattern *const p = layer->pattern;
    static pare_status (*const attend[PARE_LENGTH_MODES])(length_run *) = {
        [PARE_LENGTH_NATIVE] = native_attend, [PARE_LENGTH_ZEROREF] = zeroref_attend,
        [PARE_LENGTH_STRICT] = strict_attend, [PARE_LENGTH_PAPER] = paper_attend,
        [PARE_LENGTH_SAMPLE] = sample_attend, [PARE_LENGTH_CHUNK] = chunk_attend};
    pare_length_stats own;
    length_run r = {.in = {.oracle = orc,
                           .pattern = p,
                           .graph = layer->graph,
                           .n = count ? jobs[0].n : 0,
                           .nheads = count,
                           .exec = exec,
                           .err = err},
                    .stats = stats ? stats : &own,
                    .arena = pare_arena_new()};
    run_inputs *const in = &r.in;
    *r.stats = (pare_length_stats){0};
    if (!r.arena) return pare_no_memory(err);
    if (opts) in->opts = *opts;
    orc->ops->caps(orc->self, &in->caps);
    pare_status st = resolve_call_rule(&in->rule, &in->opts, &in->caps, in->n, p, err);
    r.stats->mode = in->opts.mode;
    in->strict = rule_strict(&in->opts, &in->caps);
    in->capacity = in->strict ? rule_capacity(&in->caps) : 1;
    if (!st && in->n) st = take_jobs(&r, jobs);
    if (!st && in->n) {
        r.stats->simulated = in->n > in->rule.m;
        PARE_ASSERT(in->opts.mode != PARE_LENGTH_AUTO); /* resolve_call_rule has replaced it */
        st = attend[in->opts.mode](&r);
    }
    run_free(&r);
    return st;
}
