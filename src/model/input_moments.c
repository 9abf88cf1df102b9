/* input_moments.c - second moments of the rows that enter a matrix: they are the outputs of the
 * model truncated before it, so an ordinary forward pass computes them. */
#include "inputs.h"
#include "source.h"
#include "input_moments.h"
#include "linalg/matrix.h"
#include <pare/run.h>
#include <string.h>

/* A model cut short: weights and all else are the model's own. */
typedef struct truncated_model {
    pare_model m;
    pare_block *blocks;
    pare_dense *layers; /* of the last block, where they are changed */
} truncated_model;

/* The first `blocks` blocks, and `norm` behind them. */
static void truncate_blocks(truncated_model *s, size_t blocks, const pare_norm *norm)
{
    s->m.nblocks = blocks;
    s->m.head = (pare_output_head){0};
    if (norm) s->m.head.norm = *norm;
}

/* The heads of block b side by side. */
static void truncate_heads(truncated_model *s, size_t b)
{
    pare_attn *const at = &s->blocks[b].attn;
    truncate_blocks(s, b + 1, NULL);
    s->blocks[b].ffn.kind = PARE_FFN_NONE;
    at->dout = at->wo.cols;
    at->wo = at->bo = (pare_weight){0};
    at->skip = (pare_skip){0};
    at->out_norm = (pare_norm){0};
}

/* What enters layer l of the feed-forward part: an identity takes its place. */
static pare_status truncate_hidden(truncated_model *s, pare_arena *a, size_t b, size_t l,
                                   pare_err *err)
{
    pare_ffn *const f = &s->blocks[b].ffn;
    const size_t width = f->layers[l].w.cols;
    s->layers = pare_alloc(a, f->nlayers, sizeof *s->layers);
    if (!s->layers) return pare_no_memory(err);
    memcpy(s->layers, f->layers, f->nlayers * sizeof *s->layers);
    s->layers[l].b = (pare_weight){0};
    truncate_blocks(s, b + 1, NULL);
    f->layers = s->layers;
    f->nlayers = l + 1;
    f->dout = width;
    f->skip = (pare_skip){0};
    f->out_norm = (pare_norm){0};
    return pare_weight_identity(&s->layers[l].w, a, width, PARE_F32, err);
}

static pare_status truncate_ffn(truncated_model *s, pare_arena *a, size_t b, size_t l,
                                pare_err *err)
{
    const pare_ffn f = s->blocks[b].ffn;
    if (l > (f.kind == PARE_FFN_GATED ? 1 : 0)) return truncate_hidden(s, a, b, l, err);
    s->blocks[b].ffn.kind = PARE_FFN_NONE;
    truncate_blocks(s, b + 1, &f.in_norm);
    return PARE_OK;
}

/* *known: whether the rows are the outputs of such a model. */
static pare_status truncate_before(truncated_model *s, bool *known, pare_arena *a,
                                   const pare_model *m, uint64_t stream, pare_err *err)
{
    const size_t b = (size_t)(stream >> 48), part = stream >> 32 & 0xffff;
    const pare_source_matrix w = (pare_source_matrix)(stream >> 24 & 0xff);
    s->m = *m;
    s->blocks = pare_alloc(a, m->nblocks + 1, sizeof *s->blocks);
    if (!s->blocks) return pare_no_memory(err);
    memcpy(s->blocks, m->blocks, m->nblocks * sizeof *s->blocks);
    s->m.blocks = s->blocks;
    *known = true;
    if (w == PARE_SOURCE_W1 || w == PARE_SOURCE_W2)
        return truncate_ffn(s, a, b, 2 * part + (w == PARE_SOURCE_W2), err);
    if (w == PARE_SOURCE_Q || w == PARE_SOURCE_K || w == PARE_SOURCE_V)
        truncate_blocks(s, b, &m->blocks[b].attn.in_norm);
    else if (w == PARE_SOURCE_O)
        truncate_heads(s, b);
    else if (w == PARE_SOURCE_OUT || w == PARE_SOURCE_DENSE ||
             (w == PARE_SOURCE_EMBEDDING && m->head.tied)) {
        s->m.head.tied = s->m.head.normalize = false;
        s->m.head.out = (pare_dense){0};
        if (w == PARE_SOURCE_DENSE) s->m.head.dense = (pare_dense){0};
        if (w == PARE_SOURCE_DENSE) s->m.head.act = PARE_ACT_NONE;
    } else
        *known = false;
    return PARE_OK;
}

/* ---- moments --------------------------------------------------------------------------------- */

static size_t rows_in(const pare_model *m, const pare_inputs *set)
{
    size_t rows = 0;
    for (size_t i = 0; i < set->n; i++) rows += pare_output_rows(m, &set->in[i]);
    return rows;
}

static pare_status rows_of(pare_mat *out, pare_arena *a, const pare_model *m,
                           const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    const size_t rows = rows_in(m, set), cols = pare_model_outputs(m);
    float *const y = pare_alloc(a, rows * cols + 1, sizeof *y);
    *out = pare_mat_new(a, rows, cols);
    if (!y || !out->v) return pare_no_memory(err);
    const pare_status st = pare_forward_set(y, PARE_F32, m, set, exec, err);
    if (!st) pare_weight_widen(out, &(pare_weight){PARE_F32, rows, cols, y}, 0, 0);
    return st;
}

pare_status input_moments_of(input_moments *out, pare_arena *a, const pare_model *f,
                             const pare_model *g, uint64_t stream, const pare_inputs *set,
                             const pare_exec *exec, pare_err *err)
{
    truncated_model x, y;
    bool known = false;
    *out = (input_moments){0};
    pare_status st = f ? truncate_before(&x, &known, a, f, stream, err) : PARE_OK;
    if (!st) st = truncate_before(&y, &known, a, g, stream, err);
    if (st || !known) return st;
    const size_t n = pare_model_outputs(&y.m);
    out->square = pare_mat_new(a, n, n);
    if (f) out->cross = pare_mat_new(a, n, n);
    if (!out->square.v || (f && !out->cross.v)) return pare_no_memory(err);
    const double share = 1 / (double)rows_in(&y.m, set);
    for (size_t i = 0; !st && i < set->n;) {
        const pare_mark mark = pare_arena_mark(a);
        const pare_inputs some = {pare_inputs_together(&y.m, set, i), set->in + i};
        pare_mat xs, ys;
        st = f ? rows_of(&xs, a, &x.m, &some, exec, err) : PARE_OK;
        if (!st) st = rows_of(&ys, a, &y.m, &some, exec, err);
        if (!st) pare_gemm(&out->square, share, &ys, true, &ys, false, 1);
        if (!st && f) pare_gemm(&out->cross, share, &xs, true, &ys, false, 1);
        pare_arena_reset(a, mark);
        i += some.n;
    }
    return st;
}
