/* The way back through attention over lists, in two passes without atomics. By query i:
 *
 *     p_ij = e^(scale q_i.k_j - lse_i),  ds_ij = scale p_ij (dy_i.v_j - dy_i.y_i),
 *     dq_i += sum_j ds_ij k_j,           p and ds are kept, two numbers an edge;
 *
 * then by key j, over the graph seen from its keys:
 *
 *     dv_j += sum_i p_ij dy_i,           dk_j += sum_i ds_ij q_i. */
#include "listed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <pare/vexp.h>

enum { UNIT = 64 /* rows of one unit of work */ };

/* What both passes see: a window has become a graph. */
typedef struct way_back {
    const listed_backward_job *w;
    const pare_graph *graph;
    const pare_turned *turned;
    float *p, *ds; /* by edge of the graph */
} way_back;

static float dot(const float *a, const float *b, size_t n)
{
    float s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static void add_scaled(float *y, float by, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] += by * x[i];
}

static const float *row_of(const pare_mat32 *m, size_t i)
{
    return m->v + i * m->ld;
}

static void query(const way_back *b, size_t i)
{
    const listed_backward_job *const w = b->w;
    const float *const q = row_of(w->q, i), *const dy = row_of(w->dy, i);
    const float mean = dot(dy, row_of(w->y, i), w->v->cols);
    for (size_t e = b->graph->ptr[i]; e < b->graph->ptr[i + 1]; e++) {
        const size_t j = b->graph->idx[e];
        const float *const k = row_of(w->k, j);
        b->p[e] = pare_exp_scalar(w->scale * dot(q, k, w->q->cols) - w->lse[i]);
        b->ds[e] = w->scale * b->p[e] * (dot(dy, row_of(w->v, j), w->v->cols) - mean);
        add_scaled(w->dq.v + i * w->dq.ld, b->ds[e], k, w->q->cols);
    }
}

static void key(const way_back *b, size_t j)
{
    const listed_backward_job *const w = b->w;
    const pare_graph *const t = &b->turned->by_key;
    for (size_t e = t->ptr[j]; e < t->ptr[j + 1]; e++) {
        const size_t i = t->idx[e], at = b->turned->edge[e];
        add_scaled(w->dv.v + j * w->dv.ld, b->p[at], row_of(w->dy, i), w->v->cols);
        add_scaled(w->dk.v + j * w->dk.ld, b->ds[at], row_of(w->q, i), w->q->cols);
    }
}

static void queries(void *ctx, size_t unit)
{
    const way_back *const b = ctx;
    for (size_t i = unit * UNIT; i < b->graph->n && i < (unit + 1) * UNIT; i++) query(b, i);
}

static void keys(void *ctx, size_t unit)
{
    const way_back *const b = ctx;
    for (size_t j = unit * UNIT; j < b->graph->n && j < (unit + 1) * UNIT; j++) key(b, j);
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
    const size_t n = b.graph->n, edges = b.graph->ptr[n], units = (n + UNIT - 1) / UNIT;
    b.p = pare_alloc(a, edges ? edges : 1, sizeof *b.p);
    b.ds = pare_alloc(a, edges ? edges : 1, sizeof *b.ds);
    if (!b.p || !b.ds) return pare_no_memory(err);
    pare_parallel(exec, units, queries, &b);
    pare_parallel(exec, units, keys, &b);
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
