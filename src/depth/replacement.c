/* replacement.c - the attention that replaces another, by kind (docs/theory/depth.md "What
 * stands in the place of attention"). Weights that a kind does not use are dropped: zero, const,
 * uniform, linear and affmix have no queries and no keys. One query for all tokens has no
 * position: under rotary positions its keys are not rotated.
 *
 * Fits are ridge regressions: (G + t I) M = C with t = 1e-3 tr(G) / dim, by Cholesky factors in
 * f64, rounded once to the model's number type. */
#include "linalg/matrix.h"
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

typedef struct maker {
    pare_work to;      /* where the new weights go */
    pare_work scratch; /* its failures are handed on at the end */
    const softmax_layer *l;
    pare_attn *out;
} maker;

/* In the number type of the model. */
static pare_weight store(maker *m, size_t rows, size_t cols, const double *v)
{
    const pare_weight *const like = &m->l->attn->wv;
    return work_weight(&m->to, v, rows, cols, pare_has(like) ? like->dtype : PARE_F64);
}

/* The output map of one head: out += wo[:, o .. o + dv] w, w dv x cols. */
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

/* sum_h wo_h wv_h and sum_h wo_h bv_h: the values of all heads as one map. */
static void make_uniform(maker *m)
{
    const pare_attn *const a = m->l->attn;
    pare_work *const s = &m->scratch;
    pare_mat mix = work_matrix(s, a->dout, a->din), bias = work_matrix(s, a->dout, 1);
    for (size_t k = 0; k < a->nheads; k++) {
        const pare_head *const h = &a->heads[k];
        pare_mat w = work_matrix(s, h->dv, a->din), b = work_matrix(s, h->dv, 1);
        if (s->st) return;
        pare_weight_widen(&w, &a->wv, h->v, 0);
        for (size_t e = 0; pare_has(&a->bv) && e < h->dv; e++)
            b.v[e] = pare_weight_at(&a->bv, h->v + e);
        add_head(&mix, a, h, &w);
        add_head(&bias, a, h, &b);
    }
    m->out->bo = a->bo;
    m->out->mix = store(m, a->dout, a->din, mix.v);
    if (pare_has(&a->bv)) m->out->bv = store(m, 1, a->dout, bias.v);
}

pare_head *heads_without_rotary(pare_work *w, const pare_attn *from)
{
    pare_head *const out = pare_work_alloc(w, from->nheads, sizeof *out);
    for (size_t h = 0; out && h < from->nheads; h++) {
        out[h] = from->heads[h];
        out[h].freq = out[h].planes = 0;
    }
    return out;
}

/* With one query for all, a head's score of z is (scale Wk^T query) . z: one direction replaces its
 * keys. A key bias shifts all scores of a row alike, and is dropped. */
static void one_direction(maker *m)
{
    const softmax_layer *const l = m->l;
    const pare_attn *const a = l->attn;
    pare_attn *const out = m->out;
    double *const v = pare_work_alloc(&m->scratch, a->nheads * a->din, sizeof *v);
    double *const one = pare_work_alloc(&m->scratch, a->nheads, sizeof *one);
    out->heads = heads_without_rotary(&m->to, a);
    if (!v || !one || m->to.st) return;
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
    out->wk = store(m, a->nheads, a->din, v);
    out->bq = store(m, 1, a->nheads, one);
}

