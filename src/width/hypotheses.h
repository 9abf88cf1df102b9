/* hypotheses.h - what the theorems about width find in a model on its data; nothing is cut.
 *
 * Everything here is an estimate in f64. It explains why a cut is cheap or dear; no bound rests on
 * it. */
#ifndef PARE_WIDTH_HYPOTHESES_H
#define PARE_WIDTH_HYPOTHESES_H
#include <pare/width.h>

/* `data`: one graph (or one sequence of vectors). Lists live in the arena. PARE_ERR_INPUT names the
 * place of the model that these theorems do not speak about. */
PARE_MUST_USE pare_status pare_width_check_hypotheses(pare_width_facts *out, pare_arena *a,
                                                      const pare_model *m, const pare_inputs *data,
                                                      const pare_width_facts_opts *o,
                                                      const pare_exec *exec, pare_err *err);
#endif
