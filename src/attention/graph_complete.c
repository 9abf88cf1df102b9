/* The graph a model attends over: the data's edges, self loops, and a random expander. */
#include <pare/attention.h>
#include <stdlib.h>
#include <string.h>

enum { EXPANDER_STREAM = 0x65787061 }; /* "expa": its own Philox stream */

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts a row and drops what stands twice; returns the new length. */
static size_t sort_unique(uint32_t *row, size_t n)
{
    qsort(row, n, sizeof *row, by_value);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || row[kept - 1] != row[i]) row[kept++] = row[i];
    return kept;
}

/* Each permutation gives node i one key, and its inverse one more. */
static pare_status expander(uint32_t *to, pare_arena *scratch, size_t n, size_t degree,
                            const pare_pattern *p, pare_err *err)
{
    pare_rng rng = pare_rng_at(p->expander_seed, EXPANDER_STREAM);
    uint32_t *perm = pare_alloc(scratch, n, sizeof *perm);
    if (!perm) return pare_no_memory(err);
    for (size_t r = 0; r < degree / 2; r++) {
        for (size_t i = 0; i < n; i++) perm[i] = (uint32_t)i;
        pare_rng_shuffle(&rng, perm, n);
        for (size_t i = 0; i < n; i++) {
            to[i * degree + 2 * r] = perm[i];
            to[perm[i] * degree + 2 * r + 1] = (uint32_t)i;
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
    size_t added, room; /* the degree comes from a file: it may be any number */
    if (!pare_mul(&added, n, degree) || !pare_add(&room, added, p->self_loops ? n : 0) ||
        !pare_add(&room, room, data->ptr[n]))
        return pare_no_memory(err);
    size_t *ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *idx = pare_alloc(a, room ? room : 1, sizeof *idx);
    uint32_t *extra = degree ? pare_alloc(a, added, sizeof *extra) : NULL;
    if (!ptr || !idx || (degree && !extra)) return pare_no_memory(err);
    if (degree) {
        const pare_status st = expander(extra, a, n, degree, p, err);
        if (st) return st;
    }
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t *const row = idx + at;
        size_t len = data->ptr[i + 1] - data->ptr[i];
        if (len) memcpy(row, data->idx + data->ptr[i], len * sizeof *row);
        if (p->self_loops) row[len++] = (uint32_t)i;
        for (size_t e = 0; e < degree; e++)
            if (extra[i * degree + e] != i) row[len++] = extra[i * degree + e];
        at += sort_unique(row, len);
        ptr[i + 1] = at;
    }
    *out = (pare_graph){n, ptr, idx};
    return PARE_OK;
}
