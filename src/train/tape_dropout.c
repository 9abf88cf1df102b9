/* tape_dropout.c - dropout, and sums of rows.
 *
 * Sixteen bits of Philox decide about an entry; the key of a mask is drawn from (seed, step, block,
 * place), so that nothing depends on threads or on earlier draws. The dropped share is rounded to a
 * multiple of 2^-16, and what is kept is scaled by the inverse of the rounded kept share: the
 * expectation is exactly what it was.
 *
 * Masks come from Philox4x32-10 (pare_philox) for sixteen counters at once. The entries of a span
 * are taken in groups of 128, sixteen draws of 128 bits: half word h of draw l decides about entry
 * 16 h + l of its group. Counter: (draw within the span, span). A mask is a function of its key and
 * of the place of an entry, and of nothing else. */
#include "simd_lanes.h"
#include "base/support.h"
#include <math.h>

/* ---- masks ---------------------------------------------------------------------------------- */

enum { ROUNDS = 10, HALVES = 8, GROUP = HALVES * LANES };

typedef struct dropout_draw_job {
    uint32_t key[2], threshold; /* an entry is dropped with probability threshold / 2^16 */
    size_t d;
    uint8_t *keep;
} dropout_draw_job;

typedef struct draws {
    uint32_t w[4][LANES];
} draws;

PARE_INLINE void philox_round(draws *c, uint32_t k0, uint32_t k1)
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

PARE_INLINE void draw_group(uint8_t keep[GROUP], const dropout_draw_job *m, uint32_t first,
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

PARE_INLINE void draw_masks(const dropout_draw_job *m, const span *s)
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

dropout_mask tape_dropout_draw(pare_tape *t, size_t n, size_t d, size_t block, size_t place)
{
    const double threshold = floor(t->mode.dropout * 65536 + 0.5);
    if (!t->mode.training || threshold < 1) return (dropout_mask){NULL, 1};
    dropout_draw_job w = {.threshold = threshold > 65535 ? 65535 : (uint32_t)threshold, .d = d};
    const uint32_t seed[2] = {(uint32_t)t->mode.seed, (uint32_t)(t->mode.seed >> 32)};
    const uint32_t where[4] = {(uint32_t)t->mode.step, (uint32_t)(t->mode.step >> 32),
                               (uint32_t)block, (uint32_t)place};
    uint32_t word[4];
    pare_philox(word, where, seed);
    w.key[0] = word[0];
    w.key[1] = word[1];
    w.keep = tape_alloc(t, n, d);
    tape_spans(t, n, 0, 0, NULL, dropout_draw_lanes(), &w);
    return (dropout_mask){w.keep, 65536 / (65536 - (double)w.threshold)};
}

/* ---- y = dropout(x) + plus -------------------------------------------------------------------- */

typedef struct dropout_job {
    rows *y;
    const rows *x, *plus;
    const dropout_mask *k;
} dropout_job;

static void dropout_span(void *self, const span *s)
{
    const dropout_job *const w = self;
    const size_t d = w->y->d;
    for (size_t i = s->first; i < s->end; i++) {
        const uint8_t *const keep = w->k->keep ? w->k->keep + i * d : NULL;
        const double *const x = row_read(w->x, i, s->row[0]);
        const double *const plus = w->plus ? row_read(w->plus, i, s->row[1]) : NULL;
        double *const y = row_write(w->y, i, s->row[2]);
        for (size_t j = 0; j < d; j++) {
            const double v = !keep ? x[j] : keep[j] ? x[j] * w->k->scale : 0;
            y[j] = v + (plus ? plus[j] : 0);
        }
        row_done(w->y, i, y);
    }
}

PARE_INLINE void dropout_rows(const dropout_job *w, const span *s, const dropout_mask *k, bool adds)
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
PARE_INLINE void dropout_any(const dropout_job *w, const span *s)
{
    if (!w->k->keep && w->plus)
        dropout_rows(w, s, NULL, true);
    else if (!w->k->keep)
        dropout_rows(w, s, NULL, false);
    else
        dropout_rows(w, s, w->k, w->plus);
}

LANES_DISPATCH(dropout_f32, dropout_any)

void tape_dropout(pare_tape *t, rows *y, const rows *x, const dropout_mask *k, const rows *plus)
{
    dropout_job w = {y, x, plus, k};
    if (!k->keep && !plus && y->v == x->v) return;
    tape_spans(t, y->n, y->d, 0, NULL, y->t == PARE_F32 ? dropout_f32() : dropout_span, &w);
}
