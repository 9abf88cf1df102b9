/* The way back through attention over lists, in two passes without atomics. By query i:
 *
 *     p_ij = e^(scale q_i.k_j - lse_i),  ds_ij = scale p_ij (dy_i.v_j - dy_i.y_i),
 *     dq_i += sum_j ds_ij k_j;
 *
 * then by key j, over the graph seen from its keys, p and ds once more (the rows they need are in
 * the cache for the sums anyway; two numbers an edge would have to come from anywhere):
 *
 *     dv_j += sum_i p_ij dy_i,           dk_j += sum_i ds_ij q_i. */
#include "listed.h"

enum {
    UNIT = 256, /* rows of one unit of work */
    SHORT =
        48 /* edges at a time: their rows stay in the first cache from the products to the sums */
};

/* What both passes see: a window has become a graph. */
typedef struct way_back {
    const listed_backward_job *w;
    const pare_graph *graph;
    const pare_turned *turned;
    float *mean; /* dy_i.y_i */
} way_back;

/* Of some edges of one query or one key. */
typedef struct slopes {
    float s[SHORT + LIST_PAD], t[SHORT + LIST_PAD], p[SHORT], ds[SHORT], lse[SHORT], mean[SHORT];
} slopes;

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
    const size_t n = b->graph->n, end = n - unit * UNIT < UNIT ? n : (unit + 1) * UNIT;
    for (size_t i = unit * UNIT; i < end; i++) {
        const uint32_t self = (uint32_t)i;
        float dot[1 + LIST_PAD];
        b->w->kernel->scores(dot, row_of(b->w->dy, i), &y, 1, &self, 1);
        b->mean[i] = dot[0];
    }
}

static void query_segment(void *ctx, size_t i, size_t first, size_t count)
{
    const way_back *const b = ctx;
    const listed_backward_job *const w = b->w;
    const list_rows k = rows_of(w->k), v = rows_of(w->v);
    const uint32_t *const idx = b->graph->idx + first;
    slopes e;
    for (size_t l = 0; l < count; l++) e.lse[l] = w->lse[i], e.mean[l] = b->mean[i];
    w->kernel->scores(e.s, row_of(w->q, i), &k, w->scale, idx, count);
    w->kernel->scores(e.t, row_of(w->dy, i), &v, 1, idx, count);
    w->kernel->slopes(e.p, e.ds, e.s, e.t, e.lse, e.mean, w->scale, count);
    w->kernel->values(row_of(&w->dq, i), e.ds, &k, idx, count, 1, true);
}

static void key_segment(void *ctx, size_t j, size_t first, size_t count)
{
    const way_back *const b = ctx;
    const listed_backward_job *const w = b->w;
    const list_rows q = rows_of(w->q), dy = rows_of(w->dy);
    const uint32_t *const idx = b->turned->by_key.idx + first;
    slopes e;
    for (size_t l = 0; l < count; l++) e.lse[l] = w->lse[idx[l]], e.mean[l] = b->mean[idx[l]];
    w->kernel->scores(e.s, row_of(w->k, j), &q, w->scale, idx, count);
    w->kernel->scores(e.t, row_of(w->v, j), &dy, 1, idx, count);
    w->kernel->slopes(e.p, e.ds, e.s, e.t, e.lse, e.mean, w->scale, count);
    w->kernel->values(row_of(&w->dv, j), e.p, &dy, idx, count, 1, true);
    w->kernel->values(row_of(&w->dk, j), e.ds, &q, idx, count, 1, true);
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
    pare_graph graph;
    pare_turned turned;
    way_back b = {.w = w, .graph = w->graph, .turned = w->turned};
    if (w->pattern->kind == PARE_WINDOW) {
        pare_status st = window_graph(&graph, a, w->pattern, w->q->rows, err);
        if (!st) st = pare_graph_turn(&turned, a, &graph, err);
        if (st) return st;
        b.graph = &graph, b.turned = &turned;
    }
    const size_t n = b.graph->n, block = list_block(b.graph, w->q->cols + w->v->cols);
    b.mean = pare_alloc(a, n ? n : 1, sizeof *b.mean);
    if (!b.mean) return pare_no_memory(err);
    pare_parallel(exec, (n + UNIT - 1) / UNIT, means, &b);
    const pare_status st = list_sweep(b.graph, block, SHORT, query_segment, &b, exec, err);
    return st ? st : list_sweep(&b.turned->by_key, block, SHORT, key_segment, &b, exec, err);
}

pare_status listed_backward(const listed_backward_job *w, const pare_exec *exec, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st = go_back(w, a, exec, err);
    pare_arena_free(a);
    return st;
}
