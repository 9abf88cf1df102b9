/* Between a model and its matrices (folded_net.h). */
#include "folded_net.h"
#include "stored_weights.h"
#include <string.h>

/* ---- what is of this form ------------------------------------------------------------------- */

static void refuse(pare_work *w, const char *where, size_t block, const char *what)
{
    if (block == SIZE_MAX)
        pare_work_fail(w, PARE_ERR_INPUT, "%s: %s: width cannot cut this", where, what);
    else
        pare_work_fail(w, PARE_ERR_INPUT, "block %zu, %s: %s: width cannot cut this", block, where,
                       what);
}

static void need_no_norm(pare_work *w, const char *where, size_t block, const pare_norm *n)
{
    char text[64];
    if (n->kind == PARE_NORM_NONE) return;
    snprintf(text, sizeof text, "a norm of kind %s", pare_norm_name(n->kind));
    refuse(w, where, block, text);
}

static void check_block(pare_work *w, size_t b, const pare_block *k)
{
    char text[64];
    snprintf(text, sizeof text, "attention of kind %s", pare_attn_name(k->attn.kind));
    if (k->attn.kind != PARE_ATTN_EXACT) refuse(w, "attention", b, text);
    need_no_norm(w, "attention", b, &k->attn.in_norm);
    need_no_norm(w, "attention", b, &k->attn.out_norm);
    snprintf(text, sizeof text, "%s of %zu maps", pare_ffn_name(k->ffn.kind), k->ffn.nlayers);
    if (k->ffn.kind != PARE_FFN_MLP || k->ffn.nlayers != 2) refuse(w, "feed-forward", b, text);
    need_no_norm(w, "feed-forward", b, &k->ffn.in_norm);
    need_no_norm(w, "feed-forward", b, &k->ffn.out_norm);
}

static void check_form(pare_work *w, const pare_model *m)
{
    const size_t no = SIZE_MAX;
    if (m->stem.ids) refuse(w, "input", no, "tokens are ids");
    if (m->stem.pos.kind == PARE_POS_ROTARY) refuse(w, "positions", no, "they are rotary");
    if (m->stem.pos.kind != PARE_POS_NONE)
        refuse(w, "positions", no, "they are added to the input");
    need_no_norm(w, "input", no, &m->stem.norm);
    if (m->nblocks == 0) refuse(w, "model", no, "it has no blocks");
    for (size_t b = 0; b < m->nblocks; b++) check_block(w, b, &m->blocks[b]);
    need_no_norm(w, "head", no, &m->top.norm);
    if (m->top.pool != PARE_POOL_NONE) refuse(w, "head", no, "it pools");
    if (pare_has(&m->top.dense.w)) refuse(w, "head", no, "it has a dense map before the last");
    if (m->top.tied) refuse(w, "head", no, "it is tied to an embedding");
    if (m->top.act != PARE_ACT_NONE) refuse(w, "head", no, "it has an activation");
}

/* ---- reading -------------------------------------------------------------------------------- */

static pare_mat skip_of(pare_work *w, const pare_skip *s, size_t din)
{
    pare_mat r = {0};
    if (s->kind == PARE_SKIP_NONE) return r;
    if (s->kind == PARE_SKIP_DENSE) return read_matrix(w, &s->w);
    r = mat_identity(w, din);
    for (size_t i = 0; !w->st && s->kind == PARE_SKIP_DIAGONAL && i < din; i++)
        pare_row_mut(&r, i)[i] = pare_weight_at(&s->w, i);
    return r;
}

static net_head head_of(pare_work *w, const pare_attn *a, const pare_head *h)
{
    return (net_head){.wq = read_matrix_part(w, &a->wq, h->q, 0, h->dk, a->din),
                      .wk = read_matrix_part(w, &a->wk, h->k, 0, h->dk, a->din),
                      .wv = read_matrix_part(w, &a->wv, h->v, 0, h->dv, a->din),
                      .wo = read_wo(w, a, h),
                      .bq = read_vector(w, &a->bq, h->q, h->dk),
                      .bv = read_vector(w, &a->bv, h->v, h->dv),
                      .scale = h->scale};
}

