/* fit_block.c - the construction of Otsuka 2025 (Lemmas 4 and 7): n / b consecutive units belong
 * to one column of W, every entry is one exact subset-sum problem, units left over are pruned. */
#include "fit.h"
#include "base/support.h"
#include "model/ticket_store.h"
#include "subset_solver.h"

typedef struct assigned_job {
    const fit_problem *p;
    const int64_t *target;
    const uint32_t *first, *unit; /* those of column j are unit[first[j]] .. */
    size_t words;                 /* of an entry's mask */
    uint64_t *mask;      /* b x a x words: bits of a column's entries, put in place afterwards */
    pare_status *status; /* b */
} assigned_job;

static void solve_column(void *ctx, size_t j)
{
    const assigned_job *const job = ctx;
    const fit_problem *const p = job->p;
    const uint32_t *const unit = job->unit + job->first[j];
    const size_t count = job->first[j + 1] - job->first[j];
    int64_t item[PARE_SUBSET_ITEMS];
    pare_subset_solver *s;
    pare_status st = pare_subset_new(&s, NULL);
    for (size_t i = 0; !st && i < p->a; i++) {
        pare_subset best;
        for (size_t c = 0; c < count; c++) item[c] = fit_item(p, i, unit[c], j);
        st = pare_subset_solve(s, &best, job->mask + (j * p->a + i) * job->words, item, count,
                               job->target[i * p->b + j], NULL, NULL);
    }
    pare_subset_free(s);
    job->status[j] = st;
}

/* Units of every column in order, as many as a question may have. */
static pare_status list_units(assigned_job *job, pare_arena *a, const uint32_t *own, pare_err *err)
{
    const fit_problem *const p = job->p;
    uint32_t *const first = pare_alloc(a, p->b + 1, sizeof *first);
    uint32_t *const unit = pare_alloc(a, p->n + 1, sizeof *unit);
    size_t most = 0;
    if (!first || !unit) return pare_no_memory(err);
    for (size_t j = 0; j < p->b; j++) {
        uint32_t at = first[j];
        for (size_t k = 0; k < p->n && at - first[j] < PARE_SUBSET_ITEMS; k++)
            if (own[k] == j) unit[at++] = (uint32_t)k;
        most = at - first[j] > most ? at - first[j] : most;
        first[j + 1] = at;
    }
    job->first = first;
    job->unit = unit;
    job->words = (most + 63) / 64;
    return PARE_OK;
}

pare_status fit_assigned(fit_result *out, pare_arena *a, const fit_problem *p, const uint32_t *own,
                         const pare_exec *exec, pare_err *err)
{
    int64_t *target;
    assigned_job job = {.p = p};
    pare_status st = fit_targets(&target, a, p, err);
    if (!st) st = fit_result_new(out, a, p, err);
    if (!st) st = list_units(&job, a, own, err);
    if (st) return st;
    job.target = target;
    job.mask = pare_alloc(a, p->a * p->b * job.words + 1, sizeof *job.mask);
    job.status = pare_alloc(a, p->b + 1, sizeof *job.status);
    if (!job.mask || !job.status) return pare_no_memory(err);
    st = pare_parallel_until(exec, p->b, solve_column, &job, err);
    if (st) return st;
    for (size_t j = 0; j < p->b; j++)
        if (job.status[j]) return pare_no_memory(err); /* items and targets are in their limits */
    for (size_t j = 0; j < p->b; j++)
        for (size_t c = 0; c < job.first[j + 1] - job.first[j]; c++)
            fit_put_unit(out, p, job.unit[job.first[j] + c], j, c, job.mask, job.words);
    return fit_residual(out, a, p, exec, err);
}

pare_status fit_block(fit_result *out, pare_arena *a, const fit_problem *p, const pare_exec *exec,
                      pare_err *err)
{
    const size_t each = p->n / p->b < PARE_SUBSET_ITEMS ? p->n / p->b : PARE_SUBSET_ITEMS;
    uint32_t *const own = pare_alloc(a, p->n + 1, sizeof *own);
    if (!own) return pare_no_memory(err);
    for (size_t k = 0; k < p->n; k++)
        own[k] = k < each * p->b ? (uint32_t)(k / each) : PARE_NO_COLUMN;
    return fit_assigned(out, a, p, own, exec, err);
}
