/* bound_ffn_rows.c - a feed-forward part for given rows, row by row: the counterpart of Theorem C.
 *
 * Claim. With h_l the row that enters layer l of f, d_l >= |h_l - h~_l| for g's, and E_l(h) what
 * the two layers differ by on the same h,
 *   |f_l(h_l) - g_l(h~_l)| <= |E_l(h_l)| + |g_l| d_l,    d_{l+1} = slope times that.
 * Dense layers: E_l(h) = (W - W~) h + b - b~. A ReLU ticket's pair: E+ h+ - E- h- + e
 * (relu_pair.c). The length of the very vector E_l(h_l) stands in the place of |E_l| |h_l|.
 * Proof. f_l(h) - g_l(h~) = E_l(h) + g_l(h) - g_l(h~).  []
 * Rows of f are known from midpoints and radii; a ReLU keeps both. Other activations end it: from
 * there on lengths serve (bound_ffn.c), as they do in gated parts. The smaller of both counts.
 * Rounding as in bound_rows.c. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "bound_rows.h"
#include <math.h>

static span span_at(const rows_view *v, size_t i)
{
    const pare_ub f = pare_ub_exact(v->norm[i]), d = pare_ub_exact(v->x->d ? v->x->d[i] : 0);
    return (span){f, pare_ub_add(f, d), d, 0};
}

/* [E_l(h), e]; *signs: it multiplies (h+, h-). */
static rmat left_over(pare_work *p, const pare_ffn *f, const pare_ffn *g, ffn_form form, size_t l,
                      bool *signs)
{
    const pare_dense *const x = &f->layers[l], *const y = g->layers;
    *signs = form != FFN_EQUAL && l == 0;
    if (form == FFN_PAIRS || *signs) {
        const size_t at = form == FFN_PAIRS ? 2 * l : 0;
        const relu_maps m = relu_pair_maps(p, x, &y[at], &y[at + 1], !*signs);
        return rmat_beside(p, &m.e, &m.e_bias);
    }
    const pare_dense *const t = &y[form == FFN_SPLIT ? l + 1 : l];
    const rmat w = rmat_weight(p, &x->w, 0, 0, x->w.rows, x->w.cols),
               wt = rmat_weight(p, &t->w, 0, 0, t->w.rows, t->w.cols),
               b = rmat_column(p, &x->b, 0, x->w.rows), bt = rmat_column(p, &t->b, 0, t->w.rows);
    const rmat we = rmat_diff(p, &w, &wt), be = rmat_diff(p, &b, &bt);
    return rmat_beside(p, &we, &be);
}

/* (z+, z-): as far from their midpoints as z is. */
static pare_mat signs_of(pare_work *p, const pare_mat *z)
{
    rmat m = rmat_new(p, z->rows, 2 * z->cols);
    for (size_t i = 0; !p->st && i < z->rows; i++)
        for (size_t j = 0; j < z->cols; j++) {
            const double x = pare_row(z, i)[j];
            pare_row_mut(&m.mid, i)[x > 0 ? j : z->cols + j] = fabs(x);
        }
    return m.mid;
}

/* |E_l(h_l)| of every row, from above. */
static const double *differences(const rows_view *v, const pare_ffn *f, const pare_ffn *g,
                                 const ffn_sizes *s, size_t l)
{
    pare_work *const p = v->p;
    bool signs = false;
    const rmat e = left_over(p, f, g, s->form, l, &signs);
    given_rows both = *v->x;
    if (signs) both.z = signs_of(p, &v->x->z);
    const rows_view w = {p, &both, v->n, v->norm};
    return rows_image(&w, &e, true, true, s->layers[l].e.w).length;
}

/* f's rows behind layer l and its ReLU. */
static given_rows next_rows(const rows_view *v, const pare_dense *x, const dense_sizes *s,
                            const double *d)
{
    pare_work *const p = v->p;
    const rmat w = rmat_weight(p, &x->w, 0, 0, x->w.rows, x->w.cols),
               b = rmat_column(p, &x->b, 0, x->w.rows), both = rmat_beside(p, &w, &b);
    const image y = rows_image(v, &both, true, true, s->f.w);
    for (size_t i = 0; !p->st && i < y.y.rows * y.y.cols; i++)
        if (y.y.v[i] < 0) y.y.v[i] = 0; /* what is no number stays that */
    return (given_rows){y.y, y.slack, d, NULL, NULL};
}

/* How far the rows are apart behind layer l. */
static double *behind(const rows_view *v, const pare_ffn *f, const pare_ffn *g, const ffn_sizes *s,
                      size_t l)
{
    pare_work *const p = v->p;
    const double *const e = differences(v, f, g, s, l);
    double *const d = p->st ? NULL : pare_alloc(p->arena, v->n + 1, sizeof *d);
    if (!p->st && !d) p->st = pare_no_memory(p->err);
    for (size_t i = 0; !p->st && i < v->n; i++) {
        const span at = span_at(v, i);
        const pare_ub here = pare_ub_fma(s->layers[l].g.w, at.d, pare_ub_exact(e[i]));
        d[i] = pare_ub_min(here, dense_move(&s->layers[l], at).d).v;
    }
    return d;
}

/* Lengths alone, from layer l on; `first` is what is known of its differences already. */
static void by_lengths(pare_ub *out, const rows_view *v, const ffn_sizes *s, const double *first)
{
    for (size_t i = 0; !v->p->st && i < v->n; i++) {
        const span at = span_at(v, i);
        out[i] = ffn_move(s, at).d;
        if (!first) continue;
        span y = dense_move(&s->layers[0], at);
        const pare_ub slope = pare_ub_exact(s->slope);
        y.d = pare_ub_mul(slope, pare_ub_exact(first[i])); /* |act(x)| <= |x| */
        out[i] = pare_ub_min(out[i], ffn_move_from(s, 1, span_tightened(y)).d);
    }
}

void ffn_rows_move(pare_work *p, pare_ub *out, const pare_ffn *f, const pare_ffn *g,
                   const ffn_sizes *s, const given_rows *x)
{
    const pare_mark mark = pare_arena_mark(p->arena);
    const bool exact = f->act == PARE_ACT_RELU || f->nlayers == 1;
    given_rows at = *x;
    rows_view v = rows_view_of(p, &at);
    if (s->kind == PARE_FFN_GATED) {
        by_lengths(out, &v, s, NULL);
    } else if (!exact) {
        by_lengths(out, &v, s, behind(&v, f, g, s, 0));
    }
    for (size_t l = 0; !p->st && exact && s->kind == PARE_FFN_MLP && l < s->nlayers; l++) {
        const double *const d = behind(&v, f, g, s, l);
        for (size_t i = 0; !p->st && i < v.n; i++) out[i] = pare_ub_exact(d[i]);
        if (p->st || l + 1 == s->nlayers) break;
        at = next_rows(&v, &f->layers[l], &s->layers[l], d);
        v = rows_view_of(p, &at);
    }
    pare_arena_reset(p->arena, mark);
}
