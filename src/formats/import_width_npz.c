/* import_width_npz.c - the folded form of the width reference: z = R1 x + sum_h A_h (x Wv' + bv)
 * Wo' + c1, x' = R2 z + W2 relu(W1 z + b1) + c2, heads of any size, R absent, diagonal or dense, Wo
 * absent = identity. Vectors in, a graph without self loops. */
#include "import_families.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const char *const ignored[] = {"n_layers", "L*.n_heads", "L*.H*.scale", NULL};

/* What else is in the file (inputs, expected outputs) is data. */
bool im_width_member(const char *name)
{
    static const char *const outer[] = {"We", "be", "Wh", "bh", "n_layers"};
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        if (strcmp(name, outer[i]) == 0) return true;
    return name[0] == 'L' && isdigit((unsigned char)name[1]);
}

bool im_is_width(const im_source *s)
{
    return im_has(s, "n_layers") && im_has(s, "L0.n_heads");
}

static double scalar(im_source *s, const char *key)
{
    const im_tensor *t = im_find(s, key);
    if (t && pare_array_count(&t->array) == 1 && t->array.dtype != PARE_TEXT) {
        const double v = pare_array_f64(&t->array, 0);
        if (isfinite(v)) return v;
    }
    im_fail(s, "member '%s' is %s", key, t ? "not one number" : "missing");
    return 0;
}

/* A count of things that have members of their own. */
static size_t count(im_source *s, const char *key)
{
    const double v = scalar(s, key);
    if (!(v >= 0 && v <= (double)s->n) || v != floor(v))
        im_fail(s, "member '%s' is %g, the file has %zu members for it", key, v, s->n);
    return s->st ? 0 : (size_t)v;
}

typedef struct packed {     /* of one layer */
    size_t din, dout, q, v; /* q, v: rows of wq and wv */
} packed;

static im_tensor *member(im_source *s, size_t l, size_t h, const char *name)
{
    char key[80];
    snprintf(key, sizeof key, "L%zu.H%zu.%s", l, h, name);
    return im_find(s, key);
}

/* Sizes of head h; where its rows begin is where the ones before it ended. */
static void size_head(im_source *s, pare_attn *at, packed *p, size_t l, size_t h)
{
    size_t q[2], v[2], o[2];
    char key[80];
    if (!im_shape(s, q, 2, "L%zu.H%zu.Wq", l, h) || !im_shape(s, v, 2, "L%zu.H%zu.Wv", l, h))
        return;
    o[0] = o[1] = v[0];
    if (member(s, l, h, "Wo") && !im_shape(s, o, 2, "L%zu.H%zu.Wo", l, h)) return;
    if (h == 0) p->dout = o[0];
    if (o[0] != p->dout || o[1] != v[0])
        im_fail(s, "member 'L%zu.H%zu.Wo' is [%zu, %zu], expected [%zu, %zu]%s", l, h, o[0], o[1],
                p->dout, v[0], member(s, l, h, "Wo") ? "" : " (it is absent: the identity)");
    snprintf(key, sizeof key, "L%zu.H%zu.scale", l, h);
    at->heads[h] = (pare_head){.dk = q[0],
                               .dv = v[0],
                               .q = p->q,
                               .k = p->q,
                               .v = p->v,
                               .o = p->v,
                               .scale = scalar(s, key)};
    p->q += q[0];
    p->v += v[0];
}

/* Puts rows x cols of a member into its place; absent ones leave zeros. */
static void copy_block(im_source *s, double *dst, size_t ld, size_t rows, size_t cols, size_t l,
                       size_t h, const char *name)
{
    im_tensor *t = member(s, l, h, name);
    char text[128];
    if (s->st || !t) return;
    im_dtype(s, t);
    const bool vector = name[0] == 'b';
    if (t->array.ndim != (vector ? 1u : 2u) || t->array.shape[t->array.ndim - 1] != cols ||
        (!vector && t->array.shape[0] != rows))
        im_fail(s, "member '%s' has shape %s, expected [%zu, %zu]", t->name,
                pare_shape_text(text, t->array.shape, t->array.ndim), rows, cols);
    if (!s->st) im_place(dst, PARE_F64, ld, t, 0, rows, cols, false);
}

static bool any(im_source *s, size_t l, size_t heads, const char *name)
{
    for (size_t h = 0; h < heads; h++)
        if (member(s, l, h, name)) return true;
    return false;
}

static pare_skip read_skip(im_source *s, size_t out, size_t in, size_t l, const char *name)
{
    char key[40];
    snprintf(key, sizeof key, "L%zu.%s", l, name);
    const im_tensor *t = im_find(s, key);
    pare_skip k = {.kind = PARE_SKIP_NONE};
    if (!t || s->st) return k;
    k.kind = t->array.ndim == 1 ? PARE_SKIP_DIAGONAL : PARE_SKIP_DENSE;
    k.w = t->array.ndim == 1 ? im_vector(s, in, "%s", key) : im_table(s, out, in, "%s", key);
    return k;
}

