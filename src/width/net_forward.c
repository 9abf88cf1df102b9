/* net_forward.c - a folded net one step at a time, in f64, for constructions that go layer by
 * layer. */
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "folded_net.h"
#include <math.h>

/* ---- attention ------------------------------------------------------------------------------ */

enum { ROWS = 256 }; /* queries of one block of work */

typedef struct scoring {
    const pare_mat *q, *k;
    const pare_graph *g;
    double scale;
    double *s;
} scoring;

static void score_rows(void *ctx, size_t block)
{
    const scoring *const c = ctx;
    const size_t end = (block + 1) * ROWS < c->g->n ? (block + 1) * ROWS : c->g->n;
    for (size_t i = block * ROWS; i < end; i++)
        for (size_t e = c->g->ptr[i]; e < c->g->ptr[i + 1]; e++) {
            const double *const q = pare_row(c->q, i), *const k = pare_row(c->k, c->g->idx[e]);
            c->s[e] = c->scale * vec_dot(q, k, c->q->cols);
        }
}

double *head_scores(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g)
{
    const pare_mat q = affine_rows(w, h, &hd->wq, hd->bq), k = affine_rows(w, h, &hd->wk, NULL);
    scoring c = {&q, &k, g, hd->scale, vec_zeros(w, g->ptr[g->n])};
    if (!w->st) pare_parallel(w->exec, (g->n + ROWS - 1) / ROWS, score_rows, &c);
    return c.s;
}

double score_half_range(const double *a, const double *b, const pare_graph *g)
{
    double worst = 0;
    for (size_t i = 0; i < g->n; i++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            const double off = a[e] - b[e];
            if (off < low) low = off;
            if (off > high) high = off;
        }
        if (high >= low && (high - low) / 2 > worst) worst = (high - low) / 2;
    }
    return worst;
}

pare_mat head_pooled(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g)
{
    const pare_mat q = affine_rows(w, h, &hd->wq, hd->bq), k = affine_rows(w, h, &hd->wk, NULL);
    const pare_mat v = affine_rows(w, h, &hd->wv, hd->bv);
    const pare_pattern graph = {.kind = PARE_GRAPH};
    pare_mat y = mat_zeros(w, h->rows, hd->wv.rows);
    const pare_attention_args x = {
        .q = &q, .k = &k, .v = &v, .scale = hd->scale, .pattern = &graph, .graph = g};
    if (!w->st) w->st = pare_attend_f64(&y, &x, w->exec, w->err);
    return y;
}

static void add_rows(pare_work *w, pare_mat *to, const pare_mat *x)
{
    for (size_t i = 0; !w->st && i < to->rows; i++)
        for (size_t j = 0; j < to->cols; j++) pare_row_mut(to, i)[j] += pare_row(x, i)[j];
}

/* R x + c; no skip: c in every row. */
static pare_mat skip_rows(pare_work *w, const pare_mat *r, const pare_mat *x, const double *c,
                          size_t d)
{
    if (r->v) return affine_rows(w, x, r, c);
    pare_mat y = mat_zeros(w, x->rows, d);
    for (size_t i = 0; !w->st && i < y.rows; i++)
        for (size_t j = 0; j < d; j++) pare_row_mut(&y, i)[j] = c[j];
    return y;
}

pare_mat layer_attention(pare_work *w, const net_layer *l, const pare_mat *h, const pare_graph *g)
{
    pare_mat z = skip_rows(w, &l->r1, h, l->c1, l->heads[0].wo.rows);
    for (size_t i = 0; i < l->nheads; i++) {
        const pare_mat pooled = head_pooled(w, &l->heads[i], h, g);
        const pare_mat o = affine_rows(w, &pooled, &l->heads[i].wo, NULL);
        add_rows(w, &z, &o);
    }
    return z;
}

pare_mat layer_hidden(pare_work *w, const net_layer *l, const pare_mat *z)
{
    pare_mat p = affine_rows(w, z, &l->w1, l->b1);
    for (size_t i = 0; !w->st && i < p.rows; i++)
        for (size_t j = 0; j < p.cols; j++)
            pare_row_mut(&p, i)[j] = pare_act_f64(l->act, pare_row(&p, i)[j]);
    return p;
}

pare_mat layer_ffn(pare_work *w, const net_layer *l, const pare_mat *z, const pare_mat *p)
{
    pare_mat h = skip_rows(w, &l->r2, z, l->c2, l->w2.rows);
    const pare_mat y = affine_rows(w, p, &l->w2, NULL);
    add_rows(w, &h, &y);
    return h;
}
