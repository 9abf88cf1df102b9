/* vexp.h - e^x for kernels that need it inside a loop; others call pare_exp_f32 (vmath.h).
 *
 *     n = round(x / ln 2),  r = x - n ln 2  (ln 2 in two parts),  e^x = 2^n (1 + r + r^2 p(r)).
 *
 * p is of degree 4, the minimax fit of e^r on |r| <= ln 2 / 2 (3.1e-9 relative): with the roundings
 * the result is within 2 ulp. Adding and taking away 1.5 2^23 rounds to an integer, whose low bits
 * then stand in the sum. Arguments below -104 (hidden keys among them) give 0 by a mask and do not
 * let anything underflow, which costs some CPUs over a hundred cycles. A nan passes. */
#ifndef PARE_BASE_VEXP_H
#define PARE_BASE_VEXP_H
#include "simd.h"
#include <pare/base.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PARE_EXP_LOW   (-104.0f) /* e^x rounds to 0 */
#define PARE_EXP_HIGH  89.0f     /* e^x rounds to inf */
#define PARE_EXP_INVLN 0x1.715476p+0f
#define PARE_EXP_ROUND 0x1.8p+23f
/* 9 bits: n times it is exact, so that no fused operation is needed */
#define PARE_EXP_LN2HI 0x1.63p-1f
#define PARE_EXP_LN2LO (-0x1.bd0106p-13f)
#define PARE_EXP_C2    0x1.fffffcp-2f
#define PARE_EXP_C3    0x1.555492p-3f
#define PARE_EXP_C4    0x1.5558f2p-5f
#define PARE_EXP_C5    0x1.123a2p-7f
#define PARE_EXP_C6    0x1.6a23dp-10f

/* The bits of a float, and back. */
PARE_INLINE int32_t pare_bits_of(float x)
{
    int32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
PARE_INLINE float pare_float_of(int32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

/* when ? a : b, by bits: a choice the compiler need not make a branch of, so that loops over
 * pare_exp_scalar become vector code. */
PARE_INLINE float pare_choose(bool when, float a, float b)
{
    const int32_t mask = -(int32_t)when;
    return pare_float_of((pare_bits_of(a) & mask) | (pare_bits_of(b) & ~mask));
}

/* 2^n for -126 <= n <= 127; unsigned, since a nan makes any n, and its product is a nan anyway */
PARE_INLINE float pare_exp_pow2(int32_t n)
{
    return pare_float_of((int32_t)(((uint32_t)n + 127u) << 23));
}

/* No operation is fused, whatever the target: the same bits on every CPU. */
PARE_INLINE float pare_exp_scalar(float x)
{
    const float low = pare_choose(x < PARE_EXP_LOW, 0, x);
    const float c = pare_choose(low > PARE_EXP_HIGH, PARE_EXP_HIGH, low);
    const float z = c * PARE_EXP_INVLN + PARE_EXP_ROUND, n = z - PARE_EXP_ROUND;
    const float r = (c - n * PARE_EXP_LN2HI) - n * PARE_EXP_LN2LO;
    const float p =
        PARE_EXP_C2 + r * (PARE_EXP_C3 + r * (PARE_EXP_C4 + r * (PARE_EXP_C5 + r * PARE_EXP_C6)));
    const float e = 1.0f + (r + r * r * p);
    /* The low bits of 1.5 2^23 + n. Two steps, since 2^-150 and 2^128 are no f32; the first is
     * exact. */
    const int32_t i = pare_bits_of(z) - 0x4b400000, half = i >> 1;
    const float y = e * pare_exp_pow2(half) * pare_exp_pow2(i - half);
    return pare_choose(x < PARE_EXP_LOW, 0, y);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* x <= 89 or nan; where x may be larger, min(PARE_EXP_HIGH, x) first. */
PARE_AVX512 static inline __m512 pare_exp_avx512(__m512 x)
{
    const __m512 round = _mm512_set1_ps(PARE_EXP_ROUND);
    const __mmask16 keep = _mm512_cmp_ps_mask(x, _mm512_set1_ps(PARE_EXP_LOW), _CMP_NLT_UQ);
    const __m512 n =
        _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(PARE_EXP_INVLN), round), round);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(PARE_EXP_LN2HI), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(PARE_EXP_LN2LO), r);
    __m512 p = _mm512_set1_ps(PARE_EXP_C6);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PARE_EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PARE_EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PARE_EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(PARE_EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
    return _mm512_maskz_scalef_ps(keep, p, n);
}

PARE_AVX2 static inline __m256 pare_exp_avx2(__m256 x)
{
    const __m256 round = _mm256_set1_ps(PARE_EXP_ROUND);
    const __m256 keep = _mm256_cmp_ps(x, _mm256_set1_ps(PARE_EXP_LOW), _CMP_NLT_UQ);
    x = _mm256_and_ps(x, keep);
    const __m256 z = _mm256_fmadd_ps(x, _mm256_set1_ps(PARE_EXP_INVLN), round);
    const __m256 n = _mm256_sub_ps(z, round);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(PARE_EXP_LN2HI), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(PARE_EXP_LN2LO), r);
    __m256 p = _mm256_set1_ps(PARE_EXP_C6);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PARE_EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PARE_EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PARE_EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(PARE_EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1));
    /* Two steps, since 2^-150 and 2^128 are no f32; the first is exact. */
    const __m256i i = _mm256_sub_epi32(_mm256_castps_si256(z), _mm256_castps_si256(round));
    const __m256i half = _mm256_srai_epi32(i, 1), one = _mm256_set1_epi32(127);
    const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, one), 23);
    const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(i, half), one), 23);
    p = _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
    return _mm256_and_ps(p, keep);
}
#endif

typedef struct exp_variant {
    const char *name;
    void (*run)(float *y, const float *x, size_t n);
} exp_variant;

/* The variants this CPU can run, best first; the last is the portable one. Returns how many. */
size_t exp_variants(exp_variant out[3]);
#endif
