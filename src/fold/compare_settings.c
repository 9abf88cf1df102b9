/* compare_settings.c - counts the settings, everything but the weights, in which two models differ.
 *
 * Two models with the same weights are the same function only if their settings agree as well:
 * another eps, scale or window is another function, and "error 0 for every input" is false for it.
 * Names and vocabularies do not count. Numbers are compared as stored: the last bit counts. */
#include "fold_parts.h"
#include "model/model_equality.h"

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

size_t block_settings_differ(const pare_block *x, const pare_block *y)
{
    const pare_attn *const a = &x->attn, *const b = &y->attn;
    const pare_ffn *const f = &x->ffn, *const g = &y->ffn;
    size_t n = one_if(a->kind != b->kind) + one_if(f->kind != g->kind);
    if (a->kind == b->kind && a->kind != PARE_ATTN_NONE) {
        n += one_if(a->din != b->din) + one_if(a->dout != b->dout) +
             one_if(a->nheads != b->nheads) + one_if(a->skip.kind != b->skip.kind) +
             norm_differs(&a->in_norm, &b->in_norm) + norm_differs(&a->out_norm, &b->out_norm) +
             one_if(a->kind == PARE_ATTN_POLY && a->tolerance != b->tolerance);
        for (size_t i = 0; i < a->nheads && i < b->nheads; i++) {
            const pare_head *const h = &a->heads[i], *const k = &b->heads[i];
            n += one_if(h->dk != k->dk || h->dv != k->dv || h->q != k->q || h->k != k->k ||
                        h->v != k->v || h->o != k->o);
            n += one_if(h->planes != k->planes || (h->planes && h->freq != k->freq));
            n += one_if(h->scale != k->scale);
        }
    }
    if (f->kind == g->kind && f->kind != PARE_FFN_NONE)
        n += one_if(f->din != g->din) + one_if(f->dout != g->dout) +
             one_if(f->nlayers != g->nlayers) + one_if(f->nlayers > 1 && f->act != g->act) +
             one_if(f->skip.kind != g->skip.kind) + norm_differs(&f->in_norm, &g->in_norm) +
             norm_differs(&f->out_norm, &g->out_norm);
    return n;
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

size_t outer_settings_differ(const pare_model *a, const pare_model *b)
{
    const pare_embedding *const s = &a->embedding, *const r = &b->embedding;
    const pare_output_head *const t = &a->head, *const u = &b->head;
    const pare_positions *const p = &s->pos, *const q = &r->pos;
    const bool added = p->kind == PARE_POS_LEARNED || p->kind == PARE_POS_SINUSOIDAL;
    size_t positions = one_if(p->kind != q->kind);
    if (!positions)
        positions = one_if(added && p->after_map != q->after_map) +
                    one_if(p->kind == PARE_POS_SINUSOIDAL && p->base != q->base) +
                    one_if(p->kind == PARE_POS_ROTARY && p->interleaved != q->interleaved);
    return one_if(s->ids != r->ids) + one_if(s->width != r->width) +
           one_if(s->ids && s->vocab != r->vocab) +
           one_if(!pare_same_rows(s, r)) + positions + norm_differs(&s->norm, &r->norm) +
           pattern_differs(&a->pattern, &b->pattern) + one_if(a->context != b->context) +
           one_if(t->pool != u->pool) + one_if(t->act != u->act) + one_if(t->tied != u->tied) +
           one_if(t->normalize != u->normalize) + norm_differs(&t->norm, &u->norm);
}
