/* A forward pass, told once for both number types: stem, blocks, top.
 *
 * It is a list of steps. Attention looks at whole sequences; every other step works row by row, and
 * so do the steps between two attentions taken together. The f32 engine cuts the rows of a small
 * model into ranges and takes each range through all of these steps at once, on one thread: the
 * rows stay in its cache, and threads meet only at the attentions. The f64 reference, and a large
 * model, take all rows through one step after the other, with threads inside each step. How rows
 * are cut depends on shapes alone. */
#include "forward_plan.h"
#include "forward_ranks.h"
#include <stdatomic.h>
#include <stdlib.h>

enum {
    RANGE = 128,      /* rows of a small model taken through the steps at once ... */
    LONG_RANGE = 256, /* ... when there are many */
    MANY = 2048,
    SPREAD = 8 /* that many chunks of a small model are shared out whole */
};

/* ---- sublayers ----------------------------------------------------------------------------- */

/* What a branch reads: x itself, or its norm in scratch. */
static pare_status normed(const pass *p, rows *z, const rows *x, const pare_norm *n)
{
    *z = *x;
    if (n->kind == PARE_NORM_NONE) return PARE_OK;
    const pare_status st = rows_new(z, &p->ctx, x->t, x->n, x->d);
    return st ? st : rows_norm(z, x, n, &p->ctx);
}

/* y = out_norm(skip(x) + y), y being the branch. */
static pare_status finish(const pass *p, rows *y, const rows *x, const pare_skip *skip,
                          const pare_norm *out_norm)
{
    const pare_status st = rows_skip(y, x, skip, &p->ctx);
    return st ? st : rows_norm(y, y, out_norm, &p->ctx);
}

static pare_status heads_in(const pass *p, head_rows *h, const rows *x, const pare_attn *a)
{
    rows z;
    const pare_status st = normed(p, &z, x, &a->in_norm);
    return st ? st : attention_project(p, h, &z, a);
}

static pare_status heads_out(const pass *p, rows *y, const rows *x, const rows *heads,
                             const pare_attn *a)
{
    const pare_status st = attention_join(p, y, heads, a);
    return st ? st : finish(p, y, x, &a->skip, &a->out_norm);
}

static pare_status attention_sublayer(const pass *p, rows *y, const rows *x, const pare_attn *a)
{
    rows z;
    pare_status st = normed(p, &z, x, &a->in_norm);
    if (!st) st = attention_branch(p, y, &z, a);
    return st ? st : finish(p, y, x, &a->skip, &a->out_norm);
}

static pare_status ffn_sublayer(const pass *p, rows *y, const rows *x, const pare_ffn *f)
{
    rows z;
    pare_status st = normed(p, &z, x, &f->in_norm);
    if (!st) st = ffn_branch(p, y, &z, f);
    return st ? st : finish(p, y, x, &f->skip, &f->out_norm);
}

/* ---- a chunk: some sequences, from ids to outputs -------------------------------------------- */

typedef struct chunk {
    const plan *plan;
    const pare_input *in;
    size_t row, n;  /* of the input: first row, how many */
    rows stream[2]; /* the stream, and room for the next one */
    head_rows heads;
    rows out;
    struct lane *lanes; /* memory for ranges on several threads */
    const pare_trace *trace;
} chunk;

/* Working memory that one thread takes for a while. */
typedef struct lane {
    atomic_flag taken;
    scratch scratch;
} lane;

/* There are as many lanes as threads, so one is free. */
static lane *take_lane(lane *l)
{
    while (atomic_flag_test_and_set(&l->taken)) l++;
    return l;
}

static rows stream_part(const chunk *c, size_t side, size_t d, size_t first, size_t n)
{
    rows r = c->stream[side];
    if (c->plan->apart) r = rows_part(&r, first, n), first = 0;
    r.d = d;
    return rows_part(&r, first, n);
}

/* The heads' buffers, shaped for this attention. */
static head_rows heads_part(const chunk *c, const pare_attn *a, size_t first, size_t n)
{
    head_rows h = attention_shape(a, c->stream[0].t, c->n);
    h.q.v = c->heads.q.v;
    h.k.v = c->heads.k.v;
    h.v.v = c->heads.v.v;
    h.y.v = c->heads.y.v;
    return (head_rows){rows_part(&h.q, first, n), rows_part(&h.k, first, n),
                       rows_part(&h.v, first, n), rows_part(&h.y, first, n)};
}

