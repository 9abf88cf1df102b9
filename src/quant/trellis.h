/* trellis.h - a matrix as a path through a random table (model/trellis.h): the encoder.
 *
 *   trellis.c           rotation, scales, error feedback, the path
 *   viterbi.c           the cheapest path of a run; viterbi_lanes.h and a file for each
 *                       instruction set */
#ifndef PARE_QUANT_TRELLIS_H
#define PARE_QUANT_TRELLIS_H
#include "model/trellis.h"

typedef struct trellis_job {
    size_t rows, cols;
    const float *w;          /* rows x cols, without gaps: what the numbers should be */
    const pare_mat *moments; /* E y y^T of the rows y that enter it, cols x cols; NULL: unknown, all
                                errors weigh the same */
    const double *worth; /* of each row's squared errors; NULL: 1. With each_row the path takes the
                                rows in random order: where rows of much and of little worth are
                                neighbors, it meets the former more closely */
    double bits;         /* of the path, a weight; whole eighths */
    unsigned state_bits; /* 0: TRELLIS_STATE_BITS */
    bool each_row;       /* rows are vectors of their own (embeddings): a scale for each, and no
                                rotation mixes them */
    bool rotate;         /* false: as it is */
    double deviation;    /* of the weights; 0: as it is found */
    uint64_t seed, stream; /* the stream is the matrix's own and ends in 24 zero bits */
    const pare_exec *exec;
} trellis_job;
enum { TRELLIS_STATE_BITS = 15, TRELLIS_RUN = 256 /* weights of a run, about */ };

/* Whether a matrix of this shape has enough weights for a path. */
bool trellis_possible(size_t rows, size_t cols, double bits);
/* How many bytes that takes. */
uint64_t trellis_bytes(size_t rows, size_t cols, double bits, bool each_row);

/* The bytes and the numbers they expand to (rows x cols), in the arena; coded->name is left to the
 * caller. Same bytes for any number of threads. */
PARE_MUST_USE pare_status trellis_matrix(pare_coded *coded, float **expanded, pare_arena *a,
                                         const trellis_job *job, pare_err *err);
#endif
