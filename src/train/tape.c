/* A pass that remembers, and its way back: stem, blocks, top, in order and in reverse. */
#include "tape.h"
#include <stdlib.h>
#include <string.h>

/* ---- making -----------------------------------------------------------------------------------
 */

static void name_sublayers(pare_tape *t)
{
    for (size_t b = 0; b < t->m->nblocks; b++) {
        const pare_attn *const a = &t->m->blocks[b].attn;
        const pare_ffn *const f = &t->m->blocks[b].ffn;
        t->sub[2 * b] = (sublayer){.block = b,
                                   .attn = a,
                                   .in_norm = &a->in_norm,
                                   .out_norm = &a->out_norm,
                                   .skip = &a->skip,
                                   .dout = a->kind == PARE_ATTN_NONE ? 0 : a->dout};
        t->sub[2 * b + 1] = (sublayer){.block = b,
                                       .ffn = f,
                                       .in_norm = &f->in_norm,
                                       .out_norm = &f->out_norm,
                                       .skip = &f->skip,
                                       .dout = f->kind == PARE_FFN_NONE ? 0 : f->dout};
    }
}

static bool ffn_memory(pare_tape *t)
{
    for (size_t i = 1; i < 2 * t->m->nblocks; i += 2) {
        const size_t layers = t->sub[i].ffn->nlayers + 1;
        ffn_saved *const k = &t->sub[i].ffn_saved;
        k->pre = pare_alloc(t->lasting, layers, sizeof *k->pre);
        k->post = pare_alloc(t->lasting, layers, sizeof *k->post);
        k->drop = pare_alloc(t->lasting, layers, sizeof *k->drop);
        if (!k->pre || !k->post || !k->drop) return false;
    }
    return true;
}

pare_status pare_tape_new(pare_tape **out, pare_params *p, const pare_exec *exec, pare_err *err)
{
    *out = NULL;
    pare_arena *const a = pare_arena_new();
    pare_tape *const t = a ? pare_alloc(a, 1, sizeof *t) : NULL;
    if (!t) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    const size_t blocks = p->model->nblocks;
    t->lasting = a;
    t->p = p;
    t->m = p->model;
    t->exec = exec;
    t->sub = pare_alloc(a, 2 * blocks + 1, sizeof *t->sub);
    t->stream = pare_alloc(a, blocks + 1, sizeof *t->stream);
    t->dstream = pare_alloc(a, blocks + 1, sizeof *t->dstream);
    t->shown = pare_alloc(a, blocks + 1, sizeof *t->shown);
    t->dshown = pare_alloc(a, blocks + 1, sizeof *t->dshown);
    t->angles = pare_alloc(a, blocks + 1, sizeof *t->angles);
    t->use = pare_alloc(a, blocks + 1, sizeof *t->use);
    const bool ok =
        t->sub && t->stream && t->dstream && t->shown && t->dshown && t->angles && t->use;
    if (ok) name_sublayers(t);
    if (!ok || !ffn_memory(t)) {
        pare_tape_free(t);
        return pare_no_memory(err);
    }
    *out = t;
    return PARE_OK;
}

void pare_tape_free(pare_tape *t)
{
    if (!t) return;
    stack_free(&t->stack);
    pare_arena_free(t->graphs);
    pare_arena_free(t->turns);
    pare_arena_free(t->lasting); /* t itself lives there */
}

/* ---- there ------------------------------------------------------------------------------------
 */

/* The widest keys and values of a head. */
static size_t head_width(const pare_model *m)
{
    size_t most = 0;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        for (size_t h = 0; h < a->nheads; h++)
            if (a->heads[h].dk + a->heads[h].dv > most) most = a->heads[h].dk + a->heads[h].dv;
    }
    return most;
}

/* The graph that is attended over, in the order of the tape, and it seen from its keys. */
static pare_status make_graph(pare_tape *t, const pare_graph *g)
{
    const size_t width = head_width(t->m);
    pare_graph whole;
    pare_status st = pare_graph_complete(&whole, t->graphs, g, &t->m->pattern, t->err);
    t->whole = whole;
    t->order = NULL;
    if (!st && tape_can_reorder(t->m))
        st = pare_graph_order(&t->whole, &t->order, t->graphs, &whole, width, t->err);
    return st ? st : pare_graph_turn(&t->turned, t->graphs, &t->whole, width, t->err);
}

static pare_status take_graph(pare_tape *t, const pare_input *in)
{
    t->graph = NULL;
    if (t->m->pattern.kind != PARE_GRAPH) return PARE_OK;
    const pare_graph *const g = in->graph;
    if (t->graphs && g->n == t->given.n && g->ptr == t->given.ptr && g->idx == t->given.idx) {
        t->graph = &t->whole;
        return PARE_OK;
    }
    pare_arena_free(t->graphs);
    t->graphs = pare_arena_new();
    pare_status st = t->graphs ? PARE_OK : pare_no_memory(t->err);
    if (!st) st = make_graph(t, g);
    if (st) {
        pare_arena_free(t->graphs);
        t->graphs = NULL;
        return st;
    }
    t->given = *g;
    t->graph = &t->whole;
    return PARE_OK;
}

