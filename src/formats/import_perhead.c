/* import_perhead.c - one tensor per head: W_Q, W_K, W_V [heads, d, dk], W_O [heads, dk, d], y = x
 * W. Norms and a two-layer FFN where the file has them; causal unless the metadata says
 * bidirectional. */
#include "import_families.h"

static const char *const ignored[] = {"blocks.*.attn.mask", "blocks.*.attn.IGNORE", NULL};

bool im_is_perhead(const im_source *s)
{
    return im_has(s, "embed.W_E") && im_has(s, "blocks.0.attn.W_Q");
}

typedef struct perhead {
    size_t d, heads, dk;
    double eps;
} perhead;

/* [heads, in, out] or, with the `linear` key, [heads, out, in] -> [heads * out, in]. */
static pare_weight stacked(im_source *s, const perhead *g, size_t l, const char *name)
{
    size_t n[3];
    const bool turn = s->input_first;
    if (!im_shape(s, n, 3, "blocks.%zu.attn.%s", l, name)) return (pare_weight){0};
    if (n[0] != g->heads || n[turn ? 1 : 2] != g->d || n[turn ? 2 : 1] != g->dk) {
        im_fail(s,
                "tensor 'blocks.%zu.attn.%s' has shape [%zu, %zu, %zu], expected [%zu, %zu, %zu]",
                l, name, n[0], n[1], n[2], g->heads, turn ? g->d : g->dk, turn ? g->dk : g->d);
        return (pare_weight){0};
    }
    char key[80];
    void *data;
    snprintf(key, sizeof key, "blocks.%zu.attn.%s", l, name);
    im_tensor *t = im_find(s, key);
    const pare_dtype dtype = im_dtype(s, t);
    const pare_weight w = im_new(s, dtype, g->heads * g->dk, g->d, &data);
    const size_t one = g->dk * g->d;
    for (size_t h = 0; data && h < g->heads; h++)
        im_place((uint8_t *)data + h * one * pare_dtype_size(dtype), dtype, g->d, t, h * one, n[1],
                 n[2], turn);
    return w;
}

/* [heads, dk, d] or [heads, d, dk] -> [d, heads * dk]. */
static pare_weight joined(im_source *s, const perhead *g, size_t l)
{
    size_t n[3];
    const bool turn = s->input_first;
    if (!im_shape(s, n, 3, "blocks.%zu.attn.W_O", l)) return (pare_weight){0};
    if (n[0] != g->heads || n[turn ? 1 : 2] != g->dk || n[turn ? 2 : 1] != g->d) {
        im_fail(s,
                "tensor 'blocks.%zu.attn.W_O' has shape [%zu, %zu, %zu], expected [%zu, %zu, %zu]",
                l, n[0], n[1], n[2], g->heads, turn ? g->dk : g->d, turn ? g->d : g->dk);
        return (pare_weight){0};
    }
    char key[80];
    void *data;
    snprintf(key, sizeof key, "blocks.%zu.attn.W_O", l);
    im_tensor *t = im_find(s, key);
    const pare_dtype dtype = im_dtype(s, t);
    const size_t width = g->heads * g->dk;
    const pare_weight w = im_new(s, dtype, g->d, width, &data);
    for (size_t h = 0; data && h < g->heads; h++)
        im_place((uint8_t *)data + h * g->dk * pare_dtype_size(dtype), dtype, width, t,
                 h * g->dk * g->d, n[1], n[2], turn);
    return w;
}

/* [heads, dk] read as one row. */
static pare_weight head_bias(im_source *s, const perhead *g, size_t l, const char *name)
{
    if (!im_has(s, "blocks.%zu.attn.%s", l, name)) return (pare_weight){0};
    pare_weight w = im_table(s, g->heads, g->dk, "blocks.%zu.attn.%s", l, name);
    w.cols *= w.rows;
    w.rows = pare_has(&w) ? 1 : 0;
    return w;
}

static pare_norm norm_if(im_source *s, const perhead *g, const char *name)
{
    if (!im_has(s, "%s.w", name)) return (pare_norm){0};
    const pare_weight gain = im_vector(s, g->d, "%s.w", name);
    const pare_weight bias = im_vector(s, g->d, "%s.b", name);
    return im_norm(PARE_NORM_LAYER, g->d, g->eps, gain, bias);
}

