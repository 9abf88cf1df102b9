/* theorem2_parallel.h - Theorem 2, and which collapses a one-block model may be by its shapes. */
#ifndef PARE_SRC_DEPTH_THEOREM2_PARALLEL_H
#define PARE_SRC_DEPTH_THEOREM2_PARALLEL_H
#include "depth_bounds.h"

/* kind: parallel, parallel+uniform or uniform+keep. */
PARE_MUST_USE pare_status depth_parallel(depth_bound *out, const pare_model *f, const pare_model *g,
                                         const depth_domain *d, pare_collapse kind, size_t keep,
                                         pare_err *err);
/* Whether f is a pure residual attention network of which g could be that collapse, keeping block
 * `keep` (only 0 is asked for by collapses that keep none). */
bool collapse_fits(const pare_model *f, const pare_model *g, pare_collapse kind, size_t keep);
/* NULL, or what is in the way of collapsing m into one layer. */
const char *impure_model(pare_arena *a, const pare_model *m);
#endif
