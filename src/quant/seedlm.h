/* seedlm.h - the seeds of blocks of weights (model/seeds.h): the encoder, for comparison with other
 * methods (SeedLM, Shafipour et al. 2024, arXiv 2410.10714).
 *
 *   seedlm.c          the search; seedlm_lanes.h and a file for each instruction set: its inner loop */
#ifndef PARE_QUANT_SEEDLM_H
#define PARE_QUANT_SEEDLM_H
#include "encode.h"

/* Weights of a block and columns that they are combined from: 20 + 4 columns bits for a block. */
typedef struct seedlm_shape {
    size_t n, columns;
} seedlm_shape;
seedlm_shape seedlm_shape_of(unsigned bits); /* 2 .. 6; those of 3 and 4 are the paper's */

/* What a matrix takes. */
uint64_t seedlm_bytes(size_t rows, size_t cols, unsigned bits);

/* The bytes and the numbers they expand to, as quant_matrix; moments and group are not read. Same
 * bytes on any machine. */
PARE_MUST_USE pare_status seedlm_matrix(pare_coded *coded, float **expanded, pare_arena *a,
                                        const quant_job *job, pare_err *err);

/* ---- the inner loop -------------------------------------------------------------------------- */

/* Of every seed an orthonormal basis of its columns; SEEDLM_LANES of them side by side:
 * basis[group][column][weight][lane]. */
enum { SEEDLM_LANES = 16, SEEDLM_TILE = 16 /* groups */, SEEDLM_TOGETHER = 4 /* blocks */ };

typedef struct seedlm_scan {
    seedlm_shape shape;
    const float *basis; /* of `groups` groups */
    size_t groups;
    const float *w;     /* SEEDLM_TOGETHER blocks of length 1 */
    const float *least; /* of each: the share that a basis must reach of it */
} seedlm_scan;
typedef struct seedlm_hit {
    uint32_t block, seed; /* seeds count from the first of the groups */
    float share;          /* of the block's square that is in the span of its columns */
} seedlm_hit;
/* Those that reach it, seeds ascending; at most groups x SEEDLM_LANES x SEEDLM_TOGETHER. */
typedef size_t seedlm_scan_fn(seedlm_hit *to, const seedlm_scan *s);
seedlm_scan_fn seedlm_portable;
#if defined(__x86_64__)
seedlm_scan_fn seedlm_avx2, seedlm_avx512;
#endif
#endif
