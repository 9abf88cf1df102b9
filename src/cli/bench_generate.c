/* bench_generate.c - decoding token by token in the shape of stories260K: prefill and generation
 * (bench.h). */
#include "bench.h"

#include <math.h>
#include <string.h>

typedef struct story {
    pare_model *m;
    pare_decoder *d;
    bool prompt; /* all tokens in one call; otherwise each is chosen from the logits before it */
    size_t n, vocab;
    int64_t *ids;
    float *last; /* the logits after the last token */
} story;

/* p = prompt?, tokens, dim, layers, vocab */
static pare_status story_input(bench_job *j, const size_t *p)
{
    story *s = j->state = bench_alloc(j, 1, sizeof *s);
    if (!s) return j->c->err.code;
    *s = (story){.prompt = p[0] != 0, .n = p[1], .vocab = p[4]};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = PARE_RANDOM_LLAMA;
    o.dim = p[2];
    o.layers = p[3];
    o.heads = 8;
    o.kv_heads = 4;
    o.vocab = s->vocab;
    o.context = 2 * s->n;
    o.ffn = 172 * p[2] / 64;
    o.seed = j->c->seed;
    s->ids = bench_alloc(j, s->n, sizeof *s->ids);
    s->last = bench_alloc(j, s->vocab, sizeof *s->last);
    if (!s->ids || !s->last || pare_random_model(&s->m, &o, &j->c->err)) return j->c->err.code;
    pare_rng r = pare_rng_at(j->c->seed, 10);
    for (size_t i = 0; i < s->n; i++) s->ids[i] = (int64_t)pare_rng_below(&r, s->vocab);
    snprintf(j->shape, sizeof j->shape, "%s tokens=%zu dim=%zu layers=%zu vocab=%zu",
             s->prompt ? "prompt" : "generate", s->n, o.dim, o.layers, o.vocab);
    j->flops = 2 * (double)pare_model_size(s->m, s->n, 0).macs;
    j->amount = (double)s->n;
    j->tolerance = 1e-4;
    return PARE_OK;
}

/* The decoder belongs to a number of threads: it is made when that changes, outside the clock. */
static pare_status story_threads(bench_job *j)
{
    story *s = j->state;
    pare_decoder_free(s->d);
    s->d = NULL;
    return pare_decoder_new(&s->d, s->m, s->n, &j->exec, &j->c->err);
}

static pare_status story_run(bench_job *j)
{
    story *s = j->state;
    const float *logits = NULL;
    pare_status st = PARE_OK;
    pare_decoder_reset(s->d);
    if (s->prompt) st = pare_decoder_prefill(s->d, s->ids, s->n, &logits, &j->c->err);
    for (size_t i = 0; !s->prompt && !st && i < s->n; i++) {
        st = pare_decoder_step(s->d, s->ids[i], &logits, &j->c->err);
        if (st || i + 1 == s->n) continue;
        s->ids[i + 1] = 0; /* greedy: the likeliest token */
        for (size_t t = 1; t < s->vocab; t++)
            if (logits[t] > logits[s->ids[i + 1]]) s->ids[i + 1] = (int64_t)t;
    }
    if (!st) memcpy(s->last, logits, s->vocab * sizeof *s->last);
    return st;
}

/* The f64 pass over the very tokens that were read or chosen. */
static pare_status story_check(bench_job *j, double *error)
{
    const story *s = j->state;
    const pare_mark mark = pare_arena_mark(j->arena);
    const pare_input in = {.batch = 1, .tokens = s->n, .ids = s->ids};
    double *exact = bench_alloc(j, s->n * s->vocab, sizeof *exact);
    if (!exact) return j->c->err.code;
    const pare_status st = pare_forward_f64(exact, s->m, &in, NULL, &j->exec, &j->c->err);
    *error = st ? INFINITY : bench_distance(s->last, exact + (s->n - 1) * s->vocab, s->vocab);
    pare_arena_reset(j->arena, mark);
    return st;
}

static void story_free(bench_job *j)
{
    const story *s = j->state;
    if (!s) return;
    pare_decoder_free(s->d);
    pare_model_free(s->m);
}

const bench_kind bench_generate = {story_input, NULL,        story_threads,
                                   story_run,   story_check, story_free};
