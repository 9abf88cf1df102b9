/* small_dense.h - private to linalg: products of rows so short that a library spends its time on
 * copies and on finding out what to do. */
#ifndef PARE_LINALG_SMALL_DENSE_H
#define PARE_LINALG_SMALL_DENSE_H
#include <pare/linalg.h>

enum { NARROW = 16 /* inputs and outputs, at most */ };

/* y = x w^T + b for n rows; b NULL: none. False, and nothing done, where w is wider or the CPU has
 * no AVX2. Each entry is one chain of sums over the inputs in their order, fused, from the bias
 * on: its bits depend on its row of x alone. */
bool narrow_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t n, const pare_weight *w,
                const pare_weight *b);
#endif
