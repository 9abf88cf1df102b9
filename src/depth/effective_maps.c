/* effective_maps.c - effective matrices of attention sublayers: B_h, l_h, V_h and the constant
 * rows.
 *
 * With z = x a + s in front (affine norm), y a' + s' behind, and stored weights as row maps,
 *     B_h = scale (a Wq_h)(a Wk_h)^T         l_h = scale (s Wq_h + bq_h)(a Wk_h)^T
 *     V_h = a Wv_h Wo_h a'                   inside += (s Wv_h + bv_h) Wo_h a'
 *     T   = skip a' (+ a matrix a')          outside = bo a' + s' (+ s matrix a')
 * Key biases add the same number to every score of a row and are left out - except under rotary
 * positions, where nothing can be merged and the parts are kept. */
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "effective_maps.h"
#include <math.h>

/* ---- affine norms ---------------------------------------------------------------------------- */

/* gain / sqrt(var + eps): three roundings, at most 4 units in the last place together. */
static imat batch_scale(pare_work *k, const pare_norm *n, size_t d)
{
    imat s = imat_row(k, &n->gain, 0, d);
    s.rad = work_matrix(k, 1, d);
    for (size_t j = 0; !k->st && j < d; j++) {
        const double gain = pare_has(&n->gain) ? s.mid.v[j] : 1;
        s.mid.v[j] = gain / sqrt(pare_weight_at(&n->var, j) + n->eps);
        s.rad.v[j] = pare_ub_of(4 * PARE_UNIT_F64 * s.mid.v[j]).v;
    }
    return s;
}

static imat plain_gain(pare_work *k, const pare_norm *n, size_t d)
{
    imat s = imat_row(k, &n->gain, 0, d);
    for (size_t j = 0; !k->st && !pare_has(&n->gain) && j < d; j++) s.mid.v[j] = 1;
    return s;
}

bool affine_norm(pare_work *k, affine_map *out, const pare_norm *n, size_t d)
{
    *out = (affine_map){0};
    if (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS) return false;
    if (n->kind == PARE_NORM_NONE) return true;
    const bool batch = n->kind == PARE_NORM_BATCH;
    imat c = imat_identity(k, d); /* I, or I - 1 1^T / d */
    if (!batch) c.rad = work_matrix(k, d, d);
    for (size_t i = 0; !k->st && !batch && i < d * d; i++) {
        c.mid.v[i] -= 1 / (double)d;
        c.rad.v[i] = 2 * PARE_UNIT_F64;
    }
    const imat s = batch ? batch_scale(k, n, d) : plain_gain(k, n, d);
    out->any = true;
    out->a = imat_scale_columns(k, &c, &s);
    const imat offset = imat_row(k, &n->offset, 0, d), bias = imat_row(k, &n->bias, 0, d);
    const imat none = imat_zero(k, 1, d), mean = batch ? imat_row(k, &n->mean, 0, d) : none;
    const imat before = imat_diff(k, &offset, &mean), moved = imat_mul(k, &before, &out->a);
    out->shift = imat_sum(k, &moved, &bias);
    return true;
}

affine_map norm_gain(pare_work *k, const pare_norm *n, size_t d)
{
    const imat row = plain_gain(k, n, d), one = imat_identity(k, d);
    return (affine_map){true, imat_scale_columns(k, &one, &row), imat_row(k, &n->bias, 0, d)};
}

imat affine_then(pare_work *k, const affine_map *m, const imat *w)
{
    return m->any ? imat_mul(k, &m->a, w) : *w;
}