static net_layer layer_of(pare_work *w, const pare_block *b)
{
    const pare_attn *const a = &b->attn;
    const pare_ffn *const f = &b->ffn;
    net_layer l = {.nheads = a->nheads, .act = f->act};
    l.heads = pare_work_alloc(w, a->nheads, sizeof *l.heads);
    for (size_t i = 0; !w->st && i < a->nheads; i++) l.heads[i] = head_of(w, a, &a->heads[i]);
    l.r1 = skip_of(w, &a->skip, a->din);
    l.c1 = read_vector(w, &a->bo, 0, a->dout);
    l.w1 = read_matrix(w, &f->layers[0].w);
    l.b1 = read_vector(w, &f->layers[0].b, 0, f->layers[0].w.rows);
    l.w2 = read_matrix(w, &f->layers[1].w);
    l.c2 = read_vector(w, &f->layers[1].b, 0, f->dout);
    l.r2 = skip_of(w, &f->skip, f->din);
    return l;
}

net net_read(pare_work *w, const pare_model *m)
{
    net n = {.nlayers = m->nblocks};
    if (w->st) return n;
    check_form(w, m);
    if (w->st) return n;
    n.dtype = widest_dtype(w, m);
    const size_t d0 = pare_model_width(m, 0), dl = pare_model_width(m, m->nblocks);
    n.we =
        pare_has(&m->stem.map.w) ? read_matrix(w, &m->stem.map.w) : mat_identity(w, m->stem.width);
    n.be = read_vector(w, &m->stem.map.b, 0, d0);
    n.layers = pare_work_alloc(w, n.nlayers, sizeof *n.layers);
    for (size_t b = 0; !w->st && b < n.nlayers; b++) n.layers[b] = layer_of(w, &m->blocks[b]);
    n.wh = pare_has(&m->top.out.w) ? read_matrix(w, &m->top.out.w) : mat_identity(w, dl);
    n.bh = read_vector(w, &m->top.out.b, 0, n.wh.rows);
    return n;
}

net net_shallow(pare_work *w, const net *n)
{
    net c = *n;
    c.layers = pare_work_alloc(w, n->nlayers, sizeof *c.layers);
    for (size_t i = 0; !w->st && i < n->nlayers; i++) {
        net_layer *const l = &c.layers[i];
        *l = n->layers[i];
        l->heads = pare_work_alloc(w, l->nheads, sizeof *l->heads);
        if (!w->st) memcpy(l->heads, n->layers[i].heads, l->nheads * sizeof *l->heads);
    }
    return c;
}

