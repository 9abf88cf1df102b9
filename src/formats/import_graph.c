/* import_graph.c - the graph transformers: vectors through `inp`, then per layer q, k, v, o, a
 * batch norm after each sum with the skip, a ReLU FFN, and `head` per node. */
#include "import_families.h"

static const char *const ignored[] = {"layers.*.n1.num_batches_tracked",
                                      "layers.*.n2.num_batches_tracked", NULL};

bool im_is_graph(const im_source *s)
{
    return im_has(s, "inp.weight") && im_has(s, "layers.0.q.weight") && im_has(s, "head.weight");
}

static pare_norm batch_norm(im_source *s, size_t d, double eps, size_t l, const char *name)
{
    const pare_weight gain = im_vector(s, d, "layers.%zu.%s.weight", l, name);
    const pare_weight bias = im_vector(s, d, "layers.%zu.%s.bias", l, name);
    pare_norm n = im_norm(PARE_NORM_BATCH, d, eps, gain, bias);
    n.mean = im_vector(s, d, "layers.%zu.%s.running_mean", l, name);
    n.var = im_vector(s, d, "layers.%zu.%s.running_var", l, name);
    return n;
}

static void read_block(im_source *s, size_t d, size_t heads, double eps, size_t l)
{
    pare_attn *at = &s->m->blocks[l].attn;
    pare_ffn *f = &s->m->blocks[l].ffn;
    const size_t hidden = im_outputs(s, "layers.%zu.f1.weight", l);
    im_attn(s, at, d, heads, heads, d / heads, 0);
    im_ffn(s, f, PARE_FFN_MLP, d, 2, PARE_ACT_RELU);
    if (s->st) return;
    const pare_dense q = im_dense(s, d, d, im_has(s, "layers.%zu.q.bias", l), "layers.%zu.q", l);
    const pare_dense k = im_dense(s, d, d, im_has(s, "layers.%zu.k.bias", l), "layers.%zu.k", l);
    const pare_dense v = im_dense(s, d, d, im_has(s, "layers.%zu.v.bias", l), "layers.%zu.v", l);
    const pare_dense o = im_dense(s, d, d, im_has(s, "layers.%zu.o.bias", l), "layers.%zu.o", l);
    at->wq = q.w, at->bq = q.b;
    at->wk = k.w, at->bk = k.b;
    at->wv = v.w, at->bv = v.b;
    at->wo = o.w, at->bo = o.b;
    at->out_norm = batch_norm(s, d, eps, l, "n1");
    f->layers[0] = im_dense(s, hidden, d, true, "layers.%zu.f1", l);
    f->layers[1] = im_dense(s, d, hidden, true, "layers.%zu.f2", l);
    f->out_norm = batch_norm(s, d, eps, l, "n2");
}

void im_graph(im_source *s)
{
    size_t in[2] = {0, 0}, heads = 0;
    double eps = 1e-5;
    im_orientation(s, false);
    const size_t d = im_outputs(s, "inp.weight");
    if (!im_shape(s, in, 2, "inp.weight")) return;
    if (!im_size(s, &heads, "heads", NULL))
        im_fail(s, "the number of heads is not known: no `heads` in the metadata");
    else if (d % heads != 0)
        im_fail(s, "width %zu of 'inp.weight' is not a multiple of %zu heads", d, heads);
    im_word_number(s, &eps, "norm", "eps");
    if (s->st || !im_blocks(s, im_count(s, "layers.", ".q.weight"))) return;
    s->m->pattern.kind = PARE_GRAPH;
    s->m->pattern.self_loops = im_says(s, "arch", "self loops added");
    s->m->embedding.width = s->input_first ? in[0] : in[1];
    s->m->embedding.map = im_dense(s, d, s->m->embedding.width, im_has(s, "inp.bias"), "inp");
    for (size_t l = 0; l < s->m->nblocks && !s->st; l++) read_block(s, d, heads, eps, l);
    s->m->head.out = im_dense(s, im_outputs(s, "head.weight"), d, im_has(s, "head.bias"), "head");
    im_finish(s, ignored);
}
