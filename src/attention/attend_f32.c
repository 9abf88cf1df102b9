/* Attention of the f32 engine for one head: tiles where rows see many keys, lists where they see
 * few (graphs, short windows). */
#include "attend_f32.h"
#include "tiled.h"

/* Below it a window is cheaper as a list than as tiles that are mostly hidden. */
enum { SHORT_WINDOW = 24 };

sight sight_of(const pare_pattern *p)
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
    return (sight){PARE_VIS_ALL, SIZE_MAX, SIZE_MAX};
}

bool as_list(const pare_pattern *p)
{
    return p->kind == PARE_GRAPH ||
           (p->kind == PARE_WINDOW && p->window < SHORT_WINDOW && p->sinks < SHORT_WINDOW);
}

pare_status attend_keep_f32_with(const attend_kernels *kernels, pare_mat32 *y,
                                 const pare_kept32 *kept, const pare_mat32 *q, const pare_mat32 *k,
                                 const pare_mat32 *v, float scale, const pare_pattern *p,
                                 const pare_graph *g, const pare_turned *turned,
                                 const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    if (as_list(p)) {
        const listed_job w = {.y = *y,
                              .lse = kept->lse,
                              .scores = turned ? kept->scores : NULL,
                              .q = q,
                              .k = k,
                              .v = v,
                              .scale = scale,
                              .pattern = p,
                              .graph = g,
                              .visits = turned ? turned->queries : NULL,
                              .kernel = &kernels->list};
        return listed_attend(&w, exec, err);
    }
    const tiled_job w = {.y = *y,
                         .lse = kept->lse,
                         .q = q,
                         .k = k,
                         .v = v,
                         .scale = scale,
                         .sees = sight_of(p),
                         .kernel = &kernels->tile};
    return tiled_attend(&w, exec, err);
}

pare_status attend_f32_with(const attend_kernels *kernels, pare_mat32 *y, const pare_mat32 *q,
                            const pare_mat32 *k, const pare_mat32 *v, float scale,
                            const pare_pattern *p, const pare_graph *g, const pare_exec *exec,
                            pare_err *err)
{
    static const pare_kept32 nothing = {0};
    return attend_keep_f32_with(kernels, y, &nothing, q, k, v, scale, p, g, NULL, exec, err);
}

size_t attention_kernels(attend_kernels out[3])
{
    tile_kernel tiles[3];
    list_kernel lists[3];
    const size_t n = tile_kernels(tiles), m = list_kernels(lists);
    PARE_ASSERT(n == m);
    for (size_t i = 0; i < n; i++) out[i] = (attend_kernels){tiles[i].name, tiles[i], lists[i]};
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