static pare_status sublayer_there(pare_tape *t, sublayer *s, rows *y, const rows *x)
{
    const size_t place = s->attn ? DROPOUT_ATTN : DROPOUT_FFN;
    rows sum, branch;
    pare_status st;
    s->x = *x;
    if ((st = tape_norm(t, &s->in, &s->z, x, s->in_norm)) ||
        (st = tape_new_rows(t, &sum, x->n, s->dout)))
        return st;
    branch = sum;
    if ((st = s->attn ? tape_attn(t, s, &branch) : tape_ffn(t, s, &branch)) ||
        (st = tape_dropout_draw(t, &s->drop, sum.n, sum.d, s->block, place)) ||
        (st = tape_skip(t, &sum, &branch, &s->drop, x, s->skip)))
        return st;
    return tape_norm(t, &s->out, y, &sum, s->out_norm);
}

static pare_status all_there(pare_tape *t, const pare_input *in)
{
    pare_status st = tape_embedding(t, &t->stream[0], in);
    for (size_t b = 0; !st && b < t->m->nblocks; b++) {
        rows x = t->stream[b];
        st = pare_stopped(t->exec, t->err);
        for (size_t i = 2 * b; !st && i < 2 * b + 2; i++) {
            rows y = x;
            if (t->sub[i].dout) st = sublayer_there(t, &t->sub[i], &y, &x);
            x = y;
        }
        t->stream[b + 1] = x;
    }
    rows y;
    if (!st) st = tape_output(t, &y, &t->stream[t->m->nblocks]);
    return st ? st : tape_to_input_order(t, &t->y, &y);
}

/* Streams are shown when somebody asks; room for them is kept. */
static pare_status make_room(pare_tape *t, rows *room, const rows *stream)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; t->order && !st && b <= t->m->nblocks; b++)
        st = tape_new_rows(t, &room[b], stream[b].n, stream[b].d);
    return st;
}

static const void *show_stream(const pare_tape *t, rows *room, const rows *stream)
{
    if (!t->order) return stream->v;
    tape_copy_to_input_order(t, room, stream);
    return room->v;
}

static pare_status check_mode(const pare_mode *m, pare_err *err)
{
    if (!(m->dropout >= 0 && m->dropout < 1))
        return pare_fail(err, PARE_ERR_USAGE, "dropout is %g, must be at least 0 and below 1",
                         m->dropout);
    if (!(m->momentum >= 0 && m->momentum <= 1))
        return pare_fail(err, PARE_ERR_USAGE, "momentum is %g, must be between 0 and 1",
                         m->momentum);
    return PARE_OK;
}

pare_status pare_tape_forward(pare_tape *t, const pare_input *in, const pare_mode *mode,
                              const void **y, pare_err *err)
{
    pare_status st;
    t->ready = false;
    t->err = err;
    if ((st = check_mode(mode, err)) || (st = pare_input_check(t->m, in, err))) return st;
    stack_reset(&t->stack, (stack_mark){NULL, 0});
    t->mode = *mode;
    t->batch = in->batch;
    t->tokens = in->tokens;
    t->n = in->batch * in->tokens;
    if ((st = take_graph(t, in)) || (st = tape_position_tables(t, in->tokens)) ||
        (st = all_there(t, in)) || (st = make_room(t, t->shown, t->stream)))
        return st;
    t->forward_end = stack_top(&t->stack);
    t->ready = true;
    if (y) *y = t->y.v;
    return PARE_OK;
}

const void *pare_tape_stream(const pare_tape *t, size_t block)
{
    PARE_ASSERT(t->ready && block <= t->m->nblocks);
    return show_stream(t, &t->shown[block], &t->stream[block]);
}

/* ---- back -------------------------------------------------------------------------------------
 */

/* The gradient of the branch, which begins with the one of the sum. */
static pare_status branch_back(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *sum)
{
    rows branch = *sum;
    pare_status st;
    if (s->drop.keep && ((st = tape_new_rows(t, &branch, sum->n, sum->d)) ||
                         (st = tape_dropout(t, &branch, sum, &s->drop, NULL))))
        return st;
    return s->attn ? tape_attn_backward(t, s, dz, add, &branch)
                   : tape_ffn_backward(t, s, dz, add, &branch);
}

