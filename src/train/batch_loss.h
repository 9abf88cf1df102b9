/* batch_loss.h - forward pass and loss of one batch, and the gradient at its outputs: from labels
 * or values, from a teacher's outputs (distillation), from a teacher's hidden states. */
#ifndef PARE_SRC_BATCH_LOSS_H
#define PARE_SRC_BATCH_LOSS_H
#include <pare/train.h>

typedef struct batch_loss {
    const pare_train_opts *o;
    const pare_exec *exec;
    pare_params *student, *teacher; /* teacher and its tape: NULL without distillation */
    pare_tape *tape, *teacher_tape;
    bool fixed;                 /* every batch is the first one, and so are the teacher's logits */
    const void *teacher_logits; /* in teacher_tape; NULL before the first batch */
    size_t matched;             /* hidden states of the student that the teacher's are as wide as */
    /* Of the last batch, for the backward pass: */
    float *dy;
    size_t dy_capacity;
    const void **dstream; /* nblocks + 1, or NULL */
    pare_arena *arena;    /* of dstream's arrays */
} batch_loss;

PARE_MUST_USE pare_status batch_loss_open(batch_loss *t, const pare_model *start,
                                          const pare_task *task, const pare_train_opts *o,
                                          const pare_exec *exec, pare_err *err);
void batch_loss_close(batch_loss *t); /* also one that failed to open, or is all zero */
PARE_MUST_USE pare_status batch_loss_forward(batch_loss *t, double *loss, const pare_batch *b,
                                             uint64_t step, pare_err *err);
#endif
