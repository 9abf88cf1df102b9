/* given_input_bounds.c - bounds on whole models on given inputs (docs/theory/ticket.md "Blocks and
 * models (Theorems 6, 11, 14)") with lengths measured, and Theorem C in every attention layer.
 *
 * Claim. For each given input, |f - g| is at most what comes out when the distance d_i of every row
 * walks through the model, where f's own rows are known: |x_i|, |P x_i| and the rows that enter
 * each attention are enclosed (src/cert/enclose.c) on the model cut short behind them.
 * It is looser than enclosing both models (the headline does that) and says where the distance
 * comes from; it holds for these inputs alone.
 * Cost: six passes of f's beginning for each block. */
#include "cert/prove.h"
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "bound_rows.h"
#include "model_bound.h"
#include <math.h>
#include <string.h>

typedef struct walk {
    pare_work *p;
    const pare_model *f, *g;
    const model_sizes *sizes;
    const pare_model_norms *norms;
    const pare_input *in;
    const pare_graph *graph; /* completed */
    size_t rows;
    double *d;            /* rows: |x_i - x~_i| */
    pare_model truncated; /* f, so that its outputs are the rows of its stream at some place */
    pare_block *blocks;   /* of that */
} walk;

/* ---- f's own rows ---------------------------------------------------------------------------- */

/* The first `blocks` blocks and no head; `norm` (may be NULL) behind them. */
static pare_model *truncate_f(walk *w, size_t blocks, const pare_norm *norm)
{
    w->truncated = *w->f;
    w->truncated.blocks = w->blocks;
    w->truncated.nblocks = blocks;
    memcpy(w->blocks, w->f->blocks, w->f->nblocks * sizeof *w->blocks);
    w->truncated.head = (pare_output_head){0};
    if (norm) w->truncated.head.norm = *norm;
    return &w->truncated;
}

static pare_enclosure rows_of(walk *w, const pare_model *m)
{
    pare_enclosure e = {0};
    if (!w->p->st)
        w->p->st = pare_enclose(&e, w->p->arena, m, w->norms, w->in, WORK_QUIET(w->p), w->p->err);
    return e;
}

/* |P (x + offset)| from below: rounding of n + 4 operations, and the radius. */
static double shortest_row(const pare_enclosure *e, size_t i, const pare_norm *n)
{
    const double *const x = e->mid + i * e->cols;
    const size_t d = e->cols;
    double mean = 0, sum = 0, size = 0;
    for (size_t j = 0; j < d; j++) {
        const double v = x[j] + (pare_has(&n->offset) ? pare_weight_at(&n->offset, j) : 0);
        mean += n->kind == PARE_NORM_LAYER ? v : 0;
        size += v * v;
    }
    mean /= (double)d;
    for (size_t j = 0; j < d; j++) {
        const double v = x[j] + (pare_has(&n->offset) ? pare_weight_at(&n->offset, j) : 0) - mean;
        sum += v * v;
    }
    const double slack = 4 * pare_gamma(2 * d + 8, PARE_UNIT_F64).v * sqrt(size) + 0x1p-500;
    const double low = sqrt(sum) * (1 - 0x1p-40) - slack - e->rad[i] * (1 + 0x1p-50);
    return low > 0 ? low : 0;
}

static span span_of(const walk *w, const pare_enclosure *e, size_t i, const pare_norm *next)
{
    const pare_weight row = {PARE_F64, 1, e->cols, e->mid + i * e->cols};
    const pare_ub f = pare_ub_add(pare_norm_fro(&row), pare_ub_exact(e->rad[i]));
    const pare_ub d = pare_ub_exact(w->d[i]);
    const bool divides = next && (next->kind == PARE_NORM_LAYER || next->kind == PARE_NORM_RMS);
    return (span){f, pare_ub_add(f, d), d, divides ? shortest_row(e, i, next) : 0};
}

/* ---- sublayers ------------------------------------------------------------------------------- */

/* What a sublayer is: where its input is, its norms and skip. */
typedef struct sublayer {
    const pare_norm *in, *out;
    const norm_sizes *in_sizes, *out_sizes;
    const skip_sizes *skip;
    size_t before; /* blocks of f before it */
    bool behind_attention;
} sublayer;

