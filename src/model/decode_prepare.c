/* What a decoder makes ready before its first token: packed weights, caches, rows. */
#include "decode.h"
#include <pare/elementary.h>
#include <math.h>
#include <string.h>

/* ---- small parts ------------------------------------------------------------------------------
 */

/* A stored vector as padded f32; *out stays NULL when it is absent. */
static pare_status floats(pare_decoder *d, const float **out, const pare_weight *w, pare_err *err)
{
    *out = NULL;
    if (!pare_has(w)) return PARE_OK;
    const size_t n = w->rows * w->cols;
    float *const v = pare_alloc(d->arena, pare_padded(n), sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t j = 0; j < n; j++) v[j] = (float)pare_weight_at(w, j);
    *out = v;
    return PARE_OK;
}

/* Batch norm is (x - mean) * (gain / sqrt(var + eps)) + bias: an offset and a gain. */
static double gain_at(const pare_norm *n, size_t j)
{
    const double gain = pare_has(&n->gain) ? pare_weight_at(&n->gain, j) : 1;
    return n->kind == PARE_NORM_BATCH ? gain / sqrt(pare_weight_at(&n->var, j) + n->eps) : gain;
}

static double offset_at(const pare_norm *n, size_t j)
{
    const double offset = pare_has(&n->offset) ? pare_weight_at(&n->offset, j) : 0;
    return n->kind == PARE_NORM_BATCH ? offset - pare_weight_at(&n->mean, j) : offset;
}

static pare_status prepare_norm(pare_decoder *d, decode_norm *to, const pare_norm *n, size_t width,
                                pare_err *err)
{
    *to = (decode_norm){.d = width};
    if (n->kind == PARE_NORM_NONE) return PARE_OK;
    to->on = true;
    to->centre = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_MEAN;
    to->divide = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    to->eps = (float)n->eps;
    to->divisor = (float)n->divisor;
    to->shift = (float)n->shift;
    const bool moved = pare_has(&n->offset) || n->kind == PARE_NORM_BATCH;
    float *const gain = pare_alloc(d->arena, pare_padded(width), sizeof *gain);
    float *const offset = moved ? pare_alloc(d->arena, pare_padded(width), sizeof *offset) : NULL;
    if (!gain || (moved && !offset)) return pare_no_memory(err);
    for (size_t j = 0; j < width; j++) {
        gain[j] = (float)gain_at(n, j);
        if (moved) offset[j] = (float)offset_at(n, j);
    }
    to->gain = gain;
    to->offset = offset;
    return floats(d, &to->bias, &n->bias, err);
}

static pare_status prepare_dense(pare_decoder *d, pare_panels *to, const pare_weight *w,
                                 const pare_weight *b, pare_err *err)
{
    const pare_part part = {w, b, 0};
    return pare_panels_new(to, d->arena, &part, 1, w->cols, &d->exec, err);
}

static pare_status prepare_skip(pare_decoder *d, decode_skip *to, const pare_skip *s, pare_err *err)
{
    to->kind = s->kind;
    if (s->kind == PARE_SKIP_DENSE) return prepare_dense(d, &to->dense, &s->w, NULL, err);
    return s->kind == PARE_SKIP_DIAGONAL ? floats(d, &to->diagonal, &s->w, err) : PARE_OK;
}

/* ---- attention --------------------------------------------------------------------------------
 */

static pare_status prepare_turn(pare_decoder *d, decode_attn *to, pare_err *err)
{
    const pare_weight *const f = &to->a->freqs;
    if (!pare_has(f)) return PARE_OK;
    const size_t bytes = f->cols * pare_dtype_size(f->dtype);
    for (to->turn = 0; to->turn < d->turns; to->turn++) {
        const pare_weight *const e = d->turn[to->turn].freqs;
        if (e->dtype == f->dtype && e->cols == f->cols && memcmp(e->data, f->data, bytes) == 0)
            return PARE_OK;
    }
    decode_turn *const t = &d->turn[d->turns++];
    t->freqs = f;
    t->cosine = pare_alloc(d->arena, DECODE_ROWS * f->cols, sizeof *t->cosine);
    t->sine = pare_alloc(d->arena, DECODE_ROWS * f->cols, sizeof *t->sine);
    return t->cosine && t->sine ? PARE_OK : pare_no_memory(err);
}

static pare_status new_cache(pare_decoder *d, float **out, size_t *step, size_t *text, size_t cols,
                             pare_err *err)
{
    size_t count;
    *step = cols * LANES;
    const size_t groups = (d->max + LANES - 1) / LANES;
    *out = pare_mul(text, groups, *step) && pare_mul(&count, *text, d->texts)
               ? pare_alloc(d->arena, count, sizeof **out)
               : NULL;
    return *out ? PARE_OK : pare_no_memory(err);
}

