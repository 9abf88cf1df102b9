/* seedlm_avx512.c - the spans of seeds with AVX-512. */
#if defined(__x86_64__)
#define VEC_AVX512
#include "seedlm_lanes.h"

VEC_TARGET size_t seedlm_avx512(seedlm_hit *to, const seedlm_scan *s)
{
    return scan_any(to, s);
}
#else
typedef int seedlm_avx512_is_for_x86;
#endif
