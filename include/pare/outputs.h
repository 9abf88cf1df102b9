/* pare/outputs.h - what is proven about the outputs of two models on given inputs: how far they are
 * apart, which rows surely keep their largest entry, where the area under the ROC curve lies, and
 * what all that says about an input that is not there yet. Every direction's prover asks it. */
#ifndef PARE_OUTPUTS_H
#define PARE_OUTPUTS_H
#include <pare/cert.h>

/* low <= auc <= high, proven; low above high: there is none. */
typedef struct pare_auc_bound {
    double low, high;
} pare_auc_bound;
/* Of two outputs on the rows that count, class 1 over class 0. */
PARE_MUST_USE pare_status pare_auc_interval(pare_auc_bound *out, pare_arena *scratch,
                                            const pare_enclosure *e, const int64_t *target,
                                            pare_err *err);

typedef struct pare_output_bound {
    pare_gap gap;
    size_t rows, certain;  /* output rows; those whose largest entry is proven to be the same */
    pare_auc_bound auc[2]; /* of both models, where one input with targets is all there is */
} pare_output_bound;
/* One row more, from the enclosures of both models (outputs.c). */
void pare_outputs_row(pare_output_bound *out, const pare_enclosure *f, const pare_enclosure *g,
                      size_t i);
/* Of all rows of the set. */
PARE_MUST_USE pare_status pare_outputs_compare(pare_output_bound *out, const pare_model *f,
                                               const pare_model *g, const pare_inputs *set,
                                               const pare_exec *exec, pare_err *err);
/* More rows may be certain with wide midpoints: looked at where not all are, and where that is not
 * too much work. */
PARE_MUST_USE pare_status pare_outputs_certain(pare_output_bound *o, const pare_model *f,
                                               const pare_model *g, const pare_inputs *set,
                                               const pare_exec *exec, pare_err *err);
/* Multiply-adds of one pass of both models over the set: work, from shapes alone. */
double pare_passes_work(const pare_model *f, const pare_model *g, const pare_inputs *set);

/* Names of the statements about the auc: of the output model's, 1 minus it, and how far the models'
 * are apart. Made wherever the data have labels and the models two outputs. */
#define PARE_AUC       "auc of the output model"
#define PARE_AUC_BELOW "1 - auc of the output model"
#define PARE_AUC_APART "auc of both models"

/* What to ask pare_publish for (its `ask`) when the inputs are independent draws that neither the
 * training of the model nor the cut has seen: what holds for one more of them, and with which
 * probability. */
#define PARE_NEW_INPUT "a new input of the same source"
/* The hypothesis behind it, which the files cannot decide. */
#define PARE_NEW_INPUT_UNSEEN                                                                      \
    "a new input: the data are independent draws of its source that neither the training of the "  \
    "model nor the cut has seen"
/* Whether a certificate asks for that statement. */
bool pare_new_input_asked(const pare_statement *asked, size_t n);
/* The statement about a new input of the same source as the set, whose errors are proven to be at
 * most `proven`; where `data` says that the set's inputs are the first tokens of longer ones, so is
 * the new one. Its strings live in the arena. Name NULL: memory is out. */
pare_statement pare_exchangeable(pare_arena *a, const pare_inputs *set, const pare_data_ref *data,
                                 double proven);
#endif
