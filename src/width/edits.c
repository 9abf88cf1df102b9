/* edits.c - all single-node edits: how far two models are apart when the features of any one node
 * are replaced by any row that occurs in the data.
 *
 * The set is finite, so both models are evaluated on all of it. An edit changes few rows: after
 * layer l those within l steps of the node. All others have the values of the graph as it is, which
 * are computed once (`base`); a block of edits computes the rows that changed and reads the others
 * there. Every row has a proven radius (patch.h), so that
 *     |f - g| <= |F - G| + rf + rg
 * holds for every output of every edit, and the largest of these, base included, is the bound.
 *
 * Blocks are cut by the shapes alone: the same bits for any number of threads. */
#include "attention/attend.h"
#include "base/support.h"
#include "cert/outputs.h"
#include "linalg/matrix.h"
#include "jl_bounds.h"
#include "edits.h"
#include "prove.h"
#include <stdatomic.h>
#include <string.h>

enum {
    ROWS = 256,        /* at a time through a layer */
    BLOCK_ROWS = 2048, /* of one block of edits after the last layer, at least one edit */
    ROUND = 64,        /* blocks between two reports of progress */
    PAIR = 256         /* multiplications that one key costs a head beside its products */
};
#define WORK 1e13 /* multiplications: some minutes on two cores */

/* One model: its net, its rows on the graph as it is (one list per layer), its outputs there. */
typedef struct side {
    patch_net net;
    patch_rows *base; /* nlayers + 1 */
    pare_mat y;
    double *rad;
} side;

typedef struct block { /* `edits` edits, from row number `value` of node `center` on */
    size_t center, value, edits, rows, keys;
} block;

/* What one thread works with. */
typedef struct desk {
    atomic_flag taken;
    edit_map map;
    edit_field *field; /* one for each edit of a block */
    size_t *upto;      /* theirs */
    uint32_t *node;
    pare_mat x; /* the rows that edits put in */
    uint32_t *self, *idx;
    size_t *ptr;
    patch_rows rows[2][2]; /* of each model: now, and after the next layer */
    patch_scratch scratch[2];
    pare_mat y[2];
    double *rad[2], *rad32;
} desk;

typedef struct all {
    pare_work *w;
    pare_mat x;
    edit_rows values;
    pare_graph graph;
    pare_transposed_graph turned;
    side side[2];
    size_t *reach, *keys;         /* of each node: how many it reaches, and the keys of all those */
    size_t edits, nblocks, first; /* first: of this round */
    block *blocks;
    block most;        /* the largest of everything */
    size_t widest_row; /* most keys of a node */
    desk *desks;
    size_t ndesks;
    pare_output_bound *found; /* one for each block */
} all;

/* ---- the graph as it is --------------------------------------------------------------------- */

typedef struct base_job {
    const all *a;
    side *s;
    patch_scratch *scratch; /* one for each block of rows */
    const uint32_t *self;
    size_t layer;
} base_job;

static size_t end_of(size_t b, size_t n)
{
    return n - b * ROWS < ROWS ? n : (b + 1) * ROWS;
}

static void enter_block(void *ctx, size_t b)
{
    const base_job *const j = ctx;
    patch_enter(&j->s->net, &j->s->base[0], &j->a->x, b * ROWS, end_of(b, j->a->x.rows));
}

static void project_block(void *ctx, size_t b)
{
    const base_job *const j = ctx;
    patch_project(&j->s->net.layers[j->layer], &j->s->base[j->layer], b * ROWS,
                  end_of(b, j->a->x.rows));
}

static void step_block(void *ctx, size_t b)
{
    const base_job *const j = ctx;
    const patch_rows *const t = &j->s->base[j->layer];
    const patch_view v = {.base = t,
                          .split = t->n,
                          .rows = t->n,
                          .self = j->self,
                          .ptr = j->a->graph.ptr,
                          .idx = j->a->graph.idx};
    patch_step(&j->s->net.layers[j->layer], &v, &j->s->base[j->layer + 1], &j->scratch[b], b * ROWS,
               end_of(b, t->n));
}

static void leave_block(void *ctx, size_t b)
{
    const base_job *const j = ctx;
    patch_leave(&j->s->net, &j->s->base[j->layer], &j->s->y, j->s->rad, b * ROWS,
                end_of(b, j->a->x.rows));
}

