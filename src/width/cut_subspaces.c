/* cut_subspaces.c - the methods exact, lowrank and leverage: the stream in affine subspaces, chosen
 * on the streams of the original model (Proposition 4.1 and Theorem 4.2 of Shirzad 2024, with
 * skips, norms folded, several heads, biases and nodes without keys).
 *
 * At each point of the stream h ~ U h^ + mu. With (U, mu) -> (U1, mu1) across attention and
 * (U1, mu1) -> (U2, mu2) across the feed-forward part,
 *
 *     We^ = U0^T We                       be^ = U0^T (be - mu0)
 *     Wq^, bq^, Wk^  by qk_exact          Wv^ = U1^T Wo Wv U,  bv^ = U1^T Wo (Wv mu + bv)
 *     R1^ = U1^T R1 U                     c1^ = U1^T (R1 mu + c1 - mu1)
 *     W1^ = W1_S U1                       b1^ = W1_S mu1 + b1_S
 *     R2^ = U2^T R2 U1,  W2^ = U2^T W2 G  c2^ = U2^T (W2 g0 + R2 mu1 + c2 - mu2)
 *     Wh^ = Wh U_L                        bh^ = Wh mu_L + bh
 *
 * where S are the selected hidden units, p ~ G p_S + g0. The offset of the values stays inside the
 * attention sum: a node without keys gets 0, before and after.
 *
 * Nothing is lost (Proposition 4.1) when every row of the stream lies in its subspace and p in the
 * span of p_S: that is `exact`. The proposition is about one head without skips, where low rank of
 * the hidden activations is enough; with a skip or several heads rank(z) may be (1 + heads) times
 * rank(h). */
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>

#define EXACT_ROWS  1e-9  /* largest residual of a row, of the largest entry of the stream */
#define EXACT_UNITS 1e-10 /* of the first pivot among the hidden units */

static bool keeps_stream(const pare_width_opts *o)
{
    return o->method != PARE_WIDTH_EXACT && o->dim == 0;
}

cut_record record_new(pare_work *w, const net *n)
{
    cut_record r = {.npoints = 2 * n->nlayers + 1, .nhidden = n->nlayers};
    for (size_t i = 0; i < n->nlayers; i++) r.nheads += n->layers[i].nheads;
    r.points = pare_work_alloc(w, r.npoints, sizeof *r.points);
    r.heads = pare_work_alloc(w, r.nheads, sizeof *r.heads);
    r.hidden = pare_work_alloc(w, r.nhidden, sizeof *r.hidden);
    return r;
}

void record_point(cut_record *r, size_t k, size_t before, size_t after, double residual_est)
{
    pare_width_point *const at = &r->points[k];
    snprintf(at->name, sizeof at->name, "%c%zu", k % 2 ? 'z' : 'h', k / 2);
    at->before = before;
    at->after = after;
    at->residual_est = residual_est;
}

/* The basis of point k, whose rows are h. */
static basis basis_for(pare_work *w, const pare_mat *h, const pare_width_opts *o, cut_record *r,
                       size_t k)
{
    const size_t d = o->dim < h->cols ? o->dim : h->cols;
    basis b = {0};
    if (w->st) return b;
    if (o->method == PARE_WIDTH_EXACT)
        b = basis_within(w, h, EXACT_ROWS * pare_mat_max_abs(h), true);
    else if (o->dim == 0)
        b = basis_identity(w, h->cols);
    else
        b = o->basis == PARE_BASIS_MINMAX ? basis_minmax(w, h, d) : basis_pca(w, h, d, true);
    if (w->st) return b;
    const double residual = keeps_stream(o) ? NAN : basis_residual(w, &b, h);
    record_point(r, k, h->cols, basis_dim(&b), residual);
    return b;
}

/* ---- attention ------------------------------------------------------------------------------ */

static net_head scores_for(pare_work *w, const net_head *hd, const basis *b, const activations *p,
                           size_t layer, const pare_width_opts *o, pare_width_head *note)
{
    const net_head out = keeps_stream(o) ? *hd : qk_exact(w, hd, b);
    note->scores_est = 0;
    note->objective_est = note->least_est = NAN;
    if (w->st || o->qk_dim == 0 || o->qk_dim >= out.wq.rows) return out;
    const pare_mat x = basis_coords(w, b, &p->h[layer]);
    return qk_reduced(w, &out, &x, &p->graph, o->qk_dim, note);
}

/* With fewer dimensions than a head has values, Wo becomes the identity; else the head keeps its
 * values and Wo. */
