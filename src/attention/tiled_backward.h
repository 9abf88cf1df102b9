/* backward_tiled.h - the way back through dense attention, by tiles. */
#ifndef PARE_ATTENTION_BACKWARD_TILED_H
#define PARE_ATTENTION_BACKWARD_TILED_H
#include "panel.h"

typedef struct tiled_backward_job {
    pare_mat32 dq, dk, dv; /* added to */
    const pare_mat32 *dy, *q, *k, *v, *y;
    const float *lse;
    float scale;
    sight sees;
    const tile_kernel *kernel;
} tiled_backward_job;

/* Bits do not depend on the threads. */
PARE_MUST_USE pare_status tiled_backward(const tiled_backward_job *d, const pare_exec *exec,
                                         pare_err *err);

#endif
