/* A forward pass, told once for both number types: stem, blocks, top. */
#include "forward_parts.h"
#include <pare/forward.h>
#include <math.h>
#include <string.h>

/* Numbers a chunk of sequences may hold in its widest buffer: bounds the memory of a batch. */
enum { CHUNK = 4 << 20 };

static void tap(const pare_trace *t, pare_tap where, size_t block, const rows *x)
{
    if (t && t->fn) t->fn(t->self, where, block, x->t, x->v, x->n, x->d);
}

/* ---- stem --------------------------------------------------------------------------------- */

typedef struct stem_ctx {
    const pare_stem *s;
    const pare_input *in;
    size_t first, tokens, d; /* first row of the chunk; width of what positions are added to */
} stem_ctx;

static void add_position(const stem_ctx *c, size_t pos, double *v)
{
    const pare_positions *const p = &c->s->pos;
    if (p->kind == PARE_POS_LEARNED)
        for (size_t j = 0; j < c->d; j++) v[j] += pare_weight_at(&p->table, pos * c->d + j);
    if (p->kind == PARE_POS_SINUSOIDAL) {
        for (size_t j = 0; j < c->d; j++) {
            const double angle = (double)pos / pow(p->base, (double)(j / 2 * 2) / (double)c->d);
            v[j] += j % 2 ? cos(angle) : sin(angle);
        }
    }
}

static void input_row(const void *ctx, size_t i, double *v)
{
    const stem_ctx *const c = ctx;
    const size_t row = c->first + i, d = c->s->width;
    if (c->s->ids) {
        const size_t at = (size_t)c->in->ids[row] * d;
        for (size_t j = 0; j < d; j++) v[j] = pare_weight_at(&c->s->embedding, at + j);
    } else {
        memcpy(v, c->in->x + row * d, d * sizeof *v);
    }
    if (!c->s->pos.after_map) add_position(c, i % c->tokens, v);
}

static void late_position(const void *ctx, size_t i, double *v)
{
    const stem_ctx *const c = ctx;
    add_position(c, i % c->tokens, v);
}

