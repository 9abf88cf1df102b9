/* decode_avx512.c - the kernels of the decoder with AVX-512: sixteen lanes are one register. */
#if defined(__x86_64__)
#include "base/vexp.h"

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
TARGET static inline lanes lanes_exp(lanes x) /* x <= 0 */
{
    return pare_exp_avx512(x);
}

#include "decode_lanes.h"

const decode_kernels decode_avx512 = {attend, norm, add};
#else
typedef int decode_avx512_is_for_x86;
#endif