/* The stream before the sublayer (with its norm where `norm`). */
static pare_enclosure rows_before(walk *w, const sublayer *s, const pare_norm *norm)
{
    pare_model *const m = truncate_f(w, s->before + (s->behind_attention ? 1 : 0), norm);
    if (s->behind_attention) m->blocks[s->before].ffn.kind = PARE_FFN_NONE;
    return rows_of(w, m);
}

/* The sum that enters the norm behind it. */
static pare_enclosure before_out_norm(walk *w, const sublayer *s)
{
    pare_model *const m = truncate_f(w, s->before + 1, NULL);
    pare_block *const b = &m->blocks[s->before];
    if (s->behind_attention) {
        b->ffn.out_norm.kind = PARE_NORM_NONE;
    } else {
        b->attn.out_norm.kind = PARE_NORM_NONE;
        b->ffn.kind = PARE_FFN_NONE;
    }
    return rows_of(w, m);
}

/* branch.d of all rows, given the rows of f that enter it and how far g's are from them. */
typedef void branch_fn(walk *w, pare_ub *branch, const pare_enclosure *z, const double *dz,
                       size_t block);

static void attention_branch(walk *w, pare_ub *branch, const pare_enclosure *z, const double *dz,
                             size_t b)
{
    const size_t t = w->in->tokens;
    const pare_mat all = pare_mat_of(z->mid, z->rows, z->cols);
    for (size_t first = 0; !w->p->st && first < z->rows; first += t) {
        const given_rows rows = {pare_mat_part(&all, first, 0, t, z->cols), z->rad + first,
                                 dz + first, &w->f->pattern, w->graph};
        attn_rows_move(w->p, branch + first, &w->f->blocks[b].attn, &w->g->blocks[b].attn,
                       &w->sizes->blocks[b].attn, &rows);
    }
}

static void ffn_branch(walk *w, pare_ub *branch, const pare_enclosure *z, const double *dz,
                       size_t b)
{
    const given_rows rows = {pare_mat_of(z->mid, z->rows, z->cols), z->rad, dz, NULL, NULL};
    ffn_rows_move(w->p, branch, &w->f->blocks[b].ffn, &w->g->blocks[b].ffn,
                  &w->sizes->blocks[b].ffn, &rows);
}

static void walk_sublayer(walk *w, const sublayer *s, branch_fn *fn, size_t block)
{
    pare_work *const p = w->p;
    const pare_mark mark = pare_arena_mark(p->arena);
    double *const dz = pare_work_alloc(p, w->rows, sizeof *dz);
    pare_ub *const branch = pare_work_alloc(p, w->rows, sizeof *branch);
    const bool norm_in = s->in->kind != PARE_NORM_NONE, norm_out = s->out->kind != PARE_NORM_NONE;
    const pare_enclosure x = rows_before(w, s, NULL);
    const pare_enclosure z = norm_in ? rows_before(w, s, s->in) : x;
    for (size_t i = 0; !p->st && i < w->rows; i++)
        dz[i] = norm_move(s->in_sizes, span_of(w, &x, i, s->in)).d.v;
    if (!p->st) fn(w, branch, &z, dz, block);
    for (size_t i = 0; !p->st && i < w->rows; i++) {
        const pare_ub inf = pare_ub_inf();
        const span at = span_of(w, &x, i, NULL), b = {inf, inf, branch[i], 0};
        w->d[i] = skip_move(s->skip, at, b).d.v;
    }
    if (!p->st && norm_out) {
        const pare_enclosure sum = before_out_norm(w, s);
        for (size_t i = 0; !p->st && i < w->rows; i++)
            w->d[i] = norm_move(s->out_sizes, span_of(w, &sum, i, s->out)).d.v;
    }
    pare_arena_reset(p->arena, mark);
}

static void walk_block(walk *w, size_t b)
{
    const pare_attn *const at = &w->f->blocks[b].attn;
    const pare_ffn *const ff = &w->f->blocks[b].ffn;
    const block_sizes *const z = &w->sizes->blocks[b];
    const sublayer first = {
        &at->in_norm, &at->out_norm, &z->attn.in, &z->attn.out, &z->attn.skip, b, false};
    const sublayer second = {&ff->in_norm, &ff->out_norm, &z->ffn.in, &z->ffn.out, &z->ffn.skip, b,
                             true};
    if (at->kind != PARE_ATTN_NONE && !w->p->st) walk_sublayer(w, &first, attention_branch, b);
    if (ff->kind != PARE_FFN_NONE && !w->p->st) walk_sublayer(w, &second, ffn_branch, b);
}