static pare_status do_step(const pass *p, const chunk *c, const step *s, size_t first, size_t n)
{
    const pare_block *const b = &p->m->blocks[s->block];
    rows x = stream_part(c, s->side, s->din, first, n);
    rows y = stream_part(c, !s->side, s->dout, first, n), out = c->out;
    head_rows h;
    switch (s->kind) {
    case STEM:
        return forward_stem(p, &x, c->in, c->row + first);
    case HEADS_IN:
        h = heads_part(c, &b->attn, first, n);
        return heads_in(p, &h, &x, &b->attn);
    case ATTEND:
        h = heads_part(c, &b->attn, first, n);
        return attention_attend(p, &h, &b->attn);
    case HEADS_OUT:
        h = heads_part(c, &b->attn, first, n);
        return heads_out(p, &y, &x, &h.y, &b->attn);
    case ATTENTION:
        return attention_sublayer(p, &y, &x, &b->attn);
    case FFN:
        return ffn_sublayer(p, &y, &x, &b->ffn);
    case TOP_NORM:
        return rows_norm(&x, &x, &p->m->top.norm, &p->ctx);
    case TOP:
        if (s->by_rows) out = rows_part(&c->out, first, n);
        return forward_top(p, &out, &x);
    }
    return PARE_OK;
}

/* Steps that some rows go through without looking at others. */
typedef struct region {
    const pass *p;
    const chunk *c;
    const step *from, *to;
    size_t rows, ranges; /* in one range; how many */
    size_t first;        /* the first that is ours */
    atomic_int st;
} region;

static void do_range(void *self, size_t r)
{
    region *const g = self;
    pass p = *g->p;
    lane *mine = NULL;
    if (g->ranges > 1 && p.ctx.exec) {
        mine = take_lane(g->c->lanes);
        p.ctx = (rows_ctx){&mine->scratch, NULL, NULL};
    }
    p.first = (g->first + r) * g->rows;
    const size_t left = g->c->n - p.first, n = left < g->rows ? left : g->rows;
    pare_status st = PARE_OK;
    for (const step *s = g->from; !st && s < g->to; s++) {
        const scratch_mark mark = scratch_top(p.ctx.scratch);
        st = do_step(&p, g->c, s, p.first, n);
        scratch_reset(p.ctx.scratch, mark);
    }
    if (st) atomic_store(&g->st, (int)st);
    if (mine) atomic_flag_clear(&mine->taken);
}

static void tap(const chunk *c, const step *s, bool before)
{
    const pare_trace *const t = c->trace;
    const bool attn = s->kind == ATTENTION || s->kind == (before ? HEADS_IN : HEADS_OUT);
    pare_tap where = before ? PARE_TAP_FFN_IN : PARE_TAP_FFN_OUT;
    size_t block = s->block;
    if (!t || !t->fn) return;
    if (attn) {
        where = before ? PARE_TAP_ATTN_IN : PARE_TAP_ATTN_OUT;
    } else if (s->kind == STEM && !before) {
        where = PARE_TAP_STEM;
    } else if (s->kind == TOP_NORM && !before) {
        where = PARE_TAP_TOP;
        block = c->plan->m->nblocks;
    } else if (s->kind != FFN) {
        return;
    }
    const bool moved = !before && (attn || s->kind == FFN);
    const rows x = stream_part(c, moved ? !s->side : s->side, before ? s->din : s->dout, 0, c->n);
    t->fn(t->self, where, block, x.t, x.v, x.n, x.d);
}

/* ---- rows shared with other processes -------------------------------------------------------- */

/* NULL: all rows are ours. Only ranges are shared: what becomes of one does not depend on who takes
 * it through. */
static const pare_ranks *sharing(const pass *p, const region *g)
{
    const pare_ranks *const ranks = p->elsewhere ? p->elsewhere->by->ranks : NULL;
    return g->c->plan->fused && g->ranges > 1 && pare_ranks_size(ranks) > 1 ? ranks : NULL;
}

/* What the step behind the region looks at, of all rows: heads, outputs, or the stream. */
static pare_status trade_region(const region *g, const pare_ranks *ranks, pare_err *err)
{
    const chunk *const c = g->c;
    const plan *const l = c->plan;
    if (g->to == l->steps + l->count) return trade_rows(&c->out, g->rows, ranks, err);
    if (g->to->kind == ATTEND) {
        const head_rows h = heads_part(c, &l->m->blocks[g->to->block].attn, 0, c->n);
        pare_status st = trade_rows(&h.q, g->rows, ranks, err);
        if (!st) st = trade_rows(&h.k, g->rows, ranks, err);
        return st ? st : trade_rows(&h.v, g->rows, ranks, err);
    }
    const rows x = stream_part(c, g->to->side, g->to->din, 0, c->n);
    return trade_rows(&x, g->rows, ranks, err);
}

