/* change_basis.c - rewrite a net so that its dense skips become identities.
 *
 * The coordinates of the residual stream may be changed by any invertible matrix without changing
 * the outputs (docs/theory/width.md section 8). In a layer with skips R1 (attention) and R2 (FFN)
 *
 *     in:      h'  = G  h
 *     middle:  z'  = G1 z,   G1 = G  R1^-1,   so that  G1 R1 G^-1  = I
 *     out:     h'' = G2 h,   G2 = G1 R2^-1,   so that  G2 R2 G1^-1 = I
 *
 * and the output head multiplies by G2^-1. Exact in real numbers; in f64 outputs move by about
 * 1e-16 cond(G)^2. Not meant for training: the new coordinates can differ widely in size. */
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>

#define SINGULAR 1e-12 /* smallest singular value, of the largest */

/* New coordinates G, and G^-1. */
typedef struct change {
    pare_mat g, back;
} change;

/* G R^-1 and its inverse; raises *cond. */
static change basis_after_skip(pare_work *w, const change *from, const pare_mat *r, size_t layer,
                               const char *which, double *cond)
{
    change c = {0};
    if (w->st) return c;
    if (!r->v || r->rows != r->cols) {
        pare_work_fail(w, PARE_ERR_INPUT,
                       "layer %zu: the skip around %s is %s: it cannot be the identity", layer,
                       which, r->v ? "not square" : "not there");
        return c;
    }
    const svd_factors s = svd_of(w, r);
    if (w->st) return c;
    if (!(s.s[s.n - 1] > SINGULAR * s.s[0])) {
        pare_work_fail(
            w, PARE_ERR_INPUT,
            "layer %zu: the skip around %s is singular (%.3g beside %.3g): it cannot be the "
            "identity",
            layer, which, s.s[s.n - 1], s.s[0]);
        return c;
    }
    pare_mat v = mat_transpose(w, &s.vt);
    for (size_t i = 0; !w->st && i < v.rows; i++)
        for (size_t j = 0; j < v.cols; j++) pare_row_mut(&v, i)[j] /= s.s[j];
    const pare_mat inverse = mat_mul(w, &v, false, &s.u, true);
    c.g = mat_mul(w, &from->g, false, &inverse, false);
    c.back = mat_mul(w, r, false, &from->back, false);
    *cond = fmax(*cond, mat_norm_est(w, &c.g) * mat_norm_est(w, &c.back));
    return c;
}

net net_identity_skips(pare_work *w, const net *n, double *cond)
{
    net to = net_shallow(w, n);
    change at = {mat_identity(w, n->we.rows), mat_identity(w, n->we.rows)};
    *cond = 1;
    for (size_t l = 0; !w->st && l < n->nlayers; l++) {
        const net_layer *const from = &n->layers[l];
        const change mid = basis_after_skip(w, &at, &from->r1, l, "attention", cond);
        const change out = basis_after_skip(w, &mid, &from->r2, l, "the hidden layer", cond);
        net_layer *const layer = &to.layers[l];
        for (size_t i = 0; !w->st && i < from->nheads; i++) {
            const net_head *const h = &from->heads[i];
            layer->heads[i].wq = mat_mul(w, &h->wq, false, &at.back, false);
            layer->heads[i].wk = mat_mul(w, &h->wk, false, &at.back, false);
            layer->heads[i].wv = mat_mul(w, &h->wv, false, &at.back, false);
            layer->heads[i].wo = mat_mul(w, &mid.g, false, &h->wo, false);
        }
        if (w->st) break;
        layer->r1 = mat_identity(w, mid.g.rows);
        layer->c1 = mat_vec(w, &mid.g, false, from->c1, NULL);
        layer->w1 = mat_mul(w, &from->w1, false, &mid.back, false);
        layer->w2 = mat_mul(w, &out.g, false, &from->w2, false);
        layer->r2 = mat_identity(w, out.g.rows);
        layer->c2 = mat_vec(w, &out.g, false, from->c2, NULL);
        at = out;
    }
    if (!w->st) to.wh = mat_mul(w, &n->wh, false, &at.back, false);
    return to;
}