static void read_attention(im_source *s, size_t din, size_t l)
{
    pare_attn *at = &s->m->blocks[l].attn;
    packed p = {.din = din};
    size_t w1[2];
    char key[40];
    snprintf(key, sizeof key, "L%zu.n_heads", l);
    *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = din, .nheads = count(s, key)};
    at->heads = im_alloc(s, at->nheads, sizeof *at->heads);
    if (!im_shape(s, w1, 2, "L%zu.W1", l)) return;
    p.dout = w1[1]; /* what a layer without heads must give */
    for (size_t h = 0; h < at->nheads && !s->st; h++) size_head(s, at, &p, l, h);
    at->dout = p.dout;
    if (at->nheads == 0)
        at->kind = PARE_ATTN_ZERO;
    else {
        void *wq, *wk, *wv, *wo, *bq = NULL, *bv = NULL;
        at->wq = im_new(s, PARE_F64, p.q, p.din, &wq);
        at->wk = im_new(s, PARE_F64, p.q, p.din, &wk);
        at->wv = im_new(s, PARE_F64, p.v, p.din, &wv);
        at->wo = im_new(s, PARE_F64, p.dout, p.v, &wo);
        if (any(s, l, at->nheads, "bq")) at->bq = im_new(s, PARE_F64, 1, p.q, &bq);
        if (any(s, l, at->nheads, "bv")) at->bv = im_new(s, PARE_F64, 1, p.v, &bv);
        for (size_t h = 0; h < at->nheads && !s->st; h++) {
            const pare_head *k = &at->heads[h];
            if (!member(s, l, h, "Wk")) im_fail(s, "member 'L%zu.H%zu.Wk' is missing", l, h);
            copy_block(s, (double *)wq + k->q * p.din, p.din, k->dk, p.din, l, h, "Wq");
            copy_block(s, (double *)wk + k->k * p.din, p.din, k->dk, p.din, l, h, "Wk");
            copy_block(s, (double *)wv + k->v * p.din, p.din, k->dv, p.din, l, h, "Wv");
            copy_block(s, (double *)wo + k->o, p.v, p.dout, k->dv, l, h, "Wo");
            if (bq) copy_block(s, (double *)bq + k->q, p.q, 1, k->dk, l, h, "bq");
            if (bv) copy_block(s, (double *)bv + k->v, p.v, 1, k->dv, l, h, "bv");
            for (size_t i = 0; !s->st && !member(s, l, h, "Wo") && i < k->dv; i++)
                ((double *)wo)[i * p.v + k->o + i] = 1;
        }
    }
    at->skip = read_skip(s, p.dout, din, l, "R1");
    at->bo = im_vector_if(s, im_has(s, "L%zu.c1", l), p.dout, "L%zu.c1", l);
}

static void read_map(im_source *s, pare_dense *to, size_t in, const char *w, const char *b)
{
    size_t shape[2];
    if (!im_has(s, "%s", w) || !im_shape(s, shape, 2, "%s", w)) return;
    to->w = im_table(s, shape[0], in ? in : shape[1], "%s", w);
    to->b = im_vector_if(s, im_has(s, "%s", b), shape[0], "%s", b);
}

void im_width(im_source *s)
{
    const size_t layers = count(s, "n_layers");
    /* Without an input map the first layer tells how wide the vectors are. */
    size_t shape[2] = {0, 0};
    if (im_has(s, "We"))
        im_shape(s, shape, 2, "We");
    else
        im_shape(s, shape, 2, im_has(s, "L0.H0.Wv") ? "L0.H0.Wv" : "L0.W1");
    s->m->embedding.width = shape[1];
    read_map(s, &s->m->embedding.map, 0, "We", "be");
    if (s->st || !im_blocks(s, layers)) return;
    s->m->pattern.kind = PARE_GRAPH;
    size_t d = pare_model_width(s->m, 0);
    for (size_t l = 0; l < layers && !s->st; l++) {
        read_attention(s, d, l);
        if (!s->st) {
            pare_ffn *f = &s->m->blocks[l].ffn;
            size_t w1[2], w2[2];
            im_ffn(s, f, PARE_FFN_MLP, s->m->blocks[l].attn.dout, 2, PARE_ACT_RELU);
            if (!im_shape(s, w1, 2, "L%zu.W1", l) || !im_shape(s, w2, 2, "L%zu.W2", l)) return;
            f->dout = w2[0];
            f->layers[0].w = im_table(s, w1[0], s->m->blocks[l].attn.dout, "L%zu.W1", l);
            f->layers[0].b = im_vector_if(s, im_has(s, "L%zu.b1", l), w1[0], "L%zu.b1", l);
            f->layers[1].w = im_table(s, f->dout, w1[0], "L%zu.W2", l);
            f->layers[1].b = im_vector_if(s, im_has(s, "L%zu.c2", l), f->dout, "L%zu.c2", l);
            f->skip = read_skip(s, f->dout, s->m->blocks[l].attn.dout, l, "R2");
        }
        d = s->m->blocks[l].ffn.dout;
    }
    read_map(s, &s->m->head.out, d, "Wh", "bh");
    im_finish(s, ignored);
}
