/* tape.c - a forward pass that saves its activations, and the backward pass: embedding, blocks,
 * output head, in order and in reverse. */
#include "gradient.h"
#include "tape.h"
#include <stdlib.h>
#include <string.h>

pare_status pare_tape_new(pare_tape **out, pare_params *p, const pare_exec *exec, pare_err *err)
{
    *out = NULL;
    pare_arena *const a = pare_arena_new();
    pare_tape *const t = a ? pare_alloc(a, 1, sizeof *t) : NULL;
    if (!t) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    const pare_model *const m = t->m = p->model;
    const size_t blocks = m->nblocks;
    pare_work *const w = &t->work;
    *w = (pare_work){.arena = a, .err = err};
    t->p = p;
    t->sub = pare_work_alloc(w, 2 * blocks + 1, sizeof *t->sub);
    t->stream = pare_work_alloc(w, blocks + 1, sizeof *t->stream);
    t->dstream = pare_work_alloc(w, blocks + 1, sizeof *t->dstream);
    t->stream_out = pare_work_alloc(w, blocks + 1, sizeof *t->stream_out);
    t->dstream_out = pare_work_alloc(w, blocks + 1, sizeof *t->dstream_out);
    t->rotary = pare_work_alloc(w, blocks + 1, sizeof *t->rotary);
    t->poly_use = pare_work_alloc(w, blocks + 1, sizeof *t->poly_use);
    for (size_t b = 0; !w->st && b < blocks; b++) {
        const pare_attn *const attn = &m->blocks[b].attn;
        const pare_ffn *const ffn = &m->blocks[b].ffn;
        const size_t layers = ffn->nlayers + 1;
        t->sub[2 * b] = (sublayer){.block = b,
                                   .attn = attn,
                                   .in_norm = &attn->in_norm,
                                   .out_norm = &attn->out_norm,
                                   .skip = &attn->skip,
                                   .dout = attn->kind == PARE_ATTN_NONE ? 0 : attn->dout};
        t->sub[2 * b + 1] = (sublayer){.block = b,
                                       .ffn = ffn,
                                       .in_norm = &ffn->in_norm,
                                       .out_norm = &ffn->out_norm,
                                       .skip = &ffn->skip,
                                       .dout = ffn->kind == PARE_FFN_NONE ? 0 : ffn->dout};
        ffn_saved *const k = &t->sub[2 * b + 1].ffn_saved;
        k->pre = pare_work_alloc(w, layers, sizeof *k->pre);
        k->post = pare_work_alloc(w, layers, sizeof *k->post);
        k->dropout = pare_work_alloc(w, layers, sizeof *k->dropout);
    }
    const pare_status st = w->st;
    w->exec = exec;
    if (st)
        pare_tape_free(t);
    else
        *out = t;
    return st;
}