/* ---- an input -------------------------------------------------------------------------------- */

/* What enters block 0. */
static void walk_embedding(walk *w)
{
    const pare_norm *const n = &w->f->embedding.norm;
    const bool divides = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    pare_enclosure e = {0};
    if (divides) {
        pare_model *const m = truncate_f(w, 0, NULL);
        m->embedding.norm = (pare_norm){0};
        e = rows_of(w, m);
    }
    for (size_t i = 0; !w->p->st && i < w->rows; i++) {
        span s = embedding_row(&w->sizes->embedding, w->f, w->g, w->in, i);
        if (divides) s.least = shortest_row(&e, i, n);
        w->d[i] = norm_move(&w->sizes->embedding.norm, s).d.v;
    }
}

/* Length of f's shortest output row before it is normalized, from below. */
static double shortest_output(walk *w)
{
    const pare_norm none = {0};
    w->truncated = *w->f;
    w->truncated.head.normalize = false;
    const pare_enclosure e = rows_of(w, &w->truncated);
    double least = INFINITY;
    for (size_t i = 0; !w->p->st && i < e.rows; i++) {
        e.rad[i] *= sqrt((double)e.cols) * (1 + 0x1p-50); /* of an entry: of the row */
        least = fmin(least, shortest_row(&e, i, &none));
    }
    return w->p->st ? 0 : least;
}

static void walk_input(pare_ticket_bound *out, walk *w)
{
    pare_work *const p = w->p;
    if (w->f->pattern.kind == PARE_GRAPH && !p->st) {
        pare_graph *const graph = pare_work_alloc(p, 1, sizeof *graph);
        if (graph)
            p->st = pare_graph_complete(graph, p->arena, w->in->graph, &w->f->pattern, p->err);
        w->graph = graph;
    }
    w->rows = w->in->batch * w->in->tokens;
    w->d = pare_work_alloc(p, w->rows, sizeof *w->d);
    w->blocks = pare_work_alloc(p, w->f->nblocks, sizeof *w->blocks);
    if (p->st) return;
    walk_embedding(w);
    for (size_t b = 0; !p->st && b < w->f->nblocks; b++) walk_block(w, b);
    const pare_enclosure last = rows_of(w, truncate_f(w, w->f->nblocks, NULL));
    const double least = w->f->head.normalize ? shortest_output(w) : 0;
    output_head_sizes top = w->sizes->top;
    if (w->f->head.pool == PARE_POOL_MAX) /* of T rows: |max|^2 is at most the sum of theirs */
        top.pooled = pare_ub_min(top.pooled, pare_ub_sqrt(pare_ub_exact((double)w->in->tokens)));
    for (size_t i = 0; !p->st && i < w->rows; i++) {
        const span s = span_of(w, &last, i, &w->f->head.norm);
        pare_ub apart = output_head_move(&top, s);
        if (w->f->head.normalize) apart = normalized_move(&top, apart, least);
        out->rows = pare_ub_max(out->rows, s.d);
        out->outputs = pare_ub_max(out->outputs, apart);
    }
}

pare_status pare_ticket_bound_given(pare_ticket_bound *out, const pare_model *f,
                                    const pare_model *g, const pare_inputs *set,
                                    const pare_exec *exec, pare_err *err)
{
    *out = (pare_ticket_bound){pare_ub_inf(), pare_ub_inf(), ""};
    pare_work p = {pare_arena_new(), exec, err, PARE_OK};
    if (!p.arena) return pare_no_memory(err);
    const model_sizes m = model_sizes_of(&p, f, g, out->why);
    pare_model_norms *norms = NULL;
    if (!p.st && !*out->why) p.st = pare_model_norms_new(&norms, p.arena, f, WORK_QUIET(&p), err);
    pare_ticket_bound b = {pare_ub_exact(0), pare_ub_exact(0), ""};
    for (size_t i = 0; !p.st && !*out->why && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(p.arena);
        walk w = {.p = &p, .f = f, .g = g, .sizes = &m, .norms = norms, .in = &set->in[i]};
        walk_input(&b, &w);
        pare_arena_reset(p.arena, mark);
        if (!p.st) p.st = pare_progress(exec, "prove layer by layer", i + 1, set->n, err);
    }
    if (!p.st && !*out->why) *out = b;
    pare_arena_free(p.arena);
    return p.st;
}
