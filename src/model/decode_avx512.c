/* decode_avx512.c - the kernels of the decoder with AVX-512. */
#if defined(__x86_64__)
#define VEC_AVX512
#include "decode_lanes.h"

const decode_kernels decode_avx512 = {attend, norm, add};
#else
typedef int decode_avx512_is_for_x86;
#endif
