/* Dropout. Sixteen bits of Philox decide about an entry; the key of a mask is drawn from (seed,
 * step, block, place), the counter is where the entry stands: nothing depends on threads or on what
 * was drawn before. The share is rounded to a multiple of 2^-16, and what is kept grows by the
 * inverse of the rounded one, so that the mean stays exactly what it was. */
#include "tape.h"
#include <math.h>

enum { PER_DRAW = 8 }; /* entries */

typedef struct mask_job {
    uint32_t key[2], cut;
    size_t d;
    uint8_t *keep;
} mask_job;

static void mask_span(void *self, const span *s)
{
    const mask_job *const w = self;
    const size_t draws = (w->d + PER_DRAW - 1) / PER_DRAW;
    for (size_t i = s->first; i < s->end; i++)
        for (size_t c = 0; c < draws; c++) {
            const uint64_t at = (uint64_t)i * draws + c;
            const uint32_t counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), 0, 0};
            uint32_t word[4];
            pare_philox(word, counter, w->key);
            uint8_t *const keep = w->keep + i * w->d + c * PER_DRAW;
            const size_t left = w->d - c * PER_DRAW;
            for (size_t e = 0; e < PER_DRAW && e < left; e++)
                keep[e] = (word[e / 2] >> (e % 2 * 16) & 0xffff) >= w->cut;
        }
}

pare_status tape_drop_mask(pare_tape *t, drop_kept *k, size_t n, size_t d, size_t block,
                           size_t place)
{
    const double cut = floor(t->mode.dropout * 65536 + 0.5);
    *k = (drop_kept){NULL, 1};
    if (!t->mode.training || cut < 1) return PARE_OK;
    mask_job w = {.cut = cut > 65535 ? 65535 : (uint32_t)cut, .d = d};
    const uint32_t seed[2] = {(uint32_t)t->mode.seed, (uint32_t)(t->mode.seed >> 32)};
    const uint32_t where[4] = {(uint32_t)t->mode.step, (uint32_t)(t->mode.step >> 32),
                               (uint32_t)block, (uint32_t)place};
    uint32_t word[4];
    pare_philox(word, where, seed);
    w.key[0] = word[0];
    w.key[1] = word[1];
    w.keep = store_get(&t->store, n, d);
    if (!w.keep) return pare_no_memory(t->err);
    *k = (drop_kept){w.keep, 65536 / (65536 - (double)w.cut)};
    return tape_spans(t, n, 0, 0, NULL, mask_span, &w);
}

typedef struct drop_job {
    rows *y;
    const rows *x;
    const drop_kept *k;
} drop_job;

static void drop_span(void *self, const span *s)
{
    const drop_job *const w = self;
    const size_t d = w->y->d;
    for (size_t i = s->first; i < s->end; i++) {
        const uint8_t *const keep = w->k->keep + i * d;
        const double *const x = row_read(w->x, i, s->row[0]);
        double *const y = row_write(w->y, i, s->row[1]);
        for (size_t j = 0; j < d; j++) y[j] = keep[j] ? x[j] * w->k->grow : 0;
        row_done(w->y, i, y);
    }
}

pare_status tape_drop(pare_tape *t, rows *y, const rows *x, const drop_kept *k)
{
    drop_job w = {y, x, k};
    if (!k->keep) return tape_sum(t, y, x, NULL);
    return tape_spans(t, y->n, y->d, 0, NULL, drop_span, &w);
}
