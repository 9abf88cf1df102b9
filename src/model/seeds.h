/* seeds.h - weights as combinations of pseudorandom columns (SeedLM, Shafipour et al. 2024): what the
 * reader (coded_seeds.c) and an encoder have in common.
 *
 * The weights, row by row, are cut into blocks of n; the last one may be shorter. Those of a block
 * are
 *
 *     w_i = 2^(exponent + e - 15) sum_p q_p (s_(i P + p + 1) - 2^15)        p < P
 *
 * where s_0 is the block's seed, s_1, s_2, ... are the states that a shift register takes from there,
 * and q_p are integers of 4 bits. The sum is below 2^21, so the number is exact in f32. */
#ifndef PARE_MODEL_SEEDS_H
#define PARE_MODEL_SEEDS_H
#include "ticket_store.h"

enum {
    SEEDS_STATES = 65535, /* all but 0, which the register does not leave */
    SEEDS_MOST_BLOCK = 64,
    SEEDS_MOST_COLUMNS = 8, /* P */
    SEEDS_MOST_SHIFT = 15,  /* e */
    SEEDS_LEAST_Q = -8,
    SEEDS_MOST_Q = 7
};

/* x^16 + x^14 + x^13 + x^11 + 1: the register comes back after all states. */
static inline uint32_t seeds_next(uint32_t s)
{
    const uint32_t bit = (s ^ s >> 2 ^ s >> 3 ^ s >> 5) & 1;
    return s >> 1 | bit << 15;
}

typedef struct pare_seed_block {
    uint16_t seed;
    uint8_t shift; /* e */
    int8_t q[SEEDS_MOST_COLUMNS];
} pare_seed_block;

typedef struct pare_seeds {
    size_t rows, cols;
    size_t n, columns; /* weights of a block, P */
    int exponent;
    const pare_seed_block *block;
} pare_seeds;

static inline size_t seeds_blocks(size_t rows, size_t cols, size_t n)
{
    return (rows * cols + n - 1) / n;
}

PARE_MUST_USE pare_status pare_coded_seeds(pare_coded *out, pare_arena *a, const pare_seeds *s,
                                           pare_err *err);
/* How many bytes that takes. */
uint64_t pare_coded_seeds_bytes(size_t rows, size_t cols, size_t n, size_t columns);
#endif
