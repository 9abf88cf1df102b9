/* Attention of the f32 engine for one head: tiles where rows see many keys, lists where they see
 * few (graphs, short windows). */
#include "dense.h"
#include "edges.h"
#include "attend_f32.h"
#include <stdatomic.h>

/* Below it a window is cheaper as a list than as tiles that are mostly hidden. */
enum { SHORT_WINDOW = 24 };

typedef struct job {
    dense_job dense;
    edges_job edges;
    size_t units, unit;
    atomic_bool no_memory;
} job;

/* The last rows of a causal pattern see most keys: they come first, so that threads end together.
 */
static void dense_block(void *ctx, size_t b)
{
    job *const w = ctx;
    if (!dense_rows(&w->dense, (w->units - 1 - b) * w->unit)) atomic_store(&w->no_memory, true);
}

static void edges_block(void *ctx, size_t b)
{
    job *const w = ctx;
    if (!edges_rows(&w->edges, b * w->unit)) atomic_store(&w->no_memory, true);
}

static sight sight_of(const pare_pattern *p)
{
    switch (p->kind) {
    case PARE_CAUSAL:
        return (sight){1, SIZE_MAX, SIZE_MAX};
    case PARE_WINDOW:
        return (sight){1, p->window, p->sinks};
    case PARE_FULL:
    case PARE_GRAPH:
        break;
    }
    return (sight){PARE_SEES_ALL, SIZE_MAX, SIZE_MAX};
}

static bool as_list(const pare_pattern *p)
{
    return p->kind == PARE_GRAPH ||
           (p->kind == PARE_WINDOW && p->window < SHORT_WINDOW && p->sinks < SHORT_WINDOW);
}

pare_status attend_f32_with(const attend_kernels *kernels, pare_mat32 *y, const pare_mat32 *q,
                            const pare_mat32 *k, const pare_mat32 *v, float scale,
                            const pare_pattern *p, const pare_graph *g, const pare_exec *exec,
                            pare_err *err)
{
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    const bool list = as_list(p);
    job w = {.dense = {.q = q,
                       .k = k,
                       .v = v,
                       .scale = scale,
                       .sees = sight_of(p),
                       .kernel = &kernels->tile,
                       .y = *y},
             .edges = {.y = *y,
                       .q = q,
                       .k = k,
                       .v = v,
                       .scale = scale,
                       .pattern = p,
                       .graph = g,
                       .kernel = &kernels->edge}};
    w.unit = list ? EDGES_UNIT : dense_unit(&w.dense);
    w.units = (q->rows + w.unit - 1) / w.unit;
    pare_parallel(exec, w.units, list ? edges_block : dense_block, &w);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : PARE_OK;
}

size_t attention_kernels(attend_kernels out[3])
{
    tile_kernel tiles[3];
    edge_kernel edges[3];
    const size_t n = tile_kernels(tiles), m = edge_kernels(edges);
    PARE_ASSERT(n == m);
    for (size_t i = 0; i < n; i++) out[i] = (attend_kernels){tiles[i].name, tiles[i], edges[i]};
    return n;
}

pare_status pare_attend_f32(pare_mat32 *y, const pare_mat32 *q, const pare_mat32 *k,
                            const pare_mat32 *v, float scale, const pare_pattern *p,
                            const pare_graph *g, const pare_exec *exec, pare_err *err)
{
    attend_kernels kernels[3];
    attention_kernels(kernels);
    return attend_f32_with(&kernels[0], y, q, k, v, scale, p, g, exec, err);
}
