/* patch_read.c - a model as patch.h reads it: its own weights in f64, batch norms folded, norms
 * proven.
 *
 * Folding a batch norm (s = gain / sqrt(var + eps), t = bias - mean s) rounds. s is off by 3 u,
 * s W and W s entry by entry by 5 u: the maps' drift. The constants cancel, so what they are off by
 * is absolute, with T = |bias| + |mean s|:
 *     b + W t         by  (in + 12) u (|W|_F T + |b|)
 *     s b + t         by  |s|_max e + 10 u (|s|_max |b| + T)        where b was off by e
 *     bo + Wo bv      by  the first, with |bv| in the place of T
 * Models that are folded already have none of it. */
#include "patch.h"
#include "prove.h"
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include <pare/fold.h>

#define UNIT  PARE_UNIT_F64
#define DRIFT 6 /* units */

/* ---- the model, in f64 and folded ----------------------------------------------------------- */

static pare_status widen(void *self, const char *name, pare_weight *v, bool vector, pare_err *err)
{
    (void)name, (void)vector;
    if (!pare_has(v) || v->dtype == PARE_F64) return PARE_OK;
    pare_mat m = pare_mat_new(self, v->rows, v->cols);
    if (!m.v) return pare_no_memory(err);
    pare_weight_widen(&m, v, 0, 0);
    *v = (pare_weight){PARE_F64, v->rows, v->cols, m.v};
    return PARE_OK;
}

static void need_batch(pare_work *w, const char *where, size_t block, const pare_norm *n)
{
    if (w->st || n->kind == PARE_NORM_NONE || n->kind == PARE_NORM_BATCH) return;
    pare_work_fail(w, PARE_ERR_INPUT, "block %zu, %s: a norm of kind %s: edits do not cover that",
                   block, where, pare_norm_name(n->kind));
}

static void check_norms(pare_work *w, const pare_model *m)
{
    for (size_t b = 0; b < m->nblocks; b++) {
        need_batch(w, "attention", b, &m->blocks[b].attn.in_norm);
        need_batch(w, "attention", b, &m->blocks[b].attn.out_norm);
        need_batch(w, "feed-forward", b, &m->blocks[b].ffn.in_norm);
        need_batch(w, "feed-forward", b, &m->blocks[b].ffn.out_norm);
    }
    need_batch(w, "input", 0, &m->embedding.norm);
    need_batch(w, "head", m->nblocks, &m->head.norm);
}

/* ---- what folding may have rounded ---------------------------------------------------------- */

/* Largest |s|, and T. */
typedef struct norm_size {
    double scale, shift;
} norm_size;

static norm_size size_of(const pare_norm *n)
{
    norm_size z = {1, 0};
    double b = 0, ms = 0;
    if (n->kind != PARE_NORM_BATCH) return z;
    z.scale = 0;
    for (size_t k = 0; k < n->var.rows * n->var.cols; k++) {
        const double gain = pare_has(&n->gain) ? pare_weight_at(&n->gain, k) : 1;
        const double bias = pare_has(&n->bias) ? pare_weight_at(&n->bias, k) : 0;
        const double s = fabs(gain) / sqrt(pare_weight_at(&n->var, k) + n->eps);
        const double mean = pare_weight_at(&n->mean, k) * s;
        z.scale = s > z.scale ? s : z.scale;
        b += bias * bias;
        ms += mean * mean;
    }
    return (norm_size){raised(z.scale), raised(sqrt(b) + sqrt(ms))};
}

static double fro_of(const pare_weight *v)
{
    return pare_has(v) ? pare_norm_fro(v).v : 0;
}

/* What the constant of a map (w, b) is off by: it reads what a norm gives, or writes into one. */
static double off_of(const pare_weight *w, const pare_weight *b, norm_size before, norm_size after)
{
    const double in = pare_has(w) ? (double)w->cols : 0, b2 = fro_of(b), wide = fro_of(w);
    const double e = (in + 12) * UNIT * (wide * before.shift + b2);
    const double size = b2 + wide * before.shift;
    return raised(after.scale * e + 10 * UNIT * (after.scale * size + after.shift));
}

/* ---- maps ----------------------------------------------------------------------------------- */

typedef struct reader {
    pare_work *w;
    bool rounded; /* folding has changed something */
} reader;

static double two_of(pare_work *w, const pare_weight *v)
{
    pare_ub two = pare_norm_fro(v), proven;
    if (w->st) return INFINITY;
    const pare_status st = pare_norm_spectral(&proven, v, w->arena, NULL);
    if (st == PARE_ERR_MEMORY) w->st = pare_no_memory(w->err);
    return st ? two.v : pare_ub_min(two, proven).v;
}

