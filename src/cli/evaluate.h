/* evaluate.h - a model on a data set: the metric its task calls for, and KL to another model. */
#ifndef PARE_CLI_EVALUATE_H
#define PARE_CLI_EVALUATE_H
#include "cli.h"

typedef struct evaluation {
    const char *metric; /* "accuracy", "auc", "perplexity", "mse" */
    double value;
    pare_scores scores;
} evaluation;

/* The f32 engine's output, or the reference pass narrowed to f32. */
pare_status forward_floats(cli *c, float *out, const pare_model *m, const pare_input *in, bool f64);
/* Whether any target of the data counts: without one there is no metric. */
bool has_targets(const pare_model *m, const pare_dataset *d);
/* reference, its evaluation and report (the divergence from it) go together: all NULL or none. */
pare_status evaluate(cli *c, evaluation *out, const pare_model *m, const pare_dataset *d, bool f64,
                     evaluation *of_reference, pare_kl_report *report, const pare_model *reference);
#endif
