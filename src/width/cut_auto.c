/* cut_auto.c - the practical pipeline (docs/theory/width.md section 9): layer by layer, each new
 * piece is the best map of rank d, in the gradient metric, from what the small net has to what the
 * large one had (rrr: reduced-rank regression).
 *
 *     h_0      rrr(x -> h_0)                                          We^, be^
 *     z_i      queries and keys by qk_optimal on the small stream; pooled_k = sum_j a^_ij h^_j;
 *              rrr([h^, pooled_1, ...] -> z_i)                        R1^, Wv^ of each head, c1^
 *     h_i+1    p = act(W1 z) for all units; S by omp_units, then moved (refine_units);
 *              rrr([z^, p_S] -> h_i+1)                                W1^, R2^, W2^, c2^
 *     y        the head on U h^ + mu
 *
 * So errors of earlier layers are compensated where they can be. A node without keys pools 0,
 * before and after: where there are such nodes, whether a node has keys is one more input of the
 * regression, and its coefficient becomes the bias of the values (which contains the mean of the
 * large stream). Without such nodes the offset takes care of it. */
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>
#include <string.h>

typedef struct pipeline {
    pare_work *w;
    const net *n;
    const activations *p;
    const pare_mat *metric; /* 2 L + 1, or NULL: every direction counts the same */
    cut_record *r;
    size_t dim, qk_dim, ffn_dim; /* asked for; 0: as it is */
    pare_mat h;                  /* the small stream, where the next piece begins */
    basis b;                     /* the large one is about b.u h + b.mu (columns not orthonormal) */
} pipeline;

/* ---- pieces --------------------------------------------------------------------------------- */

/* The matrices side by side. */
static pare_mat concat_cols(pare_work *w, const pare_mat *const *all, size_t n)
{
    size_t cols = 0;
    for (size_t k = 0; k < n; k++) cols += all[k]->cols;
    pare_mat m = mat_zeros(w, all[0]->rows, cols);
    for (size_t k = 0, at = 0; !w->st && k < n; at += all[k]->cols, k++)
        for (size_t i = 0; i < m.rows; i++)
            memcpy(pare_row_mut(&m, i) + at, pare_row(all[k], i), all[k]->cols * sizeof *m.v);
    return m;
}

/* Rows [from, from + n) of c, transposed. */
static pare_mat rows_transposed(pare_work *w, const pare_mat *c, size_t from, size_t n)
{
    if (w->st) return (pare_mat){0};
    const pare_mat part = pare_mat_part(c, from, 0, n, c->cols);
    return mat_transpose(w, &part);
}

/* The fit of y, the rows of the large model at point k; h and b move there. */
static rrr_fit fit_point(pipeline *a, size_t k, const pare_mat *phi, const pare_mat *y)
{
    pare_work *const w = a->w;
    const size_t d = a->dim && a->dim < y->cols ? a->dim : y->cols;
    const rrr_fit f = rrr(w, phi, y, d, a->metric ? &a->metric[k] : NULL);
    a->h = rrr_coords(w, &f, phi);
    a->b = (basis){f.u, f.to};
    if (w->st) return f;
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat decoded = affine_rows(w, &a->h, &a->b.u, a->b.mu);
    const double worst = w->st ? 0 : max_row_norm(y, &decoded);
    pare_arena_reset(w->arena, mark);
    record_point(a->r, k, y->cols, f.c.cols, worst);
    return f;
}

/* ---- one layer ------------------------------------------------------------------------------ */

/* One column: 1 for a node with keys, 0 for one without. No column if that is the same for all. */
static pare_mat has_keys(pare_work *w, const pare_graph *g)
{
    size_t some = 0;
    for (size_t i = 0; i < g->n; i++) some += g->ptr[i + 1] > g->ptr[i];
    pare_mat m = mat_zeros(w, g->n, some > 0 && some < g->n);
    for (size_t i = 0; !w->st && m.cols && i < g->n; i++) m.v[i] = g->ptr[i + 1] > g->ptr[i];
    return m;
}

/* Scores in few dimensions; the values are the stream itself until the regression sets them. */
static net_head head_for(pipeline *a, const net_head *hd, pare_width_head *note)
{
    pare_work *const w = a->w;
    const net_head whole = qk_exact(w, hd, &a->b);
    if (w->st) return whole;
    const size_t dk = whole.wq.rows, d = a->qk_dim && a->qk_dim < dk ? a->qk_dim : dk;
    net_head few = qk_reduced(w, &whole, &a->h, &a->p->graph, d, note);
    few.wv = few.wo = mat_identity(w, a->h.cols);
    few.bv = vec_zeros(w, a->h.cols);
    note->before = hd->wq.rows;
    note->after = few.wq.rows;
    return few;
}

