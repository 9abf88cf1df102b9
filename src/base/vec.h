/* vec.h - a vector of floats, for kernels that are written once over its width.
 *
 * A file that includes it defines VEC_AVX512 or VEC_AVX2 before, or neither for vectors of four
 * that every compiler can lower. +, - and * are those of the language; every function over vectors
 * has the attribute VEC_TARGET, which VEC_INLINE includes. vec_fma rounds once on the first two and
 * twice on the last: the bits of a kernel are those of its instruction set. */
#ifndef PARE_BASE_VEC_H
#define PARE_BASE_VEC_H
#include "vexp.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#if defined(VEC_AVX512)
#define VEC_TARGET PARE_AVX512
enum { VEC = 16 };
#elif defined(VEC_AVX2)
#define VEC_TARGET PARE_AVX2
enum { VEC = 8 };
#else
#define VEC_TARGET
enum { VEC = 4 };
#endif
#define VEC_INLINE PARE_INLINE VEC_TARGET
typedef float vec __attribute__((vector_size(VEC * sizeof(float)), aligned(4), may_alias));

VEC_INLINE vec vec_load(const float *p)
{
    return *(const vec *)p;
}
VEC_INLINE void vec_store(float *p, vec a)
{
    *(vec *)p = a;
}
VEC_INLINE vec vec_set(float a)
{
    return a - (vec){0}; /* nothing is subtracted: - 0 changes no number */
}

#if defined(VEC_AVX512)
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
VEC_INLINE vec vec_max(vec a, vec b) /* a > b ? a : b */
{
    return _mm512_max_ps(a, b);
}
VEC_INLINE vec vec_min(vec a, vec b) /* a < b ? a : b */
{
    return _mm512_min_ps(a, b);
}
VEC_INLINE vec vec_exp(vec a) /* a <= 89 or nan */
{
    return pare_exp_avx512(a);
}
VEC_INLINE vec vec_above_minus_infinity(vec a) /* 0 for -inf; a nan stays */
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, vec_set(-INFINITY), _CMP_NEQ_UQ), a);
}
/* The sum of all lanes: halves are added until one is left. */
VEC_INLINE float vec_sum(vec a)
{
    return _mm512_reduce_add_ps(a);
}
VEC_INLINE float vec_largest(vec a)
{
    return _mm512_reduce_max_ps(a);
}
VEC_INLINE __mmask16 vec_first(size_t n)
{
    return (__mmask16)(n >= VEC ? 0xffff : (1u << n) - 1);
}
/* The first n lanes alone, or all where n is larger; the others are loaded as 0. */
VEC_INLINE vec vec_load_some(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(vec_first(n), p);
}
VEC_INLINE void vec_store_some(float *p, vec a, size_t n)
{
    _mm512_mask_storeu_ps(p, vec_first(n), a);
}
#elif defined(VEC_AVX2)
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
VEC_INLINE vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}
VEC_INLINE vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}
VEC_INLINE vec vec_exp(vec a)
{
    return pare_exp_avx2(a);
}
VEC_INLINE vec vec_above_minus_infinity(vec a)
{
    return _mm256_and_ps(a, _mm256_cmp_ps(a, vec_set(-INFINITY), _CMP_NEQ_UQ));
}
VEC_INLINE float vec_sum(vec a)
{
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}
VEC_INLINE float vec_largest(vec a)
{
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
}
VEC_INLINE __m256i vec_first(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < VEC ? (int)n : VEC), lane);
}
VEC_INLINE vec vec_load_some(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, vec_first(n));
}
VEC_INLINE void vec_store_some(float *p, vec a, size_t n)
{
    _mm256_maskstore_ps(p, vec_first(n), a);
}
#else
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return a * b + c;
}
VEC_INLINE vec vec_max(vec a, vec b)
{
    for (size_t l = 0; l < VEC; l++) a[l] = a[l] > b[l] ? a[l] : b[l];
    return a;
}
VEC_INLINE vec vec_min(vec a, vec b)
{
    for (size_t l = 0; l < VEC; l++) a[l] = a[l] < b[l] ? a[l] : b[l];
    return a;
}
VEC_INLINE vec vec_exp(vec a)
{
    for (size_t l = 0; l < VEC; l++) a[l] = pare_exp_scalar(a[l]);
    return a;
}
VEC_INLINE vec vec_above_minus_infinity(vec a)
{
    for (size_t l = 0; l < VEC; l++) a[l] = a[l] == -INFINITY ? 0 : a[l];
    return a;
}
VEC_INLINE float vec_sum(vec a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}
VEC_INLINE float vec_largest(vec a)
{
    float most = a[0];
    for (size_t l = 1; l < VEC; l++) most = a[l] > most ? a[l] : most;
    return most;
}
VEC_INLINE vec vec_load_some(const float *p, size_t n)
{
    vec a = {0};
    memcpy(&a, p, (n < VEC ? n : VEC) * sizeof *p);
    return a;
}
VEC_INLINE void vec_store_some(float *p, vec a, size_t n)
{
    memcpy(p, &a, (n < VEC ? n : VEC) * sizeof *p);
}
#endif
#endif
