/* gemv_avx512.c - pare_panels_apply with AVX-512: 12 rows x 32 outputs fill 24 of the 32 registers. */
#if defined(__x86_64__)
#include "base/vexp.h"
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,fma")))
enum { VEC = 16, TALL = 12, SHORT = 4, WIDE = 4 };
typedef __m512 vec;

TARGET static inline vec vec_zero(void)
{
    return _mm512_setzero_ps();
}
TARGET static inline vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
TARGET static inline void vec_store(float *p, vec a)
{
    _mm512_storeu_ps(p, a);
}
TARGET static inline vec vec_set(float a)
{
    return _mm512_set1_ps(a);
}
TARGET static inline vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
TARGET static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

#include "gemv_tile.h"

TARGET void gemv_avx512(const gemv_job *j)
{
    gemv_all(j);
}
#else
typedef int gemv_avx512_is_for_x86;
#endif
