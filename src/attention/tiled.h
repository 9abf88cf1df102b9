/* tiled.h - attention of a range of queries over tiles of keys, online: what pare_attend_f32, the
 * partial results and the oracle share. */
#ifndef PARE_ATTENTION_TILED_H
#define PARE_ATTENTION_TILED_H
#include "panel.h"
#include "tile.h"
#include "tile_rows.h"
#include <pare/oracle.h>

typedef struct tiled_job {
    const pare_mat32 *q, *k, *v; /* nq x dk, nk x dk, nk x dv */
    const pare_mat32 *side;      /* nk x any: more columns of values; or NULL */
    float scale;
    sight sees;
    const tile_kernel *kernel;
    /* Out: y (nq x dv), the averages; or, where m is not NULL, y is the unnormalised sum beside
     * the largest score m (nq) and the sum of weights l (nq). */
    pare_mat32 y, side_y; /* side_y: likewise, of the columns of `side` */
    float *m, *l;
    const pare_call_sums *into; /* instead of all of these: sums, with a side of averages */
    float *lse;                 /* nq, log of the sum of e^score; or NULL */
} tiled_job;

/* All rows, over the threads. The result of a row depends neither on their number nor on the other
 * rows: tiles begin at multiples of TILE_KEYS, and keys that a query does not see weigh exactly 0.
 */
PARE_MUST_USE pare_status tiled_attend(const tiled_job *d, const pare_exec *exec, pare_err *err);
/* Several jobs of the same widths, scale and kernel: those below one another have the same queries,
 * which are packed once; those side by side the same keys and values, which are read once. */
typedef struct tiled_grid {
    const tiled_job *jobs; /* down x across */
    size_t across, down;
    tile_rows_fn *rows; /* for jobs of few keys: values are added up in rows; or NULL */
} tiled_grid;
PARE_MUST_USE pare_status tiled_attend_grid(const tiled_grid *g, const pare_exec *exec,
                                            pare_err *err);

#endif
