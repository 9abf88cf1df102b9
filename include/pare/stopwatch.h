/* pare/stopwatch.h - how long a pass takes on this machine: one clock for everything that compares
 * models by their speed. */
#ifndef PARE_STOPWATCH_H
#define PARE_STOPWATCH_H
#include <pare/forward.h>

/* ms[i]: the best of a few passes of the f32 engine of m[i] over one input, in milliseconds. The n
 * models take turns, so that a busy machine is unkind to all of them alike. */
PARE_MUST_USE pare_status pare_forward_ms(double *ms, const pare_model *const *m, size_t n,
                                          const pare_input *in, pare_arena *scratch,
                                          const pare_exec *exec, pare_err *err);
#endif
