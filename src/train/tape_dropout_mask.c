/* Which entries dropout keeps: Philox4x32-10 (pare_philox) for sixteen counters at once.
 *
 * The entries of a span are taken in groups of 128, sixteen draws of 128 bits: half word h of draw
 * l decides about entry 16 h + l of its group. Counter: (draw within the span, span). So a mask is
 * a function of its key and of where an entry stands, and of nothing else. */
#include "simd_lanes.h"

enum { ROUNDS = 10, HALVES = 8, GROUP = HALVES * LANES };

typedef struct draws {
    uint32_t w[4][LANES];
} draws;

LANES_INLINE void philox_round(draws *c, uint32_t k0, uint32_t k1)
{
    draws to;
    for (size_t l = 0; l < LANES; l++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c->w[0][l];
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c->w[2][l];
        to.w[0][l] = (uint32_t)(p1 >> 32) ^ c->w[1][l] ^ k0;
        to.w[1][l] = (uint32_t)p1;
        to.w[2][l] = (uint32_t)(p0 >> 32) ^ c->w[3][l] ^ k1;
        to.w[3][l] = (uint32_t)p0;
    }
    *c = to;
}

LANES_INLINE void group_of(uint8_t keep[GROUP], const dropout_draw_job *m, uint32_t first,
                           size_t span_at)
{
    draws c;
    for (size_t l = 0; l < LANES; l++) {
        c.w[0][l] = first + (uint32_t)l;
        c.w[1][l] = (uint32_t)span_at;
        c.w[2][l] = (uint32_t)((uint64_t)span_at >> 32);
        c.w[3][l] = 0;
    }
    for (uint32_t r = 0; r < ROUNDS; r++)
        philox_round(&c, m->key[0] + r * 0x9E3779B9u, m->key[1] + r * 0xBB67AE85u);
    for (size_t h = 0; h < HALVES; h++)
        for (size_t l = 0; l < LANES; l++)
            keep[h * LANES + l] = (c.w[h / 2][l] >> (h % 2 * 16) & 0xffff) >= m->cut;
}

LANES_INLINE void run(const dropout_draw_job *m, const span *s)
{
    const size_t entries = (s->end - s->first) * m->d;
    uint8_t *const keep = m->keep + s->first * m->d;
    for (size_t at = 0; at < entries; at += GROUP) {
        uint8_t group[GROUP];
        const size_t left = entries - at;
        group_of(group, m, (uint32_t)(at / HALVES), s->first / SPAN);
        memcpy(keep + at, group, left < GROUP ? left : GROUP);
    }
}

static void plain(void *job, const span *s)
{
    run(job, s);
}

#if defined(LANES_X86)
LANES_AVX2 static void avx2(void *job, const span *s)
{
    run(job, s);
}
LANES_AVX512 static void avx512(void *job, const span *s)
{
    run(job, s);
}
#endif

span_fn *dropout_draw_lanes(void)
{
#if defined(LANES_X86)
    return lanes_dispatch(plain, avx2, avx512);
#else
    return plain;
#endif
}
