/* The attention that stands in the place of another, by kind (docs/theory/depth.md "What stands in
 * the place of attention"). Weights that a kind does not use are not kept: zero, const, uniform,
 * linear and affmix carry no queries and no keys.
 * One query for all tokens stands at no position: under rotary positions its keys are not turned.
 *
 * Fits are ridge regressions: (G + t I) M = C with t = 1e-3 tr(G) / dim, by Cholesky factors in
 * f64, rounded once to the model's number type. */
#include "replace_layers.h"
#include <string.h>

#define RIDGE 1e-3

const char *const pare_depth_kind_names[] = {"zero",   "const",  "uniform", "constq", "meanq",
                                             "linear", "affmix", "pool",    "auto",   NULL};

bool replacement_is_fitted(pare_attn_kind k)
{
    return k == PARE_ATTN_CONST || k == PARE_ATTN_CONSTQ || k == PARE_ATTN_LINEAR ||
           k == PARE_ATTN_AFFMIX || k == PARE_ATTN_POOL;
}

const char *replacement_refused(const pare_model *m, const pare_attn *a, pare_attn_kind k)
{
    if (k == PARE_ATTN_ZERO && a->skip.kind == PARE_SKIP_NONE)
        return "it has no skip: with zero nothing would be left of its input";
    if (k == PARE_ATTN_MEANQ && m->pattern.kind != PARE_FULL)
        return "a mean over all queries needs the full pattern";
    return NULL;
}

