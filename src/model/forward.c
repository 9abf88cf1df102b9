/* forward.c - a forward pass, written once for both number types: embedding, blocks, head.
 *
 * It is a list of steps (forward_plan.h). Attention looks at whole sequences; every other step
 * works row by row, and so do the steps between two attentions taken together. The f32 engine cuts
 * the rows of a small model into ranges and takes each range through all of these steps at once, on
 * one thread: the rows stay in its cache, and threads meet only at the attentions. The f64
 * reference, and a large model, take all rows through one step after the other, with threads inside
 * each step. How rows are cut depends on shapes alone. */
#include "forward_plan.h"
#include "base/support.h"
#include "inputs.h"
#include "sequence_layout.h"
#include <stdatomic.h>
#include <stdlib.h>

enum {
    RANGE = 128,      /* rows of a small model taken through the steps at once ... */
    LONG_RANGE = 256, /* ... when there are many */
    MANY = 2048,
    SPREAD = 8 /* with that many chunks of a small model, a thread takes a whole chunk */
};

/* ---- steps ----------------------------------------------------------------------------------- */

/* Working memory that one thread takes for a while. */
typedef struct thread_scratch {
    atomic_flag taken;
    scratch scratch;
} thread_scratch;

/* Some sequences, from ids to outputs. */
typedef struct chunk {
    const plan *plan;
    const pare_input *in;
    size_t n;       /* rows */
    rows stream[2]; /* the residual stream, and memory for the next one */
    head_rows heads;
    rows out;
    thread_scratch *threads; /* memory for ranges on several threads */
} chunk;

