/* import_moonshine.c - the encoder of Moonshine behind its convolutions: vectors in, pre-norm
 * blocks whose layer norms have a gain and no bias, rotary positions on the first part of each
 * head, hidden rows out. */
#include "import_families.h"

/* The convolutional front end makes the vectors; the model begins after it. */
static const char *const ignored[] = {"conv1.*",     "conv2.*",    "conv3.*",
                                      "groupnorm.*", "*.inv_freq", NULL};

bool im_is_moonshine(const im_source *s)
{
    return im_has(s, "layers.0.wq") && im_has(s, "layers.0.input_layernorm.weight") &&
           im_has(s, "layers.0.mlp.fc1.weight");
}

typedef struct moonshine {
    size_t d, hidden, heads, dk, rotated;
    double base;
    pare_act act;
    pare_weight freqs;
} moonshine;

static void read_sizes(im_source *s, moonshine *g)
{
    double rotated = 0, base = 0;
    g->d = im_outputs(s, "layers.0.wo");
    g->hidden = im_outputs(s, "layers.0.mlp.fc1.weight");
    if (!im_size(s, &g->heads, "heads", "encoder_num_attention_heads"))
        im_fail(s, "the number of heads is not known: no `heads` in the metadata");
    else if (im_outputs(s, "layers.0.wq") % g->heads != 0)
        im_fail(s, "%zu rows of 'layers.0.wq' are not a multiple of %zu heads",
                im_outputs(s, "layers.0.wq"), g->heads);
    if (s->st) return;
    g->dk = im_outputs(s, "layers.0.wq") / g->heads;
    g->act = PARE_ACT_GELU;
    im_act(s, &g->act, "encoder_hidden_act");
    /* "partial interleaved RoPE 32 of 36 dims base 10000" */
    if (!im_word_number(s, &rotated, "arch", "RoPE") || !im_word_number(s, &base, "arch", "base"))
        im_fail(s, "metadata: arch does not say how many dims the rotary positions turn, and "
                   "their base ('interleaved RoPE 32 of 36 dims base 10000')");
    else if (!im_says(s, "arch", "interleaved"))
        im_fail(s, "metadata: arch: only interleaved rotary positions are known");
    else if (!(rotated >= 2 && rotated <= (double)g->dk && base > 0) || (size_t)rotated % 2 != 0)
        im_fail(s, "metadata: arch: rotary positions on %g of %zu dims, base %g, make no sense",
                rotated, g->dk, base);
    g->rotated = s->st ? 0 : (size_t)rotated;
    g->base = base;
}

static void read_block(im_source *s, const moonshine *g, size_t l)
{
    pare_attn *at = &s->m->blocks[l].attn;
    pare_ffn *f = &s->m->blocks[l].ffn;
    const size_t rows = g->heads * g->dk;
    const double eps = 1e-5;
    im_attn(s, at, g->d, g->heads, g->heads, g->dk, g->rotated / 2);
    im_ffn(s, f, PARE_FFN_MLP, g->d, 2, g->act);
    if (s->st) return;
    at->in_norm = im_layer_norm(s, g->d, eps, false, "layers.%zu.input_layernorm", l);
    at->wq = im_matrix(s, rows, g->d, "layers.%zu.wq", l);
    at->wk = im_matrix(s, rows, g->d, "layers.%zu.wk", l);
    at->wv = im_matrix(s, rows, g->d, "layers.%zu.wv", l);
    at->wo = im_matrix(s, g->d, rows, "layers.%zu.wo", l);
    at->freqs = g->freqs;
    f->in_norm = im_layer_norm(s, g->d, eps, false, "layers.%zu.post_attention_layernorm", l);
    f->layers[0] = im_dense(s, g->hidden, g->d, true, "layers.%zu.mlp.fc1", l);
    f->layers[1] = im_dense(s, g->d, g->hidden, true, "layers.%zu.mlp.fc2", l);
}

void im_moonshine(im_source *s)
{
    moonshine g = {0};
    im_orientation(s, false);
    read_sizes(s, &g);
    if (s->st || !im_blocks(s, im_count(s, "layers.", ".wq"))) return;
    s->m->pattern.kind = PARE_FULL;
    s->m->embedding.width = g.d;
    s->m->embedding.pos.kind = PARE_POS_ROTARY;
    s->m->embedding.pos.interleaved = true;
    g.freqs = im_frequencies(s, g.base, g.rotated, g.rotated / 2);
    for (size_t l = 0; l < s->m->nblocks && !s->st; l++) read_block(s, &g, l);
    s->m->head.norm = im_layer_norm(s, g.d, 1e-5, false, "layer_norm");
    im_finish(s, ignored);
}
