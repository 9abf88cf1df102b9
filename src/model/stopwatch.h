/* stopwatch.h - how long a pass takes on this machine: one clock for everything that compares
 * models by their speed. */
#ifndef PARE_MODEL_STOPWATCH_H
#define PARE_MODEL_STOPWATCH_H
#include <pare/run.h>

/* ms[i]: the best of a few passes of the f32 engine of m[i] over one input, in milliseconds. The n
 * models take turns, so that a busy machine is unkind to all of them alike. */
PARE_MUST_USE pare_status pare_forward_ms(double *ms, const pare_model *const *m, size_t n,
                                          const pare_input *in, pare_arena *scratch,
                                          const pare_exec *exec, pare_err *err);
/* The attention of all heads of two models by itself, on seeded random rows in their shapes: the
 * best of a few turns, in milliseconds. One sequence. */
PARE_MUST_USE pare_status pare_attention_ms(double *ms_f, double *ms_g, const pare_model *f,
                                            const pare_model *g, const pare_input *in,
                                            uint64_t seed, pare_arena *scratch,
                                            const pare_exec *exec, pare_err *err);
#endif
