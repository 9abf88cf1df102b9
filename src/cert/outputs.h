/* outputs.h - what is proven about the outputs of two models on given inputs: how far they are
 * apart, which rows surely keep their largest entry, and where the area under the ROC curve lies.
 * Every direction's prover asks it. */
#ifndef PARE_CERT_OUTPUTS_H
#define PARE_CERT_OUTPUTS_H
#include "prove.h"

/* low <= auc <= high, proven; low above high: there is none. */
typedef struct pare_auc_bound {
    double low, high;
} pare_auc_bound;

typedef struct pare_output_bound {
    pare_gap gap;
    size_t rows, certain;  /* output rows; those whose largest entry is proven to be the same */
    pare_auc_bound auc[2]; /* of both models, where one input with targets is all there is */
} pare_output_bound;

/* Of two outputs on the rows that count, class 1 over class 0. */
PARE_MUST_USE pare_status pare_auc_interval(pare_auc_bound *out, pare_arena *scratch,
                                            const pare_enclosure *e, const int64_t *target,
                                            pare_err *err);

/* One row more, from the enclosures of both models (outputs.c): its bound on |f - g|. */
pare_ub pare_outputs_row(pare_output_bound *out, const pare_enclosure *f, const pare_enclosure *g,
                         size_t i);
/* How far the f32 engine's outputs y of g (NULL: it overflowed) are from the exact row. */
void pare_outputs_engine(pare_output_bound *out, const pare_enclosure *g, const float *y, size_t i);
/* The same enclosure around the high parts of its midpoints; low parts count as radius. */
PARE_MUST_USE pare_status pare_enclosure_flatten(pare_enclosure *out, pare_arena *a,
                                                 const pare_enclosure *e, pare_err *err);
/* Of all rows of the set (output_difference.c). With `labels`, rows that f64 alone cannot decide
 * are looked at again in double-double, where that is not too much work. */
PARE_MUST_USE pare_status pare_outputs_compare(pare_output_bound *out, const pare_model *f,
                                               const pare_model *g, const pare_inputs *set,
                                               bool labels, const pare_exec *exec, pare_err *err);
/* Headline and engine (pare_cert_take_gap), rows whose largest entry may have changed, and the AUC
 * where the data have labels and the models two outputs. */
PARE_MUST_USE pare_status pare_cert_take_outputs(pare_cert *c, pare_arena *a,
                                                 const pare_output_bound *o, pare_err *err);
/* Multiply-adds of one pass of both models over the set: work, from shapes alone. */
double pare_passes_work(const pare_model *f, const pare_model *g, const pare_inputs *set);
#endif
