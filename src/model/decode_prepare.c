/* decode_prepare.c - what a decoder makes before its first token: packed weights, caches, rows. */
#include "decode.h"
#include "base/work.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include "model_equality.h"
#include "shared_rows.h"
#include <pare/run.h>
#include <math.h>

/* After the first failure every step does nothing (base/work.h). */
typedef struct builder {
    pare_work work; /* without threads: packing is not interrupted */
    pare_decoder *d;
    size_t scratch; /* bytes for the largest product of packed weights */
} builder;

/* a x b items; NULL only after a failure. */
static void *alloc_product(builder *b, size_t rows, size_t cols, size_t size)
{
    size_t count;
    if (pare_mul(&count, rows, cols)) return pare_work_alloc(&b->work, count, size);
    if (!b->work.st) b->work.st = pare_no_memory(b->work.err);
    return NULL;
}

/* A stored vector as padded f32; NULL when it is absent. */
static const float *prepare_vector(builder *b, const pare_weight *w)
{
    if (!pare_has(w)) return NULL;
    const size_t n = w->rows * w->cols;
    float *const v = pare_work_alloc(&b->work, pare_padded(n), sizeof *v);
    for (size_t j = 0; v && j < n; j++) v[j] = (float)pare_weight_at(w, j);
    return v;
}

/* Batch norm is (x - mean) * (gain / sqrt(var + eps)) + bias: an offset and a gain. */
static void prepare_norm(builder *b, decode_norm *to, const pare_norm *n, size_t width)
{
    const bool batch = n->kind == PARE_NORM_BATCH, has_offset = batch || pare_has(&n->offset);
    *to = (decode_norm){.d = width};
    if (n->kind == PARE_NORM_NONE) return;
    to->on = true;
    to->center = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_MEAN;
    to->divide = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    to->eps = (float)n->eps;
    to->divisor = (float)n->divisor;
    to->shift = (float)n->shift;
    float *const gain = pare_work_alloc(&b->work, pare_padded(width), sizeof *gain);
    float *const offset =
        has_offset ? pare_work_alloc(&b->work, pare_padded(width), sizeof *offset) : NULL;
    for (size_t j = 0; !b->work.st && j < width; j++) {
        double g = pare_has(&n->gain) ? pare_weight_at(&n->gain, j) : 1;
        double o = pare_has(&n->offset) ? pare_weight_at(&n->offset, j) : 0;
        if (batch) {
            g /= sqrt(pare_weight_at(&n->var, j) + n->eps);
            o -= pare_weight_at(&n->mean, j);
        }
        gain[j] = (float)g;
        if (offset) offset[j] = (float)o;
    }
    to->gain = gain;
    to->offset = offset;
    to->bias = prepare_vector(b, &n->bias);
}

static void prepare_panels(builder *b, pare_panels *to, const pare_part *part, size_t parts,
                           size_t in)
{
    if (b->work.st) return;
    b->work.st = pare_panels_new(to, b->work.arena, part, parts, in, &b->d->exec, b->work.err);
    for (size_t i = 0; i < to->npacked; i++) {
        const size_t bytes = packed_scratch(to->packed[i], DECODE_ROWS, b->d->exec.int8);
        if (bytes > b->scratch) b->scratch = bytes;
    }
}

static void prepare_dense(builder *b, pare_panels *to, const pare_weight *w,
                          const pare_weight *bias)
{
    const pare_part part = {w, bias, 0};
    prepare_panels(b, to, &part, 1, w->cols);
}

