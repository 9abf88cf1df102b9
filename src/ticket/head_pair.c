/* head_pair.c - one head in both models: the matrices of its scores and values, with the rounding
 * of having been formed. E is always computed from the two models, never taken from the search
 * that found the ticket. */
#include "linalg/bounds.h"
#include "bounds.h"

/* s [w b], a head's rows of a map with its bias behind it. */
static rmat with_bias(pare_work *p, const pare_weight *w, const pare_weight *b, size_t at,
                      size_t rows, size_t cols, double s)
{
    const rmat m = rmat_weight(p, w, at, 0, rows, cols), c = rmat_column(p, b, at, rows);
    const rmat both = rmat_beside(p, &m, &c);
    return rmat_scaled(p, &both, s);
}

/* [wq bq]^T c wk: (din + 1) x din. A key bias adds the same to all scores of a row. */
static rmat scores_of(pare_work *p, const pare_attn *a, const pare_head *h)
{
    const rmat q = with_bias(p, &a->wq, &a->bq, h->q, h->dk, a->din, h->scale);
    const rmat k = rmat_weight(p, &a->wk, h->k, 0, h->dk, a->din);
    return rmat_mul(p, &q, true, &k);
}

/* Without wo the heads stand side by side: that moves rows, and no norm. */
static rmat values_of(pare_work *p, const pare_attn *a, const pare_head *h)
{
    const rmat v = rmat_weight(p, &a->wv, h->v, 0, h->dv, a->din);
    if (!pare_has(&a->wo)) return v;
    const rmat o = rmat_weight(p, &a->wo, 0, h->o, a->dout, h->dv);
    return rmat_mul(p, &o, false, &v);
}

static rmat inside_of(pare_work *p, const pare_attn *a, const pare_head *h)
{
    const rmat b = rmat_column(p, &a->bv, h->v, h->dv);
    if (pare_has(&a->wo)) {
        const rmat o = rmat_weight(p, &a->wo, 0, h->o, a->dout, h->dv);
        return rmat_mul(p, &o, false, &b);
    }
    rmat full = rmat_new(p, a->dout, 1);
    for (size_t i = 0; !p->st && i < h->dv; i++) full.mid.v[h->o + i] = b.mid.v[i];
    return full;
}

static void set_query_key_factors(pare_work *p, head_pair *out, const pare_attn *f,
                                  const pare_attn *g, size_t h)
{
    const pare_head *const x = &f->heads[h], *const y = &g->heads[h];
    out->q = with_bias(p, &f->wq, &f->bq, x->q, x->dk, f->din, x->scale);
    out->qt = with_bias(p, &g->wq, &g->bq, y->q, y->dk, g->din, y->scale);
    out->k = with_bias(p, &f->wk, &f->bk, x->k, x->dk, f->din, 1);
    out->kt = with_bias(p, &g->wk, &g->bk, y->k, y->dk, g->din, 1);
    out->qe = rmat_diff(p, &out->q, &out->qt);
    out->ke = rmat_diff(p, &out->k, &out->kt);
}

/* The norm of a product of this width takes long, and there are thousands of heads: beyond it,
 * norms of the factors serve. They are larger, and as true. */
enum { WIDE = 256 };

static rmat out_map(pare_work *p, const pare_attn *a, const pare_head *h)
{
    return pare_has(&a->wo) ? rmat_weight(p, &a->wo, 0, h->o, a->dout, h->dv)
                            : rmat_identity(p, h->dv);
}

head_pair head_pair_of(pare_work *p, const pare_attn *f, const pare_attn *g, size_t h)
{
    const pare_head *const x = &f->heads[h], *const y = &g->heads[h];
    head_pair out = {.wide = f->din > WIDE && x->dk == y->dk && x->dv == y->dv};
    out.factored = x->planes > 0 || out.wide;
    if (out.wide) {
        out.o = out_map(p, f, x);
        out.ot = out_map(p, g, y);
        out.w = rmat_weight(p, &f->wv, x->v, 0, x->dv, f->din);
        out.wt = rmat_weight(p, &g->wv, y->v, 0, y->dv, g->din);
    }
    if (out.factored) {
        set_query_key_factors(p, &out, f, g, h);
    } else {
        out.g = scores_of(p, f, &f->heads[h]);
        out.gt = scores_of(p, g, &g->heads[h]);
        out.ge = rmat_diff(p, &out.g, &out.gt);
    }
    out.v = values_of(p, f, &f->heads[h]);
    out.vt = values_of(p, g, &g->heads[h]);
    out.ve = rmat_diff(p, &out.v, &out.vt);
    out.inside = inside_of(p, f, &f->heads[h]);
    out.inside_t = inside_of(p, g, &g->heads[h]);
    return out;
}

/* [w b] with the bias as its last column (or, transposed, its last row). */
static affine affine_of(pare_work *p, const rmat *m, bool row)
{
    const affine none = {pare_ub_inf(), pare_ub_inf(), pare_ub_inf()};
    if (p->st || !m->mid.v) return none;
    const size_t r = m->mid.rows, c = m->mid.cols;
    const rmat w = row ? rmat_part(m, 0, 0, r - 1, c) : rmat_part(m, 0, 0, r, c - 1);
    const rmat b = row ? rmat_part(m, r - 1, 0, 1, c) : rmat_part(m, 0, c - 1, r, 1);
    return (affine){rmat_two(p, &w), rmat_fro(&b), rmat_two(p, m)};
}

/* |o w| <= |o||w|,  |o w - o~ w~| <= |o - o~||w| + |o~||w - w~|; the Frobenius norm may be less. */
static void wide_values(pare_work *p, head_sizes *s, const head_pair *h)
{
    const rmat oe = rmat_diff(p, &h->o, &h->ot), we = rmat_diff(p, &h->w, &h->wt);
    const pare_ub o = rmat_two(p, &h->o), ot = rmat_two(p, &h->ot), w = rmat_two(p, &h->w);
    s->v = pare_ub_min(pare_ub_mul(o, w), rmat_fro(&h->v));
    s->vt = pare_ub_min(pare_ub_mul(ot, rmat_two(p, &h->wt)), rmat_fro(&h->vt));
    s->ve = pare_ub_fma(rmat_two(p, &oe), w, pare_ub_mul(ot, rmat_two(p, &we)));
    s->ve = pare_ub_min(s->ve, rmat_fro(&h->ve));
}

head_sizes head_sizes_of(pare_work *p, const head_pair *h)
{
    head_sizes s = {.factored = h->factored};
    if (h->factored) {
        s.q = affine_of(p, &h->q, false);
        s.qt = affine_of(p, &h->qt, false);
        s.qe = affine_of(p, &h->qe, false);
        s.k = affine_of(p, &h->k, false);
        s.kt = affine_of(p, &h->kt, false);
        s.ke = affine_of(p, &h->ke, false);
    } else {
        s.g = affine_of(p, &h->g, true);
        s.gt = affine_of(p, &h->gt, true);
        s.ge = affine_of(p, &h->ge, true);
        s.g_max = rmat_max(&h->g);
        s.ge_max = rmat_max(&h->ge);
    }
    if (h->wide) {
        wide_values(p, &s, h);
    } else {
        s.v = rmat_two(p, &h->v);
        s.vt = rmat_two(p, &h->vt);
        s.ve = rmat_two(p, &h->ve);
    }
    s.v_max = rmat_max(&h->v);
    s.ve_max = rmat_max(&h->ve);
    return s;
}
