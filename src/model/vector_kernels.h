/* vector_kernels.h - element-wise kernels of the f32 engine.
 *
 * Each is written once, in plain C over 16 lanes, and compiled for several instruction sets; the
 * choice is made at run time. No operation is fused and sums have one order (16 partial sums, then
 * a tree), so every instruction set gives the same bits. */
#ifndef PARE_MODEL_VECTOR_KERNELS_H
#define PARE_MODEL_VECTOR_KERNELS_H
#include "base/simd.h"
#include <pare/model.h>

enum { LANES = 16 };

/* y = act(y); with u: y = act(y) u. */
void vector_activation(simd_isa isa, float *y, const float *u, size_t n, pare_act act);
/* The functions inside, for their tests: 'e' exp, 't' tanh, 'f' erf. Within 4 ulp; exp overflows
 * to inf and underflows gradually. */
void vector_function(simd_isa isa, float *y, size_t n, char which);

/* y += w x, entry by entry; w has d entries, n x d in all; NULL: all ones. */
void vector_add(simd_isa isa, float *y, const float *x, const float *w, size_t n, size_t d);

/* A norm with its constants in f32; NULL where absent. A batch norm is x gain + bias. */
typedef struct vector_norm {
    pare_norm_kind kind;
    double eps, divisor, shift;
    const float *offset, *gain, *bias;
} vector_norm;
/* n rows of d; y may be x. */
void vector_normalize(simd_isa isa, float *y, const float *x, size_t n, size_t d,
                      const vector_norm *k);
#endif