imat affine_after(pare_work *k, const imat *w, const affine_map *m)
{
    return m->any ? imat_mul(k, w, &m->a) : *w;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

typedef struct maker {
    pare_work *k;
    const pare_attn *at;
    affine_map in, out;
    eff_attn *e;
} maker;

static void add_row(pare_work *k, imat *to, const imat *row)
{
    *to = imat_sum(k, to, row);
}

/* What a constant row r in the middle becomes behind the sublayer, added to *to. */
static void add_behind(const maker *m, imat *to, const imat *r)
{
    const imat row = affine_after(m->k, r, &m->out);
    add_row(m->k, to, &row);
}

/* The shift of the norm in front goes through w as well (and is added there to b). */
static imat shifted_bias(const maker *m, const imat *w, const imat *b)
{
    if (!m->in.any) return *b;
    const imat moved = imat_mul(m->k, &m->in.shift, w);
    return imat_sum(m->k, &moved, b);
}

/* z w as a map between streams, its constant added to *row. */
static imat map_through(const maker *m, const imat *w, imat *row)
{
    const imat none = imat_zero(m->k, 1, w->mid.cols), left = affine_then(m->k, &m->in, w);
    const imat constant = shifted_bias(m, w, &none);
    if (!m->k->st) add_behind(m, row, &constant);
    return affine_after(m->k, &left, &m->out);
}

/* dv x dout: what the columns of a head become. */
static imat head_output(const maker *m, const pare_head *h)
{
    pare_work *const k = m->k;
    const pare_attn *const at = m->at;
    if (at->kind == PARE_ATTN_POOL)
        return imat_weight(k, &at->matrix, 0, at->din + h->o, at->dout, h->dv, true);
    if (pare_has(&at->wo)) return imat_weight(k, &at->wo, 0, h->o, at->dout, h->dv, true);
    imat side = imat_zero(k, h->dv, at->dout); /* side by side */
    for (size_t j = 0; !k->st && j < h->dv; j++) pare_row_mut(&side.mid, j)[h->o + j] = 1;
    return side;
}

static void head_values(const maker *m, eff_head *e, const pare_head *h)
{
    pare_work *const k = m->k;
    const pare_attn *const at = m->at;
    const imat wv = imat_weight(k, &at->wv, h->v, 0, h->dv, at->din, true);
    const imat bv = imat_row(k, &at->bv, h->v, h->dv), wo = head_output(m, h);
    const imat left = affine_then(k, &m->in, &wv), joined = imat_mul(k, &left, &wo);
    const imat value = shifted_bias(m, &wv, &bv), row = imat_mul(k, &value, &wo);
    e->v = affine_after(k, &joined, &m->out);
    add_behind(m, &m->e->inside, &row);
}

static void head_scores(const maker *m, eff_head *e, const pare_head *h)
{
    pare_work *const k = m->k;
    const pare_attn *const at = m->at;
    const bool same = !pare_has(&at->wq);
    const imat wq = imat_weight(k, &at->wq, h->q, 0, same ? 0 : h->dk, same ? 0 : at->din, true);
    const imat wk = imat_weight(k, &at->wk, h->k, 0, h->dk, at->din, true);
    const imat bq = imat_row(k, &at->bq, h->q, h->dk), bk = imat_row(k, &at->bk, h->k, h->dk);
    e->query = same ? QUERY_SAME : at->kind == PARE_ATTN_MEANQ ? QUERY_MEAN : QUERY_EACH;
    e->rotary = h->planes > 0;
    e->scale = h->scale;
    e->k = affine_then(k, &m->in, &wk);
    e->k0 = shifted_bias(m, &wk, &bk);
    e->q = same ? imat_zero(k, at->din, h->dk) : affine_then(k, &m->in, &wq);
    e->q0 = same ? bq : shifted_bias(m, &wq, &bq);
    if (e->rotary) return;
    const imat transposed = imat_transposed(k, &e->k), b = imat_mul(k, &e->q, &transposed);
    const imat l = imat_mul(k, &e->q0, &transposed);
    e->b = imat_scaled(k, &b, h->scale);
    e->l = imat_scaled(k, &l, h->scale);
}

static void all_heads(const maker *m)
{
    eff_attn *const e = m->e;
    e->nheads = m->at->nheads;
    e->heads = pare_work_alloc(m->k, e->nheads, sizeof *e->heads);
    for (size_t h = 0; !m->k->st && h < e->nheads; h++) {
        head_scores(m, &e->heads[h], &m->at->heads[h]);
        head_values(m, &e->heads[h], &m->at->heads[h]);
    }
}

/* Blocks of `mix`, first..: umix has E_0 in T, uniform and affmix begin with M_1. */
static void all_powers(const maker *m, size_t first, size_t count)
{
    eff_attn *const e = m->e;
    const pare_attn *const at = m->at;
    e->npowers = count;
    e->mix = pare_work_alloc(m->k, count, sizeof *e->mix);
    for (size_t j = 0; !m->k->st && j < count; j++) {
        const imat w =
            imat_weight(m->k, &at->mix, (first + j) * at->dout, 0, at->dout, at->din, true);
        e->mix[j] = map_through(m, &w, &e->inside);
    }
}

static void add_linear(const maker *m, const pare_weight *w)
{
    const imat part = imat_weight(m->k, w, 0, 0, m->at->dout, m->at->din, true);
    const imat linear = map_through(m, &part, &m->e->outside);
    m->e->t = imat_sum(m->k, &m->e->t, &linear);
}

static void add_branch(const maker *m)
{
    const pare_attn *const at = m->at;
    imat bv;
    switch (at->kind) {
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        break;
    case PARE_ATTN_UNIFORM:
        bv = imat_row(m->k, &at->bv, 0, at->dout);
        if (!m->k->st) add_behind(m, &m->e->inside, &bv);
        all_powers(m, 0, 1);
        break;
    case PARE_ATTN_AFFMIX:
        add_linear(m, &at->matrix);
        all_powers(m, 0, 1);
        break;
    case PARE_ATTN_LINEAR:
        add_linear(m, &at->matrix);
        break;
    case PARE_ATTN_UMIX:
        add_linear(m, &at->mix);
        all_powers(m, 1, at->mix.rows / at->dout - 1);
        break;
    case PARE_ATTN_POOL:
        add_linear(m, &at->matrix);
        all_heads(m);
        break;
    case PARE_ATTN_EXACT:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
    case PARE_ATTN_POLY:
        all_heads(m);
        break;
    }
    const imat bo = imat_row(m->k, &at->bo, 0, at->dout);
    if (!m->k->st) add_behind(m, &m->e->outside, &bo);
}

/* ---- sublayers ------------------------------------------------------------------------------- */

static imat skip_map(pare_work *k, const pare_skip *s, size_t din, size_t dout)
{
    if (s->kind == PARE_SKIP_NONE) return imat_zero(k, din, dout);
    if (s->kind == PARE_SKIP_DENSE) return imat_weight(k, &s->w, 0, 0, dout, din, true);
    const imat one = imat_identity(k, din);
    if (s->kind == PARE_SKIP_IDENTITY) return one;
    const imat row = imat_row(k, &s->w, 0, din);
    return imat_scale_columns(k, &one, &row);
}

static void begin_sublayer(eff_attn *e, pare_work *k, size_t din, size_t dout)
{
    *e = (eff_attn){.din = din, .dout = dout};
    e->inside = imat_zero(k, 1, dout);
    e->outside = imat_zero(k, 1, dout);
}

bool effective_attn(pare_work *k, eff_attn *out, const pare_attn *at, size_t width,
                    const char **why)
{
    maker m = {.k = k, .at = at, .e = out};
    if (at->kind == PARE_ATTN_NONE) {
        begin_sublayer(out, k, width, width);
        out->t = imat_identity(k, width);
        return true;
    }
    begin_sublayer(out, k, at->din, at->dout);
    *why = "the attention's norm in front divides by the size of its input";
    if (!affine_norm(k, &m.in, &at->in_norm, at->din)) return false;
    *why = "the attention's norm behind divides by the size of its input";
    if (!affine_norm(k, &m.out, &at->out_norm, at->dout)) return false;
    const imat skip = skip_map(k, &at->skip, at->din, at->dout);
    out->t = affine_after(k, &skip, &m.out);
    if (m.out.any) add_row(k, &out->outside, &m.out.shift);
    add_branch(&m);
    return true;
}

void effective_branch(pare_work *k, eff_attn *out, const pare_attn *at, const affine_map *in)
{
    const maker m = {.k = k, .at = at, .in = *in, .e = out};
    begin_sublayer(out, k, at->din, at->dout);
    out->t = imat_zero(k, at->din, at->dout);
    add_branch(&m);
}

imat heads_total(pare_work *k, const eff_attn *e)
{
    imat sum = imat_zero(k, e->din, e->dout);
    for (size_t h = 0; !k->st && h < e->nheads; h++) sum = imat_sum(k, &sum, &e->heads[h].v);
    return sum;
}

/* ---- FFN and head ---------------------------------------------------------------------------- */

static void ffn_layers(pare_work *k, eff_ffn *e, const pare_dense *layers, size_t n)
{
    e->nlayers = n;
    e->w = pare_work_alloc(k, n, sizeof *e->w);
    e->b = pare_work_alloc(k, n, sizeof *e->b);
    for (size_t l = 0; !k->st && layers && l < n; l++) {
        e->w[l] = imat_weight(k, &layers[l].w, 0, 0, layers[l].w.rows, layers[l].w.cols, true);
        e->b[l] = imat_row(k, &layers[l].b, 0, layers[l].w.rows);
    }
}

/* z w + b with z = x a + s, in place. */
static void fold_front(pare_work *k, const affine_map *in, imat *w, imat *b)
{
    if (!in->any) return;
    const imat moved = imat_mul(k, &in->shift, w);
    *b = imat_sum(k, b, &moved);
    *w = imat_mul(k, &in->a, w);
}

bool effective_ffn(pare_work *k, eff_ffn *out, const pare_ffn *f, size_t width, const char **why)
{
    affine_map in, behind;
    *out = (eff_ffn){.din = width, .dout = f->kind ? f->dout : width, .act = f->act};
    out->outside = imat_zero(k, 1, out->dout);
    out->t = imat_identity(k, width);
    if (f->kind == PARE_FFN_NONE) return true;
    *why = "the FFN's norm in front divides by the size of its input";
    if (!affine_norm(k, &in, &f->in_norm, f->din)) return false;
    *why = "the FFN's norm behind divides by the size of its input";
    if (!affine_norm(k, &behind, &f->out_norm, f->dout)) return false;
    const imat skip = skip_map(k, &f->skip, f->din, f->dout);
    out->gated = f->kind == PARE_FFN_GATED;
    out->t = affine_after(k, &skip, &behind);
    if (behind.any) out->outside = behind.shift;
    ffn_layers(k, out, f->layers, f->nlayers);
    if (k->st) return true;
    fold_front(k, &in, &out->w[0], &out->b[0]);
    if (out->gated) fold_front(k, &in, &out->w[1], &out->b[1]);
    const size_t last = f->nlayers - 1;
    out->w[last] = affine_after(k, &out->w[last], &behind);
    out->b[last] = affine_after(k, &out->b[last], &behind);
    return true;
}

/* w with the column w_1 - w_0 behind its two. */
static imat with_difference(pare_work *k, const imat *w)
{
    const imat one = imat_part(w, 0, 1, w->mid.rows, 1), zero = imat_part(w, 0, 0, w->mid.rows, 1);
    const imat d = imat_diff(k, &one, &zero);
    imat all = {work_matrix(k, w->mid.rows, 3), work_matrix(k, w->mid.rows, 3)};
    for (size_t i = 0; !k->st && i < w->mid.rows; i++)
        for (size_t j = 0; j < 3; j++) {
            const imat *const from = j < 2 ? w : &d;
            const size_t c = j < 2 ? j : 0;
            pare_row_mut(&all.mid, i)[j] = pare_row(&from->mid, i)[c];
            if (from->rad.v) pare_row_mut(&all.rad, i)[j] = pare_row(&from->rad, i)[c];
        }
    return all;
}

bool effective_output_head(pare_work *k, eff_ffn *out, bool *extra, const pare_model *m,
                           const char **why)
{
    const pare_output_head *const t = &m->head;
    const size_t d = pare_model_width(m, m->nblocks), outputs = pare_model_outputs(m);
    const bool dense = pare_has(&t->dense.w), two = dense || t->act != PARE_ACT_NONE;
    const pare_weight whole = pare_head_weight_whole(k->arena, m), *const w = &whole;
    const size_t hidden = dense ? t->dense.w.rows : d;
    affine_map in;
    *extra = outputs == 2;
    *why = t->normalize ? "the model normalizes its outputs, which divides by their length"
                        : "the model pools by the largest entry over its tokens (max)";
    if (t->normalize || t->pool == PARE_POOL_MAX) return false;
    if (!pare_has(w) && pare_has(pare_head_weight(m)) && !k->st) k->st = pare_no_memory(k->err);
    *why = "the norm before the model's head divides by the size of its input";
    *out = (eff_ffn){.din = d, .dout = outputs + *extra, .act = t->act};
    if (!affine_norm(k, &in, &t->norm, d)) return false;
    out->t = imat_zero(k, d, out->dout);
    out->outside = imat_zero(k, 1, out->dout);
    ffn_layers(k, out, NULL, two ? 2 : 1);
    if (k->st) return true;
    if (two) {
        out->w[0] =
            dense ? imat_weight(k, &t->dense.w, 0, 0, hidden, d, true) : imat_identity(k, d);
        out->b[0] = imat_row(k, &t->dense.b, 0, hidden);
    }
    const size_t last = two;
    out->w[last] =
        pare_has(w) ? imat_weight(k, w, 0, 0, outputs, hidden, true) : imat_identity(k, hidden);
    out->b[last] = imat_row(k, &t->out.b, 0, outputs);
    if (*extra) {
        out->w[last] = with_difference(k, &out->w[last]);
        out->b[last] = with_difference(k, &out->b[last]);
    }
    fold_front(k, &in, &out->w[0], &out->b[0]);
    return true;
}
