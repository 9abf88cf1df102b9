/* tape_dropout.c - dropout, and sums of rows.
 *
 * Sixteen bits of Philox decide about an entry (tape_dropout_f32.c); the key of a mask is drawn from
 * (seed, step, block, place), so that nothing depends on threads or on earlier draws. The dropped
 * share is rounded to a multiple of 2^-16, and what is kept is scaled by the inverse of the rounded
 * kept share: the expectation is exactly what it was. */
#include "base/support.h"
#include "tape_kernels.h"
#include <math.h>

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

void tape_dropout(pare_tape *t, rows *y, const rows *x, const dropout_mask *k, const rows *plus)
{
    dropout_job w = {y, x, plus, k};
    if (!k->keep && !plus && y->v == x->v) return;
    tape_spans(t, y->n, y->d, 0, NULL, y->t == PARE_F32 ? dropout_f32() : dropout_span, &w);
}
