/* import_sublayers.c - pieces that several families are built of. */
#include "import_tensors.h"

#include <math.h>
#include <string.h>

bool im_blocks(im_source *s, size_t n)
{
    s->m->blocks = im_alloc(s, n, sizeof *s->m->blocks);
    s->m->nblocks = s->m->blocks ? n : 0;
    return !s->st;
}

void im_attn(im_source *s, pare_attn *at, size_t d, size_t heads, size_t kv, size_t dk,
             size_t planes)
{
    *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = d, .dout = d, .nheads = heads};
    at->skip.kind = PARE_SKIP_IDENTITY;
    at->heads = im_alloc(s, heads, sizeof *at->heads);
    for (size_t h = 0; h < heads && !s->st; h++) {
        const size_t shared = h / (heads / kv); /* the key head this query head reads */
        at->heads[h] = (pare_head){.dk = dk,
                                   .dv = dk,
                                   .q = h * dk,
                                   .k = shared * dk,
                                   .v = shared * dk,
                                   .o = h * dk,
                                   .scale = 1 / sqrt((double)dk),
                                   .planes = planes};
    }
}

void im_split_qkv(pare_attn *at, size_t d, pare_dense qkv)
{
    at->wq = im_part(qkv.w, 0, d);
    at->wk = im_part(qkv.w, d, d);
    at->wv = im_part(qkv.w, 2 * d, d);
    at->bq = im_part(qkv.b, 0, d);
    at->bk = im_part(qkv.b, d, d);
    at->bv = im_part(qkv.b, 2 * d, d);
}

void im_ffn(im_source *s, pare_ffn *f, pare_ffn_kind kind, size_t d, size_t layers, pare_act act)
{
    *f = (pare_ffn){.kind = kind, .din = d, .dout = d, .nlayers = layers, .act = act};
    f->skip.kind = PARE_SKIP_IDENTITY;
    f->layers = im_alloc(s, layers, sizeof *f->layers);
}

pare_weight im_frequencies(im_source *s, double base, size_t dims, size_t planes)
{
    void *data;
    const pare_weight w = im_new(s, PARE_F64, 1, planes, &data);
    double *f = data;
    for (size_t i = 0; f && i < planes; i++) f[i] = pow(base, -2.0 * (double)i / (double)dims);
    return w;
}

pare_norm im_norm(pare_norm_kind kind, size_t d, double eps, pare_weight gain, pare_weight bias)
{
    return (pare_norm){.kind = kind, .eps = eps, .divisor = (double)d, .gain = gain, .bias = bias};
}

static bool same_bytes(const im_tensor *a, const im_tensor *b)
{
    return a->array.dtype == b->array.dtype && a->array.ndim == b->array.ndim &&
           memcmp(a->array.shape, b->array.shape, a->array.ndim * sizeof *a->array.shape) == 0 &&
           memcmp(a->array.data, b->array.data,
                  pare_array_count(&a->array) * pare_dtype_size(a->array.dtype)) == 0;
}

void im_tie(im_source *s, const char *embedding, const char *head)
{
    const im_tensor *e = im_find(s, embedding);
    im_tensor *h = im_find(s, head);
    bool tied = false;
    const bool said = im_flag(s, &tied, "tie_word_embeddings");
    if (s->st) return;
    s->m->head.tied = !h || (e && same_bytes(e, h));
    if (!h && said && !tied)
        im_fail(s,
                "tensor '%s' is missing, and config.json says tie_word_embeddings false; without a "
                "head the model needs pool",
                head);
    else if (said && tied && !s->m->head.tied)
        im_fail(s, "tensor '%s' differs from '%s', but config.json says tie_word_embeddings true",
                h->name, embedding);
    else if (!s->m->head.tied)
        s->m->head.out.w = im_matrix(s, s->m->embedding.vocab, s->m->embedding.width, "%s", head);
    else if (h)
        h->used = true; /* the embedding serves for it */
}

void im_language_head(im_source *s, const char *embedding, const char *head)
{
    const size_t d = s->m->embedding.width;
    if (s->pooling.given) {
        im_pool_head(s, d);
    } else if (im_has(s, "score.weight")) {
        const size_t labels = im_outputs(s, "score.weight");
        im_labels(s, labels);
        s->m->head.pool = PARE_POOL_LAST;
        s->m->head.out = im_dense(s, labels, d, im_has(s, "score.bias"), "score");
    } else {
        im_tie(s, embedding, head);
    }
}
