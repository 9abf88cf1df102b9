/* generate.c - continue many prompts: which sequences are decoded side by side (pare/run.h).
 *
 * The decoder has a fixed number of slots. A free slot takes the next prompt, reads it and samples
 * its first token; then one step of the decoder reads one token of every active sequence. */
#include "model/decode_state.h"
#include "text_internal.h"

/* Floats of keys and values that are held at once, unless one sequence needs more. */
#define MOST_CACHE ((size_t)1 << 28)

typedef struct sequence {
    size_t prompt; /* its number */
    bool active;
    pare_sampler sampler;
} sequence;

typedef struct generator {
    const pare_model *m;
    const pare_tokenizer *tok;
    const pare_input *prompts;
    size_t n, begun;
    const pare_generate_opts *o;
    pare_decoder *decoder;
    sequence slot[PARE_GENERATE_BATCH];
    size_t slots;
    pare_sampler sampler; /* as every prompt begins with it; the working memory is shared */
    pare_generated *out;
    pare_generate_stats *stats;
    pare_arena *arena;
    pare_err *err;
} generator;

const char *pare_generate_refuses(const pare_model *m)
{
    const char *const why = pare_decoder_refuses(m);
    if (why) return why;
    return pare_model_outputs(m) == m->embedding.vocab ? NULL
                                                       : "its outputs are not its vocabulary";
}

/* Samples the token that follows, and decides whether the sequence continues. */
static pare_status sample_next(generator *g, size_t slot, const float *logits)
{
    const pare_generate_events *const on = &g->o->events;
    sequence *const s = &g->slot[slot];
    pare_generated *const y = &g->out[s->prompt];
    int64_t id;
    const pare_status st = pare_sample(&id, &s->sampler, logits, g->err);
    if (st) return st;
    if (pare_is_end_of_text(g->tok, id)) {
        y->end = PARE_END_TEXT;
    } else {
        y->ids[y->n++] = id;
        g->stats->tokens++;
        if (on->token) on->token(on->self, s->prompt, id);
        if (y->n == g->o->tokens)
            y->end = PARE_END_TOKENS;
        else if (pare_decoder_tokens_of(g->decoder, slot) == pare_decoder_capacity(g->decoder))
            y->end = PARE_END_CONTEXT;
    }
    s->active = y->end == PARE_END_NONE;
    if (!s->active && on->end) on->end(on->self, s->prompt, y->end);
    return PARE_OK;
}

/* The next prompt takes a free slot, is read, and gets its first token. */
static pare_status begin_next(generator *g, size_t slot)
{
    const pare_generate_events *const on = &g->o->events;
    sequence *const s = &g->slot[slot];
    const pare_input *const p = &g->prompts[g->begun];
    pare_generated *const y = &g->out[g->begun];
    const size_t capacity = pare_decoder_capacity(g->decoder) - p->tokens + 1;
    const float *logits;
    *s = (sequence){.prompt = g->begun++, .active = true, .sampler = g->sampler};
    y->ids =
        pare_alloc(g->arena, capacity < g->o->tokens ? capacity : g->o->tokens, sizeof *y->ids);
    if (!y->ids) return pare_no_memory(g->err);
    if (g->o->streams) s->sampler.rng = pare_rng_at(g->o->seed, s->prompt);
    if (on->begin) on->begin(on->self, s->prompt);
    pare_decoder_reset_sequence(g->decoder, slot);
    const double start = pare_seconds();
    const pare_status st =
        pare_decoder_prefill_sequence(g->decoder, slot, p->ids, p->tokens, &logits, g->err);
    g->stats->prompt_seconds += pare_seconds() - start;
    g->stats->prompt_tokens += p->tokens;
    return st ? st : sample_next(g, slot, logits);
}

static pare_status generate_all(generator *g, const pare_exec *exec)
{
    const pare_generate_events *const on = &g->o->events;
    const double start = pare_seconds();
    pare_status st = PARE_OK;
    size_t active = 1;
    while (!st && active) {
        st = pare_stopped(exec, g->err);
        for (size_t i = 0; i < g->slots && !st; i++)
            while (!st && !g->slot[i].active && g->begun < g->n) st = begin_next(g, i);
        if (on->round && !on->round(on->self)) break;
        if (st) break;
        /* Every active sequence reads the token that was sampled, and samples again. */
        size_t slot[PARE_GENERATE_BATCH], ld = 0;
        int64_t id[PARE_GENERATE_BATCH];
        const float *logits = NULL;
        active = 0;
        for (size_t i = 0; i < g->slots; i++) {
            if (!g->slot[i].active) continue;
            const pare_generated *const y = &g->out[g->slot[i].prompt];
            slot[active] = i;
            id[active++] = y->ids[y->n - 1];
        }
        if (active)
            st = pare_decoder_step_batch(g->decoder, slot, id, active, &logits, &ld, g->err);
        for (size_t i = 0; i < active && !st; i++) st = sample_next(g, slot[i], logits + i * ld);
    }
    g->stats->seconds = pare_seconds() - start - g->stats->prompt_seconds;
    return st;
}

pare_status pare_generate(pare_generation *out, pare_arena *a, const pare_model *m,
                          const pare_inputs *prompts, const pare_generate_opts *o,
                          const pare_exec *exec, pare_err *err)
{
    const size_t n = prompts->n;
    if (o->tokens == 0 || o->tokens > UINT32_MAX)
        return pare_fail(err, PARE_ERR_INPUT,
                         "generate: %zu tokens were asked for; give 1 to 4294967295", o->tokens);
    *out = (pare_generation){.each = pare_alloc(a, n ? n : 1, sizeof *out->each)};
    if (!out->each) return pare_no_memory(err);
    out->n = n;
    generator g = {.m = m,
                   .tok = o->tokenizer,
                   .prompts = prompts->in,
                   .n = n,
                   .o = o,
                   .out = out->each,
                   .stats = &out->stats,
                   .arena = a,
                   .err = err};
    /* Tokens the longest sequence may come to, and how many caches of that length are held. */
    size_t longest = 0, cache = 1;
    for (size_t i = 0; i < n; i++) {
        const size_t tokens = prompts->in[i].tokens + o->tokens;
        if (tokens > longest) longest = tokens;
    }
    if (m->context && longest > m->context) longest = m->context;
    for (size_t b = 0; b < m->nblocks; b++)
        cache += (m->blocks[b].attn.wk.rows + m->blocks[b].attn.wv.rows) * longest;
    const size_t fit = MOST_CACHE / cache;
    g.slots = fit < PARE_GENERATE_BATCH ? fit : PARE_GENERATE_BATCH;
    if (g.slots == 0) g.slots = 1;
    if (n < g.slots) g.slots = n;
    pare_status st =
        pare_sampler_new(&g.sampler, a, pare_model_outputs(m), &o->sample, o->seed, 0, err);
    if (!st) st = pare_decoder_new_batch(&g.decoder, m, g.slots, longest, exec, err);
    if (!st) st = generate_all(&g, exec);
    pare_decoder_free(g.decoder);
    return st;
}
