/* model_bound.c - bounds on whole models, for all inputs (Otsuka 2025, Theorems 6, 11 and 14
 * repaired; docs/theory/ticket.md "Blocks and models (Theorems 6, 11, 14)").
 *
 * Claim. For every input in the domain - all token sequences, or all rows of length at most alpha -
 * of any number of tokens, |f - g| is at most what comes out when a span walks through the model:
 * embedding, then norm, attention (Theorem B), skip, norm, feed-forward part, skip, norm for each
 * block, then the head. Each step carries how long the rows of both models can be and how far they
 * can be apart. It grows like a product over the blocks: true for every input, tight for few
 * blocks. Hypotheses: blocks, heads, norms and pattern pair up; else the bound is inf and `why`
 * says so. */
#include "linalg/bounds.h"
#include "ticket_bounds.h"
#include "model_bound.h"
#include <math.h>

/* A sublayer is out_norm( skip(x) + branch( in_norm(x) ) ). */
span block_attention_move(const block_sizes *b, span x)
{
    const attn_sizes *const m = &b->attn;
    x.least = 0; /* nothing is known of all inputs */
    if (m->kind == PARE_ATTN_NONE) return x;
    return norm_move(&m->out, skip_move(&m->skip, x, attn_move(m, norm_move(&m->in, x))));
}

span block_move(const block_sizes *b, span x)
{
    const ffn_sizes *const m = &b->ffn;
    x = block_attention_move(b, x);
    if (m->kind == PARE_FFN_NONE) return x;
    return norm_move(&m->out, skip_move(&m->skip, x, ffn_move(m, norm_move(&m->in, x))));
}

model_sizes model_sizes_of(pare_work *p, const pare_model *f, const pare_model *g, char *why)
{
    model_sizes m = {.nblocks = f->nblocks};
    models_compare(f, g, why);
    if (!*why) m.embedding = embedding_sizes_of(p, f, g, why);
    if (!*why) m.blocks = pare_work_alloc(p, f->nblocks, sizeof *m.blocks);
    for (size_t b = 0; !p->st && !*why && b < f->nblocks; b++) {
        m.blocks[b].attn = attn_sizes_of(p, f, g, b, why);
        m.blocks[b].ffn = ffn_sizes_of(p, &f->blocks[b].ffn, &g->blocks[b].ffn, why);
    }
    if (!*why && !p->st) m.top = output_head_sizes_of(p, f, g, why);
    return m;
}

void model_move(pare_ticket_bound *out, const model_sizes *m, double alpha)
{
    const pare_ub a = pare_ub_exact(alpha);
    span x = embedding_move(&m->embedding, (span){a, a, pare_ub_exact(0), 0});
    for (size_t b = 0; b < m->nblocks; b++) x = block_move(&m->blocks[b], x);
    out->rows = x.d;
    out->outputs = output_head_move(&m->top, x);
}

pare_status pare_ticket_bound_free(pare_ticket_bound *out, const pare_model *f, const pare_model *g,
                                   double alpha, const pare_exec *exec, pare_err *err)
{
    *out = (pare_ticket_bound){pare_ub_inf(), pare_ub_inf(), ""};
    if (!f->embedding.ids && !(alpha > 0 && alpha < INFINITY)) {
        bounds_refuse(out->why, "a bound for all rows needs their length, a positive number");
        return PARE_OK;
    }
    bounds_refuse_normalized(out->why, f);
    if (*out->why) return PARE_OK;
    pare_work p = {pare_arena_new(), exec, err, PARE_OK};
    if (!p.arena) return pare_no_memory(err);
    const model_sizes m = model_sizes_of(&p, f, g, out->why);
    if (!p.st && !*out->why) model_move(out, &m, alpha);
    if (!*out->why && isinf(out->outputs.v)) bounds_refuse(out->why, "the bound overflows");
    pare_arena_free(p.arena);
    return p.st;
}

double pare_ticket_alpha(const pare_inputs *set)
{
    pare_ub most = pare_ub_exact(0);
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        for (size_t r = 0; in->x && r < in->batch * in->tokens; r++) {
            const pare_weight row = {PARE_F64, 1, in->width, in->x + r * in->width};
            most = pare_ub_max(most, pare_norm_fro(&row));
        }
    }
    return most.v;
}
