/* sparse_backward.c - gradients of sparse attention, in two passes without atomics.
 *
 * By query i:
 *
 *     p_ij  = e^(scale q_i.k_j - lse_i),
 *     ds_ij = scale p_ij (dy_i.v_j - dy_i.y_i),
 *     dq_i += sum_j ds_ij k_j;
 *
 * then by key j, over the transposed graph:
 *
 *     dv_j += sum_i p_ij dy_i,
 *     dk_j += sum_i ds_ij q_i.
 *
 * p and ds of an edge lie side by side, two floats per edge, from the first pass to the second.
 * Both passes run block by block (edge_schedule.c): while the keys pass by a block of queries, each
 * of these queries reads on in its own row of pairs, so that the pairs are in the cache, too. */
#include "sparse.h"
#include "edge_schedule.h"
#include <string.h>

enum { UNIT = 256 /* rows of one unit of work */ };

/* What both passes read; a window has become a graph. */
typedef struct passes {
    const sparse_backward_job *w;
    size_t n;
    const pare_edge_schedule *queries, *keys;
    float *mean; /* dy_i.y_i */
    float *pair; /* p and ds of each edge, in the order of the queries */
} passes;

static void compute_means(void *ctx, size_t unit)
{
    const passes *const b = ctx;
    const sparse_rows y = rows_of(b->w->y);
    const size_t n = b->n, end = n - unit * UNIT < UNIT ? n : (unit + 1) * UNIT;
    for (size_t i = unit * UNIT; i < end; i++) {
        const uint32_t self = (uint32_t)i;
        float dot[1 + SCORE_PAD];
        b->w->kernel->scores(dot, row_of(b->w->dy, i), &y, 1, &self, 1);
        b->mean[i] = dot[0];
    }
}

static void query_segment(void *ctx, size_t s)
{
    const passes *const b = ctx;
    const sparse_backward_job *const w = b->w;
    const sparse_rows k = rows_of(w->k), v = rows_of(w->v);
    const size_t i = b->queries->row[s], ahead = b->queries->row[s + SEGMENTS_AHEAD];
    const size_t end = b->queries->start[s + 1];
    prefetch_row(w->dy, ahead);
    prefetch_row(&w->dq, ahead);
    bool add = !(w->saved.fresh && b->queries->opens[s]);
    for (size_t first = b->queries->start[s]; first < end; first += MAX_EDGES, add = true) {
        const size_t n = end - first < MAX_EDGES ? end - first : MAX_EDGES;
        const uint32_t *const idx = b->queries->neighbor + first;
        float recomputed[MAX_EDGES + SCORE_PAD], t[MAX_EDGES + SCORE_PAD],
            ds[MAX_EDGES + SCORE_PAD];
        const float *scores = recomputed;
        if (w->saved.scores)
            scores = w->saved.scores + first;
        else
            w->kernel->scores(recomputed, row_of(w->q, i), &k, w->scale, idx, n);
        w->kernel->scores(t, row_of(w->dy, i), &v, 1, idx, n);
        w->kernel->softmax_backward(b->pair + 2 * first, ds, scores, t, w->saved.lse[i], b->mean[i],
                                    w->scale, n);
        w->kernel->values(row_of(&w->dq, i), ds, &k, idx, n, 1, add ? 1 : 0);
    }
}

static void key_segment(void *ctx, size_t s)
{
    const passes *const b = ctx;
    const sparse_backward_job *const w = b->w;
    const sparse_rows q = rows_of(w->q), dy = rows_of(w->dy);
    const size_t j = b->keys->row[s], ahead = b->keys->row[s + SEGMENTS_AHEAD];
    const size_t first = b->keys->start[s], count = b->keys->start[s + 1] - first;
    prefetch_row(&w->dv, ahead);
    prefetch_row(&w->dk, ahead);
    w->kernel->weighted_sums(row_of(&w->dv, j), row_of(&w->dk, j), b->pair, b->keys->from + first,
                             &dy, &q, b->keys->neighbor + first, count,
                             !(w->saved.fresh && b->keys->opens[s]));
}

/* Rows that no edge writes. */
static void clear_isolated(const pare_mat32 *m, const pare_graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ptr[i] == g->ptr[i + 1]) memset(row_of(m, i), 0, m->cols * sizeof(float));
}

/* A short window has few keys per row: as a graph it is no larger than q. */
static pare_status window_graph(pare_graph *out, pare_arena *a, const pare_pattern *p, size_t n,
                                pare_err *err)
{
    size_t edges = 0;
    for (size_t i = 0; i < n; i++) edges += pare_visible(p, NULL, n, i).count;
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, edges ? edges : 1, sizeof *idx);
    if (!ptr || !idx) return pare_no_memory(err);
    for (size_t i = 0, at = 0; i < n; i++) {
        const pare_keys keys = pare_visible(p, NULL, n, i);
        for (size_t j = 0; j < keys.count; j++) idx[at++] = (uint32_t)pare_key(&keys, j);
        ptr[i + 1] = at;
    }
    *out = (pare_graph){n, ptr, idx};
    return PARE_OK;
}

pare_status sparse_backward(const sparse_backward_job *w, const pare_exec *exec, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    pare_graph window;
    pare_transposed_graph transpose = {0};
    const bool graph = w->pattern->kind == PARE_GRAPH;
    const pare_graph *const g = graph ? w->graph : &window;
    pare_status st = a ? PARE_OK : pare_no_memory(err);
    if (graph) transpose = *w->transpose;
    if (!st && !graph) st = window_graph(&window, a, w->pattern, w->q->rows, err);
    if (!st && !graph)
        st = pare_graph_transpose(&transpose, a, &window, w->q->cols + w->v->cols, err);
    passes b = {.w = w, .queries = transpose.queries, .keys = transpose.keys};
    if (!st) {
        const size_t edges = g->ptr[g->n];
        b.n = g->n;
        b.mean = pare_alloc(a, b.n ? b.n : 1, sizeof *b.mean);
        b.pair = w->saved.edge_scratch ? w->saved.edge_scratch
                                       : pare_alloc(a, edges ? edges : 1, 2 * sizeof *b.pair);
        if (!b.mean || !b.pair) st = pare_no_memory(err);
    }
    if (!st && w->saved.fresh) {
        clear_isolated(&w->dq, g);
        clear_isolated(&w->dk, &transpose.by_key);
        clear_isolated(&w->dv, &transpose.by_key);
    }
    if (!st) {
        pare_parallel(exec, (b.n + UNIT - 1) / UNIT, compute_means, &b);
        edge_schedule_run(b.queries, query_segment, &b, exec);
        edge_schedule_run(b.keys, key_segment, &b, exec);
    }
    pare_arena_free(a);
    return st;
}
