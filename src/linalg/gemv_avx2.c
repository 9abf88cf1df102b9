/* gemv_avx2.c - pare_panels_apply with AVX2 and FMA: 3 rows x 32 outputs fill 12 of the 16 registers. */
#if defined(__x86_64__)
#include "base/vexp.h"
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
enum { VEC = 8, TALL = 3, SHORT = 2, WIDE = 2 };
typedef __m256 vec;

TARGET static inline vec vec_zero(void)
{
    return _mm256_setzero_ps();
}
TARGET static inline vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
TARGET static inline void vec_store(float *p, vec a)
{
    _mm256_storeu_ps(p, a);
}
TARGET static inline vec vec_set(float a)
{
    return _mm256_set1_ps(a);
}
TARGET static inline vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
TARGET static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

#include "gemv_tile.h"

TARGET void gemv_avx2(const gemv_job *j)
{
    gemv_all(j);
}
#else
typedef int gemv_avx2_is_for_x86;
#endif
