/* plan_blocks.c - the source that a whole target needs, before anything is drawn
 * (docs/theory/ticket.md "Theorem 3, beforehand"; replaces the c^f(b,B) of Otsuka 2025, Theorem
 * 6).
 *
 * Claim. If every entry of every matrix that is fitted is met within eta, then |E| <= sqrt(a b) eta
 * for each of them, and Theorem B's recursion with these |E| bounds |f - g|. It grows with eta, so
 * the largest eta for which it ends at eps is found by halving an interval; Lemma S then says how
 * many products an entry needs when the failure p is split over all entries.
 * Fitted are: c Wq^T Wk and Wo Wv of every head (rotary heads: Wq, Wk, and Wo Wv), every dense
 * layer (the first of a ReLU part for both signs of its inputs, as a ReLU source must), embedding,
 * position table and last map. Gains and biases are kept as they are. */
#include "model/model_facts.h"
#include "linalg/bounds.h"
#include "ticket_bounds.h"
#include "merged_heads.h"
#include "model_bound.h"
#include <math.h>

typedef struct fitted { /* what is fitted in all */
    size_t entries;
    pare_ub largest;
} fitted;

/* An a x b matrix whose entries are met within eta: |E|, and what g's own map can be. */
static pare_ub error_norm(double eta, size_t a, size_t b)
{
    return pare_ub_mul(pare_ub_exact(eta), pare_ub_sqrt(pare_ub_exact((double)a * (double)b)));
}

static void count_fitted(fitted *all, size_t a, size_t b, pare_ub largest)
{
    all->entries += a * b;
    all->largest = pare_ub_max(all->largest, largest);
}

static affine widened_map(const affine *m, const affine *e)
{
    return (affine){pare_ub_add(m->w, e->w), pare_ub_add(m->b, e->b),
                    pare_ub_add(m->whole, e->whole)};
}

static void widen_head(head_sizes *h, fitted *all, double eta, const pare_attn *at, size_t i)
{
    const size_t d = at->din, o = pare_has(&at->wo) ? at->dout : at->heads[i].dv;
    const size_t dk = at->heads[i].dk, one = pare_has(&at->bq) ? 1 : 0;
    if (h->factored) { /* biases are stored */
        h->qe = h->ke = (affine){error_norm(eta, dk, d), pare_ub_exact(0), error_norm(eta, dk, d)};
        h->qt = widened_map(&h->q, &h->qe);
        h->kt = widened_map(&h->k, &h->ke);
        count_fitted(all, 2 * dk, d, pare_ub_max(h->q.w, h->k.w));
    } else {
        h->ge = (affine){error_norm(eta, d, d), error_norm(eta, one * d, 1),
                         error_norm(eta, d + one, d)};
        h->gt = widened_map(&h->g, &h->ge);
        count_fitted(all, d + one, d, h->g_max);
    }
    h->ve = error_norm(eta, o, d);
    h->vt = pare_ub_add(h->v, h->ve);
    count_fitted(all, o, d, h->v_max);
}

/* `sides`: 2 where a ReLU source meets every entry for both signs of its input. */
static void widen_dense(dense_sizes *m, fitted *all, double eta, const pare_dense *d, size_t sides)
{
    const size_t o = d->w.rows, in = sides * d->w.cols;
    m->e = (affine){error_norm(eta, o, in), pare_ub_exact(0), error_norm(eta, o, in)};
    m->g = widened_map(&m->f, &m->e);
    m->row_g = pare_ub_add(m->row_f, error_norm(eta, 1, in));
    m->max_g = m->max_f;
    count_fitted(all, o, in, m->w_max);
}

static void widen_table(span *s, fitted *all, double eta, const pare_weight *w)
{
    if (!pare_has(w)) return;
    s->d = error_norm(eta, 1, w->cols);
    s->g = pare_ub_add(s->f, s->d);
    count_fitted(all, w->rows, w->cols, pare_norm_max(w));
}

static void widen_output_head(output_head_sizes *t, fitted *all, double eta, const pare_model *f)
{
    const pare_weight *const w = pare_head_weight(f);
    if (t->dense_there) widen_dense(&t->dense, all, eta, &f->head.dense, 1);
    for (size_t o = 0; t->out_there && o < t->outputs; o++) {
        t->row_e[o] = error_norm(eta, 1, w->cols);
        t->row_g[o] = pare_ub_add(t->row_f[o], t->row_e[o]);
    }
    if (t->out_there && !f->head.tied) count_fitted(all, w->rows, w->cols, pare_norm_max(w));
}

/* The sizes of f beside a ticket whose entries are all within eta: written over those of (f, f). */
static fitted assume_error(model_sizes *m, const pare_model *f, double eta)
{
    fitted all = {0, pare_ub_exact(0)};
    widen_table(&m->embedding.rows, &all, eta, &f->embedding.table);
    if (f->embedding.pos.kind == PARE_POS_LEARNED)
        widen_table(&m->embedding.positions, &all, eta, &f->embedding.pos.table);
    if (m->embedding.map) widen_dense(&m->embedding.dense, &all, eta, &f->embedding.map, 1);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_block *const x = &f->blocks[b];
        for (size_t h = 0; h < m->blocks[b].attn.nheads; h++)
            widen_head(&m->blocks[b].attn.heads[h], &all, eta, &x->attn, h);
        for (size_t l = 0; m->blocks[b].ffn.kind != PARE_FFN_NONE && l < x->ffn.nlayers; l++)
            widen_dense(&m->blocks[b].ffn.layers[l], &all, eta, &x->ffn.layers[l],
                        l == 0 && is_relu_ffn(&x->ffn) ? 2 : 1);
    }
    widen_output_head(&m->top, &all, eta, f);
    return all;
}

/* The largest eta = 2^x, to a hundredth of x, for which the recursion ends at eps. */
static double largest_eta(model_sizes *m, const pare_model *f, double alpha, double eps)
{
    double low = -60, high = 4;
    while (high - low > 0.01) {
        const double mid = (low + high) / 2;
        pare_ticket_bound b = {pare_ub_inf(), pare_ub_inf(), ""};
        (void)assume_error(m, f, exp2(mid));
        model_move(&b, m, alpha);
        if (b.outputs.v <= eps)
            low = mid;
        else
            high = mid;
    }
    return low > -60 ? exp2(low) : 0;
}

pare_status pare_ticket_plan_blocks(pare_ticket_blocks_plan *out, const pare_model *f,
                                    const pare_ticket_goal *goal, const pare_exec *exec,
                                    pare_err *err)
{
    const double alpha = goal->alpha, eps = goal->eps, p = goal->p;
    *out = (pare_ticket_blocks_plan){0};
    if (!f->embedding.ids && !(alpha > 0 && alpha < INFINITY)) {
        bounds_refuse(out->why, "a bound for all rows needs their length, a positive number");
        return PARE_OK;
    }
    bounds_refuse_normalized(out->why, f);
    if (*out->why) return PARE_OK;
    pare_work k = {pare_arena_new(), exec, err, PARE_OK};
    if (!k.arena) return pare_no_memory(err);
    model_sizes m = model_sizes_of(&k, f, f, out->why);
    if (!k.st && !*out->why) {
        out->eta = largest_eta(&m, f, alpha, eps);
        const fitted all = assume_error(&m, f, out->eta);
        out->entries = all.entries;
        if (out->eta > 0)
            out->need = pare_ticket_units(out->eta, p / (double)all.entries, all.largest.v);
        else
            bounds_refuse(out->why, "no error of the entries above 2^-60 is small enough");
    }
    pare_arena_free(k.arena);
    return k.st;
}
