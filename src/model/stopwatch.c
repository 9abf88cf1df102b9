/* The clock (pare/stopwatch.h). The best pass, not the mean: what another process takes away is no
 * property of a model. */
#include "stopwatch.h"

#include <math.h>

enum { MOST_PASSES = 9 };
static const double most_seconds = 4; /* fewer passes of slow models, but one of each at least */

static pare_status pass(double *ms, const pare_model *m, const pare_input *in, pare_arena *scratch,
                        const pare_exec *exec, pare_err *err)
{
    const pare_exec silent = pare_silent(exec);
    const pare_mark mark = pare_arena_mark(scratch);
    float *const y =
        pare_alloc(scratch, pare_output_rows(m, in) * pare_model_outputs(m), sizeof *y);
    const double start = pare_seconds();
    const pare_status st = y ? pare_forward_f32(y, m, in, NULL, &silent, err) : pare_no_memory(err);
    *ms = fmin(*ms, 1e3 * (pare_seconds() - start));
    pare_arena_reset(scratch, mark);
    return st;
}

pare_status pare_forward_ms(double *ms, const pare_model *const *m, size_t n, const pare_input *in,
                            pare_arena *scratch, const pare_exec *exec, pare_err *err)
{
    const double start = pare_seconds();
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n; i++) ms[i] = INFINITY;
    for (int k = 0; !st && k < MOST_PASSES && (k == 0 || pare_seconds() - start < most_seconds);
         k++)
        for (size_t i = 0; !st && i < n; i++) st = pass(&ms[i], m[i], in, scratch, exec, err);
    return st;
}
