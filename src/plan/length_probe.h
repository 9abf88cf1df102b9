/* length_probe.h - what an engine of M tokens would have to do for a model: which modes apply,
 * how many calls, whether its small weights can be trusted, and whether sampling is sound. A part
 * of pare/probe.h. */
#ifndef PARE_PLAN_LENGTH_PROBE_H
#define PARE_PLAN_LENGTH_PROBE_H
#include <pare/plan.h>

/* Everything in the arena. `in` may be NULL: then what sizes alone say; of a graph nothing. */
PARE_MUST_USE pare_status pare_length_look(pare_length_probe *out, pare_arena *a,
                                           const pare_model *m, const pare_input *in, uint64_t seed,
                                           const pare_exec *exec, pare_err *err);
#endif
