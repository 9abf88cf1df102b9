/* Parts of a model as models of their own (replace_layers.h), so that one forward pass serves for all: the
 * stream that enters a block is a sequence of vectors like any other. */
#include "replace_layers.h"
#include <string.h>

static pare_model over_vectors(const pare_model *m, size_t width, pare_block *blocks, size_t n)
{
    pare_model s = {.pattern = m->pattern, .nblocks = n, .blocks = blocks};
    s.stem.width = width;
    if (pare_model_is_rotary(m)) {
        s.stem.pos.kind = PARE_POS_ROTARY;
        s.stem.pos.interleaved = m->stem.pos.interleaved;
    }
    return s;
}

pare_model submodel_hidden(const pare_model *m)
{
    pare_model s = *m;
    s.top = (pare_top){.norm = m->top.norm, .pool = m->top.pool};
    return s;
}

pare_model submodel_from(const pare_model *m, size_t b)
{
    pare_model s = over_vectors(m, pare_model_width(m, b), m->blocks + b, m->nblocks - b);
    s.top = (pare_top){.norm = m->top.norm, .pool = m->top.pool};
    return s;
}

pare_model submodel_branch(pare_block *block, const pare_model *m, const pare_attn *a)
{
    *block = (pare_block){.attn = *a};
    block->attn.skip = (pare_skip){PARE_SKIP_NONE, {0}};
    block->attn.out_norm = (pare_norm){0};
    return over_vectors(m, a->din, block, 1);
}

pare_model submodel_norm(const pare_model *m, const pare_norm *n, size_t width)
{
    pare_model s = over_vectors(m, width, NULL, 0);
    s.top.norm = *n;
    return s;
}

pare_status submodel_run(pare_mat *out, pare_arena *a, const pare_model *section,
                         const pare_input *in, const pare_mat *x, const pare_exec *exec,
                         pare_err *err)
{
    pare_input part = *in;
    part.ids = NULL;
    part.x = x->v;
    part.width = x->cols;
    *out = pare_mat_new(a, pare_output_rows(section, &part), pare_model_outputs(section));
    if (!out->v) return pare_no_memory(err);
    return pare_forward_f64(out->v, section, &part, NULL, exec, err);
}

/* ---- all streams of one input ---------------------------------------------------------------- */

typedef struct tapes {
    const pare_model *m;
    residual_streams *to;
} tapes;

/* A block ends with its feed-forward layer or, where it has none, with its attention: the one that
 * comes later is what stays. */
static void keep_stream(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v,
                        size_t rows, size_t cols)
{
    const tapes *const t = self;
    PARE_ASSERT(dtype == PARE_F64);
    if (tap != PARE_TAP_STEM && tap != PARE_TAP_ATTN_OUT && tap != PARE_TAP_FFN_OUT) return;
    const pare_mat *const to = &t->to->at[tap == PARE_TAP_STEM ? 0 : block + 1];
    if (to->rows == rows && to->cols == cols) memcpy(to->v, v, rows * cols * sizeof *to->v);
}

static bool is_empty(const pare_block *b)
{
    return b->attn.kind == PARE_ATTN_NONE && b->ffn.kind == PARE_FFN_NONE;
}

pare_status residual_streams_of(residual_streams *out, pare_arena *a, const pare_model *m,
                                const pare_input *in, const pare_exec *exec, pare_err *err)
{
    const pare_model s = submodel_hidden(m);
    const size_t rows = in->batch * in->tokens;
    tapes t = {m, out};
    const pare_trace trace = {.fn = keep_stream, .self = &t};
    out->at = pare_alloc(a, m->nblocks + 1, sizeof *out->at);
    if (!out->at) return pare_no_memory(err);
    for (size_t b = 0; b <= m->nblocks; b++) {
        out->at[b] = pare_mat_new(a, rows, pare_model_width(m, b));
        if (!out->at[b].v) return pare_no_memory(err);
    }
    out->hidden = pare_mat_new(a, pare_output_rows(&s, in), pare_model_outputs(&s));
    if (!out->hidden.v) return pare_no_memory(err);
    const pare_status st = pare_forward_f64(out->hidden.v, &s, in, &trace, exec, err);
    for (size_t b = 0; b < m->nblocks; b++)
        if (is_empty(&m->blocks[b])) out->at[b + 1] = out->at[b];
    return st;
}
