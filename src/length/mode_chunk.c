/* mode_chunk.c - each chunk attends to itself, as hierarchical transformers do: a baseline without
 * any bound. */
#include "attend_plan.h"
#include "modes.h"

pare_status chunk_attend(length_run *r)
{
    const size_t m = r->in.rule.m;
    pare_status st = accumulators_new(r);
    if (st) return st;
    round_begin(r, &plain_calls);
    for (r->round.head = 0; r->round.head < r->in.nheads; r->round.head++)
        for (size_t b = 0; b < r->in.n && !st; b += m) {
            const size_t n = r->in.n - b < m ? r->in.n - b : m;
            const int64_t sees = r->in.rule.kind == CALL_CAUSAL ? 1 : PARE_VIS_ALL;
            const placed p = {.t = tile_of(b, n, b, n, sees)};
            st = round_add_call(r, &p, 1, (uint32_t)n);
        }
    st = round_end(r, st);
    if (!st) accumulators_write(r);
    return st;
}