/* Gives the pass memory of its own; there is one per thread, so one is free. */
static thread_scratch *take_scratch(thread_scratch *t, pass *p)
{
    while (atomic_flag_test_and_set(&t->taken)) t++;
    p->ctx = (rows_ctx){.scratch = &t->scratch, .int8 = p->ctx.int8};
    return t;
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

/* What a branch reads: x itself, or its norm in scratch. */
static rows normed(pass *p, const rows *x, const pare_norm *n)
{
    if (n->kind == PARE_NORM_NONE) return *x;
    rows z = rows_new(&p->ctx, x->t, x->n, x->d);
    rows_norm(&z, x, n, &p->ctx);
    return z;
}

/* y = out_norm(skip(x) + y), y being the branch. */
static void add_residual(pass *p, rows *y, const rows *x, const pare_skip *skip,
                         const pare_norm *out_norm)
{
    rows_skip(y, x, skip, &p->ctx);
    rows_norm(y, y, out_norm, &p->ctx);
}

static void do_step(pass *p, const chunk *c, const step *s, size_t first, size_t n)
{
    const pare_block *const b = &p->m->blocks[s->block];
    rows x = stream_part(c, s->side, s->din, first, n);
    rows y = stream_part(c, !s->side, s->dout, first, n), out = c->out, z;
    head_rows h = {0};
    if (s->kind == PROJECT || s->kind == ATTEND || s->kind == HEADS_OUT)
        h = heads_part(c, &b->attn, first, n);
    switch (s->kind) {
    case EMBEDDING:
        forward_embedding(p, &x, c->in);
        break;
    case PROJECT:
        z = normed(p, &x, &b->attn.in_norm);
        attention_project(p, &h, &z, &b->attn);
        break;
    case ATTEND:
        attention_attend(p, &h, &b->attn);
        break;
    case HEADS_OUT:
        attention_output(p, &y, &h.y, &b->attn);
        add_residual(p, &y, &x, &b->attn.skip, &b->attn.out_norm);
        break;
    case ATTENTION:
        z = normed(p, &x, &b->attn.in_norm);
        attention_branch(p, &y, &z, &b->attn);
        add_residual(p, &y, &x, &b->attn.skip, &b->attn.out_norm);
        break;
    case FFN:
        z = normed(p, &x, &b->ffn.in_norm);
        ffn_branch(p, &y, &z, &b->ffn);
        add_residual(p, &y, &x, &b->ffn.skip, &b->ffn.out_norm);
        break;
    case HEAD_NORM:
        rows_norm(&x, &x, &p->m->head.norm, &p->ctx);
        break;
    case HEAD:
        if (s->by_rows) out = rows_part(&c->out, first, n);
        forward_head(p, &out, &x);
        break;
    }
}

/* Shows the stream before or after a step to the caller's trace. */
static void call_trace(const pass *p, const chunk *c, const step *s, bool before)
{
    const pare_trace *const t = p->trace;
    const bool attn = s->kind == ATTENTION || s->kind == (before ? PROJECT : HEADS_OUT);
    pare_tap where = before ? PARE_TAP_FFN_IN : PARE_TAP_FFN_OUT;
    size_t block = s->block;
    if (!t || !t->fn) return;
    if (attn) {
        where = before ? PARE_TAP_ATTN_IN : PARE_TAP_ATTN_OUT;
    } else if (s->kind == EMBEDDING && !before) {
        where = PARE_TAP_EMBEDDING;
    } else if (s->kind == HEAD_NORM && !before) {
        where = PARE_TAP_HEAD;
        block = c->plan->m->nblocks;
    } else if (s->kind != FFN) {
        return;
    }
    const bool moved = !before && (attn || s->kind == FFN);
    const rows x = stream_part(c, moved ? !s->side : s->side, before ? s->din : s->dout, 0, c->n);
    t->fn(t->self, where, block, x.t, x.v, x.n, x.d);
}

/* ---- regions: steps that some rows go through without looking at others ---------------------- */

typedef struct region {
    const pass *p;
    const chunk *c;
    const step *from, *to;
    size_t rows, ranges; /* in one range; how many */
    size_t first;        /* range of this process */
    atomic_int st;
} region;

static const step *region_end(const plan *l, const step *s)
{
    const step *const end = l->steps + l->count, *to = s + 1;
    while (l->fused && s->by_rows && to < end && to->by_rows) to++;
    return to;
}

static void do_range(void *self, size_t r)
{
    region *const g = self;
    pass p = *g->p;
    thread_scratch *const mine =
        g->ranges > 1 && p.ctx.work.exec ? take_scratch(g->c->threads, &p) : NULL;
    p.first = (g->first + r) * g->rows;
    const size_t left = g->c->n - p.first, n = left < g->rows ? left : g->rows;
    for (const step *s = g->from; !p.ctx.work.st && s < g->to; s++) {
        const scratch_mark mark = scratch_save(p.ctx.scratch);
        do_step(&p, g->c, s, p.first, n);
        scratch_reset(p.ctx.scratch, mark);
    }
    if (p.ctx.work.st) atomic_store(&g->st, (int)p.ctx.work.st);
    if (mine) atomic_flag_clear(&mine->taken);
}

/* Where several processes make a pass together, whole ranges go to a rank: what becomes of a row
 * does not depend on who takes it through, nor on how many there are. Rank r has the ranges from
 * this one on, up to the first of rank r + 1. */
static size_t first_of_rank(size_t ranges, const pare_ranks *ranks, size_t rank)
{
    return ranges * rank / pare_ranks_size(ranks);
}

/* Every rank's rows of x, which is cut into ranges of `size` rows, to all. */
static pare_status exchange_rows(const rows *x, size_t size, const pare_ranks *ranks, pare_err *err)
{
    const size_t bytes = x->d * pare_dtype_size(x->t), ranges = (x->n + size - 1) / size;
    pare_status st = PARE_OK;
    for (size_t r = 0; !st && r < pare_ranks_size(ranks); r++) {
        const size_t first = first_of_rank(ranges, ranks, r) * size;
        const size_t after = first_of_rank(ranges, ranks, r + 1) * size;
        const size_t end = after < x->n ? after : x->n;
        st = pare_ranks_bcast(ranks, (char *)x->v + first * bytes, (end - first) * bytes, r, err);
    }
    return st;
}

/* What the step behind the region looks at, of all rows: heads, outputs, or the stream. */
static pare_status exchange_region(const region *g, const pare_ranks *ranks, pare_err *err)
{
    const chunk *const c = g->c;
    const plan *const l = c->plan;
    if (g->to == l->steps + l->count) return exchange_rows(&c->out, g->rows, ranks, err);
    if (g->to->kind == ATTEND) {
        const head_rows h = heads_part(c, &l->m->blocks[g->to->block].attn, 0, c->n);
        pare_status st = exchange_rows(&h.q, g->rows, ranks, err);
        if (!st) st = exchange_rows(&h.k, g->rows, ranks, err);
        return st ? st : exchange_rows(&h.v, g->rows, ranks, err);
    }
    const rows x = stream_part(c, g->to->side, g->to->din, 0, c->n);
    return exchange_rows(&x, g->rows, ranks, err);
}

static void run_region(pass *p, const chunk *c, const step *s, const step *to)
{
    const size_t most = !c->plan->small ? c->n : c->n >= MANY ? LONG_RANGE : RANGE;
    region g = {p, c, s, to, s->by_rows ? most : c->n, 1, 0, PARE_OK};
    g.ranges = (c->n + g.rows - 1) / g.rows;
    size_t end = g.ranges;
    external_attention *const e = p->external;
    const pare_ranks *ranks = e ? e->attender->ranks : NULL;
    if (!c->plan->fused || g.ranges <= 1 || pare_ranks_size(ranks) <= 1) ranks = NULL;
    if (ranks) {
        g.first = first_of_rank(g.ranges, ranks, pare_ranks_rank(ranks));
        end = first_of_rank(g.ranges, ranks, pare_ranks_rank(ranks) + 1);
    }
    call_trace(p, c, s, true);
    pare_parallel(g.ranges > 1 ? p->ctx.work.exec : NULL, end - g.first, do_range, &g);
    if (atomic_load(&g.st)) p->ctx.work.st = pare_no_memory(p->ctx.work.err);
    if (ranks) {
        if (p->ctx.work.st) (void)pare_no_memory(&e->err);
        e->st = pare_ranks_agree(ranks, p->ctx.work.st, &e->err);
        if (!e->st) e->st = exchange_region(&g, ranks, &e->err);
        p->ctx.work.st = e->st;
    }
    if (!p->ctx.work.st) call_trace(p, c, to - 1, false);
}

/* In the scratch of the pass. */
static void chunk_memory(pass *p, chunk *c)
{
    rows_ctx *const ctx = &p->ctx;
    const size_t wide = plan_stream_width(p->m), n = c->n;
    const head_rows h = plan_heads(p->m);
    const pare_dtype t = c->out.t;
    const size_t columns = 2 * wide + h.q.d + h.k.d + h.v.d + h.y.d;
    size_t bytes;
    if (ctx->work.st) return;
    if (!pare_mul(&bytes, n, columns * pare_dtype_size(t)) ||
        !scratch_reserve(ctx->scratch, bytes + 6 * SCRATCH_ALIGNMENT)) {
        ctx->work.st = pare_no_memory(ctx->work.err);
        return;
    }
    c->stream[0] = rows_new(ctx, t, n, wide);
    c->stream[1] = rows_new(ctx, t, n, wide);
    c->heads.q = rows_new(ctx, t, n, h.q.d);
    c->heads.k = rows_new(ctx, t, n, h.k.d);
    c->heads.v = rows_new(ctx, t, n, h.v.d);
    c->heads.y = rows_new(ctx, t, n, h.y.d);
}

/* ---- the pass: all chunks -------------------------------------------------------------------- */

typedef struct chunks {
    const pass *p;
    plan plan;
    const pare_input *in;
    void *out;
    pare_dtype t;
    thread_scratch *threads;
    const size_t *first; /* sequence of each chunk, and behind the last */
    bool spread;         /* one thread takes a chunk from end to end */
    atomic_int st;
} chunks;

static void do_chunk(void *self, size_t i)
{
    chunks *const all = self;
    const sequence_layout *const s = all->p->layout;
    const size_t from = all->first[i], to = all->first[i + 1];
    const size_t row = sequence_start(s, from), n = sequence_start(s, to) - row;
    const bool pools = all->plan.m->head.pool != PARE_POOL_NONE;
    const size_t cols = pare_model_outputs(all->plan.m);
    char *const out = (char *)all->out + (pools ? from : row) * cols * pare_dtype_size(all->t);
    pass p = *all->p;
    p.from = from;
    p.count = to - from;
    p.row = row;
    thread_scratch *const mine = all->spread ? take_scratch(all->threads, &p) : NULL;
    chunk c = {.plan = &all->plan,
               .in = all->in,
               .n = n,
               .out = {all->t, pools ? to - from : n, cols, out},
               .threads = all->threads};
    const scratch_mark mark = scratch_save(p.ctx.scratch);
    const step *const end = all->plan.steps + all->plan.count;
    chunk_memory(&p, &c);
    for (const step *at = all->plan.steps, *next; !p.ctx.work.st && at < end; at = next) {
        next = region_end(&all->plan, at);
        run_region(&p, &c, at, next);
        pare_work_keep(&p.ctx.work, pare_stopped(p.ctx.work.exec, NULL));
    }
    scratch_reset(p.ctx.scratch, mark);
    if (p.ctx.work.st) atomic_store(&all->st, (int)p.ctx.work.st);
    if (mine) atomic_flag_clear(&mine->taken);
}

static pare_status forward(void *out, pare_dtype t, const pare_model *m, const pare_input *in,
                           const sequence_layout *layout, const pare_attender *by,
                           const pare_trace *trace, const pare_exec *exec, pare_err *err)
{
    const size_t threads = exec ? (size_t)exec->threads : 1;
    scratch own = {0};
    external_attention external = {.attender = by};
    pass p = {
        .m = m,
        .layout = layout,
        .trace = trace,
        .external = by ? &external : NULL,
        .ctx = {.work = {.exec = exec, .err = err}, .scratch = &own, .int8 = exec && exec->int8}};
    chunks all = {.p = &p, .in = in, .out = out, .t = t};
    const bool traced = trace && trace->fn; /* a trace shows whole batches */
    pare_graph graph;
    pare_status st;
    pare_arena *const arena = pare_arena_new();
    all.threads = calloc(threads, sizeof *all.threads);
    if (!arena || !all.threads) p.ctx.work.st = pare_no_memory(err);
    if (!p.ctx.work.st && m->pattern.kind == PARE_GRAPH) {
        p.ctx.work.st = pare_graph_complete(&graph, arena, in->graph, &m->pattern, err);
        p.graph = &graph;
    }
    p.angles = angles_new(&p.ctx, m, layout->longest, t);
    plan_new(&all.plan, &p.ctx, m, t, traced);
    size_t count = 1;
    const size_t whole[] = {0, layout->n};
    all.first = traced ? whole : plan_chunks(&count, &all.plan, layout, &p.ctx);
    st = p.ctx.work.st;
    if (!st) {
        all.spread = all.plan.small && count >= SPREAD && !p.external;
        if (all.spread) st = pare_parallel_until(exec, count, do_chunk, &all, err);
        for (size_t i = 0; !all.spread && i < count && !atomic_load(&all.st); i++)
            do_chunk(&all, i);
        if (!st && atomic_load(&all.st)) st = pare_no_memory(err);
    }
    for (size_t i = 0; all.threads && i < threads; i++) scratch_free(&all.threads[i].scratch);
    free(all.threads);
    scratch_free(&own);
    pare_arena_free(arena);
    if (external.st) st = pare_fail(err, external.st, "%s", external.err.msg);
    return pare_or_stopped(exec, st, err);
}

pare_status pare_forward_by(void *out, pare_dtype t, const pare_model *m, const pare_input *in,
                            const pare_attender *by, const pare_trace *trace, const pare_exec *exec,
                            pare_err *err)
{
    const sequence_layout layout = sequences_of_input(in);
    const pare_status st = pare_input_check(m, in, err);
    return st ? st : forward(out, t, m, in, &layout, by, trace, exec, err);
}

static size_t layout_outputs(const sequence_layout *s, const pare_model *m)
{
    return (m->head.pool == PARE_POOL_NONE ? s->rows : s->n) * pare_model_outputs(m);
}

pare_status pare_forward_set(void *out, pare_dtype t, const pare_model *m, const pare_inputs *set,
                             const pare_exec *exec, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? PARE_OK : pare_no_memory(err);
    char *to = out;
    for (size_t i = 0, n; !st && i < set->n; i += n) {
        const pare_mark mark = pare_arena_mark(a);
        pare_input joined;
        sequence_layout layout;
        n = pare_inputs_together(m, set, i);
        st = sequences_join(&joined, &layout, a, m, &(pare_inputs){n, set->in + i}, err);
        if (!st) st = forward(to, t, m, &joined, &layout, NULL, NULL, exec, err);
        if (!st) to += layout_outputs(&layout, m) * pare_dtype_size(t);
        pare_arena_reset(a, mark);
    }
    pare_arena_free(a);
    return st;
}

/* ---- several inputs in lockstep -------------------------------------------------------------- */

typedef struct lane { /* one input */
    pass p;
    sequence_layout layout;
    scratch own;
    chunk c;
} lane;

typedef struct lane_job { /* a region, for all inputs */
    lane *lanes;
    const step *from, *to;
    atomic_int st;
} lane_job;

static void do_lane(void *self, size_t i)
{
    lane_job *const g = self;
    pass *const p = &g->lanes[i].p;
    run_region(p, &g->lanes[i].c, g->from, g->to);
    if (p->ctx.work.st) atomic_store(&g->st, (int)p->ctx.work.st);
}

/* The heads of all inputs in one call. */
static pare_status attend_together(lane *lanes, size_t n, const step *s, pare_arena *a)
{
    pass *const p = &lanes->p;
    const pare_attn *const attn = &p->m->blocks[s->block].attn;
    const pare_mark mark = pare_arena_mark(a);
    size_t sequences = 0, count = 0;
    for (size_t i = 0; i < n; i++) sequences += lanes[i].c.in->batch;
    pare_attend_job *const jobs = pare_alloc(a, sequences * attn->nheads, sizeof *jobs);
    if (!jobs) return pare_no_memory(p->ctx.work.err);
    for (size_t i = 0; i < n; i++) {
        const head_rows h = heads_part(&lanes[i].c, attn, 0, lanes[i].c.n);
        count += attention_jobs(jobs + count, &lanes[i].p, &h, attn);
    }
    attention_external(p, lanes->c.out.t, attn, jobs, count);
    pare_arena_reset(a, mark);
    return p->ctx.work.st;
}

pare_status pare_forward_together(void *const *out, pare_dtype t, const pare_model *m,
                                  const pare_input *in, size_t n, const pare_attender *by,
                                  const pare_exec *exec, pare_err *err)
{
    scratch shared = {0};
    external_attention external = {.attender = by};
    rows_ctx ctx = {.scratch = &shared};
    plan l;
    PARE_ASSERT(by && !by->ranks);
    pare_status st = PARE_OK;
    if (m->pattern.kind == PARE_GRAPH)
        return pare_fail(err, PARE_ERR_INPUT, "graphs do not go side by side through a model");
    for (size_t i = 0; i < n && !st; i++) st = pare_input_check(m, &in[i], err);
    if (st) return st;
    pare_arena *const a = pare_arena_new();
    lane *const lanes = calloc(n + 1, sizeof *lanes);
    if (!a || !lanes) ctx.work.st = PARE_ERR_MEMORY;
    plan_new(&l, &ctx, m, t, false);
    st = ctx.work.st;
    for (size_t i = 0; i < n && !st; i++) {
        lane *const k = &lanes[i];
        k->layout = sequences_of_input(&in[i]);
        k->p = (pass){.m = m,
                      .layout = &k->layout,
                      .count = in[i].batch,
                      .external = &external,
                      .ctx = {.scratch = &k->own}};
        k->c = (chunk){.plan = &l,
                       .in = &in[i],
                       .n = in[i].batch * in[i].tokens,
                       .out = {t, pare_output_rows(m, &in[i]), pare_model_outputs(m), out[i]}};
        k->p.angles = angles_new(&k->p.ctx, m, in[i].tokens, t);
        chunk_memory(&k->p, &k->c);
        st = k->p.ctx.work.st;
    }
    /* One input is one thread's work; steps that look at whole sequences may call the attender, one
     * at a time. */
    const step *const end = st ? NULL : l.steps + l.count;
    for (const step *s = l.steps, *next; !st && n && s < end; s = next) {
        next = region_end(&l, s);
        lane_job g = {lanes, s, next, PARE_OK};
        if (s->kind == ATTEND) {
            st = attend_together(lanes, n, s, a);
        } else {
            pare_parallel(s->by_rows ? exec : NULL, n, do_lane, &g);
            st = atomic_load(&g.st) ? pare_no_memory(err) : pare_stopped(exec, err);
        }
    }
    for (size_t i = 0; lanes && i < n; i++) scratch_free(&lanes[i].own);
    free(lanes);
    scratch_free(&shared);
    pare_arena_free(a);
    if (external.st)
        st = pare_fail(err, external.st, "%s", external.err.msg);
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
    return m->head.pool == PARE_POOL_NONE ? in->batch * in->tokens : in->batch;
}
