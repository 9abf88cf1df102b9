/* What the weights alone say of each head: its largest entry and the norms of its two products,
 * with the gain of the norm before it. The products are formed in f64; what that rounds is added to
 * every norm, so that the norms are those of the stored numbers. */
#include "xray.h"
#include <math.h>

typedef struct maker {
    const pare_model *m;
    pare_xray *out;
    pare_err *err; /* of each head */
} maker;

/* Rows or columns of a stored matrix that belong to one head, with the gain on the inputs. */
static pare_mat slice(pare_arena *a, const pare_weight *w, size_t r, size_t c, size_t rows,
                      size_t cols, const pare_norm *gain)
{
    pare_mat out = pare_mat_new(a, rows, cols);
    if (!out.v) return out;
    pare_weight_widen(&out, w, r, c);
    for (size_t j = 0; gain && j < cols; j++) {
        const double g = pare_has(&gain->gain) ? pare_weight_at(&gain->gain, j) : 1;
        const double by =
            gain->kind == PARE_NORM_BATCH ? g / sqrt(pare_weight_at(&gain->var, j) + gain->eps) : g;
        for (size_t i = 0; i < rows; i++) pare_row_mut(&out, i)[j] *= by;
    }
    return out;
}

static pare_weight as_weight(const pare_mat *m)
{
    return (pare_weight){PARE_F64, m->rows, m->cols, m->v};
}

static pare_ub frobenius(const pare_mat *m)
{
    const pare_weight w = as_weight(m);
    return pare_norm_fro(&w);
}

/* An upper bound on |computed - exact|_F of a product over `inner` terms whose factors are rounded
 * by at most four operations each. */
static pare_ub rounding(const pare_mat *a, const pare_mat *b, size_t inner)
{
    return pare_ub_mul(pare_gamma(inner + 16, PARE_UNIT_F64),
                       pare_ub_mul(frobenius(a), frobenius(b)));
}

static double largest_part(const pare_weight *w, size_t r, size_t c, size_t rows, size_t cols)
{
    double most = 0;
    for (size_t i = 0; pare_has(w) && i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            most = fmax(most, fabs(pare_weight_at(w, (r + i) * w->cols + c + j)));
    return most;
}

/* A wo that only adds heads up is no weight. */
static bool adds_up(const pare_attn *a, const pare_head *h)
{
    bool same = pare_has(&a->wo) && h->dv == a->dout;
    for (size_t i = 0; same && i < a->dout; i++)
        for (size_t j = 0; same && j < h->dv; j++)
            same = pare_weight_at(&a->wo, i * a->wo.cols + h->o + j) == (double)(i == j);
    return same;
}

static void entries(pare_xray_head *x, const pare_attn *a, const pare_head *h)
{
    x->value_max = largest_part(&a->wv, h->v, 0, h->dv, a->din);
    x->eta = fmax(x->value_max, fmax(largest_part(&a->wq, h->q, 0, h->dk, a->din),
                                     largest_part(&a->wk, h->k, 0, h->dk, a->din)));
    if (!adds_up(a, h)) x->eta = fmax(x->eta, largest_part(&a->wo, 0, h->o, a->dout, h->dv));
}

/* V = wo wv, formed, and what that rounds (in the Frobenius norm). */
static pare_status value_product(pare_mat *v, pare_ub *off, const pare_attn *a, const pare_head *h,
                                 const pare_norm *gain, pare_arena *scratch, pare_err *err)
{
    const pare_mat wv = slice(scratch, &a->wv, h->v, 0, h->dv, a->din, gain);
    if (!wv.v) return pare_no_memory(err);
    *v = wv;
    *off = pare_ub_mul(pare_gamma(16, PARE_UNIT_F64), frobenius(&wv));
    if (!pare_has(&a->wo)) return PARE_OK;
    const pare_mat wo = slice(scratch, &a->wo, 0, h->o, a->dout, h->dv, NULL);
    *v = pare_mat_new(scratch, a->dout, a->din);
    if (!wo.v || !v->v) return pare_no_memory(err);
    pare_gemm(v, 1, &wo, false, &wv, false, 0);
    *off = rounding(&wo, &wv, h->dv);
    return PARE_OK;
}

/* The largest row sum; a row of what was rounded has at most sqrt(din) times its length. */
static pare_ub row_sum(const pare_mat *v, pare_ub off)
{
    const pare_weight w = as_weight(v);
    return pare_ub_fma(pare_ub_sqrt(pare_ub_exact((double)v->cols)), off, pare_norm_max_row(&w));
}

static pare_status values(pare_xray_head *x, const pare_attn *a, const pare_head *h,
                          pare_arena *scratch, pare_err *err)
{
    pare_mat v;
    pare_ub off;
    pare_status st = value_product(&v, &off, a, h, NULL, scratch, err);
    if (!st) x->vz = row_sum(&v, off);
    if (!st) st = value_product(&v, &off, a, h, &a->in_norm, scratch, err);
    if (st) return st;
    const pare_weight w = as_weight(&v);
    x->vinf = row_sum(&v, off);
    st = pare_norm_spectral(&x->v2, &w, scratch, err);
    x->v2 = pare_ub_add(x->v2, off);
    return st;
}

/* Rotary positions stand between wq and wk: their norms are multiplied. */
static pare_status turned_scores(pare_xray_head *x, const pare_mat *wq, const pare_mat *wk,
                                 pare_ub scale, pare_arena *scratch, pare_err *err)
{
    const pare_weight q = as_weight(wq), k = as_weight(wk);
    const pare_ub over = pare_ub_add(pare_ub_exact(1), pare_gamma(16, PARE_UNIT_F64));
    pare_ub nq, nk;
    pare_status st = pare_norm_spectral(&nq, &q, scratch, err);
    if (!st) st = pare_norm_spectral(&nk, &k, scratch, err);
    if (st) return st;
    x->b2 = pare_ub_mul(pare_ub_mul(scale, over), pare_ub_mul(nq, nk));
    x->bil = pare_ub_mul(pare_ub_exact((double)wq->cols), x->b2);
    return PARE_OK;
}

static pare_ub sum_of_entries(const pare_mat *m)
{
    double s = 0;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) s += fabs(pare_row(m, i)[j]);
    const pare_ub sum = pare_ub_of(s);
    return pare_ub_fma(sum, pare_gamma(m->rows * m->cols, PARE_UNIT_F64), sum);
}

