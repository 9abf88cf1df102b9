/* submodel.c - parts of a model as models of their own (replace_layers.h): the residual stream that
 * enters a block is a sequence of vectors like any other, so one forward pass serves for all. */
#include "model/model_facts.h"
#include "replace_layers.h"
#include <string.h>

pare_work scratch_open(const pare_work *parent)
{
    pare_work w = {pare_arena_new(), parent->exec, parent->err, parent->st};
    if (!w.arena && !w.st) w.st = pare_no_memory(w.err);
    return w;
}

void scratch_close(pare_work *scratch, pare_work *parent)
{
    pare_arena_free(scratch->arena);
    pare_work_keep(parent, scratch->st);
}

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

pare_mat submodel_run(pare_work *w, const pare_model *submodel, const pare_input *in,
                      const pare_mat *x)
{
    if (w->st) return (pare_mat){0};
    pare_input part = *in;
    part.ids = NULL;
    part.x = x->v;
    part.width = x->cols;
    const pare_mat out =
        work_matrix(w, pare_output_rows(submodel, &part), pare_model_outputs(submodel));
    if (!w->st) w->st = pare_forward_f64(out.v, submodel, &part, NULL, w->exec, w->err);
    return out;
}

/* A block ends with its feed-forward layer or, where it has none, with its attention: the later tap
 * overwrites the earlier one. */
static void save_stream(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v,
                        size_t rows, size_t cols)
{
    const residual_streams *const s = self;
    PARE_ASSERT(dtype == PARE_F64);
    if (tap != PARE_TAP_STEM && tap != PARE_TAP_ATTN_OUT && tap != PARE_TAP_FFN_OUT) return;
    const pare_mat *const to = &s->at[tap == PARE_TAP_STEM ? 0 : block + 1];
    if (to->rows == rows && to->cols == cols) memcpy(to->v, v, rows * cols * sizeof *to->v);
}

residual_streams residual_streams_of(pare_work *w, const pare_model *m, const pare_input *in)
{
    const pare_model hidden = submodel_hidden(m);
    residual_streams s = {.at = pare_work_alloc(w, m->nblocks + 1, sizeof *s.at)};
    const pare_trace trace = {.fn = save_stream, .self = &s};
    if (w->st) return s;
    for (size_t b = 0; !w->st && b <= m->nblocks; b++)
        s.at[b] = work_matrix(w, in->batch * in->tokens, pare_model_width(m, b));
    s.hidden = work_matrix(w, pare_output_rows(&hidden, in), pare_model_outputs(&hidden));
    if (!w->st) w->st = pare_forward_f64(s.hidden.v, &hidden, in, &trace, w->exec, w->err);
    for (size_t b = 0; !w->st && b < m->nblocks; b++) {
        const bool empty =
            m->blocks[b].attn.kind == PARE_ATTN_NONE && m->blocks[b].ffn.kind == PARE_FFN_NONE;
        if (empty) s.at[b + 1] = s.at[b];
    }
    return s;
}