void pare_tape_free(pare_tape *t)
{
    if (!t) return;
    stack_free(&t->stack);
    pare_arena_free(t->graph_arena);
    pare_arena_free(t->position_arena);
    pare_arena_free(t->layout_arena);
    pare_arena_free(t->work.arena); /* t itself lives there */
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* The completed graph in the order of the tape, and its transpose; made anew when the pointers of
 * the input are others than last time. */
static void set_graph(pare_tape *t, const pare_graph *g)
{
    pare_work *const w = &t->work;
    size_t width = 0; /* of keys and values of the widest head */
    t->graph = NULL;
    if (t->m->pattern.kind != PARE_GRAPH) return;
    if (t->graph_arena && g->n == t->input_graph.n && g->ptr == t->input_graph.ptr &&
        g->idx == t->input_graph.idx) {
        t->graph = &t->completed;
        return;
    }
    for (size_t b = 0; b < t->m->nblocks; b++) {
        const pare_attn *const a = &t->m->blocks[b].attn;
        for (size_t h = 0; h < a->nheads; h++)
            if (a->heads[h].dk + a->heads[h].dv > width) width = a->heads[h].dk + a->heads[h].dv;
    }
    pare_graph completed = {0};
    pare_arena_free(t->graph_arena);
    t->order = NULL;
    t->graph_arena = pare_arena_new();
    if (!t->graph_arena) pare_work_keep(w, pare_no_memory(w->err));
    if (!w->st) w->st = pare_graph_complete(&completed, t->graph_arena, g, &t->m->pattern, w->err);
    t->completed = completed;
    if (!w->st && tape_can_reorder(t->m))
        w->st =
            pare_graph_order(&t->completed, &t->order, t->graph_arena, &completed, width, w->err);
    if (!w->st)
        w->st = pare_graph_transpose(&t->transposed, t->graph_arena, &t->completed, width, w->err);
    if (w->st) {
        pare_arena_free(t->graph_arena);
        t->graph_arena = NULL;
        return;
    }
    t->input_graph = *g;
    t->graph = &t->completed;
}

/* Memory for streams in the order of the input; they are copied there when somebody asks. */
static void new_streams_out(pare_tape *t, rows *out, const rows *stream)
{
    for (size_t b = 0; t->order && b <= t->m->nblocks; b++)
        out[b] = tape_new_rows(t, stream[b].n, stream[b].d);
}

static const void *stream_in_input_order(const pare_tape *t, rows *out, const rows *stream)
{
    if (!t->order) return stream->v;
    tape_copy_to_input_order(t, out, stream);
    return out->v;
}

/* The inputs as one, and where their sequences lie: until the next pass. */
static pare_status set_layout(pare_tape *t, pare_input *joined, const pare_inputs *set,
                              pare_err *err)
{
    if (set->n == 1) { /* nothing to copy */
        *joined = set->in[0];
        t->layout = sequences_of_input(joined);
        return pare_input_check(t->m, joined, err);
    }
    pare_arena_free(t->layout_arena);
    t->layout_arena = pare_arena_new();
    if (!t->layout_arena) return pare_no_memory(err);
    return sequences_join(joined, &t->layout, t->layout_arena, t->m, set, err);
}

pare_status pare_tape_forward(pare_tape *t, const pare_input *in, const pare_mode *mode,
                              const void **y, pare_err *err)
{
    pare_input one = *in;
    return pare_tape_forward_set(t, &(pare_inputs){1, &one}, mode, y, err);
}

pare_status pare_tape_forward_set(pare_tape *t, const pare_inputs *set, const pare_mode *mode,
                                  const void **y, pare_err *err)
{
    pare_input in;
    const size_t blocks = t->m->nblocks;
    t->ready = false;
    if (!(mode->dropout >= 0 && mode->dropout < 1))
        return pare_fail(err, PARE_ERR_USAGE, "dropout is %g, must be at least 0 and below 1",
                         mode->dropout);
    if (!(mode->momentum >= 0 && mode->momentum <= 1))
        return pare_fail(err, PARE_ERR_USAGE, "momentum is %g, must be between 0 and 1",
                         mode->momentum);
    t->work.err = err;
    t->work.st = set_layout(t, &in, set, err);
    if (t->work.st) return t->work.st;
    stack_reset(&t->stack, (stack_mark){NULL, 0});
    t->mode = *mode;
    t->n = t->layout.rows;
    set_graph(t, in.graph);
    tape_position_tables(t, t->layout.longest);
    t->stream[0] = tape_embedding(t, &in);
    for (size_t b = 0; !t->work.st && b < blocks; b++) {
        rows x = t->stream[b];
        t->work.st = pare_stopped(t->work.exec, err);
        for (sublayer *s = &t->sub[2 * b]; s < &t->sub[2 * b + 2]; s++) {
            if (!s->dout) continue;
            s->x = x;
            s->z = tape_norm(t, &s->in, &x, s->in_norm);
            rows sum = tape_new_rows(t, x.n, s->dout), branch = sum;
            if (s->attn)
                tape_attn(t, s, &branch);
            else
                tape_ffn(t, s, &branch);
            s->dropout =
                tape_dropout_draw(t, sum.n, sum.d, b, s->attn ? DROPOUT_ATTN : DROPOUT_FFN);
            tape_skip(t, &sum, &branch, &s->dropout, &x, s->skip);
            x = tape_norm(t, &s->out, &sum, s->out_norm);
        }
        t->stream[b + 1] = x;
    }
    if (t->work.st) return t->work.st;
    const rows outputs = tape_output(t, &t->stream[blocks]);
    t->y = tape_to_input_order(t, &outputs);
    new_streams_out(t, t->stream_out, t->stream);
    t->forward_end = stack_top(&t->stack);
    t->ready = !t->work.st;
    if (y && t->ready) *y = t->y.v;
    return t->work.st;
}

const void *pare_tape_stream(const pare_tape *t, size_t block)
{
    PARE_ASSERT(t->ready && block <= t->m->nblocks);
    return stream_in_input_order(t, &t->stream_out[block], &t->stream[block]);
}

/* ---- backward --------------------------------------------------------------------------------- */

/* dz (+)= the gradient of the branch, whose output was dropped out and added to a sum with gradient
 * dsum. */
static void branch_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dsum)
{
    rows branch = *dsum;
    if (s->dropout.keep) {
        branch = tape_new_rows(t, dsum->n, dsum->d);
        tape_dropout(t, &branch, dsum, &s->dropout, NULL);
    }
    if (s->attn)
        tape_attn_backward(t, s, dz, add, &branch);
    else
        tape_ffn_backward(t, s, dz, add, &branch);
}