/* The center of a head's keys is their mean: keys lie closer to it than to 0. */
static void set_centres(patch_layer *l, const patch_rows *t)
{
    for (size_t g = 0; g < l->nheads; g++) {
        patch_head *const hd = &l->heads[g];
        for (size_t c = 0; c < hd->dk; c++) {
            double sum = 0;
            for (size_t i = 0; i < t->n; i++) sum += pare_row(&t->qkv, i)[hd->k + c];
            hd->center[c] = t->n ? sum / (double)t->n : 0;
        }
    }
}

static void run_base(all *a, side *s)
{
    pare_work *const w = a->w;
    const size_t n = a->x.rows, blocks = (n + ROWS - 1) / ROWS, layers = s->net.nlayers;
    uint32_t *const self = pare_work_alloc(w, n, sizeof *self);
    base_job j = {a, s, pare_work_alloc(w, blocks, sizeof *j.scratch), self, 0};
    s->base = pare_work_alloc(w, layers + 1, sizeof *s->base);
    for (size_t l = 0; !w->st && l <= layers; l++) s->base[l] = patch_rows_new(w, &s->net, n);
    for (size_t b = 0; !w->st && b < blocks; b++)
        j.scratch[b] = patch_scratch_new(w, &s->net, ROWS, a->widest_row);
    s->y = mat_zeros(w, n, s->net.top.w.rows);
    s->rad = vec_zeros(w, n);
    if (w->st) return;
    for (size_t i = 0; i < n; i++) self[i] = (uint32_t)i;
    pare_parallel(w->exec, blocks, enter_block, &j);
    for (j.layer = 0; j.layer < layers; j.layer++) {
        pare_parallel(w->exec, blocks, project_block, &j);
        set_centres(&s->net.layers[j.layer], &s->base[j.layer]);
        pare_parallel(w->exec, blocks, project_block, &j); /* once more, around the centers */
        pare_parallel(w->exec, blocks, step_block, &j);
    }
    pare_parallel(w->exec, blocks, leave_block, &j);
}

/* ---- blocks --------------------------------------------------------------------------------- */

static double layer_work(const patch_layer *l)
{
    const pare_mat *const maps[] = {&l->qkv.w,   &l->wo.w, &l->skip1.w,
                                    &l->skip2.w, &l->w1.w, &l->w2.w};
    double sum = 0;
    for (size_t k = 0; k < 6; k++) sum += (double)maps[k]->rows * (double)maps[k]->cols;
    return sum;
}

/* Multiplications for one edit with this field, as if both models were as wide as the first: so
 * it is known before there is a second. */
static double edit_work(const all *a, const edit_field *f, size_t keys)
{
    double sum = 0;
    for (size_t l = 0; l < f->hops; l++) {
        const patch_layer *const p = &a->side[0].net.layers[l];
        sum += (double)f->upto[l + 1] * layer_work(p);
        sum += (double)keys * (double)(p->qkv.w.rows + PAIR * p->nheads);
    }
    return 2 * sum;
}

static size_t keys_of(const all *a, const edit_field *f)
{
    size_t sum = 0;
    for (size_t i = 0; i < f->upto[f->hops]; i++)
        sum += a->graph.ptr[f->node[i] + 1] - a->graph.ptr[f->node[i]];
    return sum;
}

static edit_field field_new(pare_work *w, size_t hops, size_t n)
{
    return (edit_field){hops, pare_work_alloc(w, hops + 1, sizeof(size_t)),
                        pare_work_alloc(w, n, sizeof(uint32_t))};
}

static edit_map map_new(const all *a)
{
    const size_t n = a->graph.n;
    edit_map m = {&a->graph, &a->turned.by_key, pare_work_alloc(a->w, n, sizeof *m.place)};
    for (size_t i = 0; !a->w->st && i < n; i++) m.place[i] = EDIT_NOWHERE;
    return m;
}

static void too_much(const all *a, double so_far, size_t nodes)
{
    const double whole = so_far / (double)(nodes + 1) * (double)a->graph.n;
    pare_work_fail(
        a->w, PARE_ERR_INPUT,
        "single-node edits: %zu different rows of features on %zu nodes, and each edit reaches "
        "many: about %.1e multiplications, more than %.0e; fewer rows in the claim make "
        "fewer edits",
        a->values.different, a->graph.n, whole, WORK);
}

