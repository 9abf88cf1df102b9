/* The decoder's loops with AVX2 and FMA: sixteen lanes are two registers. */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
typedef struct lanes {
    __m256 a, b;
} lanes;

TARGET static inline lanes lanes_load(const float *p)
{
    return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
TARGET static inline void lanes_store(float *p, lanes a)
{
    _mm256_storeu_ps(p, a.a);
    _mm256_storeu_ps(p + 8, a.b);
}
TARGET static inline lanes lanes_set(float a)
{
    return (lanes){_mm256_set1_ps(a), _mm256_set1_ps(a)};
}
TARGET static inline lanes lanes_add(lanes x, lanes y)
{
    return (lanes){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
TARGET static inline lanes lanes_sub(lanes x, lanes y)
{
    return (lanes){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
TARGET static inline lanes lanes_mul(lanes x, lanes y)
{
    return (lanes){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
TARGET static inline lanes lanes_div(lanes x, lanes y)
{
    return (lanes){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
TARGET static inline lanes lanes_fma(lanes x, lanes y, lanes z)
{
    return (lanes){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
TARGET static inline lanes lanes_max(lanes x, lanes y) /* a nan in x stays */
{
    return (lanes){_mm256_max_ps(y.a, x.a), _mm256_max_ps(y.b, x.b)};
}
TARGET static inline float lanes_sum(lanes x)
{
    const __m256 s = _mm256_add_ps(x.a, x.b);
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}
TARGET static inline float lanes_largest(lanes x)
{
    const __m256 s = _mm256_max_ps(x.a, x.b);
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
}
TARGET static inline __m256 half_pow2(__m256 p, __m256 k)
{
    const __m256i up = _mm256_slli_epi32(_mm256_castps_si256(k), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), up));
}
TARGET static inline lanes lanes_pow2(lanes p, lanes k)
{
    return (lanes){half_pow2(p.a, k.a), half_pow2(p.b, k.b)};
}
TARGET static inline __m256 half_zero_below(__m256 v, __m256 x, float low)
{
    return _mm256_and_ps(v, _mm256_cmp_ps(x, _mm256_set1_ps(low), _CMP_NLT_UQ));
}
TARGET static inline lanes lanes_zero_below(lanes v, lanes x, float low)
{
    return (lanes){half_zero_below(v.a, x.a, low), half_zero_below(v.b, x.b, low)};
}

#include "decode_lanes.h"

const decode_kernels decode_avx2 = {attend, norm, act, add};
#else
typedef int decode_avx2_is_for_x86;
#endif
