/* Weights and slopes of a tile on the way back, from the kept log-sums.
 *
 * A weight is at most 1, but s and lse carry the rounding of numbers as large as the scores: what
 * would come out above 1 is 1. A nan passes. */
#include "tile_softmax_backward.h"
#include <pare/vexp.h>

void slopes_portable(float *s, float *t, const float *lse, const float *mean, size_t keys, size_t v)
{
    const size_t p = 4 * v;
    for (size_t j = 0; j < keys; j++, s += p, t += p)
        for (size_t i = 0; i < p; i++) {
            const float x = s[i] - lse[i], w = pare_exp_scalar(x > 0 ? 0 : x);
            s[i] = w;
            t[i] = w * (t[i] - mean[i]);
        }
}

#if defined(__x86_64__)
PARE_AVX512 void slopes_avx512(float *s, float *t, const float *lse, const float *mean, size_t keys,
                               size_t v)
{
    const size_t p = 16 * v;
    for (size_t e = 0; e < p; e += 16) {
        const __m512 l = _mm512_load_ps(lse + e), m = _mm512_load_ps(mean + e);
        for (size_t at = e; at < keys * p; at += p) {
            const __m512 x = _mm512_sub_ps(_mm512_load_ps(s + at), l);
            const __m512 w = pare_exp_avx512(_mm512_min_ps(_mm512_setzero_ps(), x));
            _mm512_store_ps(s + at, w);
            _mm512_store_ps(t + at, _mm512_mul_ps(w, _mm512_sub_ps(_mm512_load_ps(t + at), m)));
        }
    }
}

PARE_AVX2 void slopes_avx2(float *s, float *t, const float *lse, const float *mean, size_t keys,
                           size_t v)
{
    const size_t p = 8 * v;
    for (size_t e = 0; e < p; e += 8) {
        const __m256 l = _mm256_load_ps(lse + e), m = _mm256_load_ps(mean + e);
        for (size_t at = e; at < keys * p; at += p) {
            const __m256 x = _mm256_sub_ps(_mm256_load_ps(s + at), l);
            const __m256 w = pare_exp_avx2(_mm256_min_ps(_mm256_setzero_ps(), x));
            _mm256_store_ps(s + at, w);
            _mm256_store_ps(t + at, _mm256_mul_ps(w, _mm256_sub_ps(_mm256_load_ps(t + at), m)));
        }
    }
}
#endif
