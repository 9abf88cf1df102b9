/* trellis.h - weights read along a path through a table of random numbers: what the reader
 * (ticket_trellis.c) and an encoder have in common.
 *
 * A weight takes `eighths`/8 bits of the path. Its state is the last `state_bits` bits, and stands
 * for an entry of a table that seed and stream have drawn: normal quantiles in random order. The
 * bits of a run of weights form a ring, so its first weights have a state as well. The matrix X of
 * these entries, rotated on both sides, is the weight:
 *
 *     N = S_r H_r X H_c^T S_c      in integers; S random signs, H Hadamard matrices
 *     F_ij = f32(N_ij scale_i) 2^exponent
 */
#ifndef PARE_MODEL_TRELLIS_H
#define PARE_MODEL_TRELLIS_H
#include "linalg/hadamard.h"
#include "ticket_store.h"

enum {
    TRELLIS_LEAST_STATE = 8, /* bits of a state */
    TRELLIS_MOST_STATE = 16,
    TRELLIS_LEAST_EIGHTHS = 8, /* of a bit, a weight */
    TRELLIS_MOST_EIGHTHS = 64,
    TRELLIS_UNIT = 448,           /* what the table has in the place of 1 */
    TRELLIS_MOST_GROWTH = 1 << 20 /* product of the orders: sums of 12-bit entries fit 32 bits */
};

typedef struct pare_trellis {
    uint64_t seed, stream;
    size_t rows, cols;
    unsigned state_bits, eighths;
    size_t row_parts, col_parts; /* runs: a part of the columns, a part of the rows */
    hadamard row, col;           /* order 1: not rotated */
    bool row_scales;             /* one for each row, else one for all */
    bool shuffled; /* the path takes the rows in an order drawn from the seed; none is rotated */
} pare_trellis;

/* table[state], drawn from seed and stream: odd-sized entries are possible, 0 is not. scratch: 2^state_bits. */
void trellis_table(int16_t *table, uint32_t *scratch, uint64_t seed, uint64_t stream,
                   unsigned state_bits);
/* round(UNIT x) for the n quantiles x of the normal distribution at (i + 1/2) / n, ascending. */
void trellis_quantiles(int16_t *out, size_t n);

/* Signs of the rows (side 1) or columns (side 2): all 1 where they are not rotated. */
void trellis_signs(int8_t *out, const pare_trellis *t, int side);

/* Which row is the k-th on the path. */
void trellis_order(uint32_t *out, const pare_trellis *t);

/* Part k of n things in `parts` parts begins here. */
static inline size_t trellis_part(size_t n, size_t parts, size_t k)
{
    return (size_t)((uint64_t)n * k / parts);
}
/* Bits of the path for the first `weights` weights of a run. */
static inline uint64_t trellis_bits(const pare_trellis *t, uint64_t weights)
{
    return weights * t->eighths / 8;
}
/* Bits of all runs, which follow one another. */
uint64_t trellis_path_bits(const pare_trellis *t);
/* PARE_ERR_INPUT: a size, a number of parts or an order that is not possible. */
PARE_MUST_USE pare_status trellis_check(const pare_trellis *t, pare_err *err);

/* The bytes of such a ticket. scale: rows, or one; path: trellis_path_bits bits, lowest first. */
PARE_MUST_USE pare_status pare_coded_trellis(pare_coded *out, pare_arena *a, const pare_trellis *t,
                                             int exponent, const uint16_t *scale,
                                             const uint8_t *path, pare_err *err);
/* How many bytes that takes. */
uint64_t pare_coded_trellis_bytes(const pare_trellis *t);
#endif
