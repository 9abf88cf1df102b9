/* gptq.c - GPTQ (Frantar et al. 2023): the columns of a matrix are quantized one after the other,
 * those whose inputs are largest first, and what each rounds away is made good, as well as it can be,
 * by the columns that are still open (model/feedback.c). Scales are chosen beforehand, with what an
 * error of each column costs once all later ones are at their best. */
#include "encode.h"
#include "linalg/matrix.h"
#include "model/feedback.h"

typedef struct sweep {
    quant_groups *to;
    const quant_job *job;
    const group_range *r;
    const feedback *f;
    double *goals, *open; /* rows x cols */
} sweep;

static double choose(void *self, size_t output, size_t input, double goal, double worth)
{
    const sweep *const s = self;
    const size_t at = output * s->to->groups + input / s->job->group;
    const group_scale scale = {s->to->scale[at], s->to->offset ? s->to->offset[at] : 0};
    const int q = nearest_code(goal, scale, s->r);
    (void)worth;
    s->to->q[output * s->job->cols + input] = (int8_t)q;
    return (double)(scale.scale * (float)q + scale.offset);
}

static void quantize_row(void *self, size_t i)
{
    sweep *const s = self;
    const size_t n = s->job->cols;
    for (size_t j = 0; j < n; j++) s->goals[i * n + j] = (double)s->job->w[i * n + j];
    feedback_run(s->f, s->goals + i * n, s->open + i * n, i, choose, s);
}

pare_status quant_gptq(quant_groups *to, const quant_job *job, const group_range *r,
                       pare_arena *scratch, pare_err *err)
{
    if (!job->moments) return quant_rtn(to, job, r, scratch, err);
    const input_moments e = {.square = *job->moments};
    const size_t n = job->rows * job->cols;
    feedback f;
    sweep s = {.to = to, .job = job, .r = r, .f = &f};
    s.goals = pare_alloc(scratch, n, sizeof *s.goals);
    s.open = pare_alloc(scratch, n, sizeof *s.open);
    double *const worth = pare_alloc(scratch, job->cols, sizeof *worth);
    if (!s.goals || !s.open || !worth) return pare_no_memory(err);
    const pare_status st = feedback_of(&f, scratch, job->cols, &e, err);
    if (st) return st;
    for (size_t k = 0; k < job->cols; k++) worth[f.order[k]] = f.worth[k];
    quant_scales(to, job, r, worth);
    pare_parallel(job->exec, job->rows, quantize_row, &s);
    return pare_stopped(job->exec, err);
}
