/* stopwatch.c - time of a forward pass (pare/run.h). The best of several passes, not their
 * mean: the time that another process takes away is no property of a model. */
#include "stopwatch.h"

#include <math.h>

enum { MOST_PASSES = 9 };
static const double most_seconds = 4; /* fewer passes of slow models, but one of each at least */

pare_status pare_forward_ms(double *ms, const pare_model *const *m, size_t n, const pare_input *in,
                            pare_arena *scratch, const pare_exec *exec, pare_err *err)
{
    const pare_exec silent = pare_exec_silent(exec);
    const double start = pare_seconds();
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n; i++) ms[i] = INFINITY;
    for (int k = 0; !st && k < MOST_PASSES && (k == 0 || pare_seconds() - start < most_seconds);
         k++)
        for (size_t i = 0; !st && i < n; i++) {
            const pare_mark mark = pare_arena_mark(scratch);
            float *const y = pare_alloc(
                scratch, pare_output_rows(m[i], in) * pare_model_outputs(m[i]), sizeof *y);
            const double pass = pare_seconds();
            st = y ? pare_forward_f32(y, m[i], in, NULL, &silent, err) : pare_no_memory(err);
            ms[i] = fmin(ms[i], 1e3 * (pare_seconds() - pass));
            pare_arena_reset(scratch, mark);
        }
    return st;
}