/* What heads keep of the tokens before: under a causal mask and with one query for all a few sums,
 * else keys and values. */
static pare_status prepare_memory(pare_decoder *d, decode_attn *to, pare_err *err)
{
    const pare_attn *const a = to->a;
    size_t count;
    if (to->query && d->m->pattern.kind == PARE_CAUSAL) {
        to->gtext = 2 * a->nheads + to->heads;
        to->gather = pare_mul(&count, to->gtext, d->texts)
                         ? pare_alloc(d->arena, count, sizeof *to->gather)
                         : NULL;
        return to->gather ? PARE_OK : pare_no_memory(err);
    }
    pare_status st = new_cache(d, &to->kcache, &to->kstep, &to->ktext, a->wk.rows, err);
    if (!st) st = new_cache(d, &to->vcache, &to->vstep, &to->vtext, a->wv.rows, err);
    return st;
}

/* Without wo the heads are the output: one product more, but one way through the step. */
static pare_status prepare_join(pare_decoder *d, decode_attn *to, pare_err *err)
{
    const pare_attn *const a = to->a;
    if (pare_has(&a->wo)) return prepare_dense(d, &to->second, &a->wo, &a->bo, err);
    pare_weight w;
    const pare_status st = pare_weight_identity(&w, d->arena, a->dout, PARE_F32, err);
    return st ? st : prepare_dense(d, &to->second, &w, &a->bo, err);
}

/* What makes queries of rows, if anything does: where one query serves all tokens but positions
 * turn it, zeros do. */
static pare_status prepare_queries(pare_decoder *d, decode_attn *to, pare_weight *wq, pare_err *err)
{
    const pare_attn *const a = to->a;
    size_t planes = 0, count;
    *wq = a->wq;
    for (size_t h = 0; h < a->nheads; h++) planes += a->heads[h].planes;
    if (pare_has(wq)) return PARE_OK;
    if (planes == 0) return floats(d, &to->query, &a->bq, err);
    float *const zero =
        pare_mul(&count, a->bq.cols, a->din) ? pare_alloc(d->arena, count, sizeof *zero) : NULL;
    *wq = (pare_weight){PARE_F32, a->bq.cols, a->din, zero};
    return zero ? PARE_OK : pare_no_memory(err);
}

static pare_status prepare_heads(pare_decoder *d, decode_attn *to, pare_err *err)
{
    const pare_attn *const a = to->a;
    const pare_head *const last = &a->heads[a->nheads - 1];
    pare_weight wq;
    pare_part part[3];
    size_t parts = 0;
    pare_status st = prepare_queries(d, to, &wq, err);
    if (st) return st;
    if (pare_has(&wq)) part[parts++] = (pare_part){&wq, &a->bq, 0};
    part[parts++] = (pare_part){&a->wk, &a->bk, 0};
    part[parts++] = (pare_part){&a->wv, &a->bv, 0};
    to->heads = last->o + last->dv;
    to->k = pare_has(&wq) ? pare_padded(wq.rows) : 0;
    to->v = to->k + pare_padded(a->wk.rows);
    st = pare_panels_new(&to->first, d->arena, part, parts, a->din, &d->exec, err);
    if (!st) st = prepare_turn(d, to, err);
    if (!st) st = prepare_memory(d, to, err);
    if (st || a->kind != PARE_ATTN_POOL) return st ? st : prepare_join(d, to, err);
    const pare_part here = {&a->matrix, &a->bo, 0}, pooled = {&a->matrix, NULL, a->din};
    st = pare_panels_new(&to->direct, d->arena, &here, 1, a->din, &d->exec, err);
    return st ? st : pare_panels_new(&to->second, d->arena, &pooled, 1, to->heads, &d->exec, err);
}

static pare_status prepare_means(pare_decoder *d, decode_attn *to, size_t n, size_t width,
                                 pare_err *err)
{
    to->mean = pare_alloc(d->arena, n ? n : 1, sizeof *to->mean);
    if (!to->mean) return pare_no_memory(err);
    for (size_t j = 0; j < n; j++) {
        decode_mean *const m = &to->mean[j];
        size_t count;
        m->d = width;
        m->sum =
            pare_mul(&count, d->texts, width) ? pare_alloc(d->arena, count, sizeof *m->sum) : NULL;
        if (m->sum && d->m->pattern.kind == PARE_WINDOW && pare_mul(&count, d->max, count))
            m->rows = pare_alloc(d->arena, count, sizeof *m->rows);
        if (!m->sum || (d->m->pattern.kind == PARE_WINDOW && !m->rows)) return pare_no_memory(err);
    }
    return PARE_OK;
}

