/* attend_f32.c - attention of the f32 engine for one head, forward and backward: tiles where rows
 * see many keys (tiled.c), sparse kernels where they see few (graphs, short windows; sparse.c). */
#include "attend_f32.h"
#include "tiled.h"

/* Shorter windows are faster as lists of keys than as tiles that are mostly masked. */
enum { SHORT_WINDOW = 24 };

static key_mask mask_of_pattern(const pare_pattern *p)
{
    switch (p->kind) {
    case PARE_CAUSAL:
        return (key_mask){1, SIZE_MAX, SIZE_MAX};
    case PARE_WINDOW:
        return (key_mask){1, p->window, p->sinks};
    case PARE_FULL:
    case PARE_GRAPH:
        break;
    }
    return (key_mask){PARE_VIS_ALL, SIZE_MAX, SIZE_MAX};
}

static bool is_sparse(const pare_pattern *p)
{
    return p->kind == PARE_GRAPH ||
           (p->kind == PARE_WINDOW && p->window < SHORT_WINDOW && p->sinks < SHORT_WINDOW);
}

size_t attention_kernels(attend_kernels out[3])
{
    tile_kernel tiles[3];
    sparse_kernel sparse[3];
    const size_t n = tile_kernels(tiles), m = sparse_kernels(sparse);
    PARE_ASSERT(n == m);
    for (size_t i = 0; i < n; i++) out[i] = (attend_kernels){tiles[i].name, tiles[i], sparse[i]};
    return n;
}

/* ---- forward --------------------------------------------------------------------------------- */

pare_status attend_save_f32_with(const attend_kernels *kernels, pare_mat32 *y,
                                 const pare_saved32 *saved, const pare_mat32 *q,
                                 const pare_mat32 *k, const pare_mat32 *v, float scale,
                                 const pare_pattern *p, const pare_graph *g,
                                 const pare_transposed_graph *transpose, const pare_exec *exec,
                                 pare_err *err)
{
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    if (is_sparse(p)) {
        const sparse_job w = {.y = *y,
                              .lse = saved->lse,
                              .scores = transpose ? saved->scores : NULL,
                              .q = q,
                              .k = k,
                              .v = v,
                              .scale = scale,
                              .pattern = p,
                              .graph = g,
                              .schedule = transpose ? transpose->queries : NULL,
                              .kernel = &kernels->sparse};
        return sparse_attend(&w, exec, err);
    }
    const tiled_job w = {.y = *y,
                         .lse = saved->lse,
                         .q = q,
                         .k = k,
                         .v = v,
                         .scale = scale,
                         .mask = mask_of_pattern(p),
                         .kernel = &kernels->tile};
    return tiled_attend(&w, exec, err);
}

pare_status attend_f32_with(const attend_kernels *kernels, pare_mat32 *y, const pare_mat32 *q,
                            const pare_mat32 *k, const pare_mat32 *v, float scale,
                            const pare_pattern *p, const pare_graph *g, const pare_exec *exec,
                            pare_err *err)
{
    static const pare_saved32 nothing = {0};
    return attend_save_f32_with(kernels, y, &nothing, q, k, v, scale, p, g, NULL, exec, err);
}

pare_status pare_attend_f32(pare_mat32 *y, const pare_attention_args32 *x, const pare_exec *exec,
                            pare_err *err)
{
    attend_kernels kernels[3];
    attention_kernels(kernels);
    return attend_f32_with(&kernels[0], y, x->q, x->k, x->v, (float)x->scale, x->pattern, x->graph,
                           exec, err);
}

pare_status pare_attend_saving_f32(pare_mat32 *y, const pare_saved32 *saved, const pare_mat32 *q,
                                   const pare_mat32 *k, const pare_mat32 *v, float scale,
                                   const pare_pattern *p, const pare_graph *g,
                                   const pare_transposed_graph *transpose, const pare_exec *exec,
                                   pare_err *err)
{
    attend_kernels kernels[3];
    attention_kernels(kernels);
    return attend_save_f32_with(&kernels[0], y, saved, q, k, v, scale, p, g, transpose, exec, err);
}

/* ---- backward -------------------------------------------------------------------------------- */

pare_status attend_backward_f32_with(const attend_kernels *kernels, pare_mat32 *dq, pare_mat32 *dk,
                                     pare_mat32 *dv, const pare_mat32 *dy, const pare_mat32 *q,
                                     const pare_mat32 *k, const pare_mat32 *v, const pare_mat32 *y,
                                     const pare_saved32 *saved, float scale, const pare_pattern *p,
                                     const pare_graph *g, const pare_transposed_graph *transpose,
                                     const pare_exec *exec, pare_err *err)
{
    const size_t n = q->rows;
    PARE_ASSERT(k->rows == n && v->rows == n && y->rows == n && dy->rows == n);
    PARE_ASSERT(dq->rows == n && dk->rows == n && dv->rows == n);
    PARE_ASSERT(q->cols == k->cols && dq->cols == q->cols && dk->cols == q->cols);
    PARE_ASSERT(v->cols == y->cols && dy->cols == v->cols && dv->cols == v->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == n && transpose && transpose->by_key.n == n));
    PARE_ASSERT(!saved->fresh || p->kind == PARE_GRAPH);
    if (is_sparse(p)) {
        const sparse_backward_job w = {.dq = *dq,
                                       .dk = *dk,
                                       .dv = *dv,
                                       .dy = dy,
                                       .q = q,
                                       .k = k,
                                       .v = v,
                                       .y = y,
                                       .saved = *saved,
                                       .scale = scale,
                                       .pattern = p,
                                       .graph = g,
                                       .transpose = transpose,
                                       .kernel = &kernels->sparse};
        return sparse_backward(&w, exec, err);
    }
    const tiled_backward_job w = {.dq = *dq,
                                  .dk = *dk,
                                  .dv = *dv,
                                  .dy = dy,
                                  .q = q,
                                  .k = k,
                                  .v = v,
                                  .y = y,
                                  .lse = saved->lse,
                                  .scale = scale,
                                  .mask = mask_of_pattern(p),
                                  .kernel = &kernels->tile};
    return tiled_backward(&w, exec, err);
}

pare_status pare_attend_backward_f32(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                     const pare_mat32 *dy, const pare_mat32 *q, const pare_mat32 *k,
                                     const pare_mat32 *v, const pare_mat32 *y,
                                     const pare_saved32 *saved, float scale, const pare_pattern *p,
                                     const pare_graph *g, const pare_transposed_graph *transpose,
                                     const pare_exec *exec, pare_err *err)
{
    attend_kernels kernels[3];
    attention_kernels(kernels);
    return attend_backward_f32_with(&kernels[0], dq, dk, dv, dy, q, k, v, y, saved, scale, p, g,
                                    transpose, exec, err);
}