static void attention_for(pipeline *a, net_layer *out, const net_layer *l, size_t i, size_t head)
{
    pare_work *const w = a->w;
    const size_t d = a->h.cols, last = l->nheads + 1;
    pare_mat *const pooled = pare_work_alloc(w, l->nheads, sizeof *pooled);
    const pare_mat **const all = pare_work_alloc(w, last + 1, sizeof *all);
    const pare_mat keyed = a->metric ? has_keys(w, &a->p->graph) : mat_zeros(w, a->h.rows, 0);
    out->heads = pare_work_alloc(w, l->nheads, sizeof *out->heads);
    if (w->st) return;
    all[0] = &a->h;
    for (size_t k = 0; k < l->nheads; k++) {
        pare_width_head *const note = &a->r->heads[head + k];
        *note = (pare_width_head){.layer = i, .head = k};
        out->heads[k] = head_for(a, &l->heads[k], note);
        pooled[k] = head_pooled(w, &out->heads[k], &a->h, &a->p->graph);
        all[k + 1] = &pooled[k];
        if (w->st) return;
    }
    all[last] = &keyed;
    const pare_mat phi = concat_cols(w, all, last + (keyed.cols > 0));
    const rrr_fit f = fit_point(a, 2 * i + 1, &phi, &a->p->z[i]);
    out->r1 = rows_transposed(w, &f.c, 0, d);
    out->c1 = rrr_offset(w, &f);
    for (size_t k = 0; !w->st && k < l->nheads; k++) {
        out->heads[k].wv = rows_transposed(w, &f.c, (k + 1) * d, d);
        out->heads[k].wo = mat_identity(w, f.c.cols);
        out->heads[k].bv = vec_zeros(w, f.c.cols);
    }
    if (!w->st && keyed.cols > 0) /* in one head's values: its weights add up to 1 */
        memcpy(out->heads[0].bv, pare_row(&f.c, last * d), f.c.cols * sizeof(double));
}

static void ffn_for(pipeline *a, net_layer *out, const net_layer *l, size_t i)
{
    pare_work *const w = a->w;
    const size_t d = a->h.cols, f0 = l->w1.rows;
    const size_t k = a->ffn_dim && a->ffn_dim < f0 ? a->ffn_dim : f0;
    const pare_mat *const y = &a->p->h[i + 1];
    out->w1 = mat_mul(w, &l->w1, false, &a->b.u, false);
    out->b1 = mat_vec(w, &l->w1, false, a->b.mu, l->b1);
    if (w->st) return;
    const pare_mat units = layer_hidden(w, out, &a->h);
    const pare_mat *const metric = a->metric ? &a->metric[2 * i + 2] : NULL;
    const size_t *const which = omp_units(w, &a->h, &units, y, k, metric);
    if (w->st) return;
    out->w1 = mat_take_rows(w, &out->w1, which, k);
    for (size_t j = 0; !w->st && j < k; j++) out->b1[j] = out->b1[which[j]]; /* which ascends */
    if (k < f0 && metric) refine_units(w, out, &a->h, y, metric);
    if (w->st) return;
    const pare_mat selected = layer_hidden(w, out, &a->h);
    const pare_mat *const all[] = {&a->h, &selected};
    const pare_mat phi = concat_cols(w, all, 2);
    const rrr_fit f = fit_point(a, 2 * i + 2, &phi, y);
    out->r2 = rows_transposed(w, &f.c, 0, d);
    out->w2 = rows_transposed(w, &f.c, d, k);
    out->c2 = rrr_offset(w, &f);
    a->r->hidden[i] = (pare_width_hidden){i, f0, k, NAN, NAN, NAN};
}

/* ---- all of it ------------------------------------------------------------------------------ */

net cut_auto(pare_work *w, const net *n, const activations *p, const pare_mat *metric,
             const pare_width_opts *o, cut_record *r)
{
    net out = *n;
    pipeline a = {.w = w,
                  .n = n,
                  .p = p,
                  .metric = metric,
                  .r = r,
                  .dim = o->dim,
                  .qk_dim = o->qk_dim ? o->qk_dim : o->dim};
    out.layers = pare_work_alloc(w, n->nlayers, sizeof *out.layers);
    if (w->st) return out;
    const rrr_fit f = fit_point(&a, 0, &p->x, &p->h[0]);
    out.we = w->st ? f.c : mat_transpose(w, &f.c);
    out.be = w->st ? NULL : rrr_offset(w, &f);
    for (size_t i = 0, head = 0; !w->st && i < n->nlayers; head += n->layers[i].nheads, i++) {
        const net_layer *const l = &n->layers[i];
        out.layers[i] = *l;
        a.ffn_dim = o->ffn_dim;
        if (!o->ffn_dim && o->dim) { /* in the proportion that the model has */
            const size_t d = l->w1.cols, k = (o->dim * l->w1.rows + d - 1) / d;
            a.ffn_dim = k > 0 ? k : 1;
        }
        attention_for(&a, &out.layers[i], l, i, head);
        if (!w->st) ffn_for(&a, &out.layers[i], l, i);
        if (!w->st) w->st = pare_progress(w->exec, "width", i + 1, n->nlayers, w->err);
    }
    if (w->st) return out;
    out.wh = mat_mul(w, &n->wh, false, &a.b.u, false);
    out.bh = mat_vec(w, &n->wh, false, a.b.mu, n->bh);
    return out;
}
