/* decode_portable.c - the kernels of the decoder for every CPU. */
#include "decode_lanes.h"

const decode_kernels decode_portable = {attend, norm, add};