void net_merge_value_biases(pare_work *w, net *n)
{
    for (size_t i = 0; i < n->nlayers; i++) {
        net_layer *const l = &n->layers[i];
        for (size_t k = 0; !w->st && k < l->nheads; k++) {
            net_head *const h = &l->heads[k];
            l->c1 = mat_vec(w, &h->wo, false, h->bv, l->c1);
            h->bv = vec_zeros(w, h->wv.rows);
        }
    }
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Where each head's rows begin; returns whether any bias is there. */
static void lay_out(pare_attn *a, const net_layer *l, bool *bq, bool *bv, size_t *q, size_t *v)
{
    *bq = *bv = false;
    *q = *v = 0;
    for (size_t i = 0; i < l->nheads; i++) {
        const net_head *const h = &l->heads[i];
        a->heads[i] = (pare_head){.dk = h->wq.rows,
                                  .dv = h->wv.rows,
                                  .q = *q,
                                  .k = *q,
                                  .v = *v,
                                  .o = *v,
                                  .scale = h->scale};
        *bq = *bq || !all_zero(h->bq, h->wq.rows);
        *bv = *bv || !all_zero(h->bv, h->wv.rows);
        *q += h->wq.rows;
        *v += h->wv.rows;
    }
}

bool net_has_identity_wo(const net_layer *l)
{
    size_t first = 0;
    for (size_t i = 0; i < l->nheads; i++) {
        if (!is_identity_wo(&l->heads[i].wo, first)) return false;
        first += l->heads[i].wo.cols;
    }
    return first == l->heads[0].wo.rows;
}

static void put_attention(weight_writer *o, pare_attn *a, const net_layer *l)
{
    bool bq, bv;
    size_t q, v;
    *a = (pare_attn){.kind = PARE_ATTN_EXACT, .nheads = l->nheads};
    a->din = l->heads[0].wq.cols;
    a->dout = l->heads[0].wo.rows;
    a->heads = pare_work_alloc(&o->w, l->nheads, sizeof *a->heads);
    if (o->w.st) return;
    lay_out(a, l, &bq, &bv, &q, &v);
    a->wq = writer_reserve(o, q, a->din);
    a->wk = writer_reserve(o, q, a->din);
    a->wv = writer_reserve(o, v, a->din);
    const bool map = !net_has_identity_wo(l);
    if (map) a->wo = writer_reserve(o, a->dout, v);
    if (bq) a->bq = writer_reserve(o, 1, q);
    if (bv) a->bv = writer_reserve(o, 1, v);
    for (size_t i = 0; !o->w.st && i < l->nheads; i++) {
        const net_head *const h = &l->heads[i];
        const pare_head *const at = &a->heads[i];
        const pare_mat rq = pare_mat_of(h->bq, 1, at->dk), rv = pare_mat_of(h->bv, 1, at->dv);
        writer_put(o, &a->wq, at->q, 0, &h->wq);
        writer_put(o, &a->wk, at->k, 0, &h->wk);
        writer_put(o, &a->wv, at->v, 0, &h->wv);
        if (map) writer_put(o, &a->wo, 0, at->o, &h->wo);
        if (bq) writer_put(o, &a->bq, 0, at->q, &rq);
        if (bv) writer_put(o, &a->bv, 0, at->v, &rv);
    }
    a->bo = writer_vector(o, l->c1, a->dout);
    a->skip = writer_skip(o, &l->r1);
}

static void put_ffn(weight_writer *o, pare_ffn *f, const net_layer *l)
{
    *f = (pare_ffn){.kind = PARE_FFN_MLP, .nlayers = 2, .act = l->act};
    f->din = l->w1.cols;
    f->dout = l->w2.rows;
    f->layers = pare_work_alloc(&o->w, 2, sizeof *f->layers);
    if (o->w.st) return;
    f->layers[0] = writer_dense(o, &l->w1, l->b1);
    f->layers[1] = writer_dense(o, &l->w2, l->c2);
    f->skip = writer_skip(o, &l->r2);
}

static void put_model(weight_writer *o, pare_model *m, const net *n, const pare_model *like)
{
    m->name = pare_strdup(o->w.arena, like->name ? like->name : "width");
    m->blocks = pare_work_alloc(&o->w, n->nlayers, sizeof *m->blocks);
    if (!o->w.st && !m->name) o->w.st = pare_no_memory(o->w.err);
    if (o->w.st) return;
    m->nblocks = n->nlayers;
    m->pattern = like->pattern;
    m->context = like->context;
    m->stem.width = like->stem.width;
    m->stem.map = writer_dense(o, &n->we, n->be);
    for (size_t i = 0; !o->w.st && i < n->nlayers; i++) {
        put_attention(o, &m->blocks[i].attn, &n->layers[i]);
        put_ffn(o, &m->blocks[i].ffn, &n->layers[i]);
    }
    m->top.out = writer_dense(o, &n->wh, n->bh);
}

pare_status net_write(pare_model **out, const net *n, const pare_model *like, pare_err *err)
{
    pare_model *m = NULL;
    *out = NULL;
    pare_status st = pare_model_new(&m, err);
    if (st) return st;
    weight_writer o = {{m->arena, NULL, err, PARE_OK}, n->dtype};
    put_model(&o, m, n, like);
    st = o.w.st ? o.w.st : pare_model_check(m, err);
    if (st)
        pare_model_free(m);
    else
        *out = m;
    return st;
}

/* ---- size ----------------------------------------------------------------------------------- */

static size_t bias_count(const double *v, size_t n)
{
    return all_zero(v, n) ? 0 : n;
}

static size_t layer_count(const net_layer *l)
{
    size_t n = 0;
    bool bq = false, bv = false;
    size_t q = 0, v = 0;
    const bool map = !net_has_identity_wo(l);
    for (size_t i = 0; i < l->nheads; i++) {
        const net_head *const h = &l->heads[i];
        n += 2 * h->wq.rows * h->wq.cols + h->wv.rows * h->wv.cols;
        if (map) n += h->wo.rows * h->wo.cols;
        bq = bq || bias_count(h->bq, h->wq.rows);
        bv = bv || bias_count(h->bv, h->wv.rows);
        q += h->wq.rows;
        v += h->wv.rows;
    }
    n += (bq ? q : 0) + (bv ? v : 0) + bias_count(l->c1, l->heads[0].wo.rows);
    n += l->w1.rows * l->w1.cols + l->w2.rows * l->w2.cols + bias_count(l->b1, l->w1.rows) +
         bias_count(l->c2, l->w2.rows);
    return n + skip_parameters(&l->r1) + skip_parameters(&l->r2);
}

size_t net_parameters(const net *n)
{
    size_t sum = n->we.rows * n->we.cols + bias_count(n->be, n->we.rows) + n->wh.rows * n->wh.cols +
                 bias_count(n->bh, n->wh.rows);
    for (size_t i = 0; i < n->nlayers; i++) sum += layer_count(&n->layers[i]);
    return sum;
}