static void prepare_skip(builder *b, decode_skip *to, const pare_skip *s)
{
    to->kind = s->kind;
    if (s->kind == PARE_SKIP_DENSE) prepare_dense(b, &to->dense, &s->w, NULL);
    if (s->kind == PARE_SKIP_DIAGONAL) to->diagonal = prepare_vector(b, &s->w);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* One table of angles for all blocks with the same frequencies. */
static void prepare_rotation(builder *b, decode_attn *to)
{
    pare_decoder *const d = b->d;
    const pare_weight *const f = &to->a->freqs;
    if (!pare_has(f)) return;
    for (to->rotation = 0; to->rotation < d->rotations; to->rotation++)
        if (pare_same_weight(d->rotation[to->rotation].freqs, f)) return;
    decode_rotation *const r = &d->rotation[d->rotations++];
    r->freqs = f;
    r->cosine = pare_work_alloc(&b->work, DECODE_ROWS * f->cols, sizeof *r->cosine);
    r->sine = pare_work_alloc(&b->work, DECODE_ROWS * f->cols, sizeof *r->sine);
}

static float *new_cache(builder *b, size_t *step, size_t *per_sequence, size_t cols)
{
    const size_t groups = (b->d->max_tokens + LANES - 1) / LANES;
    *step = cols * LANES;
    if (!pare_mul(per_sequence, groups, *step)) *per_sequence = SIZE_MAX;
    return alloc_product(b, *per_sequence, b->d->sequences, sizeof(float));
}

static void prepare_heads(builder *b, decode_attn *to)
{
    const pare_attn *const a = to->a;
    const pare_head *const last = &a->heads[a->nheads - 1];
    pare_weight wq = a->wq;
    pare_part part[3];
    size_t parts = 0, planes = 0;
    for (size_t h = 0; h < a->nheads; h++) planes += a->heads[h].planes;
    /* Without wq one query serves all tokens. Where rotary positions make that query differ from
     * token to token, zeros and its bias make it. */
    if (!pare_has(&wq) && planes)
        wq = (pare_weight){PARE_F32, a->bq.cols, a->din,
                           alloc_product(b, a->bq.cols, a->din, sizeof(float))};
    else if (!pare_has(&wq))
        to->query = prepare_vector(b, &a->bq);
    if (pare_has(&wq)) part[parts++] = (pare_part){&wq, &a->bq, 0};
    part[parts++] = (pare_part){&a->wk, &a->bk, 0};
    part[parts++] = (pare_part){&a->wv, &a->bv, 0};
    to->head_columns = last->o + last->dv;
    to->k = pare_has(&wq) ? pare_padded(wq.rows) : 0;
    to->v = to->k + pare_padded(a->wk.rows);
    prepare_panels(b, &to->project, part, parts, a->din);
    prepare_rotation(b, to);
    /* Of the tokens before, heads store a running softmax where one query serves all and the mask
     * is causal, else keys and values. */
    if (to->query && b->d->m->pattern.kind == PARE_CAUSAL) {
        to->running_size = 2 * a->nheads + to->head_columns;
        to->running = alloc_product(b, to->running_size, b->d->sequences, sizeof *to->running);
    } else {
        to->kcache = new_cache(b, &to->kstep, &to->k_sequence, a->wk.rows);
        to->vcache = new_cache(b, &to->vstep, &to->v_sequence, a->wv.rows);
    }
    if (a->kind == PARE_ATTN_POOL) {
        const pare_part here = {&a->matrix, &a->bo, 0}, pooled = {&a->matrix, NULL, a->din};
        prepare_panels(b, &to->direct, &here, 1, a->din);
        prepare_panels(b, &to->output, &pooled, 1, to->head_columns);
        return;
    }
    pare_weight wo = a->wo;
    /* Without wo the heads are the output: multiplying by I leaves one path through the step. */
    if (!pare_has(&wo) && !b->work.st)
        b->work.st = pare_weight_identity(&wo, b->work.arena, a->dout, PARE_F32, b->work.err);
    prepare_dense(b, &to->output, &wo, &a->bo);
}

static void prepare_means(builder *b, decode_attn *to, size_t n, size_t width)
{
    const bool window = b->d->m->pattern.kind == PARE_WINDOW;
    const size_t sequences = b->d->sequences;
    to->mean = pare_work_alloc(&b->work, n, sizeof *to->mean);
    for (size_t j = 0; !b->work.st && j < n; j++) {
        decode_mean *const m = &to->mean[j];
        m->d = width;
        m->sum = alloc_product(b, sequences, width, sizeof *m->sum);
        if (window)
            m->rows = alloc_product(b, b->d->max_tokens, sequences * width, sizeof *m->rows);
    }
}

static void prepare_attention(builder *b, decode_attn *to, const pare_attn *a)
{
    to->a = a;
    if (a->kind == PARE_ATTN_NONE) return;
    prepare_norm(b, &to->in, &a->in_norm, a->din);
    prepare_norm(b, &to->out, &a->out_norm, a->dout);
    prepare_skip(b, &to->skip, &a->skip);
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_POOL:
        prepare_heads(b, to);
        break;
    case PARE_ATTN_LINEAR:
        prepare_dense(b, &to->direct, &a->matrix, &a->bo);
        break;
    case PARE_ATTN_AFFMIX:
        prepare_dense(b, &to->direct, &a->matrix, &a->bo);
        prepare_dense(b, &to->output, &a->mix, NULL);
        prepare_means(b, to, 1, a->din);
        break;
    case PARE_ATTN_UNIFORM:
        prepare_dense(b, &to->project, &a->mix, &a->bv);
        prepare_means(b, to, 1, a->dout);
        to->bias = prepare_vector(b, &a->bo);
        break;
    case PARE_ATTN_UMIX:
        to->powers = a->mix.rows / a->dout;
        to->power = pare_work_alloc(&b->work, to->powers, sizeof *to->power);
        prepare_means(b, to, to->powers - 1, a->din);
        for (size_t j = 0; !b->work.st && j < to->powers; j++) {
            const size_t bytes = a->dout * a->mix.cols * pare_dtype_size(a->mix.dtype);
            const pare_weight e = {a->mix.dtype, a->dout, a->mix.cols,
                                   (const char *)a->mix.data + j * bytes};
            prepare_dense(b, &to->power[j], &e, NULL);
        }
        to->bias = prepare_vector(b, &a->bo);
        break;
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        to->bias = prepare_vector(b, &a->bo);
        break;
    case PARE_ATTN_NONE:
    case PARE_ATTN_MEANQ: /* refused */
        break;
    }
}

