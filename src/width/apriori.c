/* apriori.c - bounds from norms alone (Theorems 3.3 and 4.2 of Shirzad 2024, repaired;
 * docs/theory/width.md sections 1 and 3, docs/errata.md).
 *
 * Scores of rows that moved by e (the paper drops a factor), where the form B became B^:
 *
 *     |q.k - q'.k'| <= |q||Wk| e + |Wq| e |k| + |Wq||Wk| e^2 + |[h 1]| |B - B^|_2 |h|.
 *
 * If the scores of a row are off by at most w, |a - a^|_1 <= 2 tanh(w/2) <= w: no smallness
 * condition. Then, per layer,
 *
 *     |z - z^| <= |R1| e + sum_heads |Wo| (|Wv| e + 2 tanh(w/2) |v|)
 *     |h - h^| <= (|R2| + lip |W2||W1|) |z - z^|
 *
 * with skips, several heads and biases, which the paper does not have. In its own case (b bounds
 * all norms, s all rows) this is
 *
 *     w = b^2 (s + e)^2 eps + b^2 (2 s e + e^2),     e' = b^2 (b e + b s 2 tanh(w/2)).
 *
 * For trained nets these are far above |f| + |g|, the other bound here; they are kept because they
 * are true for every input. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "jl_bounds.h"
#include "prove.h"
#include <math.h>

static pare_ub norm_of(pare_work *w, const pare_mat *m)
{
    pare_ub n = pare_ub_exact(0);
    PARE_ASSERT(m->ld == m->cols);
    const pare_weight v = {PARE_F64, m->rows, m->cols, m->v};
    if (!w->st) w->st = pare_norm_spectral(&n, &v, w->arena, w->err); /* of no matrix: 0 */
    return n;
}

static pare_ub square(pare_ub a)
{
    return pare_ub_mul(a, a);
}

/* |act(a) - act(b)| <= lip |a - b|, and act(0) = 0. */
static pare_ub lipschitz(pare_act act)
{
    return pare_ub_exact(pare_act_lipschitz(act));
}

static pare_ub affine_bound(pare_ub norm, pare_ub x, const double *b, size_t n)
{
    return pare_ub_fma(norm, x, vector_norm(b, n));
}

/* ---- how large rows can be ------------------------------------------------------------------ */

static pare_ub value_norm(pare_work *w, const net_head *hd, pare_ub h)
{
    return affine_bound(norm_of(w, &hd->wv), h, hd->bv, hd->wv.rows);
}

/* Of the rows after a layer. */
static pare_ub layer_row_norm(pare_work *w, const net_layer *l, pare_ub h)
{
    pare_ub z = affine_bound(norm_of(w, &l->r1), h, l->c1, l->heads[0].wo.rows);
    for (size_t i = 0; i < l->nheads; i++)
        z = pare_ub_fma(norm_of(w, &l->heads[i].wo), value_norm(w, &l->heads[i], h), z);
    const pare_ub p =
        pare_ub_mul(lipschitz(l->act), affine_bound(norm_of(w, &l->w1), z, l->b1, l->w1.rows));
    const pare_ub skip = affine_bound(norm_of(w, &l->r2), z, l->c2, l->w2.rows);
    return pare_ub_fma(norm_of(w, &l->w2), p, skip);
}

static pare_ub largest_output(pare_work *w, const net *n, pare_ub x)
{
    pare_ub h = affine_bound(norm_of(w, &n->we), x, n->be, n->we.rows);
    for (size_t i = 0; i < n->nlayers; i++) h = layer_row_norm(w, &n->layers[i], h);
    pare_ub most = pare_ub_exact(0);
    for (size_t c = 0; c < n->wh.rows; c++) {
        const pare_ub row = vector_norm(pare_row(&n->wh, c), n->wh.cols);
        most = pare_ub_max(most, pare_ub_fma(row, h, pare_ub_exact(fabs(n->bh[c]))));
    }
    return most;
}

/* ---- queries and keys changed, nothing else ------------------------------------------------- */

static bool same_mat(const pare_mat *a, const pare_mat *b)
{
    if (!a->v || !b->v) return a->v == b->v;
    if (a->rows != b->rows || a->cols != b->cols) return false;
    for (size_t i = 0; i < a->rows * a->cols; i++)
        if (a->v[i] != b->v[i]) return false;
    return true;
}