static pare_status scores(pare_xray_head *x, const pare_attn *a, const pare_head *h,
                          pare_arena *scratch, pare_err *err)
{
    const pare_mat wq = slice(scratch, &a->wq, h->q, 0, h->dk, a->din, &a->in_norm);
    const pare_mat wk = slice(scratch, &a->wk, h->k, 0, h->dk, a->din, &a->in_norm);
    const pare_ub scale = pare_ub_exact(fabs(h->scale)), d = pare_ub_exact((double)a->din);
    if (!wq.v || !wk.v) return pare_no_memory(err);
    if (h->planes > 0) return turned_scores(x, &wq, &wk, scale, scratch, err);
    pare_mat b = pare_mat_new(scratch, a->din, a->din);
    if (!b.v) return pare_no_memory(err);
    pare_gemm(&b, 1, &wq, true, &wk, false, 0);
    const pare_ub off = rounding(&wq, &wk, h->dk);
    const pare_weight w = as_weight(&b);
    const pare_status st = pare_norm_spectral(&x->b2, &w, scratch, err);
    x->b2 = pare_ub_mul(scale, pare_ub_add(x->b2, off));
    x->bil = pare_ub_min(pare_ub_mul(scale, pare_ub_fma(d, off, sum_of_entries(&b))),
                         pare_ub_mul(d, x->b2));
    return st;
}

static void one_head(void *ctx, size_t i)
{
    const maker *const k = ctx;
    pare_xray_head *const x = &k->out->heads[i];
    const pare_attn *const a = &k->m->blocks[x->block].attn;
    const pare_head *const h = &a->heads[x->head];
    pare_err *const err = &k->err[i];
    pare_arena *const scratch = pare_arena_new();
    entries(x, a, h);
    err->code = scratch ? values(x, a, h, scratch, err) : pare_no_memory(err);
    if (!err->code) err->code = scores(x, a, h, scratch, err);
    pare_arena_free(scratch);
}

/* bo + wo bv: what the branch adds whatever the weights are. */
static double constant_of(const pare_attn *a)
{
    double most = 0;
    for (size_t i = 0; i < a->dout; i++) {
        double s = pare_has(&a->bo) ? pare_weight_at(&a->bo, i) : 0;
        for (size_t h = 0; pare_has(&a->bv) && h < a->nheads; h++)
            for (size_t c = 0; c < a->heads[h].dv; c++) {
                const double bias = pare_weight_at(&a->bv, a->heads[h].v + c);
                const size_t col = a->heads[h].o + c;
                s += bias * (pare_has(&a->wo) ? pare_weight_at(&a->wo, i * a->wo.cols + col)
                                              : (double)(col == i));
            }
        most = fmax(most, fabs(s));
    }
    return most;
}

pare_status xray_weights(pare_xray *out, const pare_model *m, const pare_exec *exec, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    maker k = {m, out, a ? pare_alloc(a, out->nheads + 1, sizeof *k.err) : NULL};
    pare_status st = k.err ? PARE_OK : pare_no_memory(err);
    if (!st) pare_parallel(exec, out->nheads, one_head, &k);
    for (size_t i = 0; !st && i < out->nheads; i++)
        if (k.err[i].code) st = pare_fail(err, k.err[i].code, "%s", k.err[i].msg);
    for (size_t l = 0; !st && l < out->nlayers; l++)
        out->layers[l].constant = constant_of(&m->blocks[out->layers[l].block].attn);
    pare_arena_free(a);
    return st;
}
