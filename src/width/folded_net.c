/* folded_net.c - between a model and its matrices (folded_net.h). */
#include "folded_net.h"
#include "lm.h"
#include <string.h>

/* ---- what is of this form ------------------------------------------------------------------- */

static void need_no_norm(pare_work *w, const char *where, size_t block, const pare_norm *n)
{
    char text[64];
    if (n->kind == PARE_NORM_NONE) return;
    snprintf(text, sizeof text, "a norm of kind %s", pare_norm_name(n->kind));
    refuse_model(w, where, block, text);
}

static void check_form(pare_work *w, const pare_model *m)
{
    const size_t none = SIZE_MAX;
    char text[64];
    if (m->embedding.ids) refuse_model(w, "input", none, "tokens are ids");
    if (m->embedding.pos.kind == PARE_POS_ROTARY)
        refuse_model(w, "positions", none, "they are rotary");
    if (m->embedding.pos.kind != PARE_POS_NONE)
        refuse_model(w, "positions", none, "they are added to the input");
    need_no_norm(w, "input", none, &m->embedding.norm);
    if (m->nblocks == 0) refuse_model(w, "model", none, "it has no blocks");
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        snprintf(text, sizeof text, "attention of kind %s", pare_attn_name(a->kind));
        if (a->kind != PARE_ATTN_EXACT) refuse_model(w, "attention", b, text);
        need_no_norm(w, "attention", b, &a->in_norm);
        need_no_norm(w, "attention", b, &a->out_norm);
        snprintf(text, sizeof text, "%s of %zu maps", pare_ffn_name(f->kind), f->nlayers);
        if (f->kind != PARE_FFN_MLP || f->nlayers != 2) refuse_model(w, "feed-forward", b, text);
        need_no_norm(w, "feed-forward", b, &f->in_norm);
        need_no_norm(w, "feed-forward", b, &f->out_norm);
    }
    need_no_norm(w, "head", none, &m->head.norm);
    if (m->head.pool != PARE_POOL_NONE) refuse_model(w, "head", none, "it pools");
    if (pare_has(&m->head.dense.w))
        refuse_model(w, "head", none, "it has a dense map before the last");
    if (m->head.tied) refuse_model(w, "head", none, "it is tied to an embedding");
    if (m->head.normalize) refuse_model(w, "head", none, "it normalizes its outputs");
    if (m->head.act != PARE_ACT_NONE) refuse_model(w, "head", none, "it has an activation");
}

/* ---- reading -------------------------------------------------------------------------------- */

static net_layer read_layer(pare_work *w, const pare_block *b)
{
    const pare_attn *const a = &b->attn;
    const pare_ffn *const f = &b->ffn;
    net_layer l = {.nheads = a->nheads, .act = f->act};
    l.heads = pare_work_alloc(w, a->nheads, sizeof *l.heads);
    for (size_t i = 0; !w->st && i < a->nheads; i++) {
        const pare_head *const h = &a->heads[i];
        l.heads[i] = (net_head){.wq = read_matrix_part(w, &a->wq, h->q, 0, h->dk, a->din),
                                .wk = read_matrix_part(w, &a->wk, h->k, 0, h->dk, a->din),
                                .wv = read_matrix_part(w, &a->wv, h->v, 0, h->dv, a->din),
                                .wo = read_wo(w, a, h),
                                .bq = read_vector(w, &a->bq, h->q, h->dk),
                                .bv = read_vector(w, &a->bv, h->v, h->dv),
                                .scale = h->scale};
    }
    l.r1 = read_skip(w, &a->skip, a->din);
    l.c1 = read_vector(w, &a->bo, 0, a->dout);
    l.w1 = read_matrix(w, &f->layers[0].w);
    l.b1 = read_vector(w, &f->layers[0].b, 0, f->layers[0].w.rows);
    l.w2 = read_matrix(w, &f->layers[1].w);
    l.c2 = read_vector(w, &f->layers[1].b, 0, f->dout);
    l.r2 = read_skip(w, &f->skip, f->din);
    return l;
}

