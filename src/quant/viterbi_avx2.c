/* viterbi_avx2.c - a step of the trellis with AVX2. */
#if defined(__x86_64__)
#define VEC_AVX2
#include "viterbi_lanes.h"

VEC_TARGET int viterbi_avx2(const viterbi_step *s)
{
    return step_any(s);
}
#else
typedef int viterbi_avx2_is_for_x86;
#endif
