/* onnx_parts.h - a model as ONNX nodes, sublayer by sublayer. Values are [batch, tokens, d]. */
#ifndef PARE_SRC_ONNX_PARTS_H
#define PARE_SRC_ONNX_PARTS_H
#include "onnx.h"
#include <pare/model.h>

/* Cosines and sines of the positions: [tokens, 1, 1, freqs.cols]. */
typedef struct turns {
    struct turns *next;
    const pare_weight *freqs;
    value cosine, sine;
} turns;

/* A quantized matrix in one form. */
typedef struct dequantized {
    const struct dequantized *next;
    const pare_int_groups *of;
    onnx_form form;
    value v;
} dequantized;

typedef struct writer {
    onnx g;
    const pare_model *m;
    char where[48];  /* "blocks.0.attn": what weights are called by */
    value rows;      /* [batch, tokens] as a list of numbers */
    value tokens;    /* a scalar */
    value positions; /* 0, 1, ... */
    value visible;   /* [tokens, tokens], 0 where a query sees a key and very low elsewhere */
    turns *turns;    /* made so far */
    const dequantized *dequantized; /* as well */
} writer;

/* The weight `where.name` in that form. */
value put_weight(writer *x, const char *name, const pare_weight *w, onnx_form form);
/* v w^T + b; b may be absent. */
value put_dense(writer *x, value v, const char *name, const char *bias, const pare_weight *w,
                const pare_weight *b);
value put_bias(writer *x, value v, const char *name, const pare_weight *b);
value put_norm(writer *x, value v, const char *name, const pare_norm *n);
value put_act(writer *x, value v, pare_act act);
/* branch + skip(v), then the norm: how every sublayer ends. */
value put_finish(writer *x, value branch, value v, const pare_skip *s, const pare_norm *n);
/* v[..., from:to:step] along an axis. */
value put_slice(writer *x, value v, int64_t axis, int64_t from, int64_t to, int64_t step);
/* A row of d numbers at every token. */
value put_spread(writer *x, value row, size_t d);
/* sin(position * freq + phase) in f64, rounded: [tokens, n]. */
value put_waves(writer *x, const double *freq, const double *phase, size_t n);
value put_attention(writer *x, value z, const pare_attn *a);
value put_ffn(writer *x, value z, const pare_ffn *f);
#endif
