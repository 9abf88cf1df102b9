/* decode.c - the decoder: a forward pass (as in forward.c) over the next tokens only.
 *
 * Weights lie packed in the order in which they are read; no step allocates. */
#include "decode.h"
#include "base/simd.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include "decode_state.h"
#include "shared_rows.h"
#include <math.h>
#include <string.h>

void decode_product(pare_decoder *d, float *y, size_t ldy, const pare_panels *p, const float *x,
                    size_t ldx, size_t n, bool add)
{
    const packed_work work = {d->exec.int8, d->scratch, &d->exec};
    size_t at = 0;
    if (p->npacked == 0) pare_panels_apply(y, ldy, p, x, ldx, n, add, &d->exec);
    for (size_t i = 0; i < p->npacked; i++) {
        const size_t outs = pare_padded(p->packed[i]->rows);
        const float *const bias = p->bias ? p->bias + at : NULL;
        packed_apply(&(packed_product){y + at, ldy, outs, p->packed[i], bias, x, ldx, n, add},
                     &work);
        at += outs;
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void norm_rows(const pare_decoder *d, float *y, const float *x, const decode_norm *n,
                      size_t rows)
{
    const size_t ld = decode_stride(n->d);
    for (size_t i = 0; n->on && i < rows; i++) d->kernels->norm(y + i * ld, x + i * ld, n);
}

static void act_rows(const pare_decoder *d, float *h, const float *u, size_t ld, size_t cols,
                     size_t n, pare_act act)
{
    if (act == PARE_ACT_NONE && !u) return;
    for (size_t i = 0; i < n; i++)
        vector_activation(d->isa, h + i * ld, u ? u + i * ld : NULL, cols, act);
}

/* Entry j of what is added at a position. */
static double position_at(const pare_decoder *d, size_t position, size_t j, size_t width)
{
    const pare_positions *const p = &d->m->embedding.pos;
    if (p->kind == PARE_POS_LEARNED) return pare_weight_at(&p->table, position * width + j);
    if (p->kind != PARE_POS_SINUSOIDAL) return 0;
    const double angle = (double)position / d->wavelength[j];
    double s, c;
    pare_sincos(angle, &s, &c);
    return j % 2 ? c : s;
}

/* z = in_norm(x), or x itself where there is none. */
static void open_sublayer(pare_decoder *d, const decode_norm *in, size_t din, size_t n)
{
    if (in->on)
        norm_rows(d, d->z, d->x, in, n);
    else
        memcpy(d->z, d->x, n * decode_stride(din) * sizeof *d->z);
}

/* y = out_norm(y + skip(x)), and y becomes the stream. */
static void close_sublayer(pare_decoder *d, const decode_skip *s, const decode_norm *out,
                           size_t din, size_t dout, size_t n)
{
    const size_t ld = decode_stride(dout), ldx = decode_stride(din);
    if (s->kind == PARE_SKIP_DENSE)
        decode_product(d, d->y, ld, &s->dense, d->x, ldx, n, true);
    else if (s->kind != PARE_SKIP_NONE)
        for (size_t i = 0; i < n; i++)
            d->kernels->add(d->y + i * ld, d->x + i * ldx, s->diagonal, pare_padded(dout));
    norm_rows(d, d->y, d->y, out, n);
    float *const old = d->x;
    d->x = d->y;
    d->y = old;
}

/* y = the feed-forward branch at z. */
static void ffn(pare_decoder *d, const decode_ffn *f, size_t n)
{
    const size_t out = decode_stride(f->f->dout);
    const bool gated = f->f->kind == PARE_FFN_GATED;
    size_t ldx = decode_stride(f->f->din);
    const float *x = d->z;
    for (size_t l = 0; l + 1 < f->layers; l++) {
        const size_t ld = f->layer[l].out + LANES;
        const size_t cols = gated ? f->layer[l].out / 2 : f->layer[l].out;
        float *const h = l % 2 ? d->g : d->h;
        decode_product(d, h, ld, &f->layer[l], x, ldx, n, false);
        act_rows(d, h, gated ? h + cols : NULL, ld, cols, n, f->f->act);
        x = h;
        ldx = ld;
    }
    decode_product(d, d->y, out, &f->layer[f->layers - 1], x, ldx, n, false);
}

/* Takes the next rows, whose sequences and positions are set, through embedding and blocks. */
static void run_blocks(pare_decoder *d, const int64_t *ids, size_t n)
{
    const pare_embedding *const s = &d->m->embedding;
    const size_t width = pare_model_width(d->m, 0), ld = decode_stride(width);
    const size_t raw = decode_stride(s->width);
    for (size_t i = 0; i < n; i++) {
        float *const to = (d->map.out ? d->z : d->x) + i * raw;
        const size_t at = pare_token_row(s, ids[i]) * s->width, position = d->row[i].position;
        for (size_t j = 0; j < s->width; j++) {
            const double e = pare_weight_at(&s->table, at + j);
            to[j] = (float)(s->pos.after_map ? e : e + position_at(d, position, j, s->width));
        }
        for (size_t j = s->width; j < pare_padded(s->width); j++) to[j] = 0;
    }
    if (d->map.out) decode_product(d, d->x, ld, &d->map, d->z, raw, n, false);
    for (size_t i = 0; s->pos.after_map && i < n; i++)
        for (size_t j = 0; j < width; j++)
            d->x[i * ld + j] =
                (float)((double)d->x[i * ld + j] + position_at(d, d->row[i].position, j, width));
    norm_rows(d, d->x, d->x, &d->embedding_norm, n);
    decode_set_angles(d, n);
    for (size_t b = 0; b < d->m->nblocks; b++) {
        decode_attn *const a = &d->attn[b];
        const decode_ffn *const f = &d->ffn[b];
        if (a->a->kind != PARE_ATTN_NONE) {
            open_sublayer(d, &a->in, a->a->din, n);
            decode_attention(d, a, n);
            close_sublayer(d, &a->skip, &a->out, a->a->din, a->a->dout, n);
        }
        if (f->f->kind != PARE_FFN_NONE) {
            open_sublayer(d, &f->in, f->f->din, n);
            ffn(d, f, n);
            close_sublayer(d, &f->skip, &f->out, f->f->din, f->f->dout, n);
        }
    }
}

/* The logits of n rows; *ld is their distance. */
static const float *run_head(pare_decoder *d, float *x, size_t n, size_t *ld)
{
    const pare_output_head *const head = &d->m->head;
    size_t width = pare_model_width(d->m, d->m->nblocks);
    float *now = x, *next = d->h;
    *ld = decode_stride(width);
    norm_rows(d, now, now, &d->head_norm, n);
    if (d->head_dense.out) {
        const size_t ldy = d->head_dense.out + LANES;
        decode_product(d, next, ldy, &d->head_dense, now, *ld, n, false);
        width = head->dense.w.rows;
        *ld = ldy;
        now = next;
        next = d->g;
    }
    act_rows(d, now, NULL, *ld, pare_padded(width), n, head->act);
    if (!d->head_out.out) return now;
    decode_product(d, next, d->head_out.out + LANES, &d->head_out, now, *ld, n, false);
    *ld = d->head_out.out + LANES;
    if (d->output_map) {
        float *const stored = next;
        const size_t ldy = d->m->embedding.vocab + LANES;
        next = stored == d->h ? d->g : d->h;
        for (size_t i = 0; i < n; i++)
            for (size_t o = 0; o < d->m->embedding.vocab; o++)
                next[i * ldy + o] =
                    stored[i * *ld + d->output_map[o]] + (d->output_bias ? d->output_bias[o] : 0);
        *ld = ldy;
    }
    return next;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static pare_status check_ids(const pare_decoder *d, size_t sequence, const int64_t *ids, size_t n,
                             pare_err *err)
{
    const size_t tokens = d->tokens[sequence];
    if (n == 0) return pare_fail(err, PARE_ERR_INPUT, "decoder: no token");
    if (n > d->max_tokens - tokens)
        return pare_fail(err, PARE_ERR_INPUT,
                         "decoder: %zu tokens after %zu; there is room for %zu in all", n, tokens,
                         d->max_tokens);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint64_t)ids[i] >= d->m->embedding.vocab)
            return pare_fail(err, PARE_ERR_INPUT,
                             "decoder: id %lld at position %zu; the vocabulary has %zu",
                             (long long)ids[i], tokens + i, d->m->embedding.vocab);
    return PARE_OK;
}

pare_status pare_decoder_prefill_sequence(pare_decoder *d, size_t sequence, const int64_t *ids,
                                          size_t n, const float **logits, pare_err *err)
{
    *logits = NULL;
    PARE_ASSERT(sequence < d->sequences);
    const pare_status st = check_ids(d, sequence, ids, n, err);
    if (st) return st;
    size_t rows = 0;
    for (size_t i = 0; i < n; i += rows) {
        rows = n - i < DECODE_ROWS ? n - i : DECODE_ROWS;
        for (size_t r = 0; r < rows; r++) d->row[r] = (decode_row){sequence, d->tokens[sequence]++};
        run_blocks(d, ids + i, rows);
    }
    size_t ld = decode_stride(pare_model_width(d->m, d->m->nblocks));
    *logits = run_head(d, d->x + (rows - 1) * ld, 1, &ld);
    return PARE_OK;
}

pare_status pare_decoder_step_batch(pare_decoder *d, const size_t *sequence, const int64_t *ids,
                                    size_t n, const float **logits, size_t *ld, pare_err *err)
{
    *logits = NULL;
    *ld = 0;
    if (n == 0) return pare_fail(err, PARE_ERR_INPUT, "decoder: no token");
    for (size_t i = 0; i < n; i++) {
        PARE_ASSERT(sequence[i] < d->sequences && (i == 0 || sequence[i - 1] < sequence[i]));
        const pare_status st = check_ids(d, sequence[i], &ids[i], 1, err);
        if (st) return st;
    }
    for (size_t i = 0; i < n; i++) d->row[i] = (decode_row){sequence[i], d->tokens[sequence[i]]++};
    run_blocks(d, ids, n);
    *logits = run_head(d, d->x, n, ld);
    return PARE_OK;
}

pare_status pare_decoder_prefill(pare_decoder *d, const int64_t *ids, size_t n,
                                 const float **logits, pare_err *err)
{
    return pare_decoder_prefill_sequence(d, 0, ids, n, logits, err);
}

pare_status pare_decoder_step(pare_decoder *d, int64_t id, const float **logits, pare_err *err)
{
    return pare_decoder_prefill_sequence(d, 0, &id, 1, logits, err);
}

size_t pare_decoder_tokens_of(const pare_decoder *d, size_t sequence)
{
    PARE_ASSERT(sequence < d->sequences);
    return d->tokens[sequence];
}

size_t pare_decoder_tokens(const pare_decoder *d)
{
    return d->tokens[0];
}

size_t pare_decoder_capacity(const pare_decoder *d)
{
    return d->max_tokens;
}

void pare_decoder_reset_sequence(pare_decoder *d, size_t sequence)
{
    PARE_ASSERT(sequence < d->sequences);
    d->tokens[sequence] = 0; /* keys and values behind it are never looked at */
    for (size_t b = 0; b < d->m->nblocks; b++) {
        const decode_attn *const a = &d->attn[b];
        const size_t means = a->powers ? a->powers - 1 : 1, size = a->running_size;
        if (a->running) memset(a->running + sequence * size, 0, size * sizeof *a->running);
        for (size_t j = 0; a->mean && j < means; j++) {
            const decode_mean *const m = &a->mean[j];
            memset(m->sum + sequence * m->d, 0, m->d * sizeof *m->sum);
        }
    }
}

void pare_decoder_reset(pare_decoder *d)
{
    for (size_t t = 0; t < d->sequences; t++) pare_decoder_reset_sequence(d, t);
}

/* ---- making one ------------------------------------------------------------------------------ */

const char *pare_decoder_refuses(const pare_model *m)
{
    if (!m->embedding.ids) return "it takes vectors, not ids";
    if (m->pattern.kind != PARE_CAUSAL && m->pattern.kind != PARE_WINDOW)
        return m->pattern.kind == PARE_GRAPH ? "it attends over a graph"
                                             : "its tokens see those that come after them";
    if (m->head.pool != PARE_POOL_NONE) return "it gives one row for all tokens";
    if (m->head.normalize) return "it normalizes its outputs, which are no scores of tokens";
    for (size_t b = 0; b < m->nblocks; b++)
        if (m->blocks[b].attn.kind == PARE_ATTN_MEANQ)
            return "the query of a block is the mean over all tokens (meanq)";
    return NULL;
}

pare_status pare_decoder_new_batch(pare_decoder **out, const pare_model *m, size_t sequences,
                                   size_t max_tokens, const pare_exec *exec, pare_err *err)
{
    enum { UNLIMITED = 1024 }; /* tokens where neither the model nor the caller says */
    *out = NULL;
    PARE_ASSERT(sequences > 0 && sequences <= PARE_DECODE_SEQUENCES);
    const char *const why = pare_decoder_refuses(m);
    if (why) return pare_fail(err, PARE_ERR_INPUT, "the model cannot go token by token: %s", why);
    if (m->context && max_tokens > m->context)
        return pare_fail(err, PARE_ERR_INPUT,
                         "decoder: %zu tokens are too many, the model takes at most %zu",
                         max_tokens, m->context);
    pare_arena *const arena = pare_arena_new();
    pare_decoder *const d = arena ? pare_alloc(arena, 1, sizeof *d) : NULL;
    if (!d) {
        pare_arena_free(arena);
        return pare_no_memory(err);
    }
    const size_t most = m->context ? m->context : UNLIMITED;
    *d = (pare_decoder){.m = m,
                        .arena = arena,
                        .kernels = &decode_portable,
                        .isa = simd_best(),
                        .exec = {.threads = 1}};
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX2) d->kernels = &decode_avx2;
    if (simd_best() >= SIMD_AVX512) d->kernels = &decode_avx512;
#endif
    if (exec) d->exec = (pare_exec){.threads = exec->threads, .int8 = exec->int8};
    d->max_tokens = max_tokens ? max_tokens : most;
    d->sequences = sequences;
    const pare_status st = decode_prepare(d, err);
    if (st)
        pare_arena_free(arena);
    else
        *out = d;
    return st;
}

pare_status pare_decoder_new(pare_decoder **out, const pare_model *m, size_t max_tokens,
                             const pare_exec *exec, pare_err *err)
{
    return pare_decoder_new_batch(out, m, 1, max_tokens, exec, err);
}

void pare_decoder_free(pare_decoder *d)
{
    if (d) pare_arena_free(d->arena);
}