/* ---- the other layers ------------------------------------------------------------------------ */

static void prepare_ffn(builder *b, decode_ffn *to, const pare_ffn *f)
{
    const pare_dense *const l = f->layers;
    to->f = f;
    if (f->kind == PARE_FFN_NONE) return;
    const bool gated = f->kind == PARE_FFN_GATED;
    to->layers = gated ? 2 : f->nlayers;
    to->layer = pare_work_alloc(&b->work, to->layers, sizeof *to->layer);
    prepare_norm(b, &to->in, &f->in_norm, f->din);
    prepare_norm(b, &to->out, &f->out_norm, f->dout);
    prepare_skip(b, &to->skip, &f->skip);
    if (b->work.st) return;
    if (gated) {
        const pare_part gate_and_up[] = {{&l[0].w, &l[0].b, 0}, {&l[1].w, &l[1].b, 0}};
        prepare_panels(b, &to->layer[0], gate_and_up, 2, f->din);
        prepare_dense(b, &to->layer[1], &l[2].w, &l[2].b);
    } else {
        for (size_t i = 0; i < f->nlayers; i++) prepare_dense(b, &to->layer[i], &l[i].w, &l[i].b);
    }
}

static void widen(size_t *stride, size_t d)
{
    if (decode_stride(d) > *stride) *stride = decode_stride(d);
}