static void sublayer_backward(pare_tape *t, const sublayer *s, rows *dx, const rows *dy)
{
    const stack_mark mark = stack_top(&t->stack);
    const bool has_out_norm = s->out_norm->kind != PARE_NORM_NONE;
    if (s->in_norm->kind == PARE_NORM_NONE && tape_can_add(s) && has_out_norm &&
        s->skip->kind == PARE_SKIP_IDENTITY) {
        /* norm(x + branch(x)): the gradient of the norm's input goes along the skip as it is, and
         * the branch adds to it in place. */
        tape_norm_backward(t, &s->out, dx, dy, NULL, s->out_norm);
        branch_backward(t, s, dx, true, dx);
    } else {
        rows dsum = *dy, along_skip;
        if (has_out_norm) {
            dsum = tape_new_rows(t, dy->n, dy->d);
            tape_norm_backward(t, &s->out, &dsum, dy, NULL, s->out_norm);
        }
        rows dz = tape_new_rows(t, s->z.n, s->z.d);
        branch_backward(t, s, &dz, false, &dsum);
        const bool skips = s->skip->kind != PARE_SKIP_NONE;
        if (skips) along_skip = tape_skip_backward(t, &dsum, &s->x, s->skip);
        tape_norm_backward(t, &s->in, dx, &dz, skips ? &along_skip : NULL, s->in_norm);
    }
    stack_reset(&t->stack, mark);
}

/* Adds the gradient of a loss on hidden states. */
static void add_hidden_gradient(pare_tape *t, size_t b, const void *const *dstream)
{
    if (!dstream || !dstream[b]) return;
    const stack_mark mark = stack_top(&t->stack);
    rows given = t->dstream[b];
    given.v = (void *)dstream[b];
    const rows ordered = tape_from_input_order(t, &given);
    tape_sum(t, &t->dstream[b], &t->dstream[b], &ordered);
    stack_reset(&t->stack, mark);
}

pare_status pare_tape_backward(pare_tape *t, const void *dy, const void *const *dstream, void *grad,
                               pare_err *err)
{
    const size_t blocks = t->m->nblocks;
    PARE_ASSERT(t->ready);
    stack_reset(&t->stack, t->forward_end);
    t->work.err = err;
    t->work.st = PARE_OK;
    t->grad = grad;
    for (size_t b = 0; b <= blocks; b++) t->dstream[b] = tape_new_rows(t, t->n, t->stream[b].d);
    new_streams_out(t, t->dstream_out, t->dstream);
    const stack_mark mark = stack_top(&t->stack);
    if (dy) {
        rows given = t->y;
        given.v = (void *)dy;
        const rows ordered = tape_from_input_order(t, &given);
        tape_output_backward(t, &t->dstream[blocks], &ordered);
    } else {
        tape_zero(t, &t->dstream[blocks]);
    }
    stack_reset(&t->stack, mark);
    add_hidden_gradient(t, blocks, dstream);
    for (size_t b = blocks; b-- > 0;) {
        const sublayer *const attn = &t->sub[2 * b], *const ffn = attn + 1;
        rows *const dx = &t->dstream[b], *const dout = &t->dstream[b + 1];
        if (!t->work.st) t->work.st = pare_stopped(t->work.exec, err);
        if (!attn->dout && !ffn->dout) {
            tape_sum(t, dx, dout, NULL);
        } else if (!attn->dout || !ffn->dout) {
            sublayer_backward(t, attn->dout ? attn : ffn, dx, dout);
        } else {
            rows between = tape_new_rows(t, t->n, attn->dout);
            sublayer_backward(t, ffn, &between, dout);
            sublayer_backward(t, attn, dx, &between);
            stack_reset(&t->stack, mark);
        }
        add_hidden_gradient(t, b, dstream);
    }
    tape_embedding_backward(t, &t->dstream[0]);
    return t->work.st;
}

const void *pare_tape_dstream(const pare_tape *t, size_t block)
{
    PARE_ASSERT(t->ready && block <= t->m->nblocks && t->dstream[block].v);
    return stream_in_input_order(t, &t->dstream_out[block], &t->dstream[block]);
}
