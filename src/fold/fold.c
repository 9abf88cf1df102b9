/* Folding a model: the same real-number function with fewer operations (pare/fold.h says which).
 *
 *   pre-norm    w (s u(x) + t) + b         = (w s) u(x) + (b + w t)
 *   post-batch  s (R x + Wo a + bo) + t    = (s R) x + (s Wo) a + (s bo + t)
 *   key bias    softmax_j(q.(k_j + bk))    = softmax_j(q.k_j), as q.bk does not depend on j
 *   value bias  Wo sum_j p_j (v_j + bv)    = Wo sum_j p_j v_j + Wo bv   when sum_j p_j = 1
 *
 * Left alone, because the skip reads them too or an identity would turn dense: layer, rms and
 * mean-only norms after the sum; and a head tied to the embedding. */
#include "fold_parts.h"
#include <stdlib.h>

/* The norm after its affine part has moved into the readers. */
static void strip(folder *f, pare_norm *n)
{
    const pare_weight none = {0};
    f->report->norms++;
    if (n->kind == PARE_NORM_BATCH || n->kind == PARE_NORM_MEAN) {
        *n = (pare_norm){0};
        return;
    }
    n->gain = none;
    n->bias = none;
}

/* ---- attention ------------------------------------------------------------------------------ */

/* The maps that read the normed input: does folding into them keep the function for this kind? */
static bool can_fold_before(const pare_attn *a)
{
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_MEANQ:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_UNIFORM:
    case PARE_ATTN_LINEAR:
        return true;
    default:
        return false; /* averages of the input itself: a shift would meet empty rows */
    }
}

static pare_status fold_in_norm(folder *f, pare_attn *a)
{
    affine m;
    bool any;
    pare_status st = norm_affine(f, &m, &any, &a->in_norm, a->din);
    if (st || !any || !can_fold_before(a)) return st;
    if (pare_has(&a->wq) && (st = fold_before(f, &a->wq, &a->bq, &m))) return st;
    if (pare_has(&a->wk) && (st = fold_before(f, &a->wk, &a->bk, &m))) return st;
    if (pare_has(&a->wv) && (st = fold_before(f, &a->wv, &a->bv, &m))) return st;
    if (pare_has(&a->mix) && (st = fold_before(f, &a->mix, &a->bv, &m))) return st;
    if (pare_has(&a->matrix) && (st = fold_before(f, &a->matrix, &a->bo, &m))) return st;
    strip(f, &a->in_norm);
    return PARE_OK;
}

static pare_dtype attn_dtype(const pare_attn *a)
{
    const pare_weight *const all[] = {&a->wo, &a->matrix, &a->mix, &a->bo, &a->wv};
    for (size_t i = 0; i < 5; i++)
        if (pare_has(all[i])) return all[i]->dtype;
    return PARE_F32;
}

/* A bias inside the sum over the keys: scaled, not shifted. */
static pare_status scale_inside(folder *f, pare_weight *b, const affine *m, pare_dtype t)
{
    affine inside = *m;
    inside.shift = pare_alloc(f->arena, m->d, sizeof *inside.shift);
    return inside.shift ? affine_bias(f, b, &inside, t) : pare_no_memory(f->err);
}

/* Every row of wv is one output of the attention, and its own. */
static bool values_are_outputs(const pare_attn *a)
{
    for (size_t h = 0; h < a->nheads; h++)
        if (a->heads[h].v != a->heads[h].o) return false;
    return a->wv.rows == a->dout;
}

/* Heads without wo: their values are scaled instead, or an identity is made to be scaled. */
static pare_status scale_heads(folder *f, pare_attn *a, const affine *m)
{
    if (pare_has(&a->wo) || !pare_attn_has_softmax(a->kind)) return scale_rows(f, &a->wo, m);
    if (values_are_outputs(a)) {
        const pare_status st = scale_rows(f, &a->wv, m);
        return st || !pare_has(&a->bv) ? st : scale_inside(f, &a->bv, m, a->bv.dtype);
    }
    const pare_status st = pare_weight_identity(&a->wo, f->arena, a->dout, attn_dtype(a), f->err);
    return st ? st : scale_rows(f, &a->wo, m);
}

static pare_status fold_out_norm(folder *f, pare_attn *a)
{
    affine m;
    bool any;
    if (a->out_norm.kind != PARE_NORM_BATCH) return PARE_OK;
    const pare_dtype t = attn_dtype(a);
    pare_status st;
    if ((st = norm_affine(f, &m, &any, &a->out_norm, a->dout)) || (st = scale_heads(f, a, &m)) ||
        (st = scale_rows(f, &a->matrix, &m)) || (st = scale_rows(f, &a->mix, &m)) ||
        (st = scale_skip(f, &a->skip, &m, t)))
        return st;
    if (a->kind == PARE_ATTN_UNIFORM && pare_has(&a->bv) && (st = scale_inside(f, &a->bv, &m, t)))
        return st;
    if ((st = affine_bias(f, &a->bo, &m, t))) return st;
    strip(f, &a->out_norm);
    return PARE_OK;
}