/* How many nodes each node reaches, and whether all of it can be done. */
static void survey(all *a)
{
    pare_work *const w = a->w;
    const size_t n = a->graph.n, hops = a->side[0].net.nlayers;
    edit_field f = field_new(w, hops, n);
    const edit_map m = map_new(a);
    double sum = 0;
    a->reach = pare_work_alloc(w, n, sizeof *a->reach);
    a->keys = pare_work_alloc(w, n, sizeof *a->keys);
    for (size_t c = 0; !w->st && c < n; c++) {
        const size_t edits = a->values.n - (a->values.of[c] != SIZE_MAX);
        (void)edit_field_of(&f, &m, (uint32_t)c, n);
        a->reach[c] = f.upto[hops];
        a->keys[c] = keys_of(a, &f);
        a->edits += edits;
        sum += (double)edits * edit_work(a, &f, a->keys[c]);
        if (sum > WORK) too_much(a, sum, c);
    }
}

/* The next edit after (center, value); false: there is none. */
static bool next_edit(const all *a, size_t *center, size_t *value)
{
    for (; *center < a->graph.n; ++*center, *value = 0)
        for (; *value < a->values.n; ++*value)
            if (a->values.of[*center] != *value) return true;
    return false;
}

/* Cuts the edits into blocks: counts them, or writes them down as well. */
static size_t cut_blocks(const all *a, block *to)
{
    size_t n = 0;
    block b = {0};
    for (size_t c = 0, v = 0; next_edit(a, &c, &v); v++) {
        if (b.edits > 0 && b.rows + a->reach[c] > BLOCK_ROWS) {
            if (to) to[n] = b;
            n++;
            b = (block){0};
        }
        if (b.edits == 0) b = (block){.center = c, .value = v};
        b.edits++;
        b.rows += a->reach[c];
        b.keys += a->keys[c];
    }
    if (b.edits > 0 && to) to[n] = b;
    return n + (b.edits > 0);
}

static void plan(all *a)
{
    survey(a);
    if (a->w->st) return;
    a->nblocks = cut_blocks(a, NULL);
    a->blocks = pare_work_alloc(a->w, a->nblocks, sizeof *a->blocks);
    a->found = pare_work_alloc(a->w, a->nblocks, sizeof *a->found);
    if (a->w->st) return;
    (void)cut_blocks(a, a->blocks);
    for (size_t i = 0; i < a->nblocks; i++) {
        const block *const b = &a->blocks[i];
        if (b->edits > a->most.edits) a->most.edits = b->edits;
        if (b->rows > a->most.rows) a->most.rows = b->rows;
        if (b->keys > a->most.keys) a->most.keys = b->keys;
    }
}

/* ---- one block ------------------------------------------------------------------------------ */

static void desk_new(const all *a, desk *d)
{
    pare_work *const w = a->w;
    const size_t edits = a->most.edits, rows = a->most.rows, hops = a->side[0].net.nlayers;
    atomic_flag_clear(&d->taken);
    d->map = map_new(a);
    d->field = pare_work_alloc(w, edits, sizeof *d->field);
    d->upto = pare_work_alloc(w, edits * (hops + 1), sizeof *d->upto);
    d->node = pare_work_alloc(w, rows, sizeof *d->node);
    d->x = mat_zeros(w, edits, a->x.cols);
    d->self = pare_work_alloc(w, rows, sizeof *d->self);
    d->idx = pare_work_alloc(w, a->most.keys, sizeof *d->idx);
    d->ptr = pare_work_alloc(w, rows + 1, sizeof *d->ptr);
    for (size_t k = 0; k < 2; k++) {
        for (size_t t = 0; t < 2; t++) d->rows[k][t] = patch_rows_new(w, &a->side[k].net, rows);
        d->scratch[k] = patch_scratch_new(w, &a->side[k].net, ROWS, a->widest_row);
        d->y[k] = mat_zeros(w, rows, a->side[k].net.top.w.rows);
        d->rad[k] = vec_zeros(w, rows);
    }
    d->rad32 = vec_zeros(w, rows);
}

