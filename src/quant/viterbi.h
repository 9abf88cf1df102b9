/* viterbi.h - the cheapest path of a run of weights through a random table (model/trellis.h).
 *
 * A step of k bits goes from state s to (s << k | b) mod S: the newest bit is the lowest, where the
 * path has it highest, so tables are read here by reversed states. All 2^k ways into a state come
 * from the same group of states, those that end in the same bits, and only the cheapest of them
 * counts:
 *
 *     m_t[p] = min_j cost_t[j S 2^-k + p]          p < S 2^-k, k bits of step t + 1
 *     cost_t[s] = m_(t-1)[s >> k] + error_t[s]     k bits of step t
 *
 * Only the m are kept; reading the path computes the 2^k costs of each step again. Costs are 16-bit
 * integers: the same path on any machine. */
#ifndef PARE_QUANT_VITERBI_H
#define PARE_QUANT_VITERBI_H
#include <pare/base.h>

enum {
    VITERBI_UNIT = 16,     /* of an entry of the table */
    VITERBI_FAR = 16383,   /* a cost beyond all others: an error of one weight is below as well */
    VITERBI_RENEW = 8192,  /* costs are lowered when the least has come so far */
    VITERBI_MOST_STEP = 8, /* bits */
    VITERBI_PAD = 32       /* numbers that may be read after the end of m and of a table */
};

/* One step, from `in` (S >> from) to `out` (S >> to); the least of `out` is returned. The error of
 * state s is ((target - table[s]) weight 2^(shift - 15))^2 2^-16 with saturation. */
typedef struct viterbi_step {
    const int16_t *table, *in;
    int16_t *out;
    size_t states;
    unsigned from, to; /* bits of this step, of the next */
    int16_t target;
    int16_t weight; /* 0: 1 */
    unsigned shift; /* 0 .. VITERBI_MOST_SHIFT */
} viterbi_step;
enum { VITERBI_MOST_SHIFT = 5 };
typedef int viterbi_step_fn(const viterbi_step *s);
viterbi_step_fn viterbi_portable;
#if defined(__x86_64__)
viterbi_step_fn viterbi_avx2, viterbi_avx512;
#endif

/* A run: its bits are floor(n eighths / 8), in a ring. */
typedef struct viterbi_run {
    const int16_t *table; /* by reversed states; VITERBI_PAD numbers follow */
    unsigned state_bits, eighths, shift;
    size_t n;
    const int16_t *target; /* n */
    const int16_t *weight; /* n, or NULL: 1 */
} viterbi_run;
/* Numbers of memory that a run of n takes. */
size_t viterbi_memory(const viterbi_run *r);
/* The states (reversed) of its weights. */
void viterbi(uint32_t *state, const viterbi_run *r, int16_t *memory);
#endif
