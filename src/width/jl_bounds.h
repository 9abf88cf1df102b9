/* jl_bounds.h - Theorem 3.3 with one norm for everything, as a linear bound; and whether edits of a
 * graph can be proven. */
#ifndef PARE_WIDTH_JL_BOUNDS_H
#define PARE_WIDTH_JL_BOUNDS_H
#include <pare/run.h>

/* ---- the theorems with one norm for everything ----------------------------------------------- */

/* Plain nets (one head, no skips, norms or biases, scores not scaled): every map has norm at most
 * beta, every row of the stream norm at most root_alpha. How far the last rows are at most.
 * Theorem 3.3: every score is off by at most eps |q||k|. Linear: c2 (c1^L - 1) / (c1 - 1) eps with
 * c1 = b^3 + b^5 s (2 s + 1), c2 = b^5 s (s + 1)^2, true while that is at most 1. */
pare_ub pare_jl_bound_linear(pare_ub beta, pare_ub root_alpha, size_t layers, pare_ub eps);

/* ---- proving --------------------------------------------------------------------------------- */

/* Whether that can be done for a model and its graph (rows 0: all), before a cut is made:
 * PARE_ERR_INPUT says why not, too much work among the reasons. */
PARE_MUST_USE pare_status pare_width_edits_check(const pare_model *m, const pare_input *in,
                                                 size_t rows, pare_err *err);
#endif