static pare_status prepare_umix(pare_decoder *d, decode_attn *to, pare_err *err)
{
    const pare_weight *const mix = &to->a->mix;
    const size_t dout = to->a->dout, bytes = dout * mix->cols * pare_dtype_size(mix->dtype);
    to->powers = mix->rows / dout;
    to->power = pare_alloc(d->arena, to->powers, sizeof *to->power);
    if (!to->power) return pare_no_memory(err);
    pare_status st = prepare_means(d, to, to->powers - 1, to->a->din, err);
    for (size_t j = 0; !st && j < to->powers; j++) {
        const pare_weight e = {mix->dtype, dout, mix->cols, (const char *)mix->data + j * bytes};
        st = prepare_dense(d, &to->power[j], &e, NULL, err);
    }
    return st;
}

static pare_status prepare_kind(pare_decoder *d, decode_attn *to, pare_err *err)
{
    const pare_attn *const a = to->a;
    pare_status st = PARE_OK;
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_POOL:
        return prepare_heads(d, to, err);
    case PARE_ATTN_LINEAR:
        return prepare_dense(d, &to->direct, &a->matrix, &a->bo, err);
    case PARE_ATTN_AFFMIX:
        st = prepare_dense(d, &to->direct, &a->matrix, &a->bo, err);
        if (!st) st = prepare_dense(d, &to->second, &a->mix, NULL, err);
        return st ? st : prepare_means(d, to, 1, a->din, err);
    case PARE_ATTN_UNIFORM:
        st = prepare_dense(d, &to->first, &a->mix, &a->bv, err);
        if (!st) st = prepare_means(d, to, 1, a->dout, err);
        return st ? st : floats(d, &to->row, &a->bo, err);
    case PARE_ATTN_UMIX:
        st = prepare_umix(d, to, err);
        return st ? st : floats(d, &to->row, &a->bo, err);
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        return floats(d, &to->row, &a->bo, err);
    case PARE_ATTN_NONE:
    case PARE_ATTN_MEANQ:
        break;
    }
    return st;
}

static pare_status prepare_attn(pare_decoder *d, decode_attn *to, const pare_attn *a, pare_err *err)
{
    pare_status st;
    to->a = a;
    if (a->kind == PARE_ATTN_NONE) return PARE_OK;
    if ((st = prepare_norm(d, &to->in, &a->in_norm, a->din, err)) ||
        (st = prepare_norm(d, &to->out, &a->out_norm, a->dout, err)) ||
        (st = prepare_skip(d, &to->skip, &a->skip, err)))
        return st;
    return prepare_kind(d, to, err);
}

/* ---- the rest ----------------------------------------------------------------------------------
 */

static pare_status prepare_ffn(pare_decoder *d, decode_ffn *to, const pare_ffn *f, pare_err *err)
{
    pare_status st;
    to->f = f;
    if (f->kind == PARE_FFN_NONE) return PARE_OK;
    const bool gated = f->kind == PARE_FFN_GATED;
    to->layers = gated ? 2 : f->nlayers;
    to->layer = pare_alloc(d->arena, to->layers, sizeof *to->layer);
    if (!to->layer) return pare_no_memory(err);
    if ((st = prepare_norm(d, &to->in, &f->in_norm, f->din, err)) ||
        (st = prepare_norm(d, &to->out, &f->out_norm, f->dout, err)) ||
        (st = prepare_skip(d, &to->skip, &f->skip, err)))
        return st;
    if (gated) {
        const pare_part both[] = {{&f->layers[0].w, &f->layers[0].b, 0},
                                  {&f->layers[1].w, &f->layers[1].b, 0}};
        st = pare_panels_new(&to->layer[0], d->arena, both, 2, f->din, &d->exec, err);
        return st ? st : prepare_dense(d, &to->layer[1], &f->layers[2].w, &f->layers[2].b, err);
    }
    for (size_t l = 0; !st && l < f->nlayers; l++)
        st = prepare_dense(d, &to->layer[l], &f->layers[l].w, &f->layers[l].b, err);
    return st;
}

