/* listed_narrow.h - kernels for rows so narrow that several keys fit one register. */
#ifndef PARE_ATTENTION_LISTED_NARROW_H
#define PARE_ATTENTION_LISTED_NARROW_H
#include "sparse.h"

#if defined(__x86_64__)
/* As those of list_kernel, for a width of at most LIST_NARROW. */
void narrow_scores_avx512(float *s, const float *x, const list_rows *rows, float scale,
                          const uint32_t *idx, size_t n);
void narrow_values_avx512(float *y, const float *s, const list_rows *rows, const uint32_t *idx,
                          size_t n, float by, float old);
void narrow_pair_avx512(const list_pair *p, list_sum sum[2]);
#endif
#endif
