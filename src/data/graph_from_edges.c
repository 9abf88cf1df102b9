/* graph_from_edges.c - a list of undirected edges becomes a CSR graph: both directions of every
 * edge, neighbors ascending and distinct, no self loops. */
#include <pare/data.h>

/* Row v of a graph is keys[ptr[v] .. ptr[v+1]). */
static pare_status build_rows(pare_graph *out, pare_arena *a, pare_arena *scratch, size_t n,
                              const int64_t *edges, size_t nedges, pare_err *err)
{
    if (n > UINT32_MAX || nedges > SIZE_MAX / 4)
        return pare_fail(err, PARE_ERR_INPUT, "graph of %zu nodes and %zu edges is too large", n,
                         nedges);
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    size_t *const next =
        pare_alloc(scratch, n ? n : 1, sizeof *next); /* next free place of a row */
    if (!ptr || !next) return pare_no_memory(err);
    for (size_t e = 0; e < nedges; e++) {
        const int64_t u = edges[2 * e], v = edges[2 * e + 1];
        if (u < 0 || v < 0 || (uint64_t)u >= n || (uint64_t)v >= n)
            return pare_fail(err, PARE_ERR_INPUT,
                             "edge %zu joins nodes %lld and %lld, but the nodes are 0 to %lld", e,
                             (long long)u, (long long)v, (long long)n - 1);
        if (u == v) continue;
        ptr[u + 1]++;
        ptr[v + 1]++;
    }
    for (size_t v = 0; v < n; v++) ptr[v + 1] += ptr[v];
    const size_t total = ptr[n] ? ptr[n] : 1;
    uint32_t *const unsorted = pare_alloc(scratch, total, sizeof *unsorted);
    uint32_t *const keys = pare_alloc(a, total, sizeof *keys);
    if (!unsorted || !keys) return pare_no_memory(err);
    for (size_t v = 0; v < n; v++) next[v] = ptr[v];
    for (size_t e = 0; e < nedges; e++) {
        const size_t u = (size_t)edges[2 * e], v = (size_t)edges[2 * e + 1];
        if (u == v) continue;
        unsorted[next[u]++] = (uint32_t)v;
        unsorted[next[v]++] = (uint32_t)u;
    }

    /* The rows are symmetric, so transposing them gives the same rows, sorted: node u comes to its
     * neighbors in ascending order of u. */
    for (size_t v = 0; v < n; v++) next[v] = ptr[v];
    for (size_t u = 0; u < n; u++)
        for (size_t i = ptr[u]; i < ptr[u + 1]; i++) keys[next[unsorted[i]]++] = (uint32_t)u;

    /* Repeated keys stand side by side now: they are dropped in place. */
    size_t to = 0, from = 0;
    for (size_t v = 0; v < n; v++) {
        const size_t end = ptr[v + 1], begin = to;
        for (; from < end; from++)
            if (to == begin || keys[to - 1] != keys[from]) keys[to++] = keys[from];
        ptr[v] = begin;
    }
    ptr[n] = to;
    *out = (pare_graph){n, ptr, keys};
    return PARE_OK;
}

pare_status pare_graph_from_edges(pare_graph *out, pare_arena *a, size_t n, const int64_t *edges,
                                  size_t nedges, pare_err *err)
{
    *out = (pare_graph){0};
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    const pare_status st = build_rows(out, a, scratch, n, edges, nedges, err);
    pare_arena_free(scratch);
    return st;
}