static pare_status prepare_stem(pare_decoder *d, pare_err *err)
{
    const pare_stem *const s = &d->m->stem;
    const size_t width = pare_model_width(d->m, 0), waves = s->pos.after_map ? width : s->width;
    pare_status st = prepare_norm(d, &d->stem_norm, &s->norm, width, err);
    if (!st && pare_has(&s->map.w)) st = prepare_dense(d, &d->map, &s->map.w, &s->map.b, err);
    if (st || s->pos.kind != PARE_POS_SINUSOIDAL) return st;
    d->wave = pare_alloc(d->arena, waves, sizeof *d->wave);
    if (!d->wave) return pare_no_memory(err);
    for (size_t j = 0; j < waves; j++)
        d->wave[j] = pare_power(s->pos.base, (double)(j / 2 * 2), (double)waves);
    return PARE_OK;
}

static pare_status prepare_top(pare_decoder *d, pare_err *err)
{
    const pare_top *const t = &d->m->top;
    const pare_weight *const w = t->tied ? &d->m->stem.embedding : &t->out.w;
    pare_status st =
        prepare_norm(d, &d->top_norm, &t->norm, pare_model_width(d->m, d->m->nblocks), err);
    if (!st && pare_has(&t->dense.w))
        st = prepare_dense(d, &d->dense, &t->dense.w, &t->dense.b, err);
    if (!st && pare_has(w)) st = prepare_dense(d, &d->last, w, &t->out.b, err);
    return st;
}

static void widen(size_t *to, size_t d)
{
    if (decode_stride(d) > *to) *to = decode_stride(d);
}

/* The widest rows of each buffer, and the largest number of heads. */
static size_t measure(pare_decoder *d)
{
    size_t heads = 0;
    widen(&d->wide, d->m->stem.width);
    widen(&d->wide, pare_model_width(d->m, 0));
    for (size_t b = 0; b < d->m->nblocks; b++) {
        const decode_attn *const a = &d->attn[b];
        const decode_ffn *const f = &d->ffn[b];
        if (a->a->kind != PARE_ATTN_NONE) widen(&d->wide, a->a->dout);
        if (f->f->kind != PARE_FFN_NONE) widen(&d->wide, f->f->dout);
        widen(&d->hidden, a->first.out);
        widen(&d->hidden, a->heads);
        if (a->heads && !a->gather && a->a->nheads > heads) heads = a->a->nheads;
        for (size_t l = 0; l + 1 < f->layers; l++) widen(&d->hidden, f->layer[l].out);
    }
    if (d->wide > d->hidden) d->hidden = d->wide; /* means of the stream */
    return heads;
}

/* A whole batch of rows, and a row of logits for every text, in each. */
static pare_status prepare_rows(pare_decoder *d, pare_err *err)
{
    const size_t heads = measure(d), last = d->last.out > d->dense.out ? d->last.out : d->dense.out;
    float **const narrow[] = {&d->x, &d->y, &d->z}, **const broad[] = {&d->h, &d->g};
    size_t hidden = DECODE_ROWS * d->hidden, logits;
    bool ok = pare_mul(&logits, d->texts, last + LANES);
    if (ok && logits > hidden) hidden = logits;
    for (size_t i = 0; i < 3; i++)
        ok = ok && (*narrow[i] = pare_alloc(d->arena, DECODE_ROWS * d->wide, sizeof(float)));
    for (size_t i = 0; i < 2; i++)
        ok = ok && (*broad[i] = pare_alloc(d->arena, hidden, sizeof(float)));
    d->score_room = (d->max + LANES - 1) / LANES * LANES + LANES;
    size_t scores;
    ok = ok && pare_mul(&scores, heads ? heads : 1, d->score_room) &&
         (d->scores = pare_alloc(d->arena, scores, sizeof *d->scores));
    return ok ? PARE_OK : pare_no_memory(err);
}

pare_status decode_prepare(pare_decoder *d, pare_err *err)
{
    const size_t n = d->m->nblocks;
    d->attn = pare_alloc(d->arena, n + 1, sizeof *d->attn);
    d->ffn = pare_alloc(d->arena, n + 1, sizeof *d->ffn);
    d->turn = pare_alloc(d->arena, n + 1, sizeof *d->turn);
    d->tokens = pare_alloc(d->arena, d->texts, sizeof *d->tokens);
    if (!d->attn || !d->ffn || !d->turn || !d->tokens) return pare_no_memory(err);
    pare_status st = prepare_stem(d, err);
    for (size_t b = 0; !st && b < n; b++) {
        st = prepare_attn(d, &d->attn[b], &d->m->blocks[b].attn, err);
        if (!st) st = prepare_ffn(d, &d->ffn[b], &d->m->blocks[b].ffn, err);
    }
    if (!st) st = prepare_top(d, err);
    return st ? st : prepare_rows(d, err);
}
