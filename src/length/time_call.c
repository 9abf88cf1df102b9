/* time_call.c - what one call of a length plan takes on this machine (pare/stopwatch.h). */
#include <pare/length.h>

enum { TRIES = 5, MOST_ROWS = 4096 };

pare_status pare_length_call_ms(double *ms, const pare_length_plan *plan, pare_arena *scratch,
                                const pare_exec *exec, pare_err *err)
{
    *ms = -1;
    if (plan->cost.max_len == 0 || plan->cost.max_len > MOST_ROWS) return PARE_OK;
    const pare_mark mark = pare_arena_mark(scratch);
    const uint32_t n = (uint32_t)plan->cost.max_len;
    const uint32_t dk = (uint32_t)plan->heads[0].dk, dv = (uint32_t)plan->heads[0].dv + 2;
    const size_t size = pare_dtype_size(plan->caps.dtype);
    void *const x = pare_alloc(scratch, (size_t)n * (dk > dv ? dk : dv) + 1, size);
    void *const y = pare_alloc(scratch, (size_t)n * dv + 1, size);
    const pare_call call = {.kind = PARE_CALL_QKV,
                            .u.a = {.n = n, .dk = dk, .dv = dv, .q = x, .k = x, .v = x, .y = y}};
    pare_oracle orc = {0};
    pare_status st =
        x && y ? pare_oracle_cpu(&orc, plan->caps.dtype, n, exec, err) : pare_no_memory(err);
    for (int i = 0; i < TRIES && !st; i++) {
        const double start = pare_seconds();
        st = orc.ops->evaluate(orc.self, &call, 1, err);
        const double took = 1e3 * (pare_seconds() - start);
        if (*ms < 0 || took < *ms) *ms = took;
    }
    pare_oracle_free(&orc);
    pare_arena_reset(scratch, mark);
    return st;
}
