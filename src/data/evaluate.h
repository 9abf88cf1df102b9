/* evaluate.h - how good a model is on a dataset, and how far its outputs are from another's. */
#ifndef PARE_DATA_EVALUATE_H
#define PARE_DATA_EVALUATE_H
#include <pare/data.h>

/* Whether any target of the data counts: without one there is no metric. */
bool pare_dataset_has_targets(const pare_model *m, const pare_dataset *d);

/* |f - g| / |f| over all outputs on the set, by the f32 engine: root mean squares. 0 where f is
 * 0. */
PARE_MUST_USE pare_status pare_output_error(double *out, const pare_model *f, const pare_model *g,
                                            const pare_inputs *set, pare_arena *scratch,
                                            const pare_exec *exec, pare_err *err);
/* The largest |output| of the f32 engine on the set; nan where it overflows. */
PARE_MUST_USE pare_status pare_largest_output(double *out, const pare_model *m,
                                              const pare_inputs *set, pare_arena *scratch,
                                              const pare_exec *exec, pare_err *err);
#endif
