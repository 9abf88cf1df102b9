/* The attention of two models by itself: scores, softmax and weighted values of all heads of all
 * blocks, on rows of random numbers in the shapes that the models have. */
#include "cli.h"

#define RUNS   9
#define BUDGET 4.0 /* seconds */

typedef struct attention_clock {
    const pare_model *m;
    pare_graph graph;
    pare_mat32 q, k, v, y; /* as wide as the widest block needs */
    double best;
} attention_clock;

static bool has_heads(const pare_attn *a)
{
    return a->kind == PARE_ATTN_EXACT || a->kind == PARE_ATTN_POLY || a->kind == PARE_ATTN_CONSTQ;
}

static void widen(size_t *to, size_t end)
{
    if (end > *to) *to = end;
}

static pare_status room(cli *c, pare_mat32 *m, size_t rows, size_t cols, uint64_t stream)
{
    pare_rng rng = pare_rng_at(c->seed, stream);
    *m = (pare_mat32){rows, cols, cols, pare_alloc(c->arena, rows, cols * sizeof(float))};
    if (!m->v) return pare_no_memory(&c->err);
    for (size_t i = 0; i < rows * cols; i++) m->v[i] = (float)pare_rng_normal(&rng);
    return PARE_OK;
}

static pare_status clock_new(cli *c, attention_clock *w, const pare_model *m, const pare_input *in)
{
    size_t q = 1, k = 1, v = 1, y = 1;
    *w = (attention_clock){.m = m, .best = 1e300};
    for (size_t b = 0; b < m->nblocks; b++)
        for (size_t h = 0; has_heads(&m->blocks[b].attn) && h < m->blocks[b].attn.nheads; h++) {
            const pare_head *const d = &m->blocks[b].attn.heads[h];
            widen(&q, d->q + d->dk), widen(&k, d->k + d->dk);
            widen(&v, d->v + d->dv), widen(&y, d->o + d->dv);
        }
    pare_status st = PARE_OK;
    if (m->pattern.kind == PARE_GRAPH)
        st = pare_graph_complete(&w->graph, c->arena, in->graph, &m->pattern, &c->err);
    if (!st) st = room(c, &w->q, in->tokens, q, 1);
    if (!st) st = room(c, &w->k, in->tokens, k, 2);
    if (!st) st = room(c, &w->v, in->tokens, v, 3);
    return st ? st : room(c, &w->y, in->tokens, y, 4);
}

static pare_mat32 columns(const pare_mat32 *m, size_t from, size_t n)
{
    return (pare_mat32){m->rows, n, m->ld, m->v + from};
}

static pare_status run_once(cli *c, attention_clock *w)
{
    const pare_exec silent = pare_silent(&c->exec);
    const pare_graph *const g = w->m->pattern.kind == PARE_GRAPH ? &w->graph : NULL;
    const double start = pare_seconds();
    pare_status st = PARE_OK;
    for (size_t b = 0; b < w->m->nblocks; b++) {
        const pare_attn *const a = &w->m->blocks[b].attn;
        for (size_t h = 0; !st && has_heads(a) && h < a->nheads; h++) {
            const pare_head *const d = &a->heads[h];
            pare_mat32 y = columns(&w->y, d->o, d->dv);
            const pare_mat32 q = columns(&w->q, d->q, d->dk), k = columns(&w->k, d->k, d->dk);
            const pare_mat32 v = columns(&w->v, d->v, d->dv);
            st = pare_attend_f32(&y, &q, &k, &v, (float)d->scale, &w->m->pattern, g, &silent,
                                 &c->err);
        }
    }
    const double took = pare_seconds() - start;
    if (took < w->best) w->best = took;
    return st;
}

pare_status cli_attention_ms(cli *c, double *ms_f, double *ms_g, const pare_model *f,
                             const pare_model *g, const pare_input *in)
{
    attention_clock a, b;
    const pare_mark mark = pare_arena_mark(c->arena);
    const double start = pare_seconds();
    pare_status st = clock_new(c, &a, f, in);
    if (!st) st = clock_new(c, &b, g, in);
    for (size_t i = 0; !st && i < RUNS && (i == 0 || pare_seconds() - start < BUDGET); i++) {
        st = run_once(c, &a);
        if (!st) st = run_once(c, &b);
    }
    *ms_f = st ? 0 : 1e3 * a.best;
    *ms_g = st ? 0 : 1e3 * b.best;
    pare_arena_reset(c->arena, mark);
    return st;
}