static bool same_vec(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

static bool same_but_scores(const net_layer *a, const net_layer *b)
{
    if (a->nheads != b->nheads || a->act != b->act || !same_mat(&a->r1, &b->r1) ||
        !same_mat(&a->r2, &b->r2) || !same_mat(&a->w1, &b->w1) || !same_mat(&a->w2, &b->w2))
        return false;
    for (size_t i = 0; i < a->nheads; i++) {
        const net_head *const x = &a->heads[i], *const y = &b->heads[i];
        if (!same_mat(&x->wv, &y->wv) || !same_mat(&x->wo, &y->wo) ||
            !same_vec(x->bv, y->bv, x->wv.rows) || x->wq.cols != y->wq.cols || x->scale != y->scale)
            return false;
    }
    return same_vec(a->c1, b->c1, a->heads[0].wo.rows) && same_vec(a->b1, b->b1, a->w1.rows) &&
           same_vec(a->c2, b->c2, a->w2.rows);
}

/* sign [Wq bq]^T Wk more; the last row is that of the bias. */
static void add_form(pare_mat *to, double sign, const net_head *hd)
{
    const size_t d = hd->wq.cols;
    const pare_mat bias = pare_mat_of(hd->bq, hd->wq.rows, 1);
    pare_mat rows = pare_mat_part(to, 0, 0, d, d), last = pare_mat_part(to, d, 0, 1, d);
    pare_gemm(&rows, sign, &hd->wq, true, &hd->wk, false, 1);
    pare_gemm(&last, sign, &bias, true, &hd->wk, false, 1);
}

/* |[Wq bq]|_F |Wk|_F */
static pare_ub form_size(const net_head *hd)
{
    const pare_ub q = fro_norm(&hd->wq), b = vector_norm(hd->bq, hd->wq.rows);
    return pare_ub_mul(pare_ub_sqrt(pare_ub_add(square(q), square(b))), fro_norm(&hd->wk));
}

/* |B - B^|_2 with B = [Wq bq]^T Wk; the products are rounded, so what they may be off by is added:
 * each entry is one sum over the inner dimensions of both. */
static pare_ub form_gap(pare_work *w, const net_head *a, const net_head *b)
{
    pare_mat gap = mat_zeros(w, a->wq.cols + 1, a->wq.cols);
    if (w->st) return pare_ub_inf();
    add_form(&gap, 1, a);
    add_form(&gap, -1, b);
    const pare_ub sizes = pare_ub_add(form_size(a), form_size(b));
    const pare_ub off = product_rounding(a->wq.rows + b->wq.rows, sizes, pare_ub_exact(1));
    return pare_ub_add(norm_of(w, &gap), off);
}

/* 2 tanh(w/2), w the error of a head's scores: rows of norm h moved by e, the form changed. */
static pare_ub weights_move(pare_work *w, const net_head *a, const net_head *b, pare_ub h,
                            pare_ub e)
{
    const pare_ub nq = norm_of(w, &a->wq), nk = norm_of(w, &a->wk);
    const pare_ub q = affine_bound(nq, h, a->bq, a->wq.rows), k = pare_ub_mul(nk, h);
    pare_ub s = pare_ub_mul(pare_ub_mul(q, nk), e);
    s = pare_ub_fma(pare_ub_mul(nq, e), k, s);
    s = pare_ub_fma(pare_ub_mul(nq, e), pare_ub_mul(nk, e), s);
    const pare_ub far = pare_ub_add(h, e);
    const pare_ub one = pare_ub_sqrt(pare_ub_fma(far, far, pare_ub_exact(1)));
    s = pare_ub_fma(pare_ub_mul(one, far), form_gap(w, a, b), s);
    s = pare_ub_mul(s, pare_ub_exact(fabs(a->scale) / 2));
    return pare_ub_mul(pare_ub_exact(2), pare_ub_tanh(s));
}

static pare_ub layer_gap(pare_work *w, const net_layer *a, const net_layer *b, pare_ub h, pare_ub e)
{
    pare_ub z = pare_ub_mul(norm_of(w, &a->r1), e);
    for (size_t i = 0; i < a->nheads; i++) {
        const net_head *const hd = &a->heads[i];
        const pare_ub moved = weights_move(w, hd, &b->heads[i], h, e);
        const pare_ub values =
            pare_ub_fma(norm_of(w, &hd->wv), e, pare_ub_mul(moved, value_norm(w, hd, h)));
        z = pare_ub_fma(norm_of(w, &hd->wo), values, z);
    }
    const pare_ub hidden =
        pare_ub_mul(pare_ub_mul(lipschitz(a->act), norm_of(w, &a->w2)), norm_of(w, &a->w1));
    return pare_ub_mul(pare_ub_add(norm_of(w, &a->r2), hidden), z);
}

static pare_ub scores_gap(pare_work *w, const net *f, const net *g, pare_ub x)
{
    pare_ub h = affine_bound(norm_of(w, &f->we), x, f->be, f->we.rows), e = pare_ub_exact(0);
    if (f->nlayers != g->nlayers || !same_mat(&f->we, &g->we) || !same_mat(&f->wh, &g->wh) ||
        !same_vec(f->be, g->be, f->we.rows) || !same_vec(f->bh, g->bh, f->wh.rows))
        return pare_ub_inf();
    for (size_t i = 0; !w->st && i < f->nlayers; i++) {
        if (!same_but_scores(&f->layers[i], &g->layers[i])) return pare_ub_inf();
        e = layer_gap(w, &f->layers[i], &g->layers[i], h, e);
        h = layer_row_norm(w, &f->layers[i], h);
    }
    pare_ub most = pare_ub_exact(0);
    for (size_t c = 0; c < f->wh.rows; c++)
        most = pare_ub_max(most, vector_norm(pare_row(&f->wh, c), f->wh.cols));
    return pare_ub_mul(most, e);
}

pare_ub apriori_gap(pare_work *w, const net *f, const net *g, pare_ub x)
{
    const pare_ub cap = pare_ub_add(largest_output(w, f, x), largest_output(w, g, x));
    const pare_ub gap = pare_ub_min(cap, scores_gap(w, f, g, x));
    return w->st ? pare_ub_inf() : gap;
}

/* ---- one norm for all ----------------------------------------------------------------------- */

/* b s 2 tanh(w/2) + b e */
static pare_ub pooled_move(pare_ub b, pare_ub s, pare_ub e, pare_ub scores)
{
    const pare_ub half = pare_ub_mul(scores, pare_ub_exact(0.5));
    const pare_ub moved = pare_ub_mul(pare_ub_exact(2), pare_ub_tanh(half));
    return pare_ub_mul(b, pare_ub_fma(s, moved, e));
}

/* b^2 (2 s e + e^2) */
static pare_ub moved_scores(pare_ub b, pare_ub s, pare_ub e)
{
    return pare_ub_mul(square(b), pare_ub_fma(pare_ub_mul(pare_ub_exact(2), s), e, square(e)));
}

pare_ub pare_jl_bound(pare_ub beta, pare_ub s, size_t layers, pare_ub eps)
{
    pare_ub e = pare_ub_exact(0);
    for (size_t l = 0; l < layers; l++) {
        const pare_ub form = pare_ub_mul(square(beta), square(pare_ub_add(s, e)));
        const pare_ub scores = pare_ub_fma(form, eps, moved_scores(beta, s, e));
        e = pare_ub_mul(square(beta), pooled_move(beta, s, e, scores));
    }
    return e;
}

pare_ub pare_lowrank_bound(pare_ub beta, pare_ub s, size_t layers, pare_ub eps)
{
    pare_ub e = eps;
    for (size_t l = 0; l < layers; l++) {
        const pare_ub through =
            pare_ub_mul(square(beta), pooled_move(beta, s, e, moved_scores(beta, s, e)));
        e = pare_ub_sqrt(pare_ub_add(square(pare_ub_mul(beta, eps)), square(through)));
    }
    return e;
}

pare_ub pare_jl_bound_linear(pare_ub beta, pare_ub s, size_t layers, pare_ub eps)
{
    const pare_ub b3 = pare_ub_mul(beta, square(beta)),
                  b5s = pare_ub_mul(pare_ub_mul(b3, square(beta)), s);
    const pare_ub two = pare_ub_fma(pare_ub_exact(2), s, pare_ub_exact(1));
    const pare_ub c1 = pare_ub_fma(b5s, two, b3);
    const pare_ub c2 = pare_ub_mul(b5s, square(pare_ub_add(s, pare_ub_exact(1))));
    pare_ub sum = pare_ub_exact(0); /* 1 + c1 + ... + c1^(L-1) */
    for (size_t l = 0; l < layers; l++) sum = pare_ub_fma(sum, c1, pare_ub_exact(1));
    return pare_ub_mul(pare_ub_mul(c2, sum), eps);
}
