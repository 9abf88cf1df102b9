/* dense.h - attention of a range of queries over tiles of keys, online: what pare_attend_f32, the
 * partial results and the oracle share. */
#ifndef PARE_ATTENTION_DENSE_H
#define PARE_ATTENTION_DENSE_H
#include "tile.h"
#include <pare/attention.h>

/* Query i sees key j when  j < vis0 + i  and  (j + window > i  or  j < sinks). */
typedef struct sight {
    int64_t vis0;         /* PARE_VIS_ALL: no limit; causal: 1 */
    size_t window, sinks; /* SIZE_MAX: no limit */
} sight;

/* Any vis0 is legal; those that show all or nothing are brought to where no sum overflows. */
static inline sight sight_of_stairs(int64_t vis0, size_t nq, size_t nk)
{
    if (vis0 >= (int64_t)nk) vis0 = PARE_VIS_ALL;
    if (vis0 < -(int64_t)nq) vis0 = -(int64_t)nq;
    return (sight){vis0, SIZE_MAX, SIZE_MAX};
}

typedef struct dense_job {
    const pare_mat32 *q, *k, *v; /* nq x dk, nk x dk, nk x dv */
    float scale;
    sight sees;
    const tile_kernel *kernel;
    /* Out: y (nq x dv), the averages; or, where m is not NULL, y is the unnormalised sum beside
     * the largest score m (nq) and the sum of weights l (nq). */
    pare_mat32 y;
    float *m, *l;
} dense_job;

/* All rows, over the threads. The result of a row depends neither on their number nor on the other
 * rows: tiles begin at multiples of TILE_KEYS, and keys that a query does not see weigh exactly 0.
 */
PARE_MUST_USE pare_status dense_attend(const dense_job *d, const pare_exec *exec, pare_err *err);

#endif