static void read_ffn(im_source *s, const perhead *g, size_t l)
{
    pare_ffn *f = &s->m->blocks[l].ffn;
    pare_act act = PARE_ACT_NONE;
    char name[40];
    if (s->st || !im_has(s, "blocks.%zu.mlp.W_in", l)) return;
    if (!im_act(s, &act, "act_fn"))
        im_fail(s, "the activation is not known: neither act_fn in config.json nor act in the "
                   "metadata");
    const size_t hidden = im_outputs(s, "blocks.%zu.mlp.W_in", l);
    im_ffn(s, f, PARE_FFN_MLP, g->d, 2, act);
    if (s->st) return;
    snprintf(name, sizeof name, "blocks.%zu.ln2", l);
    f->in_norm = norm_if(s, g, name);
    f->layers[0].w = im_matrix(s, hidden, g->d, "blocks.%zu.mlp.W_in", l);
    f->layers[0].b = im_vector(s, hidden, "blocks.%zu.mlp.b_in", l);
    f->layers[1].w = im_matrix(s, g->d, hidden, "blocks.%zu.mlp.W_out", l);
    f->layers[1].b = im_vector(s, g->d, "blocks.%zu.mlp.b_out", l);
}

static void read_block(im_source *s, const perhead *g, size_t l)
{
    pare_attn *at = &s->m->blocks[l].attn;
    char name[40];
    im_attn(s, at, g->d, g->heads, g->heads, g->dk, 0);
    snprintf(name, sizeof name, "blocks.%zu.ln1", l);
    at->in_norm = norm_if(s, g, name);
    at->wq = stacked(s, g, l, "W_Q");
    at->wk = stacked(s, g, l, "W_K");
    at->wv = stacked(s, g, l, "W_V");
    at->wo = joined(s, g, l);
    at->bq = head_bias(s, g, l, "b_Q");
    at->bk = head_bias(s, g, l, "b_K");
    at->bv = head_bias(s, g, l, "b_V");
    at->bo = im_vector_if(s, im_has(s, "blocks.%zu.attn.b_O", l), g->d, "blocks.%zu.attn.b_O", l);
    read_ffn(s, g, l);
}

static void read_embedding(im_source *s, perhead *g)
{
    size_t embed[2], positions[2];
    if (!im_shape(s, embed, 2, "embed.W_E")) return;
    g->d = embed[1];
    s->m->embedding = (pare_embedding){.ids = true, .width = g->d, .vocab = embed[0]};
    s->m->embedding.table = im_table(s, embed[0], g->d, "embed.W_E");
    if (!im_has(s, "pos_embed.W_pos")) return;
    if (!im_shape(s, positions, 2, "pos_embed.W_pos")) return;
    s->m->embedding.pos.kind = PARE_POS_LEARNED;
    s->m->embedding.pos.table = im_table(s, positions[0], g->d, "pos_embed.W_pos");
    s->m->context = positions[0];
}

void im_perhead(im_source *s)
{
    perhead g = {.eps = 1e-5};
    size_t q[3];
    im_orientation(s, true);
    read_embedding(s, &g);
    if (!im_shape(s, q, 3, "blocks.0.attn.W_Q")) return;
    g.heads = q[0];
    g.dk = q[s->input_first ? 2 : 1];
    im_word_number(s, &g.eps, "norm", "eps");
    if (s->st || !im_blocks(s, im_count(s, "blocks.", ".attn.W_Q"))) return;
    s->m->pattern.kind = im_says(s, "arch", "bidirectional") ? PARE_FULL : PARE_CAUSAL;
    for (size_t l = 0; l < s->m->nblocks && !s->st; l++) read_block(s, &g, l);
    s->m->head.norm = norm_if(s, &g, "ln_final");
    const size_t vocab = im_outputs(s, "unembed.W_U");
    s->m->head.out.w = im_matrix(s, vocab, g.d, "unembed.W_U");
    s->m->head.out.b = im_vector_if(s, im_has(s, "unembed.b_U"), vocab, "unembed.b_U");
    im_finish(s, ignored);
}
