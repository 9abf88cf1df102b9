/* time_attention.c - the attention of two models by itself (pare/run.h): scores, softmax and
 * weighted values of all heads of all blocks, on rows of random numbers in the shapes that the
 * models have. */
#include "model/stopwatch.h"

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

static pare_status random_rows(pare_mat32 *m, pare_arena *a, size_t rows, size_t cols,
                               uint64_t seed, uint64_t stream, pare_err *err)
{
    pare_rng rng = pare_rng_at(seed, stream);
    *m = (pare_mat32){rows, cols, cols, pare_alloc(a, rows, cols * sizeof(float))};
    if (!m->v) return pare_no_memory(err);
    for (size_t i = 0; i < rows * cols; i++) m->v[i] = (float)pare_rng_normal(&rng);
    return PARE_OK;
}

static pare_status clock_new(attention_clock *w, pare_arena *a, const pare_model *m,
                             const pare_input *in, uint64_t seed, pare_err *err)
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
        st = pare_graph_complete(&w->graph, a, in->graph, &m->pattern, err);
    if (!st) st = random_rows(&w->q, a, in->tokens, q, seed, 1, err);
    if (!st) st = random_rows(&w->k, a, in->tokens, k, seed, 2, err);
    if (!st) st = random_rows(&w->v, a, in->tokens, v, seed, 3, err);
    return st ? st : random_rows(&w->y, a, in->tokens, y, seed, 4, err);
}

static pare_mat32 columns(const pare_mat32 *m, size_t from, size_t n)
{
    return (pare_mat32){m->rows, n, m->ld, m->v + from};
}

static pare_status run_once(attention_clock *w, const pare_exec *exec, pare_err *err)
{
    const pare_exec silent = pare_exec_silent(exec);
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
            const pare_attention_args32 x = {.q = &q,
                                             .k = &k,
                                             .v = &v,
                                             .scale = d->scale,
                                             .pattern = &w->m->pattern,
                                             .graph = g};
            st = pare_attend_f32(&y, &x, &silent, err);
        }
    }
    const double took = pare_seconds() - start;
    if (took < w->best) w->best = took;
    return st;
}

pare_status pare_attention_ms(double *ms_f, double *ms_g, const pare_model *f, const pare_model *g,
                              const pare_input *in, uint64_t seed, pare_arena *scratch,
                              const pare_exec *exec, pare_err *err)
{
    attention_clock a, b;
    const pare_mark mark = pare_arena_mark(scratch);
    const double start = pare_seconds();
    pare_status st = clock_new(&a, scratch, f, in, seed, err);
    if (!st) st = clock_new(&b, scratch, g, in, seed, err);
    for (size_t i = 0; !st && i < RUNS && (i == 0 || pare_seconds() - start < BUDGET); i++) {
        st = run_once(&a, exec, err);
        if (!st) st = run_once(&b, exec, err);
    }
    *ms_f = st ? 0 : 1e3 * a.best;
    *ms_g = st ? 0 : 1e3 * b.best;
    pare_arena_reset(scratch, mark);
    return st;
}
