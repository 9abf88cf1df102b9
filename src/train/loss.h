/* loss.h - the loss on hidden states: as pare_loss_mse, against another f32 array. */
#ifndef PARE_SRC_LOSS_H
#define PARE_SRC_LOSS_H
#include <pare/train.h>

/* The mean square of y - other (rows x cols, f32, not empty); dy += weight times its gradient. */
double loss_mse_f32(float *dy, const pare_logits *y, const float *other, double weight,
                    const pare_exec *exec);
#endif