static pare_status do_region(region *g)
{
    const pass *const p = g->p;
    const pare_ranks *const ranks = sharing(p, g);
    const pare_exec *const exec = g->ranges > 1 ? p->ctx.exec : NULL;
    size_t end = g->ranges;
    if (ranks) {
        g->first = first_of_rank(g->ranges, ranks, pare_ranks_rank(ranks));
        end = first_of_rank(g->ranges, ranks, pare_ranks_rank(ranks) + 1);
    }
    pare_parallel(exec, end - g->first, do_range, g);
    const pare_status st = atomic_load(&g->st) ? pare_no_memory(p->ctx.err) : PARE_OK;
    if (!ranks) return st;
    elsewhere *const e = p->elsewhere;
    if (st) (void)pare_no_memory(&e->err);
    e->st = pare_ranks_agree(ranks, st, &e->err);
    if (!e->st) e->st = trade_region(g, ranks, &e->err);
    return e->st;
}

static const step *region_end(const plan *l, const step *s)
{
    const step *const end = l->steps + l->count, *to = s + 1;
    while (l->fused && s->by_rows && to < end && to->by_rows) to++;
    return to;
}

static pare_status run_region(const pass *p, const chunk *c, const step *s, const step *to)
{
    const size_t most = !c->plan->small ? c->n : c->n >= MANY ? LONG_RANGE : RANGE;
    region g = {p, c, s, to, s->by_rows ? most : c->n, 1, 0, PARE_OK};
    g.ranges = (c->n + g.rows - 1) / g.rows;
    tap(c, s, true);
    const pare_status st = do_region(&g);
    if (!st) tap(c, to - 1, false);
    return st;
}

static pare_status run_steps(const pass *p, const chunk *c)
{
    const plan *const l = c->plan;
    const step *const end = l->steps + l->count;
    pare_status st = PARE_OK;
    for (const step *s = l->steps, *to; !st && s < end; s = to) {
        to = region_end(l, s);
        st = run_region(p, c, s, to);
        if (!st) st = pare_stopped(p->ctx.exec, NULL);
    }
    return st;
}

/* In the scratch of the pass. */
static pare_status chunk_memory(const pass *p, chunk *c)
{
    const size_t wide = plan_stream_width(p->m), n = c->n;
    const head_rows h = plan_heads(p->m);
    const pare_dtype t = c->out.t;
    const size_t columns = 2 * wide + h.q.d + h.k.d + h.v.d + h.y.d;
    size_t bytes;
    if (!pare_mul(&bytes, n, columns * pare_dtype_size(t)) ||
        !scratch_reserve(p->ctx.scratch, bytes + 6 * SCRATCH_ALIGNMENT))
        return pare_no_memory(p->ctx.err);
    pare_status st;
    if (!(st = rows_new(&c->stream[0], &p->ctx, t, n, wide)) &&
        !(st = rows_new(&c->stream[1], &p->ctx, t, n, wide)) &&
        !(st = rows_new(&c->heads.q, &p->ctx, t, n, h.q.d)) &&
        !(st = rows_new(&c->heads.k, &p->ctx, t, n, h.k.d)) &&
        !(st = rows_new(&c->heads.v, &p->ctx, t, n, h.v.d)))
        st = rows_new(&c->heads.y, &p->ctx, t, n, h.y.d);
    return st;
}

static pare_status run_chunk(const pass *p, chunk *c)
{
    const scratch_mark mark = scratch_top(p->ctx.scratch);
    pare_status st = chunk_memory(p, c);
    if (!st) st = run_steps(p, c);
    scratch_reset(p->ctx.scratch, mark);
    return st;
}

/* ---- the pass: all chunks -------------------------------------------------------------------- */

typedef struct chunks {
    const pass *p;
    plan plan;
    pare_graph graph; /* completed */
    const pare_input *in;
    void *out;
    pare_dtype t;
    const pare_trace *trace;
    lane *lanes;
    size_t seqs; /* in one chunk */
    bool spread; /* chunks are shared out whole: one thread takes one from end to end */
    atomic_int st;
} chunks;

