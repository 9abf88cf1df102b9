/* kernels_portable.c - the attention kernels for every CPU, and which of them this one can run. */
#include "poly_lanes.h"
#include "tile_lanes.h"

const tile_kernel tile_portable = {
    "portable", VEC, TILE_VECS, tile_scores, tile_weights, tile_values, tile_softmax_backward};
const poly_kernel poly_portable = {.name = "portable",
                                   .rows = poly_rows,
                                   .columns = poly_columns,
                                   .accumulate = poly_accumulate,
                                   .flush = poly_flush,
                                   .monomials_backward = poly_monomials_backward};

size_t tile_kernels(tile_kernel out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX512) out[n++] = tile_avx512;
    if (simd_best() >= SIMD_AVX2) out[n++] = tile_avx2;
#endif
    out[n++] = tile_portable;
    return n;
}

static void update_state(float *to, double *now, float *from, const poly_rescale *f,
                         const double *before, const double *by, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        now[i] = (now[i] + (double)from[i]) * f->now;
        from[i] = 0;
        to[i] = (float)((f->before * before[i] + now[i]) * by[i]);
    }
}

size_t poly_kernels(poly_kernel out[3])
{
    tile_kernel tiles[3];
    const size_t n = tile_kernels(tiles);
    for (size_t i = 0; i < n; i++) {
        out[i] = poly_portable;
#if defined(__x86_64__)
        if (tiles[i].lanes == 16) out[i] = poly_avx512;
        if (tiles[i].lanes == 8) out[i] = poly_avx2;
#endif
        out[i].tile = tiles[i];
        if (!out[i].update_state) out[i].update_state = update_state;
    }
    return n;
}
