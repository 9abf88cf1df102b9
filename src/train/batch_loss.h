/* teach.h - the loss of one batch and where it sends the gradient: labels or values, a teacher's
 * output, a teacher's hidden states. */
#ifndef PARE_SRC_TEACH_H
#define PARE_SRC_TEACH_H
#include <pare/train.h>

typedef struct batch_loss {
    const pare_train_opts *o;
    const pare_exec *exec;
    pare_params *student, *teacher; /* teacher, its tape: NULL without a teacher */
    pare_tape *tape, *teacher_tape;
    bool fixed;              /* all batches are the first one, and so is what the teacher says */
    const void *softmax_row; /* that: in teacher_tape; NULL before the first batch */
    /* Of the last batch: what the way back needs. */
    float *dy;
    size_t room;          /* of dy */
    const void **dstream; /* nblocks + 1, or NULL */
    pare_arena *arena;    /* of dstream's arrays */
} batch_loss;

PARE_MUST_USE pare_status batch_loss_open(batch_loss *t, const pare_model *start,
                                          const pare_lesson *lesson, const pare_train_opts *o,
                                          const pare_exec *exec, pare_err *err);
void batch_loss_close(batch_loss *t); /* also one that failed to open, or is all zero */
/* Forward and loss. */
PARE_MUST_USE pare_status batch_loss_forward(batch_loss *t, double *loss, const pare_batch *b,
                                             uint64_t step, pare_err *err);
#endif