static pare_status general_back(pare_tape *t, const sublayer *s, rows *dx, const rows *dy)
{
    rows sum = *dy, dz, skipped;
    bool skips;
    pare_status st;
    if (s->out_norm->kind != PARE_NORM_NONE &&
        ((st = tape_new_rows(t, &sum, dy->n, dy->d)) ||
         (st = tape_norm_backward(t, &s->out, &sum, dy, NULL, s->out_norm))))
        return st;
    if ((st = tape_new_rows(t, &dz, s->z.n, s->z.d)) ||
        (st = branch_back(t, s, &dz, false, &sum)) ||
        (st = tape_skip_backward(t, &skipped, &skips, &sum, &s->x, s->skip)))
        return st;
    return tape_norm_backward(t, &s->in, dx, &dz, skips ? &skipped : NULL, s->in_norm);
}

/* x + branch(x), then a norm: what the norm gives back is what goes along the skip, and the branch
 * is added to it where it lies. */
static pare_status straight_back(pare_tape *t, const sublayer *s, rows *dx, const rows *dy)
{
    const pare_status st = tape_norm_backward(t, &s->out, dx, dy, NULL, s->out_norm);
    return st ? st : branch_back(t, s, dx, true, dx);
}

static pare_status sublayer_back(pare_tape *t, const sublayer *s, rows *dx, const rows *dy)
{
    const stack_mark mark = stack_top(&t->stack);
    const bool straight = s->in_norm->kind == PARE_NORM_NONE && tape_can_add(s) &&
                          s->out_norm->kind != PARE_NORM_NONE &&
                          s->skip->kind == PARE_SKIP_IDENTITY;
    const pare_status st = straight ? straight_back(t, s, dx, dy) : general_back(t, s, dx, dy);
    stack_reset(&t->stack, mark);
    return st;
}

/* From where block b ends to where it begins. */
static pare_status block_back(pare_tape *t, size_t b)
{
    const sublayer *const attn = &t->sub[2 * b], *const ffn = attn + 1;
    rows *const dx = &t->dstream[b], *const dy = &t->dstream[b + 1];
    pare_status st;
    if (!attn->dout && !ffn->dout) return tape_sum(t, dx, dy, NULL);
    if (!attn->dout) return sublayer_back(t, ffn, dx, dy);
    if (!ffn->dout) return sublayer_back(t, attn, dx, dy);
    const stack_mark mark = stack_top(&t->stack);
    rows between;
    if ((st = tape_new_rows(t, &between, t->n, attn->dout)) ||
        (st = sublayer_back(t, ffn, &between, dy)) || (st = sublayer_back(t, attn, dx, &between)))
        return st;
    stack_reset(&t->stack, mark);
    return PARE_OK;
}

/* What a loss that looks at the stream itself has to say. */
static pare_status add_given(pare_tape *t, size_t b, const void *const *dstream)
{
    rows given = t->dstream[b], taken;
    if (!dstream || !dstream[b]) return PARE_OK;
    const stack_mark mark = stack_top(&t->stack);
    given.v = (void *)dstream[b];
    pare_status st = tape_from_input_order(t, &taken, &given);
    if (!st) st = tape_sum(t, &t->dstream[b], &t->dstream[b], &taken);
    stack_reset(&t->stack, mark);
    return st;
}

static pare_status all_back(pare_tape *t, const void *dy, const void *const *dstream)
{
    const size_t blocks = t->m->nblocks;
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b <= blocks; b++)
        st = tape_new_rows(t, &t->dstream[b], t->n, t->stream[b].d);
    if (!st) st = make_room(t, t->dshown, t->dstream);
    if (st) return st;
    const stack_mark mark = stack_top(&t->stack);
    rows given = t->y, taken;
    given.v = (void *)dy;
    if (dy && !(st = tape_from_input_order(t, &taken, &given)))
        st = tape_output_backward(t, &t->dstream[blocks], &taken);
    else if (!dy)
        st = tape_zero(t, &t->dstream[blocks]);
    stack_reset(&t->stack, mark);
    if (!st) st = add_given(t, blocks, dstream);
    for (size_t b = blocks; !st && b-- > 0;)
        if (!(st = pare_stopped(t->exec, t->err)) && !(st = block_back(t, b)))
            st = add_given(t, b, dstream);
    return st ? st : tape_embedding_backward(t, &t->dstream[0]);
}

pare_status pare_tape_backward(pare_tape *t, const void *dy, const void *const *dstream, void *grad,
                               pare_err *err)
{
    PARE_ASSERT(t->ready);
    stack_reset(&t->stack, t->forward_end);
    t->err = err;
    t->grad = grad;
    return all_back(t, dy, dstream);
}

const void *pare_tape_dstream(const pare_tape *t, size_t block)
{
    PARE_ASSERT(t->ready && block <= t->m->nblocks && t->dstream[block].v);
    return show_stream(t, &t->dshown[block], &t->dstream[block]);
}
