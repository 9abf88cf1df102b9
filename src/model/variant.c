/* variant.c - models that leave parts of the usual architecture out.
 *
 * Most theorems about transformers are about nets of attention and feed-forward maps alone:
 *
 *     z  = sum_heads Wo softmax(Q K^T) V,     h' = W2 act(W1 z)
 *
 * The parts of a model that is laid out already are taken away, so that the weights that stay are
 * the same ones whatever is left out. */
#include "variant.h"

static const pare_weight nothing = {0};

static void leave_norm(pare_norm *n, const pare_variant *v)
{
    if (v->no_norms) *n = (pare_norm){0};
    if (v->no_biases) n->bias = nothing;
}

static void leave_skip(pare_skip *s, const pare_variant *v)
{
    if (v->no_skips) *s = (pare_skip){.kind = PARE_SKIP_NONE};
}

void pare_model_vary(pare_model *m, const pare_variant *v)
{
    for (size_t b = 0; b < m->nblocks; b++) {
        pare_attn *const a = &m->blocks[b].attn;
        pare_ffn *const f = &m->blocks[b].ffn;
        leave_norm(&a->in_norm, v);
        leave_norm(&a->out_norm, v);
        leave_norm(&f->in_norm, v);
        leave_norm(&f->out_norm, v);
        leave_skip(&a->skip, v);
        leave_skip(&f->skip, v);
        if (v->has_act) f->act = v->act;
        if (!v->no_biases) continue;
        a->bq = a->bk = a->bv = a->bo = nothing;
        for (size_t l = 0; l < f->nlayers; l++) f->layers[l].b = nothing;
    }
    leave_norm(&m->stem.norm, v);
    leave_norm(&m->top.norm, v);
    if (v->no_biases) m->stem.map.b = m->top.dense.b = m->top.out.b = nothing;
}

bool pare_variant_is_usual(const pare_variant *v)
{
    return !v->no_skips && !v->no_norms && !v->no_biases && !v->has_act;
}
