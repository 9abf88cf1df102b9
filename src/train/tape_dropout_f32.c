/* tape_dropout_f32.c - the kernels of dropout: y = dropout(x) + plus in f32, and the masks.
 *
 * Masks come from Philox4x32-10 (pare_philox) for sixteen counters at once. The entries of a span
 * are taken in groups of 128, sixteen draws of 128 bits: half word h of draw l decides about entry
 * 16 h + l of its group. Counter: (draw within the span, span). A mask is a function of its key and
 * of the place of an entry, and of nothing else. */
#include "simd_lanes.h"

LANES_INLINE void dropout_rows(const dropout_job *w, const span *s, const dropout_mask *k,
                               bool adds)
{
    const size_t d = w->y->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const plus =
                                                        adds ? rows_at(w->plus, i, 0) : NULL;
        float *const y = rows_at(w->y, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t n = lanes_count(j, d);
            lanes v, p, keep;
            lanes_load(&v, x, j, n, 0);
            lanes_load(&p, plus, j, n, 0);
            lanes_dropout(&keep, k, i * d + j, n);
            v = v * keep + p;
            lanes_store(y, &v, j, n);
        }
    }
}

/* What there is to do is a constant in every loop. */
LANES_INLINE void dropout_any(const dropout_job *w, const span *s)
{
    if (!w->k->keep && w->plus)
        dropout_rows(w, s, NULL, true);
    else if (!w->k->keep)
        dropout_rows(w, s, NULL, false);
    else
        dropout_rows(w, s, w->k, w->plus);
}

LANES_DISPATCH(dropout_f32, dropout_any)

/* ---- masks ---------------------------------------------------------------------------------- */

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

LANES_INLINE void draw_group(uint8_t keep[GROUP], const dropout_draw_job *m, uint32_t first,
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
            keep[h * LANES + l] = (c.w[h / 2][l] >> (h % 2 * 16) & 0xffff) >= m->threshold;
}

LANES_INLINE void draw_masks(const dropout_draw_job *m, const span *s)
{
    const size_t entries = (s->end - s->first) * m->d;
    uint8_t *const keep = m->keep + s->first * m->d;
    for (size_t at = 0; at < entries; at += GROUP) {
        uint8_t group[GROUP];
        const size_t left = entries - at;
        draw_group(group, m, (uint32_t)(at / HALVES), s->first / SPAN);
        memcpy(keep + at, group, left < GROUP ? left : GROUP);
    }
}

LANES_DISPATCH(dropout_draw_lanes, draw_masks)
