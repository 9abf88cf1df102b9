/* attn_stats_weights.c - figures of a head that follow from its weights alone: the largest entry
 * and the norms of its two products, with the gain of the norm before it. The products are those
 * of effective_maps.c, with the rounding of having been formed: the norms are those of the stored
 * numbers. */
#include "linalg/bounds.h"
#include "effective_maps.h"
#include "attn_stats.h"
#include <math.h>

typedef struct weights_job {
    const pare_model *m;
    pare_xray *out;
    pare_err *err; /* of each head */
} weights_job;

static double largest_part(const pare_weight *w, size_t r, size_t c, size_t rows, size_t cols)
{
    double most = 0;
    for (size_t i = 0; pare_has(w) && i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            most = fmax(most, fabs(pare_weight_at(w, (r + i) * w->cols + c + j)));
    return most;
}

/* A wo that only adds heads up is no weight. */
static bool is_sum(const pare_attn *a, const pare_head *h)
{
    bool same = pare_has(&a->wo) && h->dv == a->dout;
    for (size_t i = 0; same && i < a->dout; i++)
        for (size_t j = 0; same && j < h->dv; j++)
            same = pare_weight_at(&a->wo, i * a->wo.cols + h->o + j) == (double)(i == j);
    return same;
}

/* The norms of one head, as the theorems use them, with the gain of the norm in front and without.
 * Rotary positions are between wq and wk: there the norms of both are multiplied. */
static void measure_norms(pare_xray_head *x, pare_work *k, const pare_attn *a, pare_head *h)
{
    pare_attn alone = *a;
    eff_attn e, plain;
    affine_map gain = {0};
    const affine_map none = {0};
    alone.nheads = 1;
    alone.heads = h;
    if (a->in_norm.kind == PARE_NORM_BATCH)
        (void)affine_norm(k, &gain, &a->in_norm, a->din); /* it is affine */
    else if (a->in_norm.kind != PARE_NORM_NONE)
        gain = norm_gain(k, &a->in_norm, a->din); /* behind its division */
    effective_branch(k, &e, &alone, &gain);
    effective_branch(k, &plain, &alone, &none);
    if (k->st) return;
    const eff_head *const head = &e.heads[0];
    const pare_ub d = pare_ub_exact((double)a->din);
    if (head->rotary) {
        const pare_ub q = imat_map_two(k, &head->q), key = imat_map_two(k, &head->k);
        x->b2 = pare_ub_mul(pare_ub_exact(head->scale), pare_ub_mul(q, key));
        x->bil = pare_ub_mul(d, x->b2);
    } else {
        x->b2 = imat_map_two(k, &head->b);
        x->bil = pare_ub_min(imat_sum_abs(k, &head->b), pare_ub_mul(d, x->b2));
    }
    x->v2 = imat_map_two(k, &head->v);
    x->vinf = imat_map_inf(k, &head->v);
    x->vz = imat_map_inf(k, &plain.heads[0].v);
}

static void measure_head(void *ctx, size_t i)
{
    const weights_job *const m = ctx;
    pare_xray_head *const x = &m->out->heads[i];
    const pare_attn *const a = &m->m->blocks[x->block].attn;
    pare_head *const h = &a->heads[x->head];
    pare_work k = {.arena = pare_arena_new(), .err = &m->err[i]};
    if (!k.arena) k.st = pare_no_memory(k.err);
    x->value_max = largest_part(&a->wv, h->v, 0, h->dv, a->din);
    x->eta = fmax(x->value_max, fmax(largest_part(&a->wq, h->q, 0, h->dk, a->din),
                                     largest_part(&a->wk, h->k, 0, h->dk, a->din)));
    if (!is_sum(a, h)) x->eta = fmax(x->eta, largest_part(&a->wo, 0, h->o, a->dout, h->dv));
    if (!k.st) measure_norms(x, &k, a, h);
    m->err[i].code = k.st;
    pare_arena_free(k.arena);
}

/* What the branch adds whatever the weights are: bo + wo bv, and wo bv alone. */
static void constants_of(pare_xray_layer *at, const pare_attn *a)
{
    size_t terms = 1;
    for (size_t h = 0; h < a->nheads; h++) terms += a->heads[h].dv;
    const pare_ub gamma = pare_gamma(terms + 1, PARE_UNIT_F64);
    for (size_t i = 0; i < a->dout; i++) {
        const double bo = pare_has(&a->bo) ? pare_weight_at(&a->bo, i) : 0;
        double values = 0, size = fabs(bo);
        for (size_t h = 0; pare_has(&a->bv) && h < a->nheads; h++)
            for (size_t c = 0; c < a->heads[h].dv; c++) {
                const size_t col = a->heads[h].o + c;
                const double o = pare_has(&a->wo) ? pare_weight_at(&a->wo, i * a->wo.cols + col)
                                                  : (double)(col == i);
                const double part = o * pare_weight_at(&a->bv, a->heads[h].v + c);
                values += part;
                size += fabs(part);
            }
        const pare_ub off = pare_ub_mul(gamma, pare_ub_of(2 * size));
        at->constant = pare_ub_max(at->constant, pare_ub_add(pare_ub_of(bo + values), off));
        at->value_bias = pare_ub_max(at->value_bias, pare_ub_add(pare_ub_of(values), off));
    }
}

pare_status attn_stats_weights(pare_xray *out, const pare_model *m, const pare_exec *exec,
                               pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    weights_job k = {m, out, a ? pare_alloc(a, out->nheads + 1, sizeof *k.err) : NULL};
    pare_status st = k.err ? PARE_OK : pare_no_memory(err);
    if (!st) pare_parallel(exec, out->nheads, measure_head, &k);
    for (size_t i = 0; !st && i < out->nheads; i++)
        if (k.err[i].code) st = pare_fail(err, k.err[i].code, "%s", k.err[i].msg);
    for (size_t l = 0; !st && l < out->nlayers; l++)
        constants_of(&out->layers[l], &m->blocks[out->layers[l].block].attn);
    pare_arena_free(a);
    return st;
}
