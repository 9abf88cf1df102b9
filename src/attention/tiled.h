/* tiled.h - dense attention of a range of queries over tiles of keys, with an online softmax: what
 * pare_attend_f32, the partial results and the oracle share; and its backward pass. */
#ifndef PARE_ATTENTION_TILED_H
#define PARE_ATTENTION_TILED_H
#include "panel.h"
#include "tile.h"
#include "tile_rows.h"
#include <pare/attention.h>

typedef struct tiled_job {
    const pare_mat32 *q, *k, *v; /* nq x dk, nk x dk, nk x dv */
    const pare_mat32 *extra;     /* nk x any: more columns of values; or NULL */
    float scale;
    key_mask mask;
    const tile_kernel *kernel;
    /* Out: y (nq x dv), the averages; or, where m is not NULL, y is the unnormalized sum, with the
     * largest score m (nq) and the sum of weights l (nq). */
    pare_mat32 y, extra_y; /* extra_y: the same for the columns of `extra` */
    float *m, *l;
    const pare_call_sums *into; /* instead of all of these: y is added to sums */
    float *lse;                 /* nq: log of the sum of e^score; or NULL */
} tiled_job;

/* All rows, over the threads. The result of a row depends neither on their number nor on the other
 * rows: tiles begin at multiples of TILE_KEYS, and masked keys have a weight of exactly 0. */
PARE_MUST_USE pare_status tiled_attend(const tiled_job *d, const pare_exec *exec, pare_err *err);
/* Several jobs of the same widths, scale and kernel: the jobs of a column have the same queries,
 * which are packed once; those of a row the same keys and values, which are read once. */
typedef struct tiled_grid {
    const tiled_job *jobs; /* down x across */
    size_t across, down;
    tile_rows_fn *rows; /* for jobs of few keys: values are summed in rows; or NULL */
} tiled_grid;
PARE_MUST_USE pare_status tiled_attend_grid(const tiled_grid *g, const pare_exec *exec,
                                            pare_err *err);

typedef struct tiled_backward_job {
    pare_mat32 dq, dk, dv; /* added to */
    const pare_mat32 *dy, *q, *k, *v, *y;
    const float *lse;
    float scale;
    key_mask mask;
    const tile_kernel *kernel;
} tiled_backward_job;

/* Same bits for any number of threads. */
PARE_MUST_USE pare_status tiled_backward(const tiled_backward_job *d, const pare_exec *exec,
                                         pare_err *err);

#endif
