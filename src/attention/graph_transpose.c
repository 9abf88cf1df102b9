/* graph_transpose.c - the transposed graph (CSC): a counting sort of the edges by key, which keeps
 * the queries of a key in order. */
#include "edge_schedule.h"

pare_status pare_graph_transpose(pare_transposed_graph *out, pare_arena *a, const pare_graph *g,
                                 size_t width, pare_err *err)
{
    const size_t n = g->n, edges = g->ptr[n];
    if (edges > UINT32_MAX)
        return pare_fail(err, PARE_ERR_INPUT, "a graph of %zu edges: at most %u can be trained on",
                         edges, UINT32_MAX);
    size_t *const ptr = pare_alloc(a, n + 2, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, edges ? edges : 1, sizeof *idx);
    uint32_t *const edge = pare_alloc(a, edges ? edges : 1, sizeof *edge);
    if (!ptr || !idx || !edge) return pare_no_memory(err);
    /* While it fills, ptr[j + 1] is the place of the next query of key j; it ends as ptr[j + 1]. */
    for (size_t e = 0; e < edges; e++) ptr[(size_t)g->idx[e] + 2]++;
    for (size_t j = 2; j <= n; j++) ptr[j] += ptr[j - 1];
    for (size_t i = 0; i < n; i++)
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            const size_t at = ptr[(size_t)g->idx[e] + 1]++;
            idx[at] = (uint32_t)i;
            edge[at] = (uint32_t)e;
        }
    *out = (pare_transposed_graph){.by_key = {n, ptr, idx}, .edge = edge};
    return edge_schedule_build(out, a, g, width, err);
}
