/* Attention of N tokens through an oracle of M: which construction, and what is refused. */
#include "group_codes.h"
#include "rounds.h"
#include <math.h>
#include <string.h>

static const char *const names[PARE_LENGTH_MODES] = {"auto",  "native", "zeroref", "strict",
                                                     "paper", "sample", "chunk"};

const char *pare_length_mode_name(pare_length_mode m)
{
    return names[m];
}

int pare_length_mode_of(const char *name)
{
    for (int i = 0; i < PARE_LENGTH_MODES; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* Sums of 0, or nan: many of them, which do not wait for one another. */
static bool all_finite(pare_dtype t, const void *x, size_t n)
{
    const float *const f = x;
    const double *const d = x;
    four zeros[4] = {{0}};
    double zero = 0;
    size_t c = 0;
    for (; t == PARE_F32 && c + 16 <= n; c += 16) {
        __builtin_prefetch(f + c + 1024);
#pragma GCC unroll 4
        for (size_t e = 0; e < 4; e++) zeros[e] += *(const four *)(f + c + 4 * e) * 0.0F;
    }
    for (; t == PARE_F32 && c < n; c++) zero += (double)f[c] * 0;
    for (; c < n; c++) zero += d[c] * 0;
    const four all = (zeros[0] + zeros[1]) + (zeros[2] + zeros[3]);
    return zero + (double)(all[0] + all[1] + all[2] + all[3]) == 0;
}

static pare_status check_numbers(const run *r, size_t at, const char *what, const void *x,
                                 size_t ld, size_t cols)
{
    const pare_dtype t = r->caps.dtype;
    if (ld == cols && all_finite(t, x, r->n * cols)) return PARE_OK;
    for (size_t i = 0; i < r->n; i++) {
        const char *const row = (const char *)x + i * ld * pare_dtype_size(t);
        for (size_t c = all_finite(t, row, cols) ? cols : 0; c < cols; c++)
            if (!isfinite(num_at(t, row, c)))
                return pare_fail(r->err, PARE_ERR_NONFINITE,
                                 "length: %s of head %zu: row %zu, column %zu is not finite", what,
                                 at, i, c);
    }
    return PARE_OK;
}

static void scale_row(pare_dtype t, void *to, const void *from, size_t cols, double by)
{
    const bool single = t == PARE_F32 && fabs(by) >= 0x1p-126; /* by is a good f32 */
    const float *const f = from;
    float *const y = to;
    size_t c = 0;
    for (; single && c + 4 <= cols; c += 4) *(four *)(y + c) = *(const four *)(f + c) * (float)by;
    for (; single && c < cols; c++) y[c] = f[c] * (float)by;
    for (; c < cols; c++) num_put(t, to, c, num_at(t, from, c) * by);
}

/* What is finite when it is scaled was so before. */
static pare_status scale_queries(run *r, size_t at, pare_length_job *j)
{
    if (j->scale == 1) return check_numbers(r, at, "q", j->q, j->ldq, j->dk);
    const pare_dtype type = r->caps.dtype;
    const size_t size = pare_dtype_size(type);
    bool finite = true;
    char *const q = run_room(r, r->n * j->dk, size);
    if (!q) return pare_no_memory(r->err);
    for (size_t i = 0; i < r->n; i++) {
        char *const row = q + i * j->dk * size;
        scale_row(type, row, (const char *)j->q + i * j->ldq * size, j->dk, j->scale);
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

static pare_status take_jobs(run *r, const pare_length_job *jobs)
{
    pare_status st = PARE_OK;
    r->heads = pare_alloc(r->arena, r->count, sizeof *r->heads);
    if (!r->heads) return pare_no_memory(r->err);
    for (size_t i = 0; i < r->count && !st; i++) {
        pare_length_job *const j = &r->heads[i].job;
        *j = jobs[i];
        r->heads[i].of = r;
        PARE_ASSERT(j->n == r->n && j->ldq >= j->dk && j->ldk >= j->dk && j->ldv >= j->dv &&
                    j->ldy >= j->dv && j->dk >= 1);
        st = scale_queries(r, i, j);
        if (!st) st = check_numbers(r, i, "k", j->k, j->ldk, j->dk);
        if (!st) st = check_numbers(r, i, "v", j->v, j->ldv, j->dv);
    }
    return st;
}

/* ---- the run --------------------------------------------------------------------------------- */

static pare_status attend(run *r, const pare_length_job *jobs)
{
    r->orc->ops->caps(r->orc->self, &r->caps);
    pare_status st = rule_choose(&r->rule, &r->o, &r->caps, r->n, r->p, r->err);
    r->stats->mode = r->o.mode;
    r->strict = rule_strict(&r->o, &r->caps);
    r->capacity = r->strict ? rule_capacity(&r->caps) : 1;
    if (!st && r->n) st = take_jobs(r, jobs);
    if (st || !r->n) return st;
    r->stats->simulated = r->n > r->rule.m;
    switch (r->o.mode) {
    case PARE_LENGTH_NATIVE:
        return native_attend(r);
    case PARE_LENGTH_ZEROREF:
        return zeroref_attend(r);
    case PARE_LENGTH_STRICT:
        return strict_attend(r);
    case PARE_LENGTH_PAPER:
        return paper_attend(r);
    case PARE_LENGTH_SAMPLE:
        return sample_attend(r);
    case PARE_LENGTH_CHUNK:
        return chunk_attend(r);
    case PARE_LENGTH_AUTO:
        break;
    }
    pare_assert_failed(__FILE__, __LINE__, "a mode"); /* rule_choose has replaced AUTO */
}

pare_status pare_length_attend(const pare_oracle *orc, const pare_length_opts *opts,
                               const pare_length_job *jobs, size_t count, const pare_pattern *p,
                               const pare_graph *g, pare_length_stats *stats, const pare_exec *exec,
                               pare_err *err)
{
    pare_length_stats own;
    run r = {.orc = orc, .p = p, .g = g, .count = count, .exec = exec, .err = err};
    if (opts) r.o = *opts;
    r.stats = stats ? stats : &own;
    *r.stats = (pare_length_stats){0};
    r.n = count ? jobs[0].n : 0;
    r.arena = pare_arena_new();
    if (!r.arena) return pare_no_memory(err);
    const pare_status st = attend(&r, jobs);
    run_free(&r);
    return st;
}
