/* gemv_avx512.c - pare_panels_apply with AVX-512. */
#if defined(__x86_64__)
#define VEC_AVX512
#include "gemv_tile.h"

VEC_TARGET void gemv_avx512(const gemv_job *j)
{
    gemv_all(j);
}
#else
typedef int gemv_avx512_is_for_x86;
#endif