size_t replacement_unknowns(const pare_attn *a, pare_attn_kind k)
{
    size_t n = a->din + 1;
    if (k == PARE_ATTN_AFFMIX) return n + a->din;
    if (k == PARE_ATTN_POOL)
        for (size_t h = 0; h < a->nheads; h++) n += a->heads[h].dv;
    return k == PARE_ATTN_LINEAR || k == PARE_ATTN_POOL ? n : 0;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* In the number type of the model. */
static pare_status store(pare_weight *w, pare_arena *to, const pare_attn *like, size_t rows,
                         size_t cols, const double *v, pare_err *err)
{
    const pare_dtype t = pare_has(&like->wv) ? like->wv.dtype : PARE_F64;
    void *const data = pare_alloc(to, rows * cols + 1, pare_dtype_size(t));
    if (!data) return pare_no_memory(err);
    for (size_t i = 0; i < rows * cols; i++) {
        if (t == PARE_F32)
            ((float *)data)[i] = (float)v[i];
        else
            ((double *)data)[i] = v[i];
    }
    *w = (pare_weight){t, rows, cols, data};
    return PARE_OK;
}

static double *vector(pare_arena *a, size_t n)
{
    return pare_alloc(a, n ? n : 1, sizeof(double));
}

/* ---- the sum of all heads -------------------------------------------------------------------- */

/* What wo makes of one head's values: out += wo[:, o .. o + dv] w, w dv x cols. */
static void add_head(pare_mat *out, const pare_attn *a, const pare_head *h, const pare_mat *w)
{
    for (size_t i = 0; i < out->rows; i++)
        for (size_t e = 0; e < h->dv; e++) {
            const double o = pare_has(&a->wo) ? pare_weight_at(&a->wo, i * a->wo.cols + h->o + e)
                                              : (double)(i == h->o + e);
            for (size_t j = 0; o != 0 && j < out->cols; j++)
                pare_row_mut(out, i)[j] += o * pare_row(w, e)[j];
        }
}

/* sum_h wo_h wv_h and sum_h wo_h bv_h: values of all heads as one map. */
static pare_status joined_values(pare_mat *mix, pare_mat *bias, const pare_attn *a,
                                 pare_arena *scratch, pare_err *err)
{
    *mix = pare_mat_new(scratch, a->dout, a->din);
    *bias = pare_mat_new(scratch, a->dout, 1);
    if (!mix->v || !bias->v) return pare_no_memory(err);
    for (size_t k = 0; k < a->nheads; k++) {
        const pare_head *const h = &a->heads[k];
        pare_mat w = pare_mat_new(scratch, h->dv, a->din), b = pare_mat_new(scratch, h->dv, 1);
        if (!w.v || !b.v) return pare_no_memory(err);
        pare_weight_widen(&w, &a->wv, h->v, 0);
        for (size_t e = 0; pare_has(&a->bv) && e < h->dv; e++)
            b.v[e] = pare_weight_at(&a->bv, h->v + e);
        add_head(mix, a, h, &w);
        add_head(bias, a, h, &b);
    }
    return PARE_OK;
}

static pare_status make_uniform(pare_attn *out, pare_arena *to, const pare_attn *a,
                                pare_arena *scratch, pare_err *err)
{
    pare_mat mix, bias;
    pare_status st = joined_values(&mix, &bias, a, scratch, err);
    out->bo = a->bo;
    if (!st) st = store(&out->mix, to, a, a->dout, a->din, mix.v, err);
    if (!st && pare_has(&a->bv)) st = store(&out->bv, to, a, 1, a->dout, bias.v, err);
    return st;
}

pare_status heads_without_rotary(pare_head **out, pare_arena *a, const pare_attn *from,
                                 pare_err *err)
{
    *out = pare_alloc(a, from->nheads, sizeof **out);
    if (!*out) return pare_no_memory(err);
    for (size_t h = 0; h < from->nheads; h++) {
        (*out)[h] = from->heads[h];
        (*out)[h].freq = (*out)[h].planes = 0;
    }
    return PARE_OK;
}

/* With one query for all, a head's score of z is (scale Wk^T query).z: one direction, and that is
 * all that is stored of its keys. A key bias shifts all scores of a row alike, and goes. */
static pare_status one_direction(pare_attn *out, pare_arena *to, const layer *l,
                                 pare_arena *scratch, pare_err *err)
{
    const pare_attn *const a = l->a;
    double *const v = vector(scratch, a->nheads * a->din), *const one = vector(scratch, a->nheads);
    const pare_status st = heads_without_rotary(&out->heads, to, a, err);
    if (st) return st;
    if (!v || !one) return pare_no_memory(err);
    for (size_t k = 0; k < a->nheads; k++) {
        pare_head *const h = &out->heads[k];
        for (size_t e = 0; e < h->dk; e++)
            for (size_t j = 0; j < a->din; j++)
                v[k * a->din + j] +=
                    h->scale * l->query[h->q + e] * pare_weight_at(&a->wk, (h->k + e) * a->din + j);
        one[k] = 1;
        h->dk = 1;
        h->q = h->k = k;
        h->scale = 1;
    }
    out->nheads = a->nheads;
    out->wv = a->wv;
    out->bv = a->bv;
    const pare_status kept = store(&out->wk, to, a, a->nheads, a->din, v, err);
    return kept ? kept : store(&out->bq, to, a, 1, a->nheads, one, err);
}

static pare_status make_constq(pare_attn *out, pare_arena *to, const layer *l, pare_arena *scratch,
                               pare_err *err)
{
    out->wo = l->a->wo;
    out->bo = l->a->bo;
    return one_direction(out, to, l, scratch, err);
}

static pare_status make_meanq(pare_attn *out, pare_arena *to, const pare_attn *a, pare_err *err)
{
    out->nheads = a->nheads;
    out->wq = a->wq;
    out->bq = a->bq;
    out->wk = a->wk;
    out->wv = a->wv;
    out->bv = a->bv;
    out->wo = a->wo;
    out->bo = a->bo;
    return heads_without_rotary(&out->heads, to, a, err);
}

/* ---- least squares --------------------------------------------------------------------------- */

/* m = (gram + t I)^-1 cross for the features in the list; the last one is the constant. */
static pare_status ridge(pare_mat *m, const pare_mat *gram, const pare_mat *cross,
                         const size_t *which, size_t n, pare_arena *scratch, pare_err *err)
{
    pare_mat g = pare_mat_new(scratch, n, n), inverse = pare_mat_new(scratch, n, n);
    pare_mat c = pare_mat_new(scratch, n, cross->cols);
    double trace = 0;
    *m = pare_mat_new(scratch, n, cross->cols);
    if (!g.v || !inverse.v || !c.v || !m->v) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) pare_row_mut(&g, i)[j] = pare_row(gram, which[i])[which[j]];
        memcpy(pare_row_mut(&c, i), pare_row(cross, which[i]), c.cols * sizeof *c.v);
        trace += pare_row(&g, i)[i];
    }
    for (size_t i = 0; i < n; i++) pare_row_mut(&g, i)[i] += RIDGE * trace / (double)n;
    const pare_status st = pare_spd_inverse(&inverse, &g, err);
    if (!st) pare_gemm(m, 1, &inverse, false, &c, false, 0);
    return st;
}

