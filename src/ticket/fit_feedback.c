/* fit_feedback.c - chooses the entries one after the other: each compensates the errors of those
 * before it (feedback.c), and is the sum with the least error, or with the least error plus cost
 * in bits. */
#include "model/source.h"
#include "fit_feedback.h"
#include <math.h>
#include "base/support.h"
#include "linalg/matrix.h"
#include "model/ticket_store.h"
#include "subset_solver.h"

enum { MOST_ITEMS = 64 };

typedef struct feedback_job {
    const fit_problem *p;
    const fit_feedback_opts *o;
    size_t items, step;
    uint64_t *mask; /* b x a: fit_put_blocks */
    double *buffer; /* outputs x inputs */
    fit_cost *cost; /* of each output: sums */
    pare_status *status;
} feedback_job;

typedef struct output_job {
    const feedback_job *job;
    pare_subset_solver *solver;
    fit_cost cost;
    pare_status st;
} output_job;

static double choose_entry(void *self, size_t output, size_t input, double goal, double worth)
{
    output_job *const w = self;
    const feedback_job *const job = w->job;
    const fit_problem *const p = job->p;
    const bool columns = job->o->columns;
    const size_t i = columns ? input : output, j = columns ? output : input;
    const double target = goal / p->scale;
    int64_t item[MOST_ITEMS], sum = 0;
    for (size_t c = 0; c < job->items; c++) item[c] = fit_item(p, i, j * job->items + c, j);
    pare_chosen chosen = {0};
    if (!(job->o->price > 0) && !w->st) { /* the nearest sum; targets beyond all sums stay so */
        pare_subset best;
        const double t = fmax(-2047, fmin(2047, target));
        w->st = pare_subset_solve(w->solver, &best, &chosen.mask, item, job->items,
                                  llrint(t / PARE_SOURCE_UNIT), NULL, NULL);
    }
    if (job->o->price > 0)
        chosen =
            pare_bridge_choose(item, job->items, target, job->o->price / worth, &job->o->bridge);
    for (size_t c = 0; c < job->items; c++) sum += chosen.mask >> c & 1 ? item[c] : 0;
    const double value = (double)sum * PARE_SOURCE_UNIT, error = target - value;
    job->mask[j * p->a + i] = chosen.mask;
    w->cost.bits += chosen.bits;
    w->cost.loss += worth * error * error;
    if (job->o->price > 0)
        pare_bridge_statistics(&w->cost.seen, item, job->items, chosen.mask, &job->o->bridge);
    return value * p->scale;
}

static void choose_output(void *ctx, size_t k)
{
    const feedback_job *const job = ctx;
    const size_t output = k * job->step, n = job->o->aim.cols;
    output_job w = {.job = job};
    w.st = pare_subset_new(&w.solver, NULL);
    if (!w.st)
        feedback_run(job->o->f, pare_row(&job->o->aim, output), job->buffer + output * n, output,
                     choose_entry, &w);
    pare_subset_free(w.solver);
    job->cost[k] = w.cost;
    job->status[k] = w.st;
}

static pare_status choose_outputs(fit_cost *out, feedback_job *job, pare_arena *a,
                                  const pare_exec *exec, pare_err *err)
{
    const size_t outputs = job->o->aim.rows, inputs = job->o->aim.cols;
    const size_t count = (outputs + job->step - 1) / job->step;
    *out = (fit_cost){0};
    job->items = job->p->n / job->p->b < MOST_ITEMS ? job->p->n / job->p->b : MOST_ITEMS;
    job->mask = pare_alloc(a, outputs * inputs + 1, sizeof *job->mask);
    job->buffer = pare_alloc(a, outputs * inputs + 1, sizeof *job->buffer);
    job->cost = pare_alloc(a, count + 1, sizeof *job->cost);
    job->status = pare_alloc(a, count + 1, sizeof *job->status);
    if (!job->mask || !job->buffer || !job->cost || !job->status) return pare_no_memory(err);
    const pare_status st = pare_parallel_until(exec, count, choose_output, job, err);
    if (st) return st;
    for (size_t k = 0; k < count; k++) {
        if (job->status[k]) return pare_no_memory(err); /* items and targets are in their limits */
        out->bits += job->cost[k].bits / (double)(count * inputs);
        out->loss += job->cost[k].loss / (double)(count * inputs);
        for (size_t u = 0; u < job->items; u++) {
            out->seen.more[u] += job->cost[k].seen.more[u];
            out->seen.unsure[u] += job->cost[k].seen.unsure[u];
        }
    }
    return PARE_OK;
}

pare_status fit_feedback_cost(fit_cost *out, pare_arena *scratch, const fit_problem *p,
                              const fit_feedback_opts *o, size_t step, const pare_exec *exec,
                              pare_err *err)
{
    const pare_mark mark = pare_arena_mark(scratch);
    feedback_job job = {.p = p, .o = o, .step = step};
    const pare_status st = choose_outputs(out, &job, scratch, exec, err);
    pare_arena_reset(scratch, mark);
    return st;
}

pare_status fit_feedback(fit_result *out, pare_arena *a, const fit_problem *p,
                         const fit_feedback_opts *o, const pare_exec *exec, pare_err *err)
{
    fit_cost cost;
    feedback_job job = {.p = p, .o = o, .step = 1};
    pare_status st = fit_check(p, err);
    if (!st) st = fit_result_new(out, a, p, err);
    if (!st) st = choose_outputs(&cost, &job, a, exec, err);
    if (st) return st;
    fit_put_blocks(out, p, job.items, job.mask, 1);
    return fit_residual(out, a, p, exec, err);
}
