/* encode.c - one matrix by any method: integers, bytes, and the numbers that they expand to. */
#include "encode.h"
#include "seedlm.h"
#include "trellis.h"
#include <math.h>

const char *const pare_quant_method_names[] = {"rtn", "gptq", "trellis", "seedlm", NULL};

#define F16_LEAST 0x1p-14 /* the smallest f16 that has all its digits */
#define F16_MOST  65504.0

quant_bits quant_bits_of(pare_quant_method method)
{
    if (method == PARE_QUANT_TRELLIS)
        return (quant_bits){PARE_QUANT_LEAST_PATH, 0.125, PARE_QUANT_MOST_PATH};
    if (method == PARE_QUANT_SEEDLM)
        return (quant_bits){PARE_QUANT_LEAST_BITS, 1, PARE_QUANT_MOST_SEEDS};
    return (quant_bits){PARE_QUANT_LEAST_BITS, 1, PARE_QUANT_MOST_BITS};
}

pare_coded_kind quant_kind_of(pare_quant_method method)
{
    if (method == PARE_QUANT_SEEDLM) return PARE_CODED_SEEDS;
    return method == PARE_QUANT_TRELLIS ? PARE_CODED_TRELLIS : PARE_CODED_GROUPS;
}

bool quant_is_wide(const pare_weight *w, unsigned bits)
{
    double largest = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++)
        largest = fmax(largest, fabs((double)(float)pare_weight_at(w, i)));
    return largest > 0 && (ldexp(largest, 1 - (int)bits) < F16_LEAST || largest > F16_MOST);
}

group_range group_range_of(const quant_job *job)
{
    const unsigned bits = (unsigned)job->bits;
    group_range r = {.least = pare_int_groups_least(bits, job->affine),
                     .most = pare_int_groups_most(bits, job->affine),
                     .affine = job->affine};
    const pare_weight w = {PARE_F32, job->rows, job->cols, job->w};
    r.wide = quant_is_wide(&w, bits);
    return r;
}

static pare_status code_groups(pare_coded *coded, float **expanded, pare_arena *a,
                               const quant_job *job, pare_arena *scratch, pare_err *err)
{
    static quant_method_fn *const methods[] = {
        [PARE_QUANT_RTN] = quant_rtn, [PARE_QUANT_GPTQ] = quant_gptq};
    const group_range r = group_range_of(job);
    const size_t n = job->rows * job->cols, groups = (job->cols + job->group - 1) / job->group;
    quant_groups to = {.groups = groups,
                       .q = pare_alloc(scratch, n, 1),
                       .scale = pare_alloc(scratch, job->rows * groups, sizeof(float))};
    if (job->affine) to.offset = pare_alloc(scratch, job->rows * groups, sizeof(float));
    *expanded = pare_alloc(a, n, sizeof **expanded);
    if (!to.q || !to.scale || (job->affine && !to.offset) || !*expanded) return pare_no_memory(err);
    const pare_status st = methods[job->method](&to, job, &r, scratch, err);
    if (st) return st;
    const pare_int_groups g = {.rows = job->rows,
                               .cols = job->cols,
                               .group = job->group,
                               .bits = (unsigned)job->bits,
                               .q = to.q,
                               .scale = to.scale,
                               .offset = to.offset};
    pare_int_groups_expand(*expanded, &g);
    return pare_coded_groups(coded, a, &g, err);
}

pare_status quant_matrix(pare_coded *coded, float **expanded, pare_arena *a, const quant_job *job,
                         pare_err *err)
{
    if (job->method == PARE_QUANT_TRELLIS) {
        const trellis_job path = {.rows = job->rows,
                                  .cols = job->cols,
                                  .w = job->w,
                                  .moments = job->moments,
                                  .worth = job->worth,
                                  .bits = job->bits,
                                  .state_bits = job->state_bits,
                                  .each_row = job->each_row,
                                  .rotate = true,
                                  .seed = job->seed,
                                  .stream = job->stream,
                                  .exec = job->exec};
        return trellis_matrix(coded, expanded, a, &path, err);
    }
    if (job->method == PARE_QUANT_SEEDLM) return seedlm_matrix(coded, expanded, a, job, err);
    PARE_ASSERT(job->group > 0 && job->group <= job->cols);
    pare_arena *const scratch = pare_arena_new();
    const pare_status st =
        scratch ? code_groups(coded, expanded, a, job, scratch, err) : pare_no_memory(err);
    pare_arena_free(scratch);
    return st;
}
