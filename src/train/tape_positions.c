/* Positions that are computed: rotary turns of queries and keys, sinusoidal waves. The tables are
 * made once and reach as far as the longest input so far. */
#include "tape.h"
#include <math.h>

static bool block_angles(pare_tape *t, size_t b, size_t tokens)
{
    const pare_weight *const f = &t->m->blocks[b].attn.freqs;
    angles *const a = &t->angles[b];
    if (!pare_has(f)) return true;
    const size_t n = tokens * f->cols;
    a->cosine = pare_alloc(t->turns, n, sizeof *a->cosine);
    a->sine = pare_alloc(t->turns, n, sizeof *a->sine);
    if (!a->cosine || !a->sine) return false;
    for (size_t i = 0; i < n; i++) {
        const double angle = (double)(i / f->cols) * pare_weight_at(f, i % f->cols);
        a->cosine[i] = cos(angle);
        a->sine[i] = sin(angle);
    }
    return true;
}

static bool waves(pare_tape *t, size_t tokens)
{
    const pare_positions *const p = &t->m->stem.pos;
    const size_t d = p->after_map ? pare_model_width(t->m, 0) : t->m->stem.width;
    t->waves = pare_alloc(t->turns, tokens, d * sizeof *t->waves);
    for (size_t i = 0; t->waves && i < tokens * d; i++) {
        const size_t j = i % d;
        const double angle = (double)(i / d) / pow(p->base, (double)(j / 2 * 2) / (double)d);
        t->waves[i] = j % 2 ? cos(angle) : sin(angle);
    }
    return t->waves;
}

pare_status tape_position_tables(pare_tape *t, size_t tokens)
{
    const pare_position_kind kind = t->m->stem.pos.kind;
    if (tokens <= t->turn_tokens) return PARE_OK;
    if (kind != PARE_POS_ROTARY && kind != PARE_POS_SINUSOIDAL) return PARE_OK;
    pare_arena_free(t->turns);
    t->turn_tokens = 0;
    t->turns = pare_arena_new();
    bool ok = t->turns && (kind == PARE_POS_ROTARY || waves(t, tokens));
    for (size_t b = 0; ok && kind == PARE_POS_ROTARY && b < t->m->nblocks; b++)
        ok = block_angles(t, b, tokens);
    if (!ok) return pare_no_memory(t->err);
    t->turn_tokens = tokens;
    return PARE_OK;
}

typedef struct turn_job {
    const pare_attn *a;
    const angles *by;
    rows *r;
    size_t tokens;
    bool interleaved, keys, back;
} turn_job;

/* Has an earlier head turned these keys already? */
static bool seen(const pare_attn *a, size_t h)
{
    for (size_t e = 0; e < h; e++)
        if (a->heads[e].k == a->heads[h].k) return true;
    return false;
}

static void turn_head(double *x, const pare_head *h, const turn_job *w, const double *cosine,
                      const double *sine)
{
    for (size_t f = 0; f < h->planes; f++) {
        const size_t one = w->interleaved ? 2 * f : f;
        const size_t two = w->interleaved ? 2 * f + 1 : f + h->planes;
        const double c = cosine[f], s = w->back ? -sine[f] : sine[f];
        const double a = x[one], b = x[two];
        x[one] = a * c - b * s;
        x[two] = a * s + b * c;
    }
}

static void turn_span(void *self, const span *s)
{
    const turn_job *const w = self;
    const size_t freqs = w->a->freqs.cols;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const was = row_read(w->r, i, s->row[0]);
        double *const x = row_write(w->r, i, s->row[0]); /* the same place */
        PARE_ASSERT(was == x);
        for (size_t h = 0; h < w->a->nheads; h++) {
            const pare_head *const head = &w->a->heads[h];
            const size_t at = i % w->tokens * freqs + head->freq;
            if (w->keys && seen(w->a, h)) continue;
            turn_head(x + (w->keys ? head->k : head->q), head, w, w->by->cosine + at,
                      w->by->sine + at);
        }
        row_done(w->r, i, x);
    }
}

pare_status tape_rotary(pare_tape *t, const sublayer *s, rows *q, rows *k, bool back)
{
    const pare_attn *const a = s->attn;
    turn_job w = {.a = a, .by = &t->angles[s->block], .r = q, .tokens = t->tokens};
    if (!pare_has(&a->freqs)) return PARE_OK;
    w.interleaved = t->m->stem.pos.interleaved;
    w.back = back;
    const pare_status st = tape_spans(t, q->n, q->d, 0, NULL, turn_span, &w);
    if (st) return st;
    w.r = k;
    w.keys = true;
    return tape_spans(t, k->n, k->d, 0, NULL, turn_span, &w);
}
