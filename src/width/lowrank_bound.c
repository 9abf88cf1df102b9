/* lowrank_bound.c - Theorem 4.2 of Shirzad 2024 as it is true, on the data of a certificate.
 *
 * It is about plain nets: one head, no skips, no biases, an activation with slopes of at most 1. If
 * the rows of the stream at its start and all hidden rows are within eps of subspaces of d
 * dimensions, some net of width d is, decoded, within pare_lowrank_bound(beta, sqrt(alpha), L, eps)
 * of this one: beta bounds all maps (scores with their scale), sqrt(alpha) all rows that a layer
 * reads. These are bounded here from above on the exact rows: by enclosures of the model up to each
 * point, and by the distance from U (U^T x) for any U with d columns. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "prove.h"
#include "stored_weights.h"
#include <math.h>
#include <string.h>

const char *lowrank_refuses(const net *n)
{
    for (size_t l = 0; l < n->nlayers; l++) {
        const net_layer *const k = &n->layers[l];
        const net_head *const h = &k->heads[0];
        if (k->nheads != 1) return "one head";
        if (k->r1.v || k->r2.v) return "no skips";
        if (!all_zero(h->bq, h->wq.rows) || !all_zero(h->bv, h->wv.rows) ||
            !all_zero(k->c1, h->wo.rows) || !all_zero(k->b1, k->w1.rows) ||
            !all_zero(k->c2, k->w2.rows))
            return "no biases";
        if (k->act != PARE_ACT_RELU && k->act != PARE_ACT_NONE && k->act != PARE_ACT_TANH)
            return "an activation whose slopes are at most 1";
    }
    return NULL;
}

/* The rows that layer l reads, or its hidden ones. */
static pare_enclosure rows_at(pare_work *w, const pare_model *m, const pare_input *in, size_t l,
                              bool hidden)
{
    pare_model part = *m;
    pare_model_norms *norms = NULL;
    pare_enclosure e = {0};
    part.head = (pare_output_head){0};
    part.nblocks = hidden ? l + 1 : l;
    part.blocks = pare_work_alloc(w, part.nblocks, sizeof *part.blocks);
    if (w->st) return e;
    memcpy(part.blocks, m->blocks, part.nblocks * sizeof *part.blocks);
    if (hidden) {
        part.head.dense = m->blocks[l].ffn.layers[0];
        part.head.act = m->blocks[l].ffn.act;
        part.blocks[l].ffn = (pare_ffn){0};
    }
    pare_status st = pare_model_norms_new(&norms, w->arena, &part, SILENT_EXEC(w), w->err);
    if (!st) st = pare_enclose(&e, w->arena, &part, norms, in, SILENT_EXEC(w), w->err);
    w->st = st;
    return e;
}

/* A bound on a row of the enclosure, from one on its midpoint. */
static pare_ub with_radius(const pare_enclosure *e, size_t i, pare_ub mid)
{
    const pare_ub cols = pare_ub_sqrt(pare_ub_exact((double)e->cols));
    return pare_ub_fma(cols, pare_ub_exact(e->rad[i]), mid);
}

/* The largest distance of an exact row from some subspace of d dimensions, and the largest norm;
 * either may be NULL. */
static void measure_rows(pare_work *w, const pare_enclosure *e, size_t d, pare_ub *eps,
                         pare_ub *norm)
{
    if (w->st) return;
    const pare_mat x = pare_mat_of(e->mid, e->rows, e->cols);
    const basis b = basis_pca(w, &x, d, false);
    const pare_mat c = mat_mul(w, &x, false, &b.u, false);
    pare_mat left = mat_copy(w, &x);
    if (w->st) return;
    pare_gemm(&left, -1, &c, false, &b.u, true, 1);
    const pare_ub size = fro_norm(&b.u), one = pare_ub_exact(1);
    for (size_t i = 0; i < x.rows; i++) {
        /* Every entry is one sum of that of x and the products. */
        const pare_ub row = vector_norm(pare_row(&x, i), x.cols);
        const pare_ub terms = pare_ub_fma(vector_norm(pare_row(&c, i), c.cols), size, row);
        const pare_ub off = product_rounding(c.cols + 1, terms, one);
        const pare_ub far = vector_norm(pare_row(&left, i), x.cols);
        if (eps) *eps = pare_ub_max(*eps, with_radius(e, i, pare_ub_add(far, off)));
        if (norm) *norm = pare_ub_max(*norm, with_radius(e, i, row));
    }
}

pare_ub largest_map_norm(pare_work *w, const net *n)
{
    pare_ub most = pare_ub_exact(0);
    for (size_t l = 0; l < n->nlayers; l++) {
        const net_head *const h = &n->layers[l].heads[0];
        const pare_ub ov = pare_ub_mul(spectral_norm(w, &h->wo), spectral_norm(w, &h->wv));
        const pare_ub q = pare_ub_mul(pare_ub_exact(h->scale), spectral_norm(w, &h->wq));
        const pare_ub scores = pare_ub_max(q, spectral_norm(w, &h->wk));
        const pare_ub ffn =
            pare_ub_max(spectral_norm(w, &n->layers[l].w1), spectral_norm(w, &n->layers[l].w2));
        most = pare_ub_max(pare_ub_max(most, ov), pare_ub_max(scores, ffn));
    }
    return most;
}

lowrank_facts lowrank_measure(pare_work *w, const pare_model *m, const net *n,
                              const pare_inputs *set, size_t d)
{
    lowrank_facts p = {.rows = pare_ub_exact(0), .eps = pare_ub_exact(0)};
    PARE_ASSERT(set->n <= 1); /* a subspace for each input would prove nothing about one net */
    for (size_t k = 0; !w->st && k < set->n; k++)
        for (size_t l = 0; !w->st && l < n->nlayers; l++) {
            const pare_mark mark = pare_arena_mark(w->arena);
            const pare_enclosure h = rows_at(w, m, &set->in[k], l, false);
            const pare_enclosure hidden = rows_at(w, m, &set->in[k], l, true);
            /* Rows behind a layer are those of its hidden: their distances are not needed. */
            measure_rows(w, &h, d, l == 0 ? &p.eps : NULL, &p.rows);
            measure_rows(w, &hidden, d, &p.eps, NULL);
            pare_arena_reset(w->arena, mark);
        }
    /* Rounding alone is not the same on every machine: below this it is raised. */
    p.eps = pare_ub_max(p.eps, pare_ub_mul(pare_ub_exact(1e-9), p.rows));
    p.maps = largest_map_norm(w, n);
    p.bound = w->st ? pare_ub_inf() : pare_lowrank_bound(p.maps, p.rows, n->nlayers, p.eps);
    return p;
}
