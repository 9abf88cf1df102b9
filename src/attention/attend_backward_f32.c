/* Attention of the f32 engine for training: forward that keeps the rows' log-sums, and the way
 * back, by lists or by tiles as on the way forward. */
#include "attend_f32.h"
#include "tiled_backward.h"

pare_status attend_backward_f32_with(const attend_kernels *kernels, pare_mat32 *dq, pare_mat32 *dk,
                                     pare_mat32 *dv, const pare_mat32 *dy, const pare_mat32 *q,
                                     const pare_mat32 *k, const pare_mat32 *v, const pare_mat32 *y,
                                     const pare_kept32 *kept, float scale, const pare_pattern *p,
                                     const pare_graph *g, const pare_turned *turned,
                                     const pare_exec *exec, pare_err *err)
{
    const size_t n = q->rows;
    PARE_ASSERT(k->rows == n && v->rows == n && y->rows == n && dy->rows == n);
    PARE_ASSERT(dq->rows == n && dk->rows == n && dv->rows == n);
    PARE_ASSERT(q->cols == k->cols && dq->cols == q->cols && dk->cols == q->cols);
    PARE_ASSERT(v->cols == y->cols && dy->cols == v->cols && dv->cols == v->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == n && turned && turned->by_key.n == n));
    PARE_ASSERT(!kept->fresh || p->kind == PARE_GRAPH);
    if (as_list(p)) {
        const listed_backward_job w = {.dq = *dq,
                                       .dk = *dk,
                                       .dv = *dv,
                                       .dy = dy,
                                       .q = q,
                                       .k = k,
                                       .v = v,
                                       .y = y,
                                       .kept = *kept,
                                       .scale = scale,
                                       .pattern = p,
                                       .graph = g,
                                       .turned = turned,
                                       .kernel = &kernels->list};
        return listed_backward(&w, exec, err);
    }
    const tiled_backward_job w = {.dq = *dq,
                                  .dk = *dk,
                                  .dv = *dv,
                                  .dy = dy,
                                  .q = q,
                                  .k = k,
                                  .v = v,
                                  .y = y,
                                  .lse = kept->lse,
                                  .scale = scale,
                                  .sees = sight_of(p),
                                  .kernel = &kernels->tile};
    return tiled_backward(&w, exec, err);
}

pare_status pare_attend_keep_f32(pare_mat32 *y, const pare_kept32 *kept, const pare_mat32 *q,
                                 const pare_mat32 *k, const pare_mat32 *v, float scale,
                                 const pare_pattern *p, const pare_graph *g,
                                 const pare_turned *turned, const pare_exec *exec, pare_err *err)
{
    attend_kernels kernels[3];
    attention_kernels(kernels);
    return attend_keep_f32_with(&kernels[0], y, kept, q, k, v, scale, p, g, turned, exec, err);
}

pare_status pare_attend_backward_f32(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                     const pare_mat32 *dy, const pare_mat32 *q, const pare_mat32 *k,
                                     const pare_mat32 *v, const pare_mat32 *y,
                                     const pare_kept32 *kept, float scale, const pare_pattern *p,
                                     const pare_graph *g, const pare_turned *turned,
                                     const pare_exec *exec, pare_err *err)
{
    attend_kernels kernels[3];
    attention_kernels(kernels);
    return attend_backward_f32_with(&kernels[0], dq, dk, dv, dy, q, k, v, y, kept, scale, p, g,
                                    turned, exec, err);
}
