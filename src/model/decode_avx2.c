/* decode_avx2.c - the kernels of the decoder with AVX2 and FMA: sixteen lanes are two registers. */
#if defined(__x86_64__)
#include "base/vexp.h"

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
TARGET static inline lanes lanes_exp(lanes x) /* x <= 0 */
{
    return (lanes){pare_exp_avx2(x.a), pare_exp_avx2(x.b)};
}

#include "decode_lanes.h"

const decode_kernels decode_avx2 = {attend, norm, add};
#else
typedef int decode_avx2_is_for_x86;
#endif