static void do_chunk(void *self, size_t i)
{
    chunks *const all = self;
    const pare_input *const in = all->in;
    const size_t b = i * all->seqs, left = in->batch - b, nb = left < all->seqs ? left : all->seqs;
    const size_t out_rows = pare_output_rows(all->plan.m, in) / in->batch;
    const size_t cols = pare_model_outputs(all->plan.m);
    char *const to = (char *)all->out + b * out_rows * cols * pare_dtype_size(all->t);
    pass p = *all->p;
    lane *mine = NULL;
    if (all->spread) {
        mine = take_lane(all->lanes);
        p.ctx = (rows_ctx){&mine->scratch, NULL, NULL};
    }
    chunk c = {.plan = &all->plan,
               .in = in,
               .row = b * in->tokens,
               .n = nb * in->tokens,
               .out = {all->t, nb * out_rows, cols, to},
               .lanes = all->lanes,
               .trace = all->trace};
    const pare_status st = run_chunk(&p, &c);
    if (st) atomic_store(&all->st, (int)st);
    if (mine) atomic_flag_clear(&mine->taken);
}

static pare_status all_chunks(const pass *p, chunks *all)
{
    const pare_input *const in = all->in;
    const bool traced = all->trace && all->trace->fn; /* a trace shows whole batches */
    all->seqs = traced ? in->batch : plan_chunk(&all->plan, in->tokens);
    const size_t count = (in->batch + all->seqs - 1) / all->seqs;
    all->spread = all->plan.small && count >= SPREAD && !p->elsewhere;
    if (all->spread) {
        const pare_status st = pare_parallel_until(p->ctx.exec, count, do_chunk, all, p->ctx.err);
        if (st) return st;
    } else {
        for (size_t i = 0; i < count && !atomic_load(&all->st); i++) do_chunk(all, i);
    }
    return atomic_load(&all->st) ? pare_no_memory(p->ctx.err) : PARE_OK;
}

static pare_status run_pass(pass *p, chunks *all, pare_arena *arena)
{
    const pare_model *const m = p->m;
    pare_err *const err = p->ctx.err;
    const bool traced = all->trace && all->trace->fn;
    pare_status st = PARE_OK;
    if (m->pattern.kind == PARE_GRAPH) {
        st = pare_graph_complete(&all->graph, arena, all->in->graph, &m->pattern, err);
        p->graph = &all->graph;
    }
    if (!st) st = angles_new(&p->angles, p->ctx.scratch, m, p->tokens, all->t, err);
    if (!st) st = plan_new(&all->plan, p->ctx.scratch, m, all->t, traced, err);
    return st ? st : all_chunks(p, all);
}

pare_status pare_forward_by(void *out, pare_dtype t, const pare_model *m, const pare_input *in,
                            const pare_attender *by, const pare_trace *trace, const pare_exec *exec,
                            pare_err *err)
{
    const size_t threads = exec ? (size_t)exec->threads : 1;
    scratch own = {0};
    elsewhere away = {.by = by};
    pass p = {.m = m,
              .tokens = in->tokens,
              .trace = trace,
              .elsewhere = by ? &away : NULL,
              .ctx = {&own, exec, err}};
    chunks all = {.p = &p, .in = in, .out = out, .t = t, .trace = trace};
    pare_status st = pare_input_check(m, in, err);
    if (st) return st;
    pare_arena *const arena = pare_arena_new();
    all.lanes = calloc(threads, sizeof *all.lanes);
    st = arena && all.lanes ? run_pass(&p, &all, arena) : pare_no_memory(err);
    for (size_t i = 0; all.lanes && i < threads; i++) scratch_free(&all.lanes[i].scratch);
    free(all.lanes);
    scratch_free(&own);
    pare_arena_free(arena);
    if (away.st) st = pare_fail(err, away.st, "%s", away.err.msg);
    return pare_or_stopped(exec, st, err);
}

/* ---- several inputs side by side ------------------------------------------------------------- */

typedef struct walker { /* one of them */
    pass p;
    scratch own;
    chunk c;
} walker;

static pare_status walker_open(walker *w, const pass *like, const plan *l, void *out,
                               const pare_input *in, pare_dtype t)
{
    const pare_model *const m = like->m;
    w->p = *like;
    w->p.tokens = in->tokens;
    w->p.ctx.scratch = &w->own;
    w->c = (chunk){.plan = l,
                   .in = in,
                   .n = in->batch * in->tokens,
                   .out = {t, pare_output_rows(m, in), pare_model_outputs(m), out}};
    const pare_status st = angles_new(&w->p.angles, &w->own, m, in->tokens, t, like->ctx.err);
    return st ? st : chunk_memory(&w->p, &w->c);
}