/* (gram + t I)^-1 cross for the first n - 1 features and the last one, the constant. */
static pare_mat ridge(pare_work *w, const pare_mat *gram, const pare_mat *cross, size_t n)
{
    const size_t last = gram->rows - 1;
    pare_mat g = work_matrix(w, n, n), inverse = work_matrix(w, n, n);
    pare_mat c = work_matrix(w, n, cross->cols), m = work_matrix(w, n, cross->cols);
    double trace = 0;
    for (size_t i = 0; !w->st && i < n; i++) {
        const double *const from = pare_row(gram, i + 1 < n ? i : last);
        for (size_t j = 0; j < n; j++) pare_row_mut(&g, i)[j] = from[j + 1 < n ? j : last];
        memcpy(pare_row_mut(&c, i), pare_row(cross, i + 1 < n ? i : last), c.cols * sizeof *c.v);
        trace += pare_row(&g, i)[i];
    }
    for (size_t i = 0; !w->st && i < n; i++) pare_row_mut(&g, i)[i] += RIDGE * trace / (double)n;
    if (!w->st) w->st = pare_spd_inverse(&inverse, &g, w->err);
    if (!w->st) pare_gemm(&m, 1, &inverse, false, &c, false, 0);
    return m;
}

/* Rows [first, first + n) of x as a stored map [out, in]. */
static pare_weight store_map(maker *m, const pare_mat *x, size_t first, size_t n)
{
    double *const v = pare_work_alloc(&m->scratch, x->cols * n, sizeof *v);
    for (size_t o = 0; v && o < x->cols; o++)
        for (size_t i = 0; i < n; i++) v[o * n + i] = pare_row(x, first + i)[o];
    return store(m, x->cols, n, v);
}

/* linear, affmix: maps of z and of Uz, and a constant. pool: of z and the gathered values. */
static void make_fit(maker *m, pare_attn_kind k)
{
    const softmax_layer *const l = m->l;
    const bool pool = k == PARE_ATTN_POOL, mix = k == PARE_ATTN_AFFMIX;
    const size_t d = l->attn->din, n = pool ? l->pool_gram.rows : (mix ? 2 : 1) * d + 1;
    if (pool) one_direction(m);
    const pare_mat x =
        ridge(&m->scratch, pool ? &l->pool_gram : &l->gram, pool ? &l->pool_cross : &l->cross, n);
    if (m->scratch.st) return;
    m->out->matrix = store_map(m, &x, 0, pool ? n - 1 : d);
    if (mix) m->out->mix = store_map(m, &x, d, d);
    m->out->bo = store(m, 1, l->attn->dout, pare_row(&x, n - 1));
}

static void make_const(maker *m)
{
    const softmax_layer *const l = m->l;
    const size_t n = l->attn->dout;
    double *const mean = pare_work_alloc(&m->scratch, n, sizeof *mean);
    for (size_t i = 0; mean && i < n; i++)
        mean[i] = pare_row(&l->cross, l->cross.rows - 1)[i] / l->tokens;
    m->out->bo = store(m, 1, n, mean);
}

pare_status replacement_make(pare_attn *out, pare_arena *to, const softmax_layer *l,
                             pare_attn_kind k, pare_err *err)
{
    const pare_attn *const a = l->attn;
    maker m = {.to = {.arena = to, .err = err}, .l = l, .out = out};
    m.scratch = scratch_open(&m.to);
    *out = (pare_attn){.kind = k, .din = a->din, .dout = a->dout};
    out->skip = a->skip;
    out->out_norm = a->out_norm;
    /* zero and const do not read their input */
    if (k != PARE_ATTN_ZERO && k != PARE_ATTN_CONST) out->in_norm = a->in_norm;
    if (k == PARE_ATTN_CONST) make_const(&m);
    if (k == PARE_ATTN_UNIFORM) make_uniform(&m);
    if (k == PARE_ATTN_LINEAR || k == PARE_ATTN_AFFMIX || k == PARE_ATTN_POOL) make_fit(&m, k);
    if (k == PARE_ATTN_CONSTQ) {
        out->wo = a->wo;
        out->bo = a->bo;
        one_direction(&m);
    }
    if (k == PARE_ATTN_MEANQ) {
        *out = *a;
        out->kind = k;
        out->bk = out->freqs = out->matrix = out->mix = (pare_weight){0};
        out->tolerance = 0;
        out->heads = heads_without_rotary(&m.to, a);
    }
    scratch_close(&m.scratch, &m.to);
    return m.to.st;
}