static pare_status stem(pass *p, rows *x, const pare_input *in, size_t first)
{
    const pare_stem *const s = &p->m->stem;
    stem_ctx c = {s, in, first, p->tokens, s->width};
    const bool mapped = pare_has(&s->map.w);
    rows raw = *x;
    pare_status st;
    if (mapped && (st = rows_new(&raw, p->scratch, x->t, x->n, s->width, p->err))) return st;
    if ((st = rows_map(&raw, &raw, input_row, &c, p->exec, p->err))) return st;
    if (mapped && (st = rows_dense(x, &raw, &s->map.w, &s->map.b, p->exec, p->err))) return st;
    c.d = x->d;
    if (s->pos.after_map && (st = rows_map(x, x, late_position, &c, p->exec, p->err))) return st;
    return rows_norm(x, x, &s->norm, p->exec, p->err);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* What a branch reads: x itself, or its norm in scratch. */
static pare_status normed(pass *p, rows *z, const rows *x, const pare_norm *n)
{
    *z = *x;
    if (n->kind == PARE_NORM_NONE) return PARE_OK;
    const pare_status st = rows_new(z, p->scratch, x->t, x->n, x->d, p->err);
    return st ? st : rows_norm(z, x, n, p->exec, p->err);
}

static pare_status attention_sublayer(pass *p, rows *y, const rows *x, const pare_attn *a)
{
    const pare_mark mark = pare_arena_mark(p->scratch);
    rows z;
    pare_status st = normed(p, &z, x, &a->in_norm);
    if (!st) st = attention_branch(p, y, &z, a);
    if (!st) st = rows_skip(y, x, &a->skip, p->scratch, p->exec, p->err);
    if (!st) st = rows_norm(y, y, &a->out_norm, p->exec, p->err);
    pare_arena_reset(p->scratch, mark);
    return st;
}

static pare_status ffn_sublayer(pass *p, rows *y, const rows *x, const pare_ffn *f)
{
    const pare_mark mark = pare_arena_mark(p->scratch);
    rows z;
    pare_status st = normed(p, &z, x, &f->in_norm);
    if (!st) st = ffn_branch(p, y, &z, f);
    if (!st) st = rows_skip(y, x, &f->skip, p->scratch, p->exec, p->err);
    if (!st) st = rows_norm(y, y, &f->out_norm, p->exec, p->err);
    pare_arena_reset(p->scratch, mark);
    return st;
}

static void swap(rows *a, rows *b)
{
    const rows t = *a;
    *a = *b;
    *b = t;
}

static pare_status block(pass *p, rows *x, rows *spare, size_t b, const pare_trace *trace)
{
    const pare_block *const k = &p->m->blocks[b];
    pare_status st = PARE_OK;
    if (k->attn.kind != PARE_ATTN_NONE) {
        tap(trace, PARE_TAP_ATTN_IN, b, x);
        spare->d = k->attn.dout;
        if ((st = attention_sublayer(p, spare, x, &k->attn))) return st;
        swap(x, spare);
        tap(trace, PARE_TAP_ATTN_OUT, b, x);
    }
    if (k->ffn.kind != PARE_FFN_NONE) {
        tap(trace, PARE_TAP_FFN_IN, b, x);
        spare->d = k->ffn.dout;
        if ((st = ffn_sublayer(p, spare, x, &k->ffn))) return st;
        swap(x, spare);
        tap(trace, PARE_TAP_FFN_OUT, b, x);
    }
    return st;
}

/* ---- top ----------------------------------------------------------------------------------- */

typedef struct pool_ctx {
    const rows *x;
    size_t tokens;
    bool mean;
} pool_ctx;

static void pool_row(const void *ctx, size_t i, double *v)
{
    const pool_ctx *const c = ctx;
    const rows *const x = c->x;
    rows_load(v, x, i * c->tokens);
    if (!c->mean) return;
    for (size_t t = 1; t < c->tokens; t++) {
        const size_t at = (i * c->tokens + t) * x->d;
        for (size_t j = 0; j < x->d; j++)
            v[j] += x->t == PARE_F64 ? ((const double *)x->v)[at + j]
                                     : (double)((const float *)x->v)[at + j];
    }
    for (size_t j = 0; j < x->d; j++) v[j] /= (double)c->tokens;
}

static pare_status top(pass *p, rows *out, rows *x, const pare_trace *trace)
{
    const pare_top *const t = &p->m->top;
    pare_status st = rows_norm(x, x, &t->norm, p->exec, p->err);
    if (st) return st;
    tap(trace, PARE_TAP_TOP, p->m->nblocks, x);
    rows h = *x;
    if (t->pool != PARE_POOL_NONE) {
        const pool_ctx c = {x, p->tokens, t->pool == PARE_POOL_MEAN};
        if ((st = rows_new(&h, p->scratch, x->t, x->n / p->tokens, x->d, p->err)) ||
            (st = rows_map(&h, &h, pool_row, &c, p->exec, p->err)))
            return st;
    }
    if (pare_has(&t->dense.w)) {
        rows d;
        if ((st = rows_new(&d, p->scratch, h.t, h.n, t->dense.w.rows, p->err)) ||
            (st = rows_dense(&d, &h, &t->dense.w, &t->dense.b, p->exec, p->err)))
            return st;
        h = d;
    }
    if ((st = rows_act(&h, t->act, p->exec, p->err))) return st;
    const pare_weight *const w = t->tied ? &p->m->stem.embedding : &t->out.w;
    if (pare_has(w)) return rows_dense(out, &h, w, &t->out.b, p->exec, p->err);
    memcpy(out->v, h.v, h.n * h.d * pare_dtype_size(h.t));
    return PARE_OK;
}

/* ---- the pass ------------------------------------------------------------------------------ */

static size_t widest(const pare_model *m)
{
    size_t w = m->stem.width > pare_model_width(m, 0) ? m->stem.width : pare_model_width(m, 0);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE && a->dout > w) w = a->dout;
        if (f->kind != PARE_FFN_NONE && f->dout > w) w = f->dout;
    }
    return w;
}

