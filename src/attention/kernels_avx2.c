/* kernels_avx2.c - the attention kernels with AVX2 and FMA. */
#if defined(__x86_64__)
#define VEC_AVX2
#include "poly_lanes.h"
#include "tile_lanes.h"

const tile_kernel tile_avx2 = {
    "avx2", VEC, TILE_VECS, tile_scores, tile_weights, tile_values, tile_softmax_backward};
const poly_kernel poly_avx2 = {.name = "avx2",
                               .rows = poly_rows,
                               .columns = poly_columns,
                               .accumulate = poly_accumulate,
                               .flush = poly_flush,
                               .monomials_backward = poly_monomials_backward};
#else
typedef int attention_kernels_avx2_are_for_x86;
#endif
