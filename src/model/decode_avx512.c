/* The decoder's loops with AVX-512: sixteen lanes are one register. */
#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,fma")))
typedef __m512 lanes;

TARGET static inline lanes lanes_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
TARGET static inline void lanes_store(float *p, lanes a)
{
    _mm512_storeu_ps(p, a);
}
TARGET static inline lanes lanes_set(float a)
{
    return _mm512_set1_ps(a);
}
TARGET static inline lanes lanes_add(lanes a, lanes b)
{
    return _mm512_add_ps(a, b);
}
TARGET static inline lanes lanes_sub(lanes a, lanes b)
{
    return _mm512_sub_ps(a, b);
}
TARGET static inline lanes lanes_mul(lanes a, lanes b)
{
    return _mm512_mul_ps(a, b);
}
TARGET static inline lanes lanes_div(lanes a, lanes b)
{
    return _mm512_div_ps(a, b);
}
TARGET static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return _mm512_fmadd_ps(a, b, c);
}
TARGET static inline lanes lanes_max(lanes a, lanes b)
{
    return _mm512_max_ps(b, a); /* a nan in a stays */
}
TARGET static inline float lanes_sum(lanes a)
{
    return _mm512_reduce_add_ps(a);
}
TARGET static inline float lanes_largest(lanes a)
{
    return _mm512_reduce_max_ps(a);
}
TARGET static inline lanes lanes_pow2(lanes p, lanes k)
{
    const __m512i up = _mm512_slli_epi32(_mm512_castps_si512(k), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), up));
}
TARGET static inline lanes lanes_zero_below(lanes a, lanes x, float low)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(low), _CMP_NLT_UQ), a);
}

#include "decode_lanes.h"

const decode_kernels decode_avx512 = {attend, norm, act, add};
#else
typedef int decode_avx512_is_for_x86;
#endif