/* The fields of a block's edits and the rows they put in. */
static void set_edits(const all *a, desk *d, const block *b)
{
    const size_t hops = a->side[0].net.nlayers;
    size_t c = b->center, v = b->value, before = SIZE_MAX;
    uint32_t *node = d->node;
    for (size_t e = 0; e < b->edits; e++, v++) {
        PARE_ASSERT(next_edit(a, &c, &v));
        memcpy(pare_row_mut(&d->x, e), pare_row(&a->x, a->values.row[v]),
               a->x.cols * sizeof *a->x.v);
        if (c == before) {
            d->field[e] = d->field[e - 1];
            continue;
        }
        d->field[e] = (edit_field){hops, d->upto + e * (hops + 1), node};
        (void)edit_field_of(&d->field[e], &d->map, (uint32_t)c, a->graph.n);
        node += d->field[e].upto[hops];
        before = c;
    }
}

/* Who sees whom among the rows of the block when layer l begins. */
static patch_view view_of(const all *a, desk *d, const block *b, size_t l)
{
    patch_view v = {.split = a->graph.n, .self = d->self, .ptr = d->ptr, .idx = d->idx};
    size_t first = 0;
    d->ptr[0] = 0;
    for (size_t e = 0; e < b->edits; e++) {
        edit_field_view(&d->field[e], &d->map, l, first, v.split, &v, d->self, d->ptr, d->idx);
        first += d->field[e].upto[l];
    }
    return v;
}

static void step_side(const side *s, patch_rows rows[2], patch_scratch *t, patch_view v, size_t l,
                      size_t n)
{
    const patch_layer *const p = &s->net.layers[l];
    v.base = &s->base[l];
    v.own = &rows[l % 2];
    patch_project(p, &rows[l % 2], 0, n);
    for (size_t i = 0; i < v.rows; i += ROWS)
        patch_step(p, &v, &rows[(l + 1) % 2], t, i, v.rows - i < ROWS ? v.rows : i + ROWS);
}

static void run_block(const all *a, desk *d, const block *b, pare_output_bound *found)
{
    const size_t layers = a->side[0].net.nlayers;
    size_t n = b->edits;
    set_edits(a, d, b);
    for (size_t k = 0; k < 2; k++) patch_enter(&a->side[k].net, &d->rows[k][0], &d->x, 0, n);
    for (size_t l = 0; l < layers; l++) {
        const patch_view v = view_of(a, d, b, l);
        for (size_t k = 0; k < 2; k++) step_side(&a->side[k], d->rows[k], &d->scratch[k], v, l, n);
        n = v.rows;
    }
    pare_enclosure e[2];
    for (size_t k = 0; k < 2; k++) {
        patch_leave(&a->side[k].net, &d->rows[k][layers % 2], &d->y[k], d->rad[k], 0, n);
        e[k] = (pare_enclosure){
            .rows = n, .cols = d->y[k].cols, .mid = d->y[k].v, .rad = d->rad[k], .rad32 = d->rad32};
    }
    for (size_t i = 0; i < n; i++) pare_outputs_row(found, &e[0], &e[1], i);
}

/* There are as many desks as threads: one is free. */
static desk *take_desk(const all *a)
{
    for (size_t i = 0;; i = (i + 1) % a->ndesks)
        if (!atomic_flag_test_and_set(&a->desks[i].taken)) return &a->desks[i];
}

static void one_block(void *ctx, size_t i)
{
    const all *const a = ctx;
    desk *const d = take_desk(a);
    run_block(a, d, &a->blocks[a->first + i], &a->found[a->first + i]);
    atomic_flag_clear(&d->taken);
}

