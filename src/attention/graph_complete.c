/* graph_complete.c - the graph a model attends over: the edges of the data, self loops, and a
 * random expander. */
#include "base/support.h"
#include <pare/attention.h>
#include <stdlib.h>
#include <string.h>

enum { EXPANDER_STREAM = 0x65787061 }; /* "expa": its own Philox stream */

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* How many of the ascending numbers are below `limit`. */
static size_t count_below(const uint32_t *row, size_t n, uint32_t limit)
{
    size_t from = 0;
    while (n > 0) {
        const size_t half = n / 2;
        const bool right = row[from + half] < limit;
        from += right ? half + 1 : 0;
        n = right ? n - half - 1 : half;
    }
    return from;
}

/* Merges a row of the data, ascending and distinct, with the keys of `extra`, which get sorted;
 * duplicates are dropped. Rows are long and extras few: the runs between them are copied, and the
 * row is not sorted again. Returns the length of `to`. */
static size_t merge_row(uint32_t *to, const uint32_t *row, size_t n, uint32_t *extra, size_t extras)
{
    size_t at = 0, count = 0;
    if (extras > 1) qsort(extra, extras, sizeof *extra, by_value);
    for (size_t e = 0; e < extras; e++) {
        const size_t run = count_below(row + at, n - at, extra[e]);
        if (run) memcpy(to + count, row + at, run * sizeof *to);
        at += run;
        count += run;
        if (at < n && row[at] == extra[e]) at++;
        if (count == 0 || to[count - 1] != extra[e]) to[count++] = extra[e];
    }
    if (at < n) memcpy(to + count, row + at, (n - at) * sizeof *to);
    return count + (n - at);
}

/* Each permutation gives node i one key, and its inverse one more: of the `stride` numbers of a
 * node the first `degree`. */
static pare_status expander(uint32_t *to, size_t stride, pare_arena *scratch, size_t n,
                            size_t degree, const pare_pattern *p, pare_err *err)
{
    pare_rng rng = pare_rng_at(p->expander_seed, EXPANDER_STREAM);
    uint32_t *perm = pare_alloc(scratch, n, sizeof *perm);
    if (!perm) return pare_no_memory(err);
    for (size_t r = 0; r < degree / 2; r++) {
        for (size_t i = 0; i < n; i++) perm[i] = (uint32_t)i;
        pare_rng_shuffle(&rng, perm, n);
        for (size_t i = 0; i < n; i++) {
            to[i * stride + 2 * r] = perm[i];
            to[perm[i] * stride + 2 * r + 1] = (uint32_t)i;
        }
    }
    return PARE_OK;
}

pare_status pare_graph_complete(pare_graph *out, pare_arena *a, const pare_graph *data,
                                const pare_pattern *p, pare_err *err)
{
    const size_t n = data->n, degree = p->expander_degree / 2 * 2;
    if (!p->self_loops && degree == 0) {
        *out = *data;
        return PARE_OK;
    }
    const size_t stride = degree + p->self_loops; /* extra keys of a node, at most */
    size_t added, capacity; /* the degree comes from a file: it may be any number */
    if (!pare_mul(&added, n, stride) || !pare_add(&capacity, added, data->ptr[n]))
        return pare_no_memory(err);
    size_t *ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *idx = pare_alloc(a, capacity ? capacity : 1, sizeof *idx);
    uint32_t *extra = pare_alloc(a, added ? added : 1, sizeof *extra);
    if (!ptr || !idx || !extra) return pare_no_memory(err);
    if (degree) {
        const pare_status st = expander(extra, stride, a, n, degree, p, err);
        if (st) return st;
    }
    for (size_t i = 0, at = 0; i < n; i++) {
        uint32_t *const mine = extra + i * stride;
        size_t extras = 0; /* a fixed point of a permutation adds nothing */
        for (size_t e = 0; e < degree; e++)
            if (mine[e] != i) mine[extras++] = mine[e];
        if (p->self_loops) mine[extras++] = (uint32_t)i;
        const size_t len = data->ptr[i + 1] - data->ptr[i];
        at += merge_row(idx + at, len ? data->idx + data->ptr[i] : idx, len, mine, extras);
        ptr[i + 1] = at;
    }
    *out = (pare_graph){n, ptr, idx};
    return PARE_OK;
}
