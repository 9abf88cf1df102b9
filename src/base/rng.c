/* rng.c - Philox4x32-10, a counter-based generator: ten rounds of two 32x32 -> 64 products over a
 * four-word counter, the key moved by two Weyl constants after each round.
 * Reference: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
 * Layout: key = seed (low, high), counter = block (low, high), stream (low, high). */
#include "support.h"

#include <math.h>

#define ROUNDS 10
#define MUL_0  UINT32_C(0xD2511F53)
#define MUL_1  UINT32_C(0xCD9E8D57)
#define WEYL_0 UINT32_C(0x9E3779B9) /* golden ratio */
#define WEYL_1 UINT32_C(0xBB67AE85) /* sqrt(3) - 1 */

__extension__ typedef unsigned __int128 u128;

static uint32_t low(uint64_t v)
{
    return (uint32_t)v;
}
static uint32_t high(uint64_t v)
{
    return (uint32_t)(v >> 32);
}

void pare_philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int r = 0; r < ROUNDS; r++) {
        const uint64_t p0 = (uint64_t)MUL_0 * c0, p1 = (uint64_t)MUL_1 * c2;
        c0 = high(p1) ^ c1 ^ k0;
        c2 = high(p0) ^ c3 ^ k1;
        c1 = low(p1);
        c3 = low(p0);
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

pare_rng pare_rng_at(uint64_t seed, uint64_t stream)
{
    return (pare_rng){.seed = seed, .stream = stream, .used = 4};
}

uint32_t pare_rng_u32(pare_rng *r)
{
    if (r->used >= 4) {
        const uint32_t counter[4] = {low(r->block), high(r->block), low(r->stream),
                                     high(r->stream)};
        const uint32_t key[2] = {low(r->seed), high(r->seed)};
        pare_philox(r->word, counter, key);
        r->block++;
        r->used = 0;
    }
    return r->word[r->used++];
}

uint64_t pare_rng_u64(pare_rng *r)
{
    const uint64_t lo = pare_rng_u32(r);
    return lo | (uint64_t)pare_rng_u32(r) << 32;
}

double pare_rng_uniform(pare_rng *r)
{
    return (double)(pare_rng_u64(r) >> 11) * 0x1p-53;
}

double pare_rng_normal(pare_rng *r)
{
    /* Box-Muller; the sine half is thrown away so that a draw always takes four words and the
     * state needs no spare value. 1 - u lies in (0, 1]: the logarithm is finite. */
    const double two_pi = 6.283185307179586476925;
    const double radius = sqrt(-2 * log(1 - pare_rng_uniform(r)));
    return radius * cos(two_pi * pare_rng_uniform(r));
}

uint64_t pare_rng_below(pare_rng *r, uint64_t n)
{
    PARE_ASSERT(n > 0);
    /* The high half of u * n, where the first 2^64 mod n low halves are drawn again
     * because they would make some results one more often than others. */
    const uint64_t reject = (0 - n) % n;
    for (;;) {
        const u128 p = (u128)pare_rng_u64(r) * n;
        if ((uint64_t)p >= reject) return (uint64_t)(p >> 64);
    }
}

void pare_rng_shuffle(pare_rng *r, uint32_t *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)pare_rng_below(r, i);
        const uint32_t t = v[i - 1];
        v[i - 1] = v[j];
        v[j] = t;
    }
}