static void run_blocks(all *a)
{
    pare_work *const w = a->w;
    a->ndesks = w->exec && w->exec->threads > 1 ? (size_t)w->exec->threads : 1;
    a->desks = pare_work_alloc(w, a->ndesks, sizeof *a->desks);
    for (size_t i = 0; !w->st && i < a->ndesks; i++) desk_new(a, &a->desks[i]);
    for (a->first = 0; !w->st && a->first < a->nblocks; a->first += ROUND) {
        const size_t n = a->nblocks - a->first < ROUND ? a->nblocks - a->first : ROUND;
        w->st = pare_parallel_until(w->exec, n, one_block, a, w->err);
        if (!w->st) w->st = pare_progress(w->exec, "prove edits", a->first + n, a->nblocks, w->err);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void check_input(pare_work *w, const pare_model *f, const pare_input *in)
{
    if (w->st) return;
    if (f->pattern.kind != PARE_GRAPH)
        pare_work_fail(w, PARE_ERR_INPUT, "edits: the model attends over %s, not over a graph",
                       pare_pattern_name(f->pattern.kind));
    else if (in->batch != 1 || !in->x || in->tokens == 0 || in->tokens >= UINT32_MAX / 2)
        pare_work_fail(w, PARE_ERR_INPUT, "edits need one graph with features on its nodes");
}

/* The edits, the graph, and the net of the input model. */
static void set_up(all *a, const pare_model *f, const pare_input *in, size_t most)
{
    pare_work *const w = a->w;
    check_input(w, f, in);
    if (w->st) return;
    a->x = pare_mat_of((double *)(uintptr_t)in->x, in->tokens, in->width);
    a->values = edit_rows_of(w, &a->x, most);
    a->graph = key_graph(w, &f->pattern, in->graph, in->tokens);
    if (!w->st) w->st = pare_graph_transpose(&a->turned, w->arena, &a->graph, 1, w->err);
    for (size_t i = 0; !w->st && i < a->graph.n; i++)
        if (a->graph.ptr[i + 1] - a->graph.ptr[i] > a->widest_row)
            a->widest_row = a->graph.ptr[i + 1] - a->graph.ptr[i];
    a->side[0].net = patch_read(w, f);
}

static void add_model(all *a, const pare_model *g)
{
    pare_work *const w = a->w;
    if (!w->st) a->side[1].net = patch_read(w, g);
    if (!w->st && a->side[0].net.nlayers != a->side[1].net.nlayers)
        pare_work_fail(w, PARE_ERR_INPUT, "edits: the models have %zu and %zu layers",
                       a->side[0].net.nlayers, a->side[1].net.nlayers);
    if (!w->st && a->side[0].net.top.w.rows != a->side[1].net.top.w.rows)
        pare_work_fail(w, PARE_ERR_INPUT, "edits: the models have %zu and %zu outputs",
                       a->side[0].net.top.w.rows, a->side[1].net.top.w.rows);
}

/* The graph without an edit, and then every edit: nodes that an edit does not reach are as in the
 * graph without. */
static void gather(all *a, edits_bound *out)
{
    pare_enclosure e[2];
    for (size_t k = 0; k < 2; k++)
        e[k] = (pare_enclosure){.rows = a->x.rows,
                                .cols = a->side[k].y.cols,
                                .mid = a->side[k].y.v,
                                .rad = a->side[k].rad,
                                .rad32 = vec_zeros(a->w, a->x.rows)};
    pare_output_bound base = {0};
    for (size_t i = 0; !a->w->st && i < a->x.rows; i++) pare_outputs_row(&base, &e[0], &e[1], i);
    if (a->w->st) return;
    *out = (edits_bound){.rows = a->values.n,
                         .different = a->values.different,
                         .edits = a->edits,
                         .proven = base.gap.proven,
                         .measured = base.gap.measured,
                         .slack = base.gap.radius};
    for (size_t i = 0; i < a->nblocks; i++) {
        const pare_output_bound *const b = &a->found[i];
        out->proven = pare_ub_max(out->proven, b->gap.proven);
        out->measured = fmax(out->measured, b->gap.measured);
        out->slack = fmax(out->slack, b->gap.radius);
        out->pairs += b->rows;
        out->certain += b->certain;
    }
}

edits_bound edits_prove(pare_work *w, const pare_model *f, const pare_model *g,
                        const pare_input *in, size_t most)
{
    edits_bound out = {.proven = pare_ub_inf()};
    const pare_mark mark = pare_arena_mark(w->arena);
    all a = {.w = w};
    set_up(&a, f, in, most);
    add_model(&a, g);
    if (!w->st) plan(&a);
    for (size_t k = 0; !w->st && k < 2; k++) run_base(&a, &a.side[k]);
    if (!w->st) run_blocks(&a);
    if (!w->st) gather(&a, &out);
    pare_arena_reset(w->arena, mark);
    return out;
}

pare_status pare_width_edits_check(const pare_model *m, const pare_input *in, size_t rows,
                                   pare_err *err)
{
    pare_work w = {pare_arena_new(), NULL, err, PARE_OK};
    if (!w.arena) return pare_no_memory(err);
    all a = {.w = &w};
    set_up(&a, m, in, rows);
    if (!w.st) survey(&a);
    pare_arena_free(w.arena);
    return w.st;
}
