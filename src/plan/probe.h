/* probe.h - the parts of a probe, one file each; everything goes into the probe's arena. */
#ifndef PARE_SRC_STUDY_PROBE_H
#define PARE_SRC_STUDY_PROBE_H
#include <pare/plan.h>

/* One more number for mean, standard deviation and sup (Welford). */
typedef struct norm_sum {
    size_t n;
    double mean, m2, sup;
} norm_sum;
void norm_add(norm_sum *s, double v);
pare_norms norm_end(const norm_sum *s);

/* Spectra of the weights (probe_weights.c). */
PARE_MUST_USE pare_status probe_weights(pare_probe *p, const pare_model *m, const pare_exec *exec,
                                        pare_err *err);
/* The stream on the inputs (probe_stream.c). */
PARE_MUST_USE pare_status probe_stream(pare_probe *p, const pare_model *m, const pare_inputs *in,
                                       const pare_exec *exec, pare_err *err);
/* exp of the entropy of s / sum s; 0 for nothing. */
double effective_rank(const double *s, size_t n);
size_t rank_above(const double *s, size_t n, double cut); /* s descending */

/* What the theorems ask for (probe_theorems.c): after the width_facts. */
PARE_MUST_USE pare_status probe_theorems(pare_probe *p, const pare_model *m, pare_err *err);
/* The table of cuts (probe_cuts.c). */
PARE_MUST_USE pare_status probe_cuts(pare_probe *p, const pare_model *m, const pare_dataset *data,
                                     const pare_inputs *in, const pare_probe_opts *o,
                                     const pare_exec *exec, pare_err *err);
/* Largest |output| and the metric before any cut: in the same file. */
PARE_MUST_USE pare_status probe_outputs(pare_probe *p, const pare_model *m,
                                        const pare_dataset *data, const pare_inputs *in,
                                        const pare_exec *exec, pare_err *err);
/* What a model is worth on the inputs: nan without labels (probe_cuts.c). */
PARE_MUST_USE pare_status probe_metric(double *out, const pare_model *m, const pare_dataset *data,
                                       const pare_inputs *in, const pare_exec *exec, pare_err *err);
/* Attention and what may stand in its place (probe_depth.c, probe_depth_verdict.c). */
PARE_MUST_USE pare_status probe_depth(pare_probe *p, const pare_model *m, const pare_dataset *data,
                                      const pare_inputs *in, const pare_probe_opts *o,
                                      const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status probe_verdict(pare_probe *p, const pare_model *m, pare_err *err);
/* What its weights are as targets of tickets (probe_ticket.c). */
PARE_MUST_USE pare_status probe_ticket(pare_probe *p, const pare_model *m, uint64_t seed,
                                       const pare_exec *exec, pare_err *err);
/* The inputs of the data that cuts are fitted to and those they are looked at on: the first so many
 * tokens, in halves; a single input serves for both. */
typedef struct probe_halves {
    pare_inputs fit, heldout;
    size_t first; /* number of look's first input in the data */
} probe_halves;
probe_halves probe_halve(const pare_inputs *in, size_t tokens); /* probe_depth.c */
/* Of all curves the point with at most `exact` exact layers that loses least
 * (probe_depth_verdict.c). */
const pare_replacement_point *probe_best_point(const pare_replacement_costs *c, size_t exact,
                                               pare_attn_kind *kind);
/* Each direction in one line, after all parts (cost_estimates.c). data NULL: there is none. */
PARE_MUST_USE pare_status probe_estimates(pare_probe *p, const pare_model *m,
                                          const pare_dataset *data, const pare_inputs *in,
                                          const pare_probe_opts *o, const pare_exec *exec,
                                          pare_err *err);
/* What an engine of M tokens would have to do (probe_length.c). */
PARE_MUST_USE pare_status probe_length(pare_probe *p, const pare_model *m, const pare_dataset *data,
                                       uint64_t seed, const pare_exec *exec, pare_err *err);
/* One more sentence about what is not known; said once. */
PARE_MUST_USE pare_status probe_untold(pare_probe *p, pare_err *err, const char *fmt, ...)
    PARE_PRINTF(3, 4);
#endif
