/* An order of the nodes of a graph in which those that see the same ones lie close together: their
 * rows are then in the cache already when the next one asks for them, and fewer blocks of keys
 * concern a row (visits.c).
 *
 * The nodes stand in a line, those with most edges first. Some times, every node goes to the mean
 * place of those it sees, and the line closes up: neighbours are pulled together, and what closes
 * up keeps the line from shrinking to a point. That is a few passes over the edges; the orders that
 * weigh every pair of nodes with a common neighbour were no faster in use. */
#include "listed.h"
#include <stdlib.h>

enum { TIMES = 8 };

typedef struct standing {
    double where;
    uint32_t node;
} standing;

/* A total order: no two nodes are the same. */
static int by_place(const void *a, const void *b)
{
    const standing *const x = a, *const y = b;
    if (x->where != y->where) return x->where < y->where ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Sorts by what `where` says; place[i] is then where node i stands. */
static void close_up(standing *line, uint32_t *place, size_t n)
{
    qsort(line, n, sizeof *line, by_place);
    for (size_t i = 0; i < n; i++) place[line[i].node] = (uint32_t)i;
}

static double mean_place(const pare_graph *g, const uint32_t *place, size_t i)
{
    const size_t count = g->ptr[i + 1] - g->ptr[i];
    uint64_t sum = 0;
    for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) sum += place[g->idx[e]];
    return count ? (double)sum / (double)count : (double)place[i];
}

static void find_order(standing *line, uint32_t *place, const pare_graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        line[i] = (standing){-(double)(g->ptr[i + 1] - g->ptr[i]), (uint32_t)i};
    close_up(line, place, g->n);
    for (size_t t = 0; t < TIMES; t++) {
        for (size_t i = 0; i < g->n; i++)
            line[i] = (standing){mean_place(g, place, i), (uint32_t)i};
        close_up(line, place, g->n);
    }
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void rename_nodes(size_t *ptr, uint32_t *idx, const pare_graph *g, const uint32_t *order,
                         const uint32_t *place)
{
    for (size_t i = 0; i < g->n; i++) {
        const size_t from = g->ptr[order[i]], count = g->ptr[order[i] + 1] - from;
        uint32_t *const row = idx + ptr[i];
        for (size_t e = 0; e < count; e++) row[e] = place[g->idx[from + e]];
        if (count > 1) qsort(row, count, sizeof *row, by_number);
        ptr[i + 1] = ptr[i] + count;
    }
}

pare_status pare_graph_order(pare_graph *out, const uint32_t **order, pare_arena *a,
                             const pare_graph *g, size_t width, pare_err *err)
{
    const size_t n = g->n, edges = g->ptr[n];
    *out = *g;
    *order = NULL;
    if (list_block(g, width) >= n) return PARE_OK;
    uint32_t *const nodes = pare_alloc(a, n, sizeof *nodes);
    uint32_t *const idx = pare_alloc(a, edges, sizeof *idx);
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    standing *const line = malloc(n * sizeof *line);
    uint32_t *const place = malloc(n * sizeof *place);
    const bool enough = nodes && idx && ptr && line && place;
    if (enough) {
        find_order(line, place, g);
        for (size_t i = 0; i < n; i++) nodes[i] = line[i].node;
        rename_nodes(ptr, idx, g, nodes, place);
        *out = (pare_graph){n, ptr, idx};
        *order = nodes;
    }
    free(line);
    free(place);
    return enough ? PARE_OK : pare_no_memory(err);
}
