/* splitmix_nets.h - the networks of the golden vectors, drawn from the same stream in
 * the same order: matrices are [in, out] there and are stored [out, in] here. */
#ifndef TEST_SPLITMIX_NETS_H
#define TEST_SPLITMIX_NETS_H
#include <pare/run.h>
#include <pare_test.h>

typedef struct stream {
    uint64_t x;
    pare_arena *a;
} stream;

static inline double draw(stream *s) /* [-1, 1) */
{
    uint64_t z = s->x += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53 * 2 - 1;
}

static inline double *numbers(stream *s, size_t n)
{
    double *const v = pare_alloc(s->a, n, sizeof *v);
    assert_non_null(v);
    return v;
}

/* in x out as drawn, into rows [at, at + out) of w (or with `cols` into its columns). */
static inline void draw_into(stream *s, pare_weight *w, size_t in, size_t out, size_t at, bool cols,
                             double scale)
{
    double *const v = (double *)(uintptr_t)w->data;
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            v[cols ? o * w->cols + at + i : (at + o) * w->cols + i] = scale * draw(s);
}

static inline pare_weight room_for(stream *s, size_t rows, size_t cols)
{
    return (pare_weight){PARE_F64, rows, cols, numbers(s, rows * cols)};
}

static inline pare_weight vector_of(stream *s, size_t n, double mean, double scale)
{
    double *const v = numbers(s, n);
    for (size_t i = 0; i < n; i++) v[i] = mean + scale * draw(s);
    return (pare_weight){PARE_F64, 1, n, v};
}

static inline pare_model *empty_net(stream *s, size_t blocks, size_t d, pare_pattern_kind pattern)
{
    pare_model *m = NULL;
    assert_int_equal(pare_model_new(&m, NULL), PARE_OK);
    s->a = m->arena;
    m->stem.width = d;
    m->pattern.kind = pattern;
    m->nblocks = blocks;
    m->blocks = pare_alloc(m->arena, blocks, sizeof *m->blocks);
    assert_non_null(m->blocks);
    return m;
}

static inline pare_head *heads_of(stream *s, size_t n, size_t dk, size_t dv, double beta)
{
    pare_head *const h = pare_alloc(s->a, n, sizeof *h);
    assert_non_null(h);
    for (size_t i = 0; i < n; i++)
        h[i] = (pare_head){dk, dv, i * dk, i * dk, i * dv, i * dv, beta, 0, 0};
    return h;
}

/* A pure residual network: heads of d x d matrices, their values added up. */
static inline pare_model *san_of(stream *s, size_t layers, size_t nheads, size_t d, double scale,
                                 double beta, pare_pattern_kind pattern)
{
    pare_model *const m = empty_net(s, layers, d, pattern);
    for (size_t l = 0; l < layers; l++) {
        pare_attn *const at = &m->blocks[l].attn;
        *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = d, .dout = d, .nheads = nheads};
        at->heads = heads_of(s, nheads, d, d, beta);
        at->skip.kind = PARE_SKIP_IDENTITY;
        at->wq = room_for(s, nheads * d, d);
        at->wk = room_for(s, nheads * d, d);
        at->wv = room_for(s, nheads * d, d);
        at->wo = room_for(s, d, nheads * d);
        for (size_t h = 0; h < nheads; h++) {
            draw_into(s, &at->wq, d, d, h * d, false, scale);
            draw_into(s, &at->wk, d, d, h * d, false, scale);
            draw_into(s, &at->wv, d, d, h * d, false, scale);
            for (size_t i = 0; i < d; i++)
                ((double *)(uintptr_t)at->wo.data)[i * nheads * d + h * d + i] = 1;
        }
    }
    return m;
}

/* Two pre-norm blocks with biases and gelu, one norm for both sublayers (the vectors' D). */
static inline pare_model *block_net(stream *s, pare_pattern_kind pattern)
{
    const size_t d = 4, dk = 2, hidden = 6, nheads = 2;
    pare_model *const m = empty_net(s, 2, d, pattern);
    for (size_t l = 0; l < 2; l++) {
        pare_attn *const at = &m->blocks[l].attn;
        pare_ffn *const f = &m->blocks[l].ffn;
        *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = d, .dout = d, .nheads = nheads};
        at->heads = heads_of(s, nheads, dk, dk, 1 / sqrt((double)dk));
        at->wq = room_for(s, nheads * dk, d), at->bq = room_for(s, 1, nheads * dk);
        at->wk = room_for(s, nheads * dk, d), at->bk = room_for(s, 1, nheads * dk);
        at->wv = room_for(s, nheads * dk, d), at->bv = room_for(s, 1, nheads * dk);
        at->wo = room_for(s, d, nheads * dk);
        for (size_t h = 0; h < nheads; h++) {
            draw_into(s, &at->wq, d, dk, h * dk, false, .6);
            draw_into(s, &at->wk, d, dk, h * dk, false, .6);
            draw_into(s, &at->wv, d, dk, h * dk, false, .6);
            draw_into(s, &at->wo, dk, d, h * dk, true, .6);
            draw_into(s, &at->bq, dk, 1, h * dk, true, .3);
            draw_into(s, &at->bk, dk, 1, h * dk, true, .3);
            draw_into(s, &at->bv, dk, 1, h * dk, true, .3);
        }
        at->bo = vector_of(s, d, 0, .1);
        at->in_norm = (pare_norm){.kind = PARE_NORM_LAYER, .eps = 1e-5, .divisor = (double)d};
        at->in_norm.gain = vector_of(s, d, 1, .2);
        at->in_norm.bias = vector_of(s, d, 0, .1);
        at->skip.kind = PARE_SKIP_IDENTITY;
        *f = (pare_ffn){.kind = PARE_FFN_MLP,
                        .din = d,
                        .dout = d,
                        .nlayers = 2,
                        .act = PARE_ACT_GELU,
                        .in_norm = at->in_norm,
                        .skip = at->skip};
        f->layers = pare_alloc(s->a, 2, sizeof *f->layers);
        assert_non_null(f->layers);
        f->layers[0].w = room_for(s, hidden, d);
        draw_into(s, &f->layers[0].w, d, hidden, 0, false, .5);
        f->layers[0].b = vector_of(s, hidden, 0, .1);
        f->layers[1].w = room_for(s, d, hidden);
        draw_into(s, &f->layers[1].w, hidden, d, 0, false, .5);
        f->layers[1].b = vector_of(s, d, 0, .1);
    }
    return m;
}

static inline pare_input rows_of(stream *s, size_t n, size_t d, double scale)
{
    double *const x = numbers(s, n * d);
    for (size_t i = 0; i < n * d; i++) x[i] = scale * draw(s);
    return (pare_input){.batch = 1, .tokens = n, .width = d, .x = x};
}
#endif
