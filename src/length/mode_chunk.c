/* Each chunk by itself, as hierarchical transformers do: the baseline, no bound at all. */
#include "rounds.h"

pare_status chunk_attend(run *r)
{
    const size_t m = r->rule.m;
    pare_status st = sums_new(r);
    if (st) return st;
    run_begin(r, &plain_calls);
    for (r->at = 0; r->at < r->count; r->at++)
        for (size_t b = 0; b < r->n && !st; b += m) {
            const uint32_t n = (uint32_t)(r->n - b < m ? r->n - b : m);
            const placed p = {.t = {.q0 = b,
                                    .nq = n,
                                    .k0 = b,
                                    .nk = n,
                                    .vis0 = r->rule.kind == CALL_CAUSAL ? 1 : PARE_VIS_ALL}};
            st = run_call(r, &p, 1, n);
        }
    st = run_end(r, st);
    if (!st) sums_write(r);
    return st;
}
