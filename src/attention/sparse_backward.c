/* The way back through attention over lists, in two passes without atomics. By query i:
 *
 *     p_ij = e^(scale q_i.k_j - lse_i),  ds_ij = scale p_ij (dy_i.v_j - dy_i.y_i),
 *     dq_i += sum_j ds_ij k_j;
 *
 * then by key j, over the graph seen from its keys:
 *
 *     dv_j += sum_i p_ij dy_i,           dk_j += sum_i ds_ij q_i.
 *
 * p and ds stand next to each other, two numbers an edge, from the first pass to the second. Both
 * go block after block (visits.c): while the keys of a block of queries come by, one after the
 * other, each of these queries reads on in its own row of pairs, so that these are in the cache,
 * too. */
#include "sparse.h"
#include "edge_schedule.h"
#include <string.h>

enum { UNIT = 256 /* rows of one unit of work */ };

/* What both passes see: a window has become a graph. */
typedef struct way_back {
    const listed_backward_job *w;
    size_t n;
    const pare_visits *queries, *keys;
    float *mean; /* dy_i.y_i */
    float *pair; /* p and ds of each edge, in the order of the queries */
} way_back;

static float *row_of(const pare_mat32 *m, size_t i)
{
    return m->v + i * m->ld;
}

static list_rows rows_of(const pare_mat32 *m)
{
    return (list_rows){m->v, m->ld, m->cols};
}

static void means(void *ctx, size_t unit)
{
    const way_back *const b = ctx;
    const list_rows y = rows_of(b->w->y);
    const size_t n = b->n, end = n - unit * UNIT < UNIT ? n : (unit + 1) * UNIT;
    for (size_t i = unit * UNIT; i < end; i++) {
        const uint32_t self = (uint32_t)i;
        float dot[1 + LIST_PAD];
        b->w->kernel->scores(dot, row_of(b->w->dy, i), &y, 1, &self, 1);
        b->mean[i] = dot[0];
    }
}

static void keys_of_query(const way_back *b, size_t i, size_t first, size_t n, bool add)
{
    const listed_backward_job *const w = b->w;
    const list_rows k = rows_of(w->k), v = rows_of(w->v);
    const uint32_t *const idx = b->queries->other + first;
    float again[VISIT_MOST + LIST_PAD], t[VISIT_MOST + LIST_PAD], ds[VISIT_MOST + LIST_PAD];
    const float *s = again;
    if (w->kept.scores)
        s = w->kept.scores + first;
    else
        w->kernel->scores(again, row_of(w->q, i), &k, w->scale, idx, n);
    w->kernel->scores(t, row_of(w->dy, i), &v, 1, idx, n);
    w->kernel->slopes(b->pair + 2 * first, ds, s, t, w->kept.lse[i], b->mean[i], w->scale, n);
    w->kernel->values(row_of(&w->dq, i), ds, &k, idx, n, 1, add ? 1 : 0);
}

static void query_stretch(void *ctx, size_t s)
{
    const way_back *const b = ctx;
    const size_t i = b->queries->row[s], ahead = b->queries->row[s + VISIT_AHEAD];
    const size_t end = b->queries->start[s + 1];
    visit_ask_for(b->w->dy, ahead);
    visit_ask_for(&b->w->dq, ahead);
    bool add = !(b->w->kept.fresh && b->queries->opens[s]);
    for (size_t at = b->queries->start[s]; at < end; at += VISIT_MOST, add = true)
        keys_of_query(b, i, at, end - at < VISIT_MOST ? end - at : VISIT_MOST, add);
}

static void key_stretch(void *ctx, size_t s)
{
    const way_back *const b = ctx;
    const listed_backward_job *const w = b->w;
    const list_rows q = rows_of(w->q), dy = rows_of(w->dy);
    const size_t j = b->keys->row[s], ahead = b->keys->row[s + VISIT_AHEAD];
    const size_t first = b->keys->start[s], count = b->keys->start[s + 1] - first;
    visit_ask_for(&w->dv, ahead);
    visit_ask_for(&w->dk, ahead);
    w->kernel->both(row_of(&w->dv, j), row_of(&w->dk, j), b->pair, b->keys->from + first, &dy, &q,
                    b->keys->other + first, count, !(w->kept.fresh && b->keys->opens[s]));
}

/* Rows that no edge writes. */
static void clear_alone(const pare_mat32 *m, const pare_graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->ptr[i] == g->ptr[i + 1]) memset(row_of(m, i), 0, m->cols * sizeof(float));
}

/* A short window has few keys a row: as a graph it is no larger than q. */
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

static pare_status go_back(const listed_backward_job *w, pare_arena *a, const pare_exec *exec,
                           pare_err *err)
{
    pare_graph window;
    pare_turned turned = {0};
    const pare_graph *graph = w->graph;
    pare_status st;
    if (w->pattern->kind == PARE_GRAPH) {
        turned = *w->turned;
    } else {
        if ((st = window_graph(&window, a, w->pattern, w->q->rows, err)) ||
            (st = pare_graph_turn(&turned, a, &window, w->q->cols + w->v->cols, err)))
            return st;
        graph = &window;
    }
    const size_t n = graph->n, edges = graph->ptr[n];
    way_back b = {.w = w, .n = n, .queries = turned.queries, .keys = turned.keys};
    b.mean = pare_alloc(a, n ? n : 1, sizeof *b.mean);
    b.pair = w->kept.room ? w->kept.room : pare_alloc(a, edges ? edges : 1, 2 * sizeof *b.pair);
    if (!b.mean || !b.pair) return pare_no_memory(err);
    if (w->kept.fresh) {
        clear_alone(&w->dq, graph);
        clear_alone(&w->dk, &turned.by_key);
        clear_alone(&w->dv, &turned.by_key);
    }
    pare_parallel(exec, (n + UNIT - 1) / UNIT, means, &b);
    visit_all(b.queries, query_stretch, &b, exec);
    visit_all(b.keys, key_stretch, &b, exec);
    return PARE_OK;
}

pare_status listed_backward(const listed_backward_job *w, const pare_exec *exec, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st = go_back(w, a, exec, err);
    pare_arena_free(a);
    return st;
}
