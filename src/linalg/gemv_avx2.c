/* gemv_avx2.c - pare_panels_apply with AVX2 and FMA. */
#if defined(__x86_64__)
#define VEC_AVX2
#include "gemv_tile.h"

VEC_TARGET void gemv_avx2(const gemv_job *j)
{
    gemv_all(j);
}
#else
typedef int gemv_avx2_is_for_x86;
#endif
