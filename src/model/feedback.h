/* feedback.h - error feedback between the weights of one output (feedback.c). */
#ifndef PARE_MODEL_FEEDBACK_H
#define PARE_MODEL_FEEDBACK_H
#include "input_moments.h"

/* The weights of an output are settled one input after the other, in this order. */
typedef struct feedback {
    size_t n;              /* inputs */
    const uint32_t *order; /* the input that is settled k-th */
    pare_mat push;         /* row k, column r > k: what the r-th takes of the k-th one's error */
    const double *worth;   /* of the k-th one's squared error; the mean is 1 */
    double cost;           /* of a unit error in every weight of an output, once all is made good */
} feedback;

/* From what enters the matrix; `e` NULL or not known: no order, no pushing, every error is worth
 * the same. In the arena. */
PARE_MUST_USE pare_status feedback_of(feedback *out, pare_arena *a, size_t inputs,
                                      const input_moments *e, pare_err *err);

/* The map (outputs x inputs) that does with the rows y of the ticket what w does with the rows x of
 * the model, as well as a linear map can: what the fit aims at. out does not alias w. */
PARE_MUST_USE pare_status feedback_aim(pare_mat *out, const pare_mat *w, const input_moments *e,
                                       pare_arena *scratch, pare_err *err);

/* What will stand at (output, input) for a weight that should be `goal`. */
typedef double feedback_choose(void *self, size_t output, size_t input, double goal, double worth);
/* Settles all weights of an output; `weights` (by input) are their goals; scratch: n. */
void feedback_run(const feedback *f, const double *weights, double *scratch, size_t output,
                  feedback_choose *fn, void *self);
#endif
