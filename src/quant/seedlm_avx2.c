/* seedlm_avx2.c - the spans of seeds with AVX2. */
#if defined(__x86_64__)
#define VEC_AVX2
#include "seedlm_lanes.h"

VEC_TARGET size_t seedlm_avx2(seedlm_hit *to, const seedlm_scan *s)
{
    return scan_any(to, s);
}
#else
typedef int seedlm_avx2_is_for_x86;
#endif
