/* fold.c - folding: the same real-number function with fewer operations (pare/fold.h says which).
 *
 *   pre-norm    w (s u(x) + t) + b         = (w s) u(x) + (b + w t)
 *   post-batch  s (R x + Wo a + bo) + t    = (s R) x + (s Wo) a + (s bo + t)
 *   key bias    softmax_j(q.(k_j + bk))    = softmax_j(q.k_j), as q.bk does not depend on j
 *   value bias  Wo sum_j p_j (v_j + bv)    = Wo sum_j p_j v_j + Wo bv   when sum_j p_j = 1
 *
 * Not folded, because the skip reads them too or an identity would become dense: layer, rms and
 * mean-only norms after the sum; and a head tied to the embedding. */
#include "attention/attend.h"
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "fold_parts.h"

/* Removes what has moved into the readers of a norm. */
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

/* Whether this norm can move into a reader with that bias. */
static bool may_enter(const folder *f, const pare_norm *n, const pare_weight *bias)
{
    return !f->standard || pare_has(bias) || weight_is(&n->bias, 0);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* As fold_attention reads them. */
static bool may_enter_attention(const folder *f, const pare_attn *a)
{
    const pare_weight *const map[] = {&a->wq, &a->wk, &a->wv, &a->mix, &a->matrix};
    const pare_weight *const bias[] = {&a->bq, &a->bk, &a->bv, &a->bv, &a->bo};
    for (size_t i = 0; i < 5; i++)
        if (pare_has(map[i]) && !may_enter(f, &a->in_norm, bias[i])) return false;
    return true;
}

static pare_dtype attn_dtype(const pare_attn *a)
{
    const pare_weight *const all[] = {&a->wo, &a->matrix, &a->mix, &a->bo, &a->wv};
    for (size_t i = 0; i < 5; i++)
        if (pare_has(all[i])) return all[i]->dtype;
    return PARE_F32;
}

/* A bias inside the sum over the keys: scaled, not shifted. */
static void scale_inside(folder *f, pare_weight *b, const affine *m, pare_dtype t)
{
    affine inside = *m;
    inside.shift = pare_work_alloc(&f->work, m->d, sizeof *inside.shift);
    affine_bias(f, b, &inside, t);
}

static void fold_out_norm(folder *f, pare_attn *a)
{
    affine m;
    const pare_dtype t = attn_dtype(a);
    if (a->out_norm.kind != PARE_NORM_BATCH || !norm_affine(f, &m, &a->out_norm, a->dout)) return;
    /* Heads without wo: their values are scaled instead, where every row of wv is one output of the
     * attention and its own; else an identity is made to be scaled. */
    bool values_are_outputs = a->wv.rows == a->dout;
    for (size_t h = 0; h < a->nheads; h++)
        values_are_outputs = values_are_outputs && a->heads[h].v == a->heads[h].o;
    const bool without_wo = !pare_has(&a->wo) && pare_attn_has_softmax(a->kind);
    if (without_wo && values_are_outputs) {
        scale_rows(f, &a->wv, &m);
        if (pare_has(&a->bv)) scale_inside(f, &a->bv, &m, a->bv.dtype);
    } else {
        pare_work *const w = &f->work;
        if (without_wo && !w->st)
            w->st = pare_weight_identity(&a->wo, w->arena, a->dout, t, w->err);
        scale_rows(f, &a->wo, &m);
    }
    scale_rows(f, &a->matrix, &m);
    scale_rows(f, &a->mix, &m);
    scale_skip(f, &a->skip, &m, t);
    if (a->kind == PARE_ATTN_UNIFORM && pare_has(&a->bv)) scale_inside(f, &a->bv, &m, t);
    affine_bias(f, &a->bo, &m, t);
    strip(f, &a->out_norm);
}

void fold_attention(folder *f, pare_attn *a)
{
    affine m;
    if (a->kind == PARE_ATTN_NONE) return;
    /* The other kinds average the input itself: a shift would meet empty rows. */
    const bool maps_input = pare_attn_has_softmax(a->kind) || a->kind == PARE_ATTN_UNIFORM ||
                            a->kind == PARE_ATTN_LINEAR;
    if (maps_input && may_enter_attention(f, a) && norm_affine(f, &m, &a->in_norm, a->din)) {
        if (pare_has(&a->wq)) fold_before(f, &a->wq, &a->bq, &m);
        if (pare_has(&a->wk)) fold_before(f, &a->wk, &a->bk, &m);
        if (pare_has(&a->wv)) fold_before(f, &a->wv, &a->bv, &m);
        if (pare_has(&a->mix)) fold_before(f, &a->mix, &a->bv, &m);
        if (pare_has(&a->matrix)) fold_before(f, &a->matrix, &a->bo, &m);
        strip(f, &a->in_norm);
    }
    /* After the norm's bias may have made one. */
    const bool softmax = pare_attn_has_softmax(a->kind) || a->kind == PARE_ATTN_POOL;
    if (!f->work.st && softmax && !f->rotary && pare_has(&a->bk) &&
        !(f->standard && weight_is(&a->bk, 0))) {
        a->bk = (pare_weight){0};
        f->report->key_biases++;
    }
    /* bo + Wo bv, where Wo is the identity when it is absent. */
    const bool merged = !f->standard || (pare_has(&a->bo) && !weight_is(&a->bv, 0));
    if (f->never_empty && merged && pare_has(&a->bv) && pare_attn_has_softmax(a->kind)) {
        const pare_dtype t = pare_has(&a->bo) ? a->bo.dtype : attn_dtype(a);
        void *const data = pare_work_alloc(&f->work, a->dout, pare_dtype_size(t));
        if (!data) return;
        for (size_t r = 0; r < a->dout; r++) {
            number v = number_of(&a->bo, r, 0);
            for (size_t h = 0; h < a->nheads; h++)
                for (size_t j = 0; j < a->heads[h].dv; j++) {
                    const size_t column = a->heads[h].o + j, at = r * a->wo.cols + column;
                    const number wo = number_of(&a->wo, at, r == column ? 1 : 0);
                    v = number_sum(v, number_product(wo, number_of(&a->bv, a->heads[h].v + j, 0)));
                }
            put_number(f, data, t, r, v);
        }
        a->bo = (pare_weight){t, 1, a->dout, data};
        a->bv = (pare_weight){0};
        f->report->value_biases++;
    }
    fold_out_norm(f, a);
}

/* ---- the other layers ------------------------------------------------------------------------ */

void fold_ffn(folder *f, pare_ffn *n)
{
    affine m;
    if (n->kind == PARE_FFN_NONE) return;
    const size_t readers = n->kind == PARE_FFN_GATED ? 2 : 1;
    bool may = true;
    for (size_t i = 0; i < readers; i++) may = may && may_enter(f, &n->in_norm, &n->layers[i].b);
    if (may && norm_affine(f, &m, &n->in_norm, n->din)) {
        for (size_t i = 0; i < readers; i++) fold_before(f, &n->layers[i].w, &n->layers[i].b, &m);
        strip(f, &n->in_norm);
    }
    if (n->out_norm.kind != PARE_NORM_BATCH || !norm_affine(f, &m, &n->out_norm, n->dout)) return;
    pare_dense *const last = &n->layers[n->nlayers - 1];
    scale_rows(f, &last->w, &m);
    affine_bias(f, &last->b, &m, last->w.dtype);
    scale_skip(f, &n->skip, &m, last->w.dtype);
    strip(f, &n->out_norm);
}

void fold_embedding(folder *f, pare_embedding *s)
{
    affine m;
    /* Positions added after the map would have to be scaled as well: not folded. */
    if (s->norm.kind != PARE_NORM_BATCH || !pare_has(&s->map.w) || s->pos.after_map) return;
    if (!norm_affine(f, &m, &s->norm, s->map.w.rows)) return;
    scale_rows(f, &s->map.w, &m);
    affine_bias(f, &s->map.b, &m, s->map.w.dtype);
    strip(f, &s->norm);
}

void fold_head(folder *f, pare_output_head *t)
{
    affine m;
    /* Pooling takes one row or the mean: an affine map of the rows passes through. Through a
     * maximum it does not. */
    if (t->pool == PARE_POOL_MAX) return;
    pare_dense *const reader = pare_has(&t->dense.w) ? &t->dense : &t->out;
    if (!pare_has(&reader->w)) return; /* tied, or no head at all */
    if (!may_enter(f, &t->norm, &reader->b)) return;
    if (!norm_affine(f, &m, &t->norm, reader->w.cols)) return;
    if (reader == &t->out && t->act != PARE_ACT_NONE) return; /* act stands in between */
    fold_before(f, &reader->w, &reader->b, &m);
    strip(f, &t->norm);
}

folder folder_of(const pare_model *m, bool standard, pare_arena *a, pare_fold_report *report,
                 pare_err *err)
{
    return (folder){.work = {.arena = a, .err = err},
                    .rotary = pare_model_is_rotary(m),
                    .never_empty = pare_never_empty(&m->pattern),
                    .standard = standard,
                    .report = report};
}

pare_status fold_model(pare_model **out, pare_fold_report *report, const pare_model *in,
                       bool standard, pare_err *err)
{
    pare_model *m = NULL;
    pare_status st = pare_model_clone(&m, in, err);
    if (st) return st;
    *report = (pare_fold_report){0};
    folder f = folder_of(in, standard, m->arena, report, err);
    fold_embedding(&f, &m->embedding);
    for (size_t b = 0; !f.work.st && b < m->nblocks; b++) {
        fold_attention(&f, &m->blocks[b].attn);
        fold_ffn(&f, &m->blocks[b].ffn);
    }
    fold_head(&f, &m->head);
    st = f.work.st ? f.work.st : pare_model_check(m, err);
    if (st) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}

pare_status pare_fold(pare_model **out, pare_fold_report *report, const pare_model *in,
                      pare_err *err)
{
    return fold_model(out, report, in, false, err);
}
