/* pare/evaluate.h - how good a model is on a dataset, and how far its outputs are from another's. */
#ifndef PARE_EVALUATE_H
#define PARE_EVALUATE_H
#include <pare/data.h>

typedef struct pare_evaluation {
    /* The metric that the task calls for: "perplexity" of text, "auc" of the nodes of a graph with
     * two classes, "mse" of values, "accuracy" of all others. */
    const char *metric;
    double value;
    pare_scores scores; /* of values: nothing but how many were counted */
} pare_evaluation;

/* Whether any target of the data counts: without one there is no metric. */
bool pare_dataset_has_targets(const pare_model *m, const pare_dataset *d);

/* One pass over every input: by the f32 engine, or by the f64 reference (f64) rounded to f32.
 * PARE_ERR_NONFINITE: an output is no number. Memory comes from `scratch` and is given back. */
PARE_MUST_USE pare_status pare_evaluate(pare_evaluation *out, const pare_model *m,
                                        const pare_dataset *d, bool f64, pare_arena *scratch,
                                        const pare_exec *exec, pare_err *err);
/* The same of two models at once, and the divergence KL(reference || model) between their
 * predictions, on the rows that the metric counts; of values (PARE_TASK_VALUES) there is none.
 * PARE_ERR_INPUT: the reference does not take these inputs or has outputs of another shape. */
PARE_MUST_USE pare_status pare_evaluate_against(pare_evaluation *out, const pare_model *m,
                                                pare_evaluation *of_reference, pare_kl_report *kl,
                                                const pare_model *reference, const pare_dataset *d,
                                                bool f64, pare_arena *scratch,
                                                const pare_exec *exec, pare_err *err);

/* |f - g| / |f| over all outputs on the set, by the f32 engine: root mean squares. 0 where f is 0. */
PARE_MUST_USE pare_status pare_output_error(double *out, const pare_model *f, const pare_model *g,
                                            const pare_inputs *set, pare_arena *scratch,
                                            const pare_exec *exec, pare_err *err);
/* The largest |output| of the f32 engine on the set; nan where it overflows. */
PARE_MUST_USE pare_status pare_largest_output(double *out, const pare_model *m,
                                              const pare_inputs *set, pare_arena *scratch,
                                              const pare_exec *exec, pare_err *err);
#endif