/* Norms of W and b for sums of `terms` terms; `off`: of the constant. */
static patch_map map_of(const reader *r, pare_mat m, const double *b, size_t terms, double off)
{
    patch_map p = {.w = m, .b = b};
    const pare_weight bias = {PARE_F64, 1, m.rows, b};
    const double drift = r->rounded ? DRIFT * UNIT : 0;
    p.round = raised((double)(terms + 3) * UNIT * (1 + 0x1p-20) + 2 * drift);
    if (!r->w->st && m.rows > 0 && m.cols > 0) {
        PARE_ASSERT(m.ld == m.cols);
        const pare_weight v = {PARE_F64, m.rows, m.cols, m.v};
        p.fro = raised(pare_norm_fro(&v).v * (1 + drift));
        p.two = raised(two_of(r->w, &v) + drift * p.fro);
        p.row2 = raised(pare_norm_max_row2(&v).v * (1 + drift));
    }
    if (!r->w->st && b && m.rows > 0) {
        p.b2 = pare_norm_fro(&bias).v;
        p.bmax = pare_norm_max(&bias).v;
    }
    p.b_off = r->rounded ? off : 0;
    return p;
}

static bool is_diagonal(const pare_mat *m)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            if (i != j && pare_row(m, i)[j] != 0) return false;
    return m->rows == m->cols;
}

/* A skip beside a branch of `terms` terms. */
static patch_map skip_of(const reader *r, const pare_mat *m, size_t terms)
{
    patch_map p = {0};
    if (r->w->st || !m->v) return p;
    if (!is_diagonal(m)) return map_of(r, *m, NULL, terms + m->cols, 0);
    pare_mat d = mat_zeros(r->w, 1, m->cols);
    double most = 0;
    for (size_t k = 0; !r->w->st && k < m->cols; k++) {
        d.v[k] = pare_row(m, k)[k];
        most = fabs(d.v[k]) > most ? fabs(d.v[k]) : most;
    }
    p = map_of(r, d, NULL, terms + 1, 0);
    p.diagonal = true;
    p.two = p.fro = raised(most * (1 + 2 * DRIFT * UNIT));
    return p;
}

/* ---- layers --------------------------------------------------------------------------------- */

/* The maps of all heads below one another: queries, keys, values. */
static void stack(pare_work *w, pare_mat *to, double *bias, size_t at, const pare_mat *m,
                  const double *b)
{
    for (size_t i = 0; !w->st && i < m->rows; i++) {
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(to, at + i)[j] = pare_row(m, i)[j];
        bias[at + i] = b ? b[i] : 0;
    }
}

static void read_heads(const reader *r, patch_layer *l, const net_layer *n, double q_off,
                       double v_off)
{
    pare_work *const w = r->w;
    size_t dk = 0, dv = 0, k = 0, v = 0;
    for (size_t i = 0; i < n->nheads; i++) {
        dk += n->heads[i].wq.rows;
        dv += n->heads[i].wv.rows;
    }
    pare_mat all = mat_zeros(w, 2 * dk + dv, l->din);
    double *const bias = vec_zeros(w, 2 * dk + dv);
    l->heads = pare_work_alloc(w, n->nheads, sizeof *l->heads);
    for (size_t i = 0; !w->st && i < n->nheads; i++) {
        const net_head *const hd = &n->heads[i];
        patch_head *const to = &l->heads[i];
        *to = (patch_head){.dk = hd->wq.rows, .dv = hd->wv.rows, .o = v, .scale = hd->scale};
        to->q = k;
        to->k = dk + k;
        to->v = 2 * dk + v;
        to->round = raised((double)(to->dk + 4) * UNIT * (1 + 0x1p-20));
        to->mq = map_of(r, hd->wq, hd->bq, l->din, q_off);
        to->mk = map_of(r, hd->wk, NULL, l->din, 0);
        to->mv = map_of(r, hd->wv, hd->bv, l->din, v_off);
        to->center = vec_zeros(w, to->dk);
        stack(w, &all, bias, to->q, &hd->wq, hd->bq);
        stack(w, &all, bias, to->k, &hd->wk, NULL);
        stack(w, &all, bias, to->v, &hd->wv, hd->bv);
        k += to->dk;
        v += to->dv;
    }
    l->pooled = dv;
    l->qkv = (patch_map){.w = all, .b = bias};
}

static patch_map outputs_of(const reader *r, const net_layer *n, size_t pooled, size_t din,
                            double off)
{
    pare_mat wo = mat_zeros(r->w, n->heads[0].wo.rows, pooled);
    for (size_t g = 0, at = 0; !r->w->st && g < n->nheads; at += n->heads[g].wo.cols, g++)
        for (size_t i = 0; i < wo.rows; i++)
            for (size_t j = 0; j < n->heads[g].wo.cols; j++)
                pare_row_mut(&wo, i)[at + j] = pare_row(&n->heads[g].wo, i)[j];
    return map_of(r, wo, n->c1, pooled + din, off);
}