/* A whole batch of rows, as wide as the widest, and a row of logits for every sequence, in each. */
static void prepare_rows(builder *b)
{
    pare_decoder *const d = b->d;
    if (b->work.st) return;
    size_t heads = 0; /* the largest number */
    widen(&d->stream_stride, d->m->embedding.width);
    widen(&d->stream_stride, pare_model_width(d->m, 0));
    for (size_t i = 0; i < d->m->nblocks; i++) {
        const decode_attn *const a = &d->attn[i];
        const decode_ffn *const f = &d->ffn[i];
        if (a->a->kind != PARE_ATTN_NONE) widen(&d->stream_stride, a->a->dout);
        if (f->f->kind != PARE_FFN_NONE) widen(&d->stream_stride, f->f->dout);
        widen(&d->hidden_stride, a->project.out);
        widen(&d->hidden_stride, a->head_columns);
        if (a->head_columns && !a->running && a->a->nheads > heads) heads = a->a->nheads;
        for (size_t l = 0; l + 1 < f->layers; l++) widen(&d->hidden_stride, f->layer[l].out);
    }
    if (d->stream_stride > d->hidden_stride)
        d->hidden_stride = d->stream_stride; /* means of the stream */
    const size_t outputs = d->output_map ? d->m->embedding.vocab : d->head_out.out,
                 dense = d->head_dense.out;
    float **const stream[] = {&d->x, &d->y, &d->z}, **const hidden[] = {&d->h, &d->g};
    size_t size = DECODE_ROWS * d->hidden_stride, logits;
    if (!pare_mul(&logits, d->sequences, (outputs > dense ? outputs : dense) + LANES))
        logits = SIZE_MAX; /* refused below */
    if (logits > size) size = logits;
    for (size_t i = 0; i < 3; i++)
        *stream[i] = alloc_product(b, DECODE_ROWS, d->stream_stride, sizeof(float));
    for (size_t i = 0; i < 2; i++) *hidden[i] = pare_work_alloc(&b->work, size, sizeof(float));
    d->score_capacity = (d->max_tokens + LANES - 1) / LANES * LANES + LANES;
    d->scores = alloc_product(b, heads ? heads : 1, d->score_capacity, sizeof *d->scores);
}

pare_status decode_prepare(pare_decoder *d, pare_err *err)
{
    const pare_embedding *const s = &d->m->embedding;
    const pare_output_head *const head = &d->m->head;
    const pare_weight *const out = head->tied ? &s->table : &head->out.w;
    const size_t n = d->m->nblocks, width = pare_model_width(d->m, 0);
    const size_t waves = s->pos.after_map ? width : s->width;
    builder b = {.work = {.arena = d->arena, .err = err}, .d = d};
    d->attn = pare_work_alloc(&b.work, n + 1, sizeof *d->attn);
    d->ffn = pare_work_alloc(&b.work, n + 1, sizeof *d->ffn);
    d->rotation = pare_work_alloc(&b.work, n + 1, sizeof *d->rotation);
    d->tokens = pare_work_alloc(&b.work, d->sequences, sizeof *d->tokens);
    prepare_norm(&b, &d->embedding_norm, &s->norm, width);
    if (pare_has(&s->map.w)) prepare_dense(&b, &d->map, &s->map.w, &s->map.b);
    if (s->pos.kind == PARE_POS_SINUSOIDAL)
        d->wavelength = pare_work_alloc(&b.work, waves, sizeof *d->wavelength);
    for (size_t j = 0; d->wavelength && j < waves; j++)
        d->wavelength[j] = pare_power(s->pos.base, (double)(j / 2 * 2), (double)waves);
    for (size_t i = 0; !b.work.st && i < n; i++) {
        prepare_attention(&b, &d->attn[i], &d->m->blocks[i].attn);
        prepare_ffn(&b, &d->ffn[i], &d->m->blocks[i].ffn);
    }
    prepare_norm(&b, &d->head_norm, &head->norm, pare_model_width(d->m, n));
    if (pare_has(&head->dense.w)) prepare_dense(&b, &d->head_dense, &head->dense.w, &head->dense.b);
    d->output_map = pare_output_map(d->m);
    if (d->output_map) d->output_bias = prepare_vector(&b, &head->out.b);
    if (pare_has(out)) prepare_dense(&b, &d->head_out, out, d->output_map ? NULL : &head->out.b);
    prepare_rows(&b);
    if (b.scratch) d->scratch = pare_work_alloc(&b.work, b.scratch, 1);
    return b.work.st;
}
