/* output_gradients.h - what the outputs feel of an error in each matrix.
 *
 * To second order an error E of a weight W moves the outputs by
 *
 *     E_u <d (u . y) / d W, E>^2,
 *
 * with u standard normal for |dy|^2, and u = (label drawn from softmax(y)) - softmax(y) for twice
 * the KL divergence of logits: Gauss-Newton, or Fisher's information. One backward pass draws one
 * u for all rows at once; products of different rows vanish in the mean. Estimates, no bounds. */
#ifndef PARE_QUANT_OUTPUT_GRADIENTS_H
#define PARE_QUANT_OUTPUT_GRADIENTS_H
#include "linalg/matrix.h"
#include <pare/train.h>

typedef struct output_gradient {
    const char *name;
    size_t rows, cols;
    pare_mat
        moments; /* of the embedding: E sum of g g^T over its rows g, cols x cols; else v NULL */
    double *row; /* with moments: E |g|^2 of each row */
} output_gradient;
typedef struct output_gradients {
    size_t n;
    output_gradient *of;
} output_gradients;

/* Over at most GRADIENT_INPUTS inputs of the set, in the arena. Same bits for any number of
 * threads. */
enum { GRADIENT_INPUTS = 256 };
PARE_MUST_USE pare_status output_gradients_of(output_gradients *out, pare_arena *a,
                                              const pare_model *m, const pare_inputs *set,
                                              uint64_t seed, const pare_exec *exec, pare_err *err);
/* That of this weight, or NULL. */
const output_gradient *output_gradient_find(const output_gradients *g, const char *name);
#endif
