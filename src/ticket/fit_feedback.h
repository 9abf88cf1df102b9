/* fit_feedback.h - blocks of units whose entries are chosen one after the other, by what they err
 * by and by what they cost (fit_feedback.c, feedback_rate.c). */
#ifndef PARE_SRC_TICKET_FIT_FEEDBACK_H
#define PARE_SRC_TICKET_FIT_FEEDBACK_H
#include "model/feedback.h"
#include "fit.h"

typedef struct fit_feedback_opts {
    const feedback *f;
    pare_mat aim; /* outputs x inputs: what w should be for the rows that enter it */
    bool columns; /* outputs are the columns of the problem's w, else its rows */
    pare_bridge bridge;
    double price; /* of a bit, in squares of w / scale; 0: the nearest sum whatever it costs */
} fit_feedback_opts;

/* Of the outputs 0, step, 2 step, ... */
typedef struct fit_cost {
    double bits;             /* for a weight */
    double loss;             /* mean of worth times squared error, of w / scale */
    pare_bridge_counts seen; /* what the coder can learn; sums */
} fit_cost;

/* Blocks of n / b units for each column, as fit_block. */
PARE_MUST_USE pare_status fit_feedback(fit_result *out, pare_arena *a, const fit_problem *p,
                                       const fit_feedback_opts *o, const pare_exec *exec,
                                       pare_err *err);
PARE_MUST_USE pare_status fit_feedback_cost(fit_cost *out, pare_arena *scratch,
                                            const fit_problem *p, const fit_feedback_opts *o,
                                            size_t step, const pare_exec *exec, pare_err *err);

/* Scale (into p), coder and price with which a weight takes `rate` bits and errs least, found on
 * some of the outputs; `rate` 0: any number of bits. `exponent` is searched where it is
 * PARE_TICKET_CHOOSE. */
PARE_MUST_USE pare_status feedback_choose_rate(fit_feedback_opts *o, int *exponent,
                                               pare_arena *scratch, fit_problem *p, double rate,
                                               const pare_exec *exec, pare_err *err);
#endif
