/* The paper's construction (Lemmas 4 and 7): n / b consecutive units belong to one column of W,
 * every entry is one exact question of subset sums, units left over are pruned. */
#include "fit.h"
#include <pare/subset.h>

typedef struct block_job {
    const fit_problem *p;
    const int64_t *target;
    size_t items;   /* per entry */
    uint64_t *mask; /* b x a x words: bits of a column's entries, put in place afterwards */
    size_t words;
    pare_status *status; /* b */
} block_job;

static pare_status solve_column(const block_job *job, size_t j, int64_t *item)
{
    const fit_problem *const p = job->p;
    pare_subset_solver *s;
    pare_status st = pare_subset_new(&s, NULL);
    if (st) return st;
    for (size_t i = 0; !st && i < p->a; i++) {
        pare_subset best;
        for (size_t c = 0; c < job->items; c++) item[c] = fit_item(p, i, j * job->items + c, j);
        st = pare_subset_solve(s, &best, job->mask + (j * p->a + i) * job->words, item, job->items,
                               job->target[i * p->b + j], NULL, NULL);
    }
    pare_subset_free(s);
    return st;
}

static void column(void *ctx, size_t j)
{
    const block_job *const job = ctx;
    int64_t item[PARE_SUBSET_ITEMS];
    job->status[j] = solve_column(job, j, item);
}

pare_status fit_block(fit_result *out, pare_arena *a, const fit_problem *p, const pare_exec *exec,
                      pare_err *err)
{
    int64_t *target;
    pare_status st = fit_targets(&target, a, p, err);
    if (!st) st = fit_result_new(out, a, p, err);
    if (st) return st;
    const size_t items = p->n / p->b < PARE_SUBSET_ITEMS ? p->n / p->b : PARE_SUBSET_ITEMS;
    const size_t words = (items + 63) / 64;
    block_job job = {p, target, items, NULL, words, NULL};
    job.mask = pare_alloc(a, p->a * p->b * words + 1, sizeof *job.mask);
    job.status = pare_alloc(a, p->b + 1, sizeof *job.status);
    if (!job.mask || !job.status) return pare_no_memory(err);
    pare_parallel(exec, p->b, column, &job);
    for (size_t j = 0; j < p->b; j++)
        if (job.status[j]) return pare_no_memory(err); /* items and targets are in their limits */
    fit_put_blocks(out, p, items, job.mask, words);
    return fit_residual(out, a, p, exec, err);
}
