/* gradient.h - exact gradients of every model: a pass that remembers, and its backward pass.
 *
 *   pare_params *p;  pare_tape *t;                 a trainable copy; memory that is used again
 *   pare_tape_forward(t, &input, &mode, &y, err)   y: rows x outputs, in the tape
 *   ... dy = d loss / d y ...
 *   pare_tape_backward(t, dy, NULL, grad, err)     grad += d loss / d values
 *
 * One story for f32 (fast: training) and f64 (plain: what tests and proofs compare with). */
#ifndef PARE_TRAIN_GRADIENT_H
#define PARE_TRAIN_GRADIENT_H
#include <pare/train.h>

/* ---- the tape -------------------------------------------------------------------------------- */

/* pare_tape_forward of several inputs side by side, of different lengths too: what comes out of one, and
 * its gradient, do not depend on the others. At least one input. */
PARE_MUST_USE pare_status pare_tape_forward_set(pare_tape *t, const pare_inputs *set,
                                                const pare_mode *mode, const void **y,
                                                pare_err *err);
/* From now on softmax attention is the provider's, which is borrowed; NULL: the tape's own.
 * PARE_ERR_INPUT for a model that attends over a graph or by polynomials. */
PARE_MUST_USE pare_status pare_tape_attend_by(pare_tape *t, const pare_attention_provider *by,
                                              pare_err *err);
/* How the heads of kind poly of a block were computed in the passes of this tape, one head of one
 * sequence at a time; all 0 in f64, and for other kinds. */
const pare_poly_use *pare_tape_poly_use(const pare_tape *t, size_t block);
/* The stream where block b begins (b = nblocks: at the head), rows x pare_model_width. */
const void *pare_tape_stream(const pare_tape *t, size_t block);
/* After a backward: d loss / d stream where block b begins: what a gradient metric is made of. */
const void *pare_tape_dstream(const pare_tape *t, size_t block);
#endif
