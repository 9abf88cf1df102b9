/* tape_positions.c - computed positions: rotary for queries and keys, sinusoidal for the stream.
 * The tables are made once and hold the positions of the longest input so far. */
#include "tape.h"
#include <math.h>

void tape_position_tables(pare_tape *t, size_t tokens)
{
    pare_work *const w = &t->work;
    const pare_positions *const p = &t->m->embedding.pos;
    const bool rotary = p->kind == PARE_POS_ROTARY;
    if (w->st || tokens <= t->position_tokens) return;
    if (!rotary && p->kind != PARE_POS_SINUSOIDAL) return;
    pare_arena_free(t->position_arena);
    t->position_tokens = 0;
    t->position_arena = pare_arena_new();
    if (!t->position_arena) w->st = pare_no_memory(w->err);
    for (size_t b = 0; !w->st && rotary && b < t->m->nblocks; b++) {
        const pare_weight *const f = &t->m->blocks[b].attn.freqs;
        rotary_table *const r = &t->rotary[b];
        const size_t n = tokens * f->cols;
        if (!pare_has(f)) continue;
        r->cosine = pare_alloc(t->position_arena, n, sizeof *r->cosine);
        r->sine = pare_alloc(t->position_arena, n, sizeof *r->sine);
        if (!r->cosine || !r->sine) w->st = pare_no_memory(w->err);
        for (size_t i = 0; !w->st && i < n; i++) {
            const double angle = (double)(i / f->cols) * pare_weight_at(f, i % f->cols);
            r->cosine[i] = cos(angle);
            r->sine[i] = sin(angle);
        }
    }
    if (!w->st && !rotary) {
        const size_t d = p->after_map ? pare_model_width(t->m, 0) : t->m->embedding.width;
        t->sinusoids = pare_alloc(t->position_arena, tokens, d * sizeof *t->sinusoids);
        if (!t->sinusoids) w->st = pare_no_memory(w->err);
        for (size_t i = 0; !w->st && i < tokens * d; i++) {
            const size_t j = i % d;
            const double angle = (double)(i / d) / pow(p->base, (double)(j / 2 * 2) / (double)d);
            t->sinusoids[i] = j % 2 ? cos(angle) : sin(angle);
        }
    }
    if (!w->st) t->position_tokens = tokens;
}

typedef struct rotary_job {
    const pare_attn *a;
    const rotary_table *table;
    rows *r;
    const sequence_layout *layout;
    bool interleaved, keys, backward;
} rotary_job;

/* (x1, x2) <- (x1 c - x2 s, x1 s + x2 c) in every plane of every head. */
static void rotary_span(void *self, const span *s)
{
    const rotary_job *const w = self;
    const size_t freqs = w->a->freqs.cols;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const was = row_read(w->r, i, s->row[0]);
        double *const row = row_write(w->r, i, s->row[0]); /* the same place */
        const size_t position = sequence_position(w->layout, i) * freqs;
        PARE_ASSERT(was == row);
        for (size_t h = 0; h < w->a->nheads; h++) {
            const pare_head *const head = &w->a->heads[h];
            const size_t at = position + head->freq;
            double *const x = row + (w->keys ? head->k : head->q);
            size_t first = 0; /* heads may share keys, which are rotated for the first of them */
            while (w->keys && w->a->heads[first].k != head->k) first++;
            if (w->keys && first < h) continue;
            for (size_t f = 0; f < head->planes; f++) {
                const size_t one = w->interleaved ? 2 * f : f;
                const size_t two = w->interleaved ? 2 * f + 1 : f + head->planes;
                const double c = w->table->cosine[at + f];
                const double sine = w->table->sine[at + f], sn = w->backward ? -sine : sine;
                const double a = x[one], b = x[two];
                x[one] = a * c - b * sn;
                x[two] = a * sn + b * c;
            }
        }
        row_done(w->r, i, row);
    }
}

void tape_rotary(pare_tape *t, const sublayer *s, rows *q, rows *k, bool backward)
{
    rotary_job w = {.a = s->attn,
                    .table = &t->rotary[s->block],
                    .r = q,
                    .layout = &t->layout,
                    .interleaved = t->m->embedding.pos.interleaved,
                    .backward = backward};
    if (!pare_has(&s->attn->freqs)) return;
    tape_spans(t, q->n, q->d, 0, NULL, rotary_span, &w);
    w.r = k;
    w.keys = true;
    tape_spans(t, k->n, k->d, 0, NULL, rotary_span, &w);
}
