/* import_depth_npz.c - the trained character model of the depth reference: cfg = layers, d, heads,
 * hidden, tokens, vocab; learned positions, pre-norm blocks with fused qkv, erf GELU, causal, a
 * head with bias. */
#include "base/array.h"
#include "import_families.h"

#include <string.h>

static const char *const ignored[] = {"cfg", NULL};

/* What else is in the file (val, train, val_loss) is data. */
bool im_depth_member(const char *name)
{
    return strcmp(name, "cfg") == 0 || (name[0] && strchr("epbnh", name[0]) && name[1] == '.');
}

bool im_is_depth(const im_source *s)
{
    return im_has(s, "cfg") && im_has(s, "e.weight") && im_has(s, "b.0.qkv.weight");
}

static bool read_cfg(im_source *s, size_t cfg[6])
{
    size_t n[1];
    if (!im_shape(s, n, 1, "cfg")) return false;
    const im_tensor *t = im_find(s, "cfg");
    if (n[0] != 6 || !pare_array_is_integer(&t->array)) {
        im_fail(s, "member 'cfg' must be six integers: layers, d, heads, hidden, tokens, vocab");
        return false;
    }
    for (size_t i = 0; i < 6; i++) {
        const int64_t v = pare_array_i64(&t->array, i);
        if (v < 1 || v > INT32_MAX) {
            im_fail(s, "member 'cfg': entry %zu is %lld", i, (long long)v);
            return false;
        }
        cfg[i] = (size_t)v;
    }
    if (cfg[1] % cfg[2] != 0) im_fail(s, "member 'cfg': d %zu, heads %zu", cfg[1], cfg[2]);
    return !s->st;
}

static void read_block(im_source *s, size_t d, size_t heads, size_t hidden, size_t l)
{
    const double eps = 1e-5;
    pare_attn *at = &s->m->blocks[l].attn;
    pare_ffn *f = &s->m->blocks[l].ffn;
    im_attn(s, at, d, heads, heads, d / heads, 0);
    im_ffn(s, f, PARE_FFN_MLP, d, 2, PARE_ACT_GELU);
    if (s->st) return;
    at->in_norm = im_layer_norm(s, d, eps, true, "b.%zu.n1", l);
    im_split_qkv(at, d, im_dense(s, 3 * d, d, true, "b.%zu.qkv", l));
    const pare_dense o = im_dense(s, d, d, true, "b.%zu.o", l);
    at->wo = o.w, at->bo = o.b;
    f->in_norm = im_layer_norm(s, d, eps, true, "b.%zu.n2", l);
    f->layers[0] = im_dense(s, hidden, d, true, "b.%zu.f1", l);
    f->layers[1] = im_dense(s, d, hidden, true, "b.%zu.f2", l);
}

void im_depth(im_source *s)
{
    size_t cfg[6];
    if (!read_cfg(s, cfg)) return;
    const size_t layers = cfg[0], d = cfg[1], tokens = cfg[4], vocab = cfg[5];
    if (layers > s->n) im_fail(s, "member 'cfg' says %zu layers", layers);
    if (s->st || !im_blocks(s, layers)) return;
    s->m->pattern.kind = PARE_CAUSAL;
    s->m->context = tokens;
    s->m->embedding = (pare_embedding){.ids = true, .width = d, .vocab = vocab};
    s->m->embedding.table = im_table(s, vocab, d, "e.weight");
    s->m->embedding.pos.kind = PARE_POS_LEARNED;
    s->m->embedding.pos.table = im_table(s, tokens, d, "p.weight");
    for (size_t l = 0; l < layers && !s->st; l++) read_block(s, d, cfg[2], cfg[3], l);
    s->m->head.norm = im_layer_norm(s, d, 1e-5, true, "n");
    s->m->head.out = im_dense(s, vocab, d, true, "h");
    im_finish(s, ignored);
}