static size_t widest_buffer(const pare_model *m)
{
    size_t w = widest(m);
    for (size_t b = 0; b < m->nblocks; b++)
        for (size_t l = 0; l < m->blocks[b].ffn.nlayers; l++)
            if (m->blocks[b].ffn.layers[l].w.rows > w) w = m->blocks[b].ffn.layers[l].w.rows;
    return w;
}

/* Sequences [b0, b0 + nb) of the input, from ids to outputs. */
static pare_status chunk(pass *p, rows *out, const pare_input *in, size_t b0, size_t nb,
                         pare_dtype t, const pare_trace *trace)
{
    const size_t wide = widest(p->m), n = nb * p->tokens;
    rows x, spare;
    pare_status st;
    if ((st = rows_new(&x, p->scratch, t, n, wide, p->err)) ||
        (st = rows_new(&spare, p->scratch, t, n, wide, p->err)))
        return st;
    x.d = pare_model_width(p->m, 0);
    const pare_mark mark = pare_arena_mark(p->scratch);
    st = stem(p, &x, in, b0 * p->tokens);
    pare_arena_reset(p->scratch, mark);
    if (st) return st;
    tap(trace, PARE_TAP_STEM, 0, &x);
    for (size_t b = 0; b < p->m->nblocks; b++)
        if ((st = block(p, &x, &spare, b, trace))) return st;
    return top(p, out, &x, trace);
}

static pare_status all_chunks(pass *p, const pare_input *in, void *out, pare_dtype t,
                              const pare_trace *trace)
{
    const size_t per_seq = in->tokens * widest_buffer(p->m), cols = pare_model_outputs(p->m);
    const size_t seqs = per_seq && CHUNK / per_seq ? CHUNK / per_seq : 1;
    const size_t out_rows = pare_output_rows(p->m, in) / in->batch;
    /* A trace shows whole batches. */
    const size_t step = trace && trace->fn ? in->batch : seqs;
    const pare_mark mark = pare_arena_mark(p->scratch);
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b < in->batch; b += step) {
        const size_t nb = in->batch - b < step ? in->batch - b : step;
        char *const to = (char *)out + b * out_rows * cols * pare_dtype_size(t);
        rows part = {t, nb * out_rows, cols, to};
        st = chunk(p, &part, in, b, nb, t, trace);
        pare_arena_reset(p->scratch, mark);
    }
    return st;
}

static pare_status forward(void *out, pare_dtype t, const pare_model *m, const pare_input *in,
                           const pare_trace *trace, const pare_exec *exec, pare_err *err)
{
    pare_graph graph;
    pass p = {.m = m, .tokens = in->tokens, .exec = exec, .err = err};
    pare_status st = pare_input_check(m, in, err);
    if (st) return st;
    p.scratch = pare_arena_new();
    if (!p.scratch) return pare_no_memory(err);
    if (m->pattern.kind == PARE_GRAPH) {
        st = pare_graph_complete(&graph, p.scratch, in->graph, &m->pattern, err);
        p.graph = &graph;
    }
    if (!st) st = all_chunks(&p, in, out, t, trace);
    pare_arena_free(p.scratch);
    return st;
}

pare_status pare_forward_f64(double *out, const pare_model *m, const pare_input *in,
                             const pare_trace *trace, const pare_exec *exec, pare_err *err)
{
    return forward(out, PARE_F64, m, in, trace, exec, err);
}

pare_status pare_forward_f32(float *out, const pare_model *m, const pare_input *in,
                             const pare_trace *trace, const pare_exec *exec, pare_err *err)
{
    return forward(out, PARE_F32, m, in, trace, exec, err);
}

size_t pare_output_rows(const pare_model *m, const pare_input *in)
{
    return m->top.pool == PARE_POOL_NONE ? in->batch * in->tokens : in->batch;
}
