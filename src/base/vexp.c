/* vexp.c - e^x over arrays: AVX-512, AVX2 or portable, chosen at run time. The method is in
 * base/vexp.h. */
#include "vexp.h"
#include "vmath.h"

static void exp_portable(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = pare_exp_scalar(x[i]);
}

#if defined(__x86_64__)
PARE_AVX512 static void exp_avx512(float *y, const float *x, size_t n)
{
    const __m512 high = _mm512_set1_ps(PARE_EXP_HIGH);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, pare_exp_avx512(_mm512_min_ps(high, _mm512_loadu_ps(x + i))));
    if (i == n) return;
    const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
    const __m512 last = _mm512_maskz_loadu_ps(rest, x + i);
    _mm512_mask_storeu_ps(y + i, rest, pare_exp_avx512(_mm512_min_ps(high, last)));
}

PARE_AVX2 static void exp_avx2(float *y, const float *x, size_t n)
{
    const __m256 high = _mm256_set1_ps(PARE_EXP_HIGH);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, pare_exp_avx2(_mm256_min_ps(high, _mm256_loadu_ps(x + i))));
    if (i == n) return;
    float last[8] = {0};
    memcpy(last, x + i, (n - i) * sizeof *x);
    _mm256_storeu_ps(last, pare_exp_avx2(_mm256_min_ps(high, _mm256_loadu_ps(last))));
    memcpy(y + i, last, (n - i) * sizeof *y);
}
#endif

size_t exp_variants(exp_variant out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX512) out[n++] = (exp_variant){"avx512", exp_avx512};
    if (simd_best() >= SIMD_AVX2) out[n++] = (exp_variant){"avx2", exp_avx2};
#endif
    out[n++] = (exp_variant){"portable", exp_portable};
    return n;
}

void pare_exp_f32(float *y, const float *x, size_t n)
{
    exp_variant v[3];
    exp_variants(v);
    v[0].run(y, x, n);
}
