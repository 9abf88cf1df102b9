/* viterbi_avx512.c - a step of the trellis with AVX-512. */
#if defined(__x86_64__)
#define VEC_AVX512
#include "viterbi_lanes.h"

VEC_TARGET int viterbi_avx512(const viterbi_step *s)
{
    return step_any(s);
}
#else
typedef int viterbi_avx512_is_for_x86;
#endif
