/* decode_avx2.c - the kernels of the decoder with AVX2 and FMA. */
#if defined(__x86_64__)
#define VEC_AVX2
#include "decode_lanes.h"

const decode_kernels decode_avx2 = {attend, norm, add};
#else
typedef int decode_avx2_is_for_x86;
#endif