/* Rows [first, first + n) of m as a stored map [out, in]. */
static pare_status store_map(pare_weight *w, pare_arena *to, const pare_attn *like,
                             const pare_mat *m, size_t first, size_t n, pare_arena *scratch,
                             pare_err *err)
{
    double *const v = vector(scratch, m->cols * n);
    if (!v) return pare_no_memory(err);
    for (size_t o = 0; o < m->cols; o++)
        for (size_t i = 0; i < n; i++) v[o * n + i] = pare_row(m, first + i)[o];
    return store(w, to, like, m->cols, n, v, err);
}

/* linear and affmix: maps of z and of Uz, and a constant. */
static pare_status make_fit(pare_attn *out, pare_arena *to, const layer *l, bool mix,
                            pare_arena *scratch, pare_err *err)
{
    const size_t d = l->a->din, n = (mix ? 2 : 1) * d + 1;
    size_t *const which = pare_alloc(scratch, n, sizeof *which);
    pare_mat m;
    if (!which) return pare_no_memory(err);
    for (size_t i = 0; i + 1 < n; i++) which[i] = i;
    which[n - 1] = l->gram.rows - 1;
    pare_status st = ridge(&m, &l->gram, &l->cross, which, n, scratch, err);
    if (!st) st = store_map(&out->matrix, to, l->a, &m, 0, d, scratch, err);
    if (!st && mix) st = store_map(&out->mix, to, l->a, &m, d, d, scratch, err);
    return st ? st : store(&out->bo, to, l->a, 1, l->a->dout, pare_row(&m, n - 1), err);
}

static pare_status make_pool(pare_attn *out, pare_arena *to, const layer *l, pare_arena *scratch,
                             pare_err *err)
{
    const size_t n = l->pool_gram.rows;
    size_t *const which = pare_alloc(scratch, n, sizeof *which);
    pare_mat m;
    if (!which) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) which[i] = i;
    pare_status st = one_direction(out, to, l, scratch, err);
    if (!st) st = ridge(&m, &l->pool_gram, &l->pool_cross, which, n, scratch, err);
    if (!st) st = store_map(&out->matrix, to, l->a, &m, 0, n - 1, scratch, err);
    return st ? st : store(&out->bo, to, l->a, 1, l->a->dout, pare_row(&m, n - 1), err);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static pare_status make_const(pare_attn *out, pare_arena *to, const layer *l, pare_arena *scratch,
                              pare_err *err)
{
    double *const mean = vector(scratch, l->a->dout);
    if (!mean) return pare_no_memory(err);
    for (size_t i = 0; i < l->a->dout; i++)
        mean[i] = pare_row(&l->cross, l->cross.rows - 1)[i] / l->tokens;
    return store(&out->bo, to, l->a, 1, l->a->dout, mean, err);
}

static pare_status make(pare_attn *out, pare_arena *to, const layer *l, pare_attn_kind k,
                        pare_arena *scratch, pare_err *err)
{
    const pare_attn *const a = l->a;
    switch (k) {
    case PARE_ATTN_CONST:
        return make_const(out, to, l, scratch, err);
    case PARE_ATTN_UNIFORM:
        return make_uniform(out, to, a, scratch, err);
    case PARE_ATTN_MEANQ:
        return make_meanq(out, to, a, err);
    case PARE_ATTN_CONSTQ:
        return make_constq(out, to, l, scratch, err);
    case PARE_ATTN_LINEAR:
    case PARE_ATTN_AFFMIX:
        return make_fit(out, to, l, k == PARE_ATTN_AFFMIX, scratch, err);
    case PARE_ATTN_POOL:
        return make_pool(out, to, l, scratch, err);
    default:
        return PARE_OK;
    }
}

pare_status replacement_make(pare_attn *out, pare_arena *to, const layer *l, pare_attn_kind k,
                             pare_err *err)
{
    const pare_attn *const a = l->a;
    pare_arena *const scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    *out = (pare_attn){.kind = k, .din = a->din, .dout = a->dout};
    out->skip = a->skip;
    out->out_norm = a->out_norm;
    /* What does not look at its input needs no norm of it. */
    if (k != PARE_ATTN_ZERO && k != PARE_ATTN_CONST) out->in_norm = a->in_norm;
    const pare_status st = make(out, to, l, k, scratch, err);
    pare_arena_free(scratch);
    return st;
}
