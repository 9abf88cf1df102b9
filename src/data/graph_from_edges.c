/* A list of undirected edges becomes compressed rows: both directions, ascending, distinct. */
#include <pare/data.h>

/* keys[ptr[v] .. ptr[v+1]): the neighbours of v, in any order, perhaps more than once. */
typedef struct rows {
    size_t *ptr;
    uint32_t *keys;
} rows;

static pare_status count_rows(rows *r, size_t n, const int64_t *edges, size_t nedges, pare_err *err)
{
    for (size_t e = 0; e < nedges; e++) {
        const int64_t u = edges[2 * e], v = edges[2 * e + 1];
        if (u < 0 || v < 0 || (uint64_t)u >= n || (uint64_t)v >= n)
            return pare_fail(err, PARE_ERR_INPUT,
                             "edge %zu joins nodes %lld and %lld, but the nodes are 0 to %lld", e,
                             (long long)u, (long long)v, (long long)n - 1);
        if (u == v) continue;
        r->ptr[u + 1]++;
        r->ptr[v + 1]++;
    }
    for (size_t v = 0; v < n; v++) r->ptr[v + 1] += r->ptr[v];
    return PARE_OK;
}

static void fill_rows(rows *r, size_t *at, size_t n, const int64_t *edges, size_t nedges)
{
    for (size_t v = 0; v < n; v++) at[v] = r->ptr[v];
    for (size_t e = 0; e < nedges; e++) {
        const size_t u = (size_t)edges[2 * e], v = (size_t)edges[2 * e + 1];
        if (u == v) continue;
        r->keys[at[u]++] = (uint32_t)v;
        r->keys[at[v]++] = (uint32_t)u;
    }
}

/* The rows are symmetric, so turning them over leaves what they say and sorts them: node u is
 * handed to its neighbours in ascending order of u. */
static void sort_rows(rows *out, size_t *at, const rows *in, size_t n)
{
    for (size_t v = 0; v < n; v++) at[v] = in->ptr[v];
    for (size_t u = 0; u < n; u++)
        for (size_t i = in->ptr[u]; i < in->ptr[u + 1]; i++)
            out->keys[at[in->keys[i]]++] = (uint32_t)u;
}

/* Squeezes repeated keys out, in place; twins are neighbours now. */
static void drop_twins(rows *r, size_t n)
{
    size_t to = 0, from = 0;
    for (size_t v = 0; v < n; v++) {
        const size_t end = r->ptr[v + 1], begin = to;
        for (; from < end; from++)
            if (to == begin || r->keys[to - 1] != r->keys[from]) r->keys[to++] = r->keys[from];
        r->ptr[v] = begin;
    }
    r->ptr[n] = to;
}

static pare_status build(pare_graph *out, pare_arena *a, pare_arena *scratch, size_t n,
                         const int64_t *edges, size_t nedges, pare_err *err)
{
    if (n > UINT32_MAX || nedges > SIZE_MAX / 4)
        return pare_fail(err, PARE_ERR_INPUT, "graph of %zu nodes and %zu edges is too large", n,
                         nedges);
    rows raw = {pare_alloc(a, n + 1, sizeof(size_t)), NULL};
    if (!raw.ptr) return pare_no_memory(err);
    const pare_status st = count_rows(&raw, n, edges, nedges, err);
    if (st) return st;
    const size_t total = raw.ptr[n];
    rows sorted = {raw.ptr, pare_alloc(a, total ? total : 1, sizeof(uint32_t))};
    size_t *at = pare_alloc(scratch, n ? n : 1, sizeof *at);
    raw.keys = pare_alloc(scratch, total ? total : 1, sizeof(uint32_t));
    if (!sorted.keys || !at || !raw.keys) return pare_no_memory(err);
    fill_rows(&raw, at, n, edges, nedges);
    sort_rows(&sorted, at, &raw, n);
    drop_twins(&sorted, n);
    *out = (pare_graph){n, sorted.ptr, sorted.keys};
    return PARE_OK;
}

pare_status pare_graph_from_edges(pare_graph *out, pare_arena *a, size_t n, const int64_t *edges,
                                  size_t nedges, pare_err *err)
{
    *out = (pare_graph){0};
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    const pare_status st = build(out, a, scratch, n, edges, nedges, err);
    pare_arena_free(scratch);
    return st;
}
