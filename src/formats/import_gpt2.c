/* import_gpt2.c - Hugging Face GPT-2: ids, learned positions, pre-norm blocks with fused queries,
 * keys and values. Its Conv1D stores [in, out] (y = x W) unless the metadata key `linear` says
 * otherwise; lm_head is an ordinary [out, in] matrix in both. */
#include "import_families.h"

#include <math.h>

/* Masks; and the heads where the rows are pooled in their place, or classified. */
static const char *const ignored[] = {"h.*.attn.bias", "h.*.attn.masked_bias", NULL};
static const char *const ignored_pooled[] = {"h.*.attn.bias", "h.*.attn.masked_bias",
                                             "lm_head.weight", "score.*", NULL};

bool im_is_gpt2(const im_source *s)
{
    return im_has(s, "wte.weight") && im_has(s, "h.0.attn.c_attn.weight");
}

/* The published sizes are so well known that their files carry no head count. */
static size_t published_heads(size_t d)
{
    switch (d) {
    case 768:
        return 12;
    case 1024:
        return 16;
    case 1280:
        return 20;
    case 1600:
        return 25;
    default:
        return 0;
    }
}

typedef struct gpt2 {
    size_t d, hidden, heads;
    double eps;
    pare_act act;
    bool bias, scaled, by_layer;
} gpt2;

static void read_sizes(im_source *s, gpt2 *g)
{
    size_t wte[2] = {0, 0};
    if (!im_shape(s, wte, 2, "wte.weight")) return;
    *g = (gpt2){.d = wte[1], .eps = 1e-5, .act = PARE_ACT_GELU_TANH, .scaled = true};
    s->m->embedding.vocab = wte[0];
    size_t heads = 0;
    if (!im_size(s, &heads, "heads", "n_head")) heads = published_heads(g->d);
    if (heads == 0)
        im_fail(s,
                "the number of heads is not known: neither n_head in config.json nor heads in the "
                "metadata, and width %zu is none of the published sizes",
                g->d);
    else if (g->d % heads != 0)
        im_fail(s, "width %zu of 'wte.weight' is not a multiple of %zu heads", g->d, heads);
    g->heads = heads;
    g->hidden = im_outputs(s, "h.0.mlp.c_fc.weight");
    g->bias = im_has(s, "h.0.ln_1.bias"); /* trained with or without: all of them or none */
    im_number(s, &g->eps, NULL, "layer_norm_epsilon");
    im_word_number(s, &g->eps, "norm", "eps");
    im_act(s, &g->act, "activation_function");
    im_flag(s, &g->scaled, "scale_attn_weights");
    im_flag(s, &g->by_layer, "scale_attn_by_inverse_layer_idx");
    im_agree(s, "n_embd", g->d);
    im_agree(s, "vocab_size", wte[0]);
    im_agree(s, "n_inner", g->hidden);
}

void im_gpt2(im_source *s)
{
    gpt2 g = {0};
    if (!im_is_gpt2(s)) im_fail(s, "its tensors do not have GPT-2's names");
    im_orientation(s, true);
    read_sizes(s, &g);
    if (s->st || !im_blocks(s, im_count(s, "h.", ".attn.c_attn.weight"))) return;
    im_agree(s, "n_layer", s->m->nblocks);
    s->m->pattern.kind = PARE_CAUSAL;
    pare_embedding *embedding = &s->m->embedding;
    size_t wpe[2] = {0, 0};
    embedding->ids = true;
    embedding->width = g.d;
    embedding->table = im_table(s, embedding->vocab, g.d, "wte.weight");
    if (!im_shape(s, wpe, 2, "wpe.weight")) return;
    embedding->pos.kind = PARE_POS_LEARNED;
    embedding->pos.table = im_table(s, wpe[0], g.d, "wpe.weight");
    s->m->context = wpe[0];
    im_agree(s, "n_positions", wpe[0]);
    for (size_t l = 0; l < s->m->nblocks && !s->st; l++) {
        pare_block *b = &s->m->blocks[l];
        im_attn(s, &b->attn, g.d, g.heads, g.heads, g.d / g.heads, 0);
        im_ffn(s, &b->ffn, PARE_FFN_MLP, g.d, 2, g.act);
        if (s->st) return;
        for (size_t h = 0; h < g.heads; h++) {
            if (!g.scaled) b->attn.heads[h].scale = 1;
            if (g.by_layer) b->attn.heads[h].scale /= (double)(l + 1);
        }
        b->attn.in_norm = im_layer_norm(s, g.d, g.eps, g.bias, "h.%zu.ln_1", l);
        im_split_qkv(&b->attn, g.d, im_dense(s, 3 * g.d, g.d, g.bias, "h.%zu.attn.c_attn", l));
        const pare_dense o = im_dense(s, g.d, g.d, g.bias, "h.%zu.attn.c_proj", l);
        b->attn.wo = o.w;
        b->attn.bo = o.b;
        b->ffn.in_norm = im_layer_norm(s, g.d, g.eps, g.bias, "h.%zu.ln_2", l);
        b->ffn.layers[0] = im_dense(s, g.hidden, g.d, g.bias, "h.%zu.mlp.c_fc", l);
        b->ffn.layers[1] = im_dense(s, g.d, g.hidden, g.bias, "h.%zu.mlp.c_proj", l);
    }
    s->m->head.norm = im_layer_norm(s, g.d, g.eps, g.bias, "ln_f");
    s->input_first = s->linear_given && s->input_first;
    im_language_head(s, "wte.weight", "lm_head.weight");
    im_finish(s, s->m->head.pool != PARE_POOL_NONE ? ignored_pooled : ignored);
}
