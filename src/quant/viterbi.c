/* viterbi.c - the cheapest path of a run, closed to a ring.
 *
 * The bits before the first weight's are those of the last weights. Which they should be is found
 * on a window around that place, free at both ends; then the whole run is laid with these bits at
 * its beginning and at its end. */
#include "base/simd.h"
#include "base/support.h"
#include "viterbi.h"
#include <string.h>

enum { WINDOW = 48 }; /* weights on each side of the place where the ring is closed */
#define ANY SIZE_MAX  /* group: not given */

static viterbi_step_fn *best_step(void)
{
#if defined(__x86_64__)
    switch (simd_best()) {
    case SIMD_AVX512:
        return viterbi_avx512;
    case SIMD_AVX2:
        return viterbi_avx2;
    default:
        break;
    }
#endif
    return viterbi_portable;
}

/* Bits of the t-th weight of the ring. */
static unsigned bits_of(const viterbi_run *r, size_t t)
{
    t %= r->n;
    return (unsigned)((t + 1) * r->eighths / 8 - t * r->eighths / 8);
}

static size_t stride(const viterbi_run *r)
{
    return ((size_t)1 << (r->state_bits - r->eighths / 8)) + VITERBI_PAD;
}

size_t viterbi_memory(const viterbi_run *r)
{
    const size_t window = 2 * WINDOW;
    return ((r->n > window ? r->n : window) + 1) * stride(r);
}

static viterbi_step step_at(const viterbi_run *r, size_t t, const int16_t *in, int16_t *out)
{
    return (viterbi_step){.table = r->table,
                          .in = in,
                          .out = out,
                          .states = (size_t)1 << r->state_bits,
                          .from = bits_of(r, t),
                          .to = bits_of(r, t + 1),
                          .target = r->target[t % r->n],
                          .weight = r->weight ? r->weight[t % r->n] : 0,
                          .shift = r->shift};
}

static int clamp(int v)
{
    return v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v;
}

/* What step_of adds up, for one state. */
PARE_INLINE int cost_of(const viterbi_step *s, size_t state)
{
    int d = clamp(s->target - s->table[state]);
    if (s->weight) d = (d * s->weight + (1 << 14)) >> 15;
    for (unsigned k = 0; k < s->shift; k++) d = clamp(d + d);
    return clamp((d * d >> 16) + s->in[state >> s->from]);
}

/* Of the states that end in `group`, the one that costs least. */
static size_t least_of(const viterbi_step *s, size_t group)
{
    const size_t groups = s->states >> s->to;
    size_t best = group;
    int least = cost_of(s, group);
    for (size_t state = group + groups; state < s->states; state += groups) {
        const int cost = cost_of(s, state);
        if (cost < least) least = cost, best = state;
    }
    return best;
}

static void lower(int16_t *m, size_t n, int by)
{
    for (size_t p = 0; p < n; p++) m[p] = (int16_t)(m[p] - by);
}

/* Weights first .. first + n - 1 of the ring; the state before is in the group `begin`, the last one
 * is in `end`. */
static void lay(uint32_t *state, const viterbi_run *r, size_t first, size_t n, size_t begin,
                size_t end, int16_t *memory)
{
    viterbi_step_fn *const step = best_step();
    const size_t wide = stride(r), states = (size_t)1 << r->state_bits;
    for (size_t p = 0; p < states >> bits_of(r, first); p++)
        memory[p] = begin == ANY || p == begin ? 0 : VITERBI_FAR;
    for (size_t t = 0; t < n; t++) {
        const viterbi_step s = step_at(r, first + t, memory + t * wide, memory + (t + 1) * wide);
        const int least = step(&s);
        if (least >= VITERBI_RENEW) lower(s.out, states >> s.to, least);
    }
    if (end == ANY) {
        const int16_t *const m = memory + n * wide;
        end = 0;
        for (size_t p = 1; p < states >> bits_of(r, first + n); p++)
            if (m[p] < m[end]) end = p;
    }
    for (size_t t = n; t-- > 0;) {
        const viterbi_step s = step_at(r, first + t, memory + t * wide, NULL);
        state[t] = (uint32_t)least_of(&s, end);
        end = state[t] >> s.from;
    }
}

void viterbi(uint32_t *state, const viterbi_run *r, int16_t *memory)
{
    const size_t side = r->n / 2 < WINDOW ? r->n / 2 : WINDOW;
    uint32_t around[2 * WINDOW];
    PARE_ASSERT(r->n > 0 && r->eighths / 8 < r->state_bits - 4);
    lay(around, r, r->n - side, 2 * side, ANY, ANY, memory);
    const size_t group = side ? around[side] >> bits_of(r, 0) : 0;
    lay(state, r, 0, r->n, group, group, memory);
}
