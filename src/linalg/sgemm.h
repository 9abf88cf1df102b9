/* sgemm.h - private to linalg: our own f32 product for CPUs with AVX-512. */
#ifndef PARE_LINALG_SGEMM_H
#define PARE_LINALG_SGEMM_H
#include <pare/base.h>
#include <stdbool.h>
#include <stddef.h>

/* c (m x n) = op(a) op(b) + before, as pare_gemm_f32; the rows of `before` are `step` apart (0: it
 * is one row for all), it may be c itself, and NULL is nothing. False, and nothing done: another CPU, no
 * memory for the copies, an empty product. */
bool sgemm_avx512(size_t m, size_t n, size_t k, const float *a, size_t lda, bool ta, const float *b,
                  size_t ldb, bool tb, const float *before, size_t step, float *c, size_t ldc);

#endif
