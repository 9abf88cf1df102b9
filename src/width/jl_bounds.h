/* jl_bounds.h - a narrower model: fewer dimensions of the residual stream, of queries and keys, of
 * the hidden layers. What the cut costs is proven afterwards, on the model as it is written
 * (pare_publish with one of pare_width_provers).
 *
 *   auto      the practical one: least squares from layer to layer in the metric of the gradients
 *   exact     the rank of the data: the same outputs with fewer dimensions
 *   lowrank   the stream in affine subspaces of `dim` dimensions
 *   leverage  lowrank, and `ffn_dim` hidden units that stand for all
 *   cluster   `dim` clusters of nodes; nets of ReLU without skips
 *   jl        queries and keys by random projection, best of `trials` draws
 *   qk        queries and keys by the best bilinear form of rank `qk_dim` in the metric of the data
 *
 * for models with norms, positions and ids (language models, encoders; src/width/lm.h):
 *   auto      queries and keys, values and hidden units go where it costs least, what is left is
 *             fitted again
 *   qk        queries and keys alone (qk_dim, keep), in the metric of the outputs; rotary ones in
 *             whole planes
 *   slice     the stream in its first `dim` principal directions on the data
 *   svd       no data: singular values of the maps that read the stream, of the products Q K and
 *             V O (v_dim), hidden units by their norms
 *
 * docs/width.md says when to use which. */
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