net net_read(pare_work *w, const pare_model *m)
{
    net n = {.nlayers = m->nblocks};
    if (w->st) return n;
    check_form(w, m);
    if (w->st) return n;
    n.dtype = memory_dtype(m, (pare_dtype)0);
    const size_t d0 = pare_model_width(m, 0), dl = pare_model_width(m, m->nblocks);
    n.we = pare_has(&m->embedding.map.w) ? read_matrix(w, &m->embedding.map.w)
                                         : mat_identity(w, m->embedding.width);
    n.be = read_vector(w, &m->embedding.map.b, 0, d0);
    n.layers = pare_work_alloc(w, n.nlayers, sizeof *n.layers);
    for (size_t b = 0; !w->st && b < n.nlayers; b++) n.layers[b] = read_layer(w, &m->blocks[b]);
    n.wh = pare_has(&m->head.out.w) ? read_matrix(w, &m->head.out.w) : mat_identity(w, dl);
    n.bh = read_vector(w, &m->head.out.b, 0, n.wh.rows);
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

/* Rows of all heads together, and which of their biases are stored. */
typedef struct head_rows {
    size_t q, v;
    bool bq, bv;
} head_rows;

static head_rows rows_of_heads(const net_layer *l)
{
    head_rows n = {0};
    for (size_t i = 0; i < l->nheads; i++) {
        const net_head *const h = &l->heads[i];
        n.q += h->wq.rows;
        n.v += h->wv.rows;
        n.bq = n.bq || !all_zero(h->bq, h->wq.rows);
        n.bv = n.bv || !all_zero(h->bv, h->wv.rows);
    }
    return n;
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

static lm_skip skip_of(const pare_mat *r)
{
    return (lm_skip){.kind = r->v ? PARE_SKIP_DENSE : PARE_SKIP_NONE, .w = *r};
}

/* In the form of lm.h, which writes it: every head has keys of its own, without biases. */
static lm_block block_of(pare_work *w, const net_layer *l)
{
    lm_block b = {.attn = {.present = true,
                           .din = l->heads[0].wq.cols,
                           .dout = l->heads[0].wo.rows,
                           .nheads = l->nheads,
                           .nkeys = l->nheads,
                           .heads = pare_work_alloc(w, l->nheads, sizeof *b.attn.heads),
                           .keys = pare_work_alloc(w, l->nheads, sizeof *b.attn.keys),
                           .bo = l->c1,
                           .skip = skip_of(&l->r1)},
                  .ffn = {.present = true,
                          .act = l->act,
                          .din = l->w1.cols,
                          .dout = l->w2.rows,
                          .w1 = l->w1,
                          .w2 = l->w2,
                          .b1 = l->b1,
                          .b2 = l->c2,
                          .skip = skip_of(&l->r2)}};
    for (size_t i = 0; !w->st && i < l->nheads; i++) {
        const net_head *const h = &l->heads[i];
        double *const zeros = vec_zeros(w, h->wk.rows);
        b.attn.heads[i] = (lm_head){i, h->wq, h->wo, h->bq, h->scale};
        b.attn.keys[i] = (lm_keys){h->wk, h->wv, zeros, h->bv, 0, zeros};
    }
    return b;
}

pare_status net_write(pare_model **out, const net *n, const pare_model *like, pare_err *err)
{
    pare_model *m = NULL;
    *out = NULL;
    pare_status st = pare_model_new(&m, err);
    if (st) return st;
    weight_writer o = {{m->arena, NULL, err, PARE_OK}, n->dtype};
    m->name = pare_strdup(m->arena, like->name ? like->name : "width");
    if (!m->name) o.w.st = pare_no_memory(err);
    m->blocks = pare_work_alloc(&o.w, n->nlayers, sizeof *m->blocks);
    if (!o.w.st) m->nblocks = n->nlayers;
    m->pattern = like->pattern;
    m->context = like->context;
    m->embedding.width = like->embedding.width;
    m->embedding.map = writer_dense(&o, &n->we, n->be);
    for (size_t i = 0; !o.w.st && i < n->nlayers; i++) {
        const lm_block block = block_of(&o.w, &n->layers[i]);
        if (!o.w.st) m->blocks[i] = lm_stored_block(&o, &block);
    }
    m->head.out = writer_dense(&o, &n->wh, n->bh);
    st = o.w.st ? o.w.st : pare_model_check(m, err);
    if (st)
        pare_model_free(m);
    else
        *out = m;
    return st;
}

static size_t bias_parameters(const double *v, size_t n)
{
    return all_zero(v, n) ? 0 : n;
}

static size_t dense_parameters(const pare_mat *m, const double *b)
{
    return m->rows * m->cols + bias_parameters(b, m->rows);
}

size_t net_parameters(const net *n)
{
    size_t sum = dense_parameters(&n->we, n->be) + dense_parameters(&n->wh, n->bh);
    for (size_t i = 0; i < n->nlayers; i++) {
        const net_layer *const l = &n->layers[i];
        const head_rows rows = rows_of_heads(l);
        const size_t din = l->heads[0].wq.cols, dout = l->heads[0].wo.rows;
        sum += (2 * rows.q + rows.v) * din + (rows.bq ? rows.q : 0) + (rows.bv ? rows.v : 0);
        if (!net_has_identity_wo(l)) sum += dout * rows.v;
        sum += bias_parameters(l->c1, dout);
        sum += dense_parameters(&l->w1, l->b1) + dense_parameters(&l->w2, l->c2);
        sum += skip_parameters(&l->r1) + skip_parameters(&l->r2);
    }
    return sum;
}