static void drop_key_bias(folder *f, pare_attn *a)
{
    if (f->rotary || !pare_has(&a->bk) ||
        (!pare_attn_has_softmax(a->kind) && a->kind != PARE_ATTN_POOL))
        return;
    a->bk = (pare_weight){0};
    f->report->key_biases++;
}

/* Of wo, or of the identity where there is none. */
static number join_entry(const pare_attn *a, size_t r, size_t j)
{
    return number_of(&a->wo, r * a->wo.cols + j, r == j ? 1 : 0);
}

static pare_status merge_value_bias(folder *f, pare_attn *a)
{
    if (!f->never_empty || !pare_has(&a->bv) || !pare_attn_has_softmax(a->kind)) return PARE_OK;
    number *const v = malloc(a->dout * sizeof *v);
    if (!v) return pare_no_memory(f->err);
    for (size_t r = 0; r < a->dout; r++) {
        v[r] = number_of(&a->bo, r, 0);
        for (size_t h = 0; h < a->nheads; h++)
            for (size_t j = 0; j < a->heads[h].dv; j++)
                v[r] = number_sum(v[r], number_product(join_entry(a, r, a->heads[h].o + j),
                                                       number_of(&a->bv, a->heads[h].v + j, 0)));
    }
    const pare_status st =
        store(f, &a->bo, v, 1, a->dout, pare_has(&a->bo) ? a->bo.dtype : attn_dtype(a));
    free(v);
    if (st) return st;
    a->bv = (pare_weight){0};
    f->report->value_biases++;
    return PARE_OK;
}

pare_status fold_attention(folder *f, pare_attn *a)
{
    pare_status st;
    if (a->kind == PARE_ATTN_NONE) return PARE_OK;
    if ((st = fold_in_norm(f, a))) return st;
    drop_key_bias(f, a); /* after the norm's bias may have made one */
    if ((st = merge_value_bias(f, a))) return st;
    return fold_out_norm(f, a);
}

/* ---- the rest -------------------------------------------------------------------------------- */

pare_status fold_ffn(folder *f, pare_ffn *n)
{
    affine m;
    bool any;
    pare_status st;
    if (n->kind == PARE_FFN_NONE) return PARE_OK;
    if ((st = norm_affine(f, &m, &any, &n->in_norm, n->din))) return st;
    if (any) {
        const size_t readers = n->kind == PARE_FFN_GATED ? 2 : 1;
        for (size_t i = 0; i < readers; i++)
            if ((st = fold_before(f, &n->layers[i].w, &n->layers[i].b, &m))) return st;
        strip(f, &n->in_norm);
    }
    if (n->out_norm.kind != PARE_NORM_BATCH) return PARE_OK;
    pare_dense *const last = &n->layers[n->nlayers - 1];
    if ((st = norm_affine(f, &m, &any, &n->out_norm, n->dout)) ||
        (st = scale_rows(f, &last->w, &m)) || (st = affine_bias(f, &last->b, &m, last->w.dtype)) ||
        (st = scale_skip(f, &n->skip, &m, last->w.dtype)))
        return st;
    strip(f, &n->out_norm);
    return PARE_OK;
}

pare_status fold_stem(folder *f, pare_stem *s)
{
    affine m;
    bool any;
    pare_status st;
    /* Positions added after the map would have to be scaled as well: left alone. */
    if (s->norm.kind != PARE_NORM_BATCH || !pare_has(&s->map.w) || s->pos.after_map) return PARE_OK;
    if ((st = norm_affine(f, &m, &any, &s->norm, s->map.w.rows)) ||
        (st = scale_rows(f, &s->map.w, &m)) || (st = affine_bias(f, &s->map.b, &m, s->map.w.dtype)))
        return st;
    strip(f, &s->norm);
    return PARE_OK;
}

pare_status fold_top(folder *f, pare_top *t)
{
    affine m;
    bool any;
    /* Pooling takes the first row or the mean: an affine map of the rows passes through both. */
    pare_dense *const reader = pare_has(&t->dense.w) ? &t->dense : &t->out;
    if (!pare_has(&reader->w)) return PARE_OK; /* tied, or no head at all */
    pare_status st = norm_affine(f, &m, &any, &t->norm, reader->w.cols);
    if (st || !any) return st;
    if (reader == &t->out && t->act != PARE_ACT_NONE) return PARE_OK; /* act stands in between */
    if ((st = fold_before(f, &reader->w, &reader->b, &m))) return st;
    strip(f, &t->norm);
    return PARE_OK;
}

static pare_status fold_all(folder *f, pare_model *m)
{
    pare_status st = fold_stem(f, &m->stem);
    for (size_t b = 0; !st && b < m->nblocks; b++) {
        st = fold_attention(f, &m->blocks[b].attn);
        if (!st) st = fold_ffn(f, &m->blocks[b].ffn);
    }
    return st ? st : fold_top(f, &m->top);
}

pare_status pare_fold(pare_model **out, pare_fold_report *report, const pare_model *in,
                      pare_err *err)
{
    pare_model *m = NULL;
    pare_status st = pare_model_clone(&m, in, err);
    if (st) return st;
    *report = (pare_fold_report){0};
    folder f = {m->arena, pare_model_is_rotary(in), pare_never_empty(&in->pattern), report, err};
    if ((st = fold_all(&f, m)) || (st = pare_model_check(m, err))) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}