/* `b` is the block as it was before folding. */
static patch_layer layer_of(const reader *r, const net_layer *n, const pare_block *b)
{
    const norm_size none = {1, 0};
    const norm_size in = size_of(&b->attn.in_norm), out = size_of(&b->attn.out_norm);
    const norm_size in2 = size_of(&b->ffn.in_norm), out2 = size_of(&b->ffn.out_norm);
    const pare_attn *const at = &b->attn;
    const double q_off = off_of(&at->wq, &at->bq, in, none);
    const double v_off = off_of(&at->wv, &at->bv, in, none);
    const norm_size values = {1, fro_of(&at->bv) + fro_of(&at->wv) * in.shift + v_off};
    const size_t hidden = n->w1.rows, mid = n->w1.cols;
    patch_layer l = {.nheads = n->nheads, .din = n->heads[0].wq.cols, .act = n->act};
    l.dout = n->heads[0].wo.rows;
    l.slope = pare_act_lipschitz(n->act);
    read_heads(r, &l, n, q_off, v_off);
    /* value biases that were merged carry their own error through Wo */
    const double merged = out.scale * fro_of(&at->wo) * v_off;
    const double o_off = off_of(&at->wo, &at->bo, values, out) + merged;
    l.wo = outputs_of(r, n, l.pooled, l.din, raised(o_off));
    l.skip1 = skip_of(r, &n->r1, l.pooled);
    const pare_dense *const f = b->ffn.layers;
    l.w1 = map_of(r, n->w1, n->b1, mid, off_of(&f[0].w, &f[0].b, in2, none));
    l.w2 = map_of(r, n->w2, n->c2, hidden + mid, off_of(&f[1].w, &f[1].b, none, out2));
    l.skip2 = skip_of(r, &n->r2, hidden);
    return l;
}

/* ---- the net -------------------------------------------------------------------------------- */

static void widest_of(patch_net *p)
{
    size_t d = p->stem.w.rows;
    for (size_t i = 0; i < p->nlayers; i++) {
        const patch_layer *const l = &p->layers[i];
        const size_t all[] = {l->din, l->dout, l->pooled, l->w1.w.rows, l->w2.w.rows};
        for (size_t k = 0; k < 5; k++) d = all[k] > d ? all[k] : d;
    }
    p->widest = d;
}

static patch_net read_folded(const reader *r, const pare_model *folded, const pare_model *m)
{
    const norm_size none = {1, 0}, stem = size_of(&m->embedding.norm), top = size_of(&m->head.norm);
    const net n = net_read(r->w, folded);
    patch_net p = {.nlayers = n.nlayers};
    p.layers = pare_work_alloc(r->w, n.nlayers, sizeof *p.layers);
    if (r->w->st) return p;
    p.stem = map_of(r, n.we, n.be, n.we.cols,
                    off_of(&m->embedding.map.w, &m->embedding.map.b, none, stem));
    p.top = map_of(r, n.wh, n.bh, n.wh.cols, off_of(&m->head.out.w, &m->head.out.b, top, none));
    for (size_t l = 0; !r->w->st && l < n.nlayers; l++)
        p.layers[l] = layer_of(r, &n.layers[l], &m->blocks[l]);
    widest_of(&p);
    return p;
}

/* Sums of more numbers would need more than what patch.h sets aside for their roundings. */
static void check_widths(pare_work *w, const patch_net *p)
{
    size_t most = p->widest > p->stem.w.cols ? p->widest : p->stem.w.cols;
    for (size_t l = 0; l < p->nlayers; l++)
        for (size_t h = 0; h < p->layers[l].nheads; h++)
            if (p->layers[l].heads[h].dk > most) most = p->layers[l].heads[h].dk;
    if (most >= PATCH_WIDEST)
        pare_work_fail(w, PARE_ERR_INPUT, "edits: rows of %zu numbers, fewer than %d are covered",
                       most, PATCH_WIDEST);
}

patch_net patch_read(pare_work *w, const pare_model *m)
{
    patch_net p = {0};
    pare_model *wide = NULL, *folded = NULL;
    pare_fold_report report = {0};
    check_norms(w, m);
    if (!w->st) w->st = pare_model_clone(&wide, m, w->err);
    if (!w->st) w->st = pare_model_each_weight(wide, widen, wide->arena, w->err);
    if (!w->st) w->st = insert_identity_wo(wide, w->err);
    if (!w->st) w->st = pare_fold(&folded, &report, wide, w->err);
    const reader r = {w, report.rounded > 0};
    if (!w->st) p = read_folded(&r, folded, wide);
    if (!w->st) check_widths(w, &p);
    pare_model_free(folded);
    pare_model_free(wide);
    return p;
}
