/* sparse_small_dim.h - sparse kernels for rows so short that several keys fit one register. */
#ifndef PARE_ATTENTION_SPARSE_SMALL_DIM_H
#define PARE_ATTENTION_SPARSE_SMALL_DIM_H
#include "sparse.h"

#if defined(__x86_64__)
/* Like those of sparse_kernel, for a width of at most SMALL_DIM. */
void small_dim_scores_avx512(float *s, const float *x, const sparse_rows *rows, float scale,
                             const uint32_t *idx, size_t n);
void small_dim_values_avx512(float *y, const float *s, const sparse_rows *rows, const uint32_t *idx,
                             size_t n, float by, float old);
void small_dim_two_rows_avx512(const row_pair *p, softmax_state state[2]);
#endif
#endif