static void values_for(pare_work *w, net_head *out, const net_head *hd, const basis *in,
                       const basis *mid)
{
    double *const b = mat_vec(w, &hd->wv, false, in->mu, hd->bv);
    const pare_mat v = mat_mul(w, &hd->wv, false, &in->u, false);
    const pare_mat o = mat_mul(w, &mid->u, true, &hd->wo, false);
    if (w->st) return;
    if (hd->wv.rows <= basis_dim(mid)) {
        out->wv = v;
        out->wo = o;
        out->bv = b;
        return;
    }
    out->wv = mat_mul(w, &o, false, &v, false);
    out->bv = mat_vec(w, &o, false, b, NULL);
    out->wo = mat_identity(w, basis_dim(mid));
}

/* to^T (A mu + c - mu') with A absent (zero) where a->v is NULL. */
static double *offset_for(pare_work *w, const pare_mat *a, const double *mu, const double *c,
                          const basis *to)
{
    const size_t d = to->u.rows;
    double *const v = a->v ? mat_vec(w, a, false, mu, c) : vec_zeros(w, d);
    for (size_t i = 0; !w->st && i < d; i++) v[i] = (a->v ? v[i] : c[i]) - to->mu[i];
    return w->st ? NULL : mat_vec(w, &to->u, true, v, NULL);
}

static pare_mat skip_for(pare_work *w, const pare_mat *r, const basis *from, const basis *to)
{
    return r->v ? mat_mul3(w, &to->u, true, r, &from->u, false) : (pare_mat){0};
}

static net_layer layer_for(pare_work *w, const net_layer *l, const basis b[3], const activations *p,
                           size_t i, const pare_width_opts *o, cut_record *r, size_t head)
{
    const basis *const in = &b[0], *const mid = &b[1], *const end = &b[2];
    net_layer out = *l;
    out.heads = pare_work_alloc(w, l->nheads, sizeof *out.heads);
    for (size_t k = 0; !w->st && k < l->nheads; k++) {
        pare_width_head *const note = &r->heads[head + k];
        out.heads[k] = scores_for(w, &l->heads[k], in, p, i, o, note);
        values_for(w, &out.heads[k], &l->heads[k], in, mid);
        note->layer = i;
        note->head = k;
        note->before = l->heads[k].wq.rows;
        note->after = out.heads[k].wq.rows;
    }
    out.r1 = skip_for(w, &l->r1, in, mid);
    out.c1 = w->st ? NULL : offset_for(w, &l->r1, in->mu, l->c1, mid);

    const pare_mat *const hidden = &p->p[i];
    unit_selection s = {0};
    if (w->st) return out;
    if (o->method == PARE_WIDTH_EXACT)
        s = select_units_exact(w, hidden, EXACT_UNITS);
    else if (o->ffn_dim == 0 || o->ffn_dim >= hidden->cols)
        s = select_all_units(w, hidden->cols);
    else
        s = select_units(w, hidden, o->ffn_dim, o, i);
    const pare_mat rows = mat_take_rows(w, &l->w1, s.which, s.n);
    double *const bias = vec_zeros(w, s.n);
    for (size_t u = 0; !w->st && u < s.n; u++) bias[u] = l->b1[s.which[u]];
    out.w1 = mat_mul(w, &rows, false, &mid->u, false);
    out.b1 = mat_vec(w, &rows, false, mid->mu, bias);
    out.w2 = mat_mul3(w, &end->u, true, &l->w2, &s.decode, false);
    out.r2 = skip_for(w, &l->r2, mid, end);
    const double *const constant = mat_vec(w, &l->w2, false, s.offset, l->c2);
    out.c2 = w->st ? NULL : offset_for(w, &l->r2, mid->mu, constant, end);
    if (!w->st)
        r->hidden[i] = (pare_width_hidden){i, l->w1.rows, s.n, s.pinv_norm, s.limit, s.units};
    return out;
}

net cut_subspaces(pare_work *w, const net *n, const activations *p, const pare_width_opts *o,
                  cut_record *r)
{
    net out = *n;
    basis b[3];
    b[0] = basis_for(w, &p->h[0], o, r, 0);
    out.layers = pare_work_alloc(w, n->nlayers, sizeof *out.layers);
    if (w->st) return out;
    const pare_mat no_skip = {0};
    out.we = mat_mul(w, &b[0].u, true, &n->we, false);
    out.be = offset_for(w, &no_skip, NULL, n->be, &b[0]);
    for (size_t i = 0, head = 0; !w->st && i < n->nlayers; head += n->layers[i].nheads, i++) {
        b[1] = basis_for(w, &p->z[i], o, r, 2 * i + 1);
        b[2] = basis_for(w, &p->h[i + 1], o, r, 2 * i + 2);
        out.layers[i] = layer_for(w, &n->layers[i], b, p, i, o, r, head);
        b[0] = b[2];
        if (!w->st) w->st = pare_progress(w->exec, "width", i + 1, n->nlayers, w->err);
    }
    out.wh = mat_mul(w, &n->wh, false, &b[0].u, false);
    out.bh = w->st ? NULL : mat_vec(w, &n->wh, false, b[0].mu, n->bh);
    return out;
}
