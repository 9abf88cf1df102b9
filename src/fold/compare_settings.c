/* compare_settings.c - counts the settings, everything but the weights, in which two models differ.
 *
 * Two models with the same weights are the same function only if their settings agree as well:
 * another eps, scale or window is another function, and "error 0 for every input" is false for it.
 * Names and vocabularies do not count. Numbers are compared as stored: the last bit counts. */
#include "fold_parts.h"

static size_t one_if(bool differs)
{
    return differs ? 1 : 0;
}

/* Only what the kind reads: a file need not carry the rest. */
static size_t norm_differs(const pare_norm *a, const pare_norm *b)
{
    if (a->kind != b->kind) return 1;
    if (a->kind == PARE_NORM_NONE || a->kind == PARE_NORM_MEAN) return 0;
    const size_t eps = one_if(a->eps != b->eps);
    if (a->kind == PARE_NORM_BATCH) return eps;
    return eps + one_if(a->divisor != b->divisor) + one_if(a->shift != b->shift);
}

static size_t attn_differs(const pare_attn *a, const pare_attn *b)
{
    if (a->kind != b->kind) return 1;
    if (a->kind == PARE_ATTN_NONE) return 0;
    size_t n = one_if(a->din != b->din) + one_if(a->dout != b->dout) +
               one_if(a->nheads != b->nheads) + one_if(a->skip.kind != b->skip.kind) +
               norm_differs(&a->in_norm, &b->in_norm) + norm_differs(&a->out_norm, &b->out_norm);
    if (a->kind == PARE_ATTN_POLY) n += one_if(a->tolerance != b->tolerance);
    for (size_t h = 0; h < a->nheads && h < b->nheads; h++) {
        const pare_head *const x = &a->heads[h], *const y = &b->heads[h];
        n += one_if(x->dk != y->dk || x->dv != y->dv || x->q != y->q || x->k != y->k ||
                    x->v != y->v || x->o != y->o);
        n += one_if(x->planes != y->planes || (x->planes && x->freq != y->freq));
        n += one_if(x->scale != y->scale);
    }
    return n;
}

static size_t ffn_differs(const pare_ffn *a, const pare_ffn *b)
{
    if (a->kind != b->kind) return 1;
    if (a->kind == PARE_FFN_NONE) return 0;
    return one_if(a->din != b->din) + one_if(a->dout != b->dout) +
           one_if(a->nlayers != b->nlayers) + one_if(a->nlayers > 1 && a->act != b->act) +
           one_if(a->skip.kind != b->skip.kind) + norm_differs(&a->in_norm, &b->in_norm) +
           norm_differs(&a->out_norm, &b->out_norm);
}

size_t block_settings_differ(const pare_block *a, const pare_block *b)
{
    return attn_differs(&a->attn, &b->attn) + ffn_differs(&a->ffn, &b->ffn);
}

static size_t pattern_differs(const pare_pattern *a, const pare_pattern *b)
{
    if (a->kind != b->kind) return 1;
    if (a->kind == PARE_WINDOW)
        return one_if(a->window != b->window) + one_if(a->sinks != b->sinks);
    if (a->kind != PARE_GRAPH) return 0;
    return one_if(a->self_loops != b->self_loops) +
           one_if(a->expander_degree != b->expander_degree) +
           one_if(a->expander_degree && a->expander_seed != b->expander_seed);
}

static size_t positions_differ(const pare_positions *a, const pare_positions *b)
{
    if (a->kind != b->kind) return 1;
    if (a->kind == PARE_POS_NONE) return 0;
    if (a->kind == PARE_POS_ROTARY) return one_if(a->interleaved != b->interleaved);
    return one_if(a->after_map != b->after_map) +
           (a->kind == PARE_POS_SINUSOIDAL ? one_if(a->base != b->base) : 0);
}

size_t outer_settings_differ(const pare_model *a, const pare_model *b)
{
    const pare_embedding *const s = &a->embedding, *const r = &b->embedding;
    const pare_output_head *const t = &a->head, *const u = &b->head;
    return one_if(s->ids != r->ids) + one_if(s->width != r->width) +
           one_if(s->ids && s->vocab != r->vocab) + positions_differ(&s->pos, &r->pos) +
           norm_differs(&s->norm, &r->norm) + pattern_differs(&a->pattern, &b->pattern) +
           one_if(a->context != b->context) + one_if(t->pool != u->pool) +
           one_if(t->act != u->act) + one_if(t->tied != u->tied) + norm_differs(&t->norm, &u->norm);
}