/* The heads of all inputs in one question. */
static pare_status attend_together(const walker *w, size_t n, const step *s, pare_arena *a)
{
    const pass *const p = &w->p;
    const pare_attn *const attn = &p->m->blocks[s->block].attn;
    const pare_mark mark = pare_arena_mark(a);
    size_t sequences = 0, count = 0;
    for (size_t i = 0; i < n; i++) sequences += w[i].c.in->batch;
    pare_attend_job *const jobs = pare_alloc(a, sequences * attn->nheads, sizeof *jobs);
    if (!jobs) return pare_no_memory(p->ctx.err);
    for (size_t i = 0; i < n; i++) {
        const head_rows h = heads_part(&w[i].c, attn, 0, w[i].c.n);
        count += attention_jobs(jobs + count, &w[i].p, &h, attn);
    }
    const pare_status st = attention_elsewhere(p, w->c.out.t, attn, jobs, count);
    pare_arena_reset(a, mark);
    return st;
}

typedef struct side_by_side { /* a region, for all inputs */
    const walker *w;
    const step *from, *to;
    atomic_int st;
} side_by_side;

static void walk_region(void *self, size_t i)
{
    side_by_side *const g = self;
    const pare_status st = run_region(&g->w[i].p, &g->w[i].c, g->from, g->to);
    if (st) atomic_store(&g->st, (int)st);
}

/* One input is one thread's work; what looks at whole sequences may ask elsewhere, one at a time.
 */
static pare_status walk_together(const walker *w, size_t n, const plan *l, const pare_exec *exec,
                                 pare_arena *a, pare_err *err)
{
    const step *const end = l->steps + l->count;
    pare_status st = PARE_OK;
    for (const step *s = l->steps; !st && s < end; s = region_end(l, s)) {
        side_by_side g = {w, s, region_end(l, s), PARE_OK};
        if (s->kind == ATTEND) {
            st = attend_together(w, n, s, a);
        } else {
            pare_parallel(s->by_rows ? exec : NULL, n, walk_region, &g);
            st = atomic_load(&g.st) ? pare_no_memory(err) : pare_stopped(exec, err);
        }
    }
    return st;
}

pare_status pare_forward_together(void *const *out, pare_dtype t, const pare_model *m,
                                  const pare_input *in, size_t n, const pare_attender *by,
                                  const pare_exec *exec, pare_err *err)
{
    scratch shared = {0};
    elsewhere away = {.by = by};
    plan l;
    PARE_ASSERT(by && !by->ranks);
    const pass like = {.m = m, .elsewhere = &away, .ctx = {&shared, NULL, NULL}};
    pare_status st = PARE_OK;
    if (m->pattern.kind == PARE_GRAPH)
        return pare_fail(err, PARE_ERR_INPUT, "graphs do not go side by side through a model");
    for (size_t i = 0; i < n && !st; i++) st = pare_input_check(m, &in[i], err);
    if (st) return st;
    pare_arena *const a = pare_arena_new();
    walker *const w = calloc(n + 1, sizeof *w);
    st = a && w ? plan_new(&l, &shared, m, t, false, err) : pare_no_memory(err);
    for (size_t i = 0; i < n && !st; i++) st = walker_open(&w[i], &like, &l, out[i], &in[i], t);
    if (!st && n) st = walk_together(w, n, &l, exec, a, err);
    for (size_t i = 0; w && i < n; i++) scratch_free(&w[i].own);
    free(w);
    scratch_free(&shared);
    pare_arena_free(a);
    if (away.st)
        st = pare_fail(err, away.st, "%s", away.err.msg);
    else if (st)
        st = pare_no_memory(err); /* all that a pass itself can lack */
    return pare_or_stopped(exec, st, err);
}

pare_status pare_forward_f64(double *out, const pare_model *m, const pare_input *in,
                             const pare_trace *trace, const pare_exec *exec, pare_err *err)
{
    return pare_forward_by(out, PARE_F64, m, in, NULL, trace, exec, err);
}

pare_status pare_forward_f32(float *out, const pare_model *m, const pare_input *in,
                             const pare_trace *trace, const pare_exec *exec, pare_err *err)
{
    return pare_forward_by(out, PARE_F32, m, in, NULL, trace, exec, err);
}

size_t pare_output_rows(const pare_model *m, const pare_input *in)
{
    return m->top.pool == PARE_POOL_NONE ? in->batch * in->tokens : in->batch;
}
