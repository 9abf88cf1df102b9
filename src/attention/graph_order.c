/* graph_order.c - an order of the nodes of a graph in which nodes with common neighbors are close
 * together: their rows are in the cache already when the next node reads them, and a row has edges
 * in fewer blocks of keys (edge_schedule.c).
 *
 * The nodes are ranked by degree, largest first. Some times, every node moves to the mean place of
 * its neighbors, and places are made consecutive again: neighbors are pulled together, and ranking
 * keeps the order from collapsing. Last, within short pieces of the order, nodes with the same
 * neighbors of large degree are grouped. These are a few passes over the edges; weighing every pair
 * of nodes with a common neighbor takes a hundred times as long and was no faster in use. */
#include "sparse.h"
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 8,
    PIECE = 128, /* nodes */
    LARGE = 8    /* neighbors of largest degree that are compared */
};

/* ---- places ---------------------------------------------------------------------------------- */

typedef struct node_place {
    double where;
    uint32_t node;
} node_place;

/* A total order: no two nodes are equal. */
static int by_place(const void *a, const void *b)
{
    const node_place *const x = a, *const y = b;
    if (x->where != y->where) return x->where < y->where ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Sorts by `where`; place[i] is then the rank of node i. */
static void rank_nodes(node_place *line, uint32_t *place, size_t n)
{
    qsort(line, n, sizeof *line, by_place);
    for (size_t i = 0; i < n; i++) place[line[i].node] = (uint32_t)i;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

typedef struct member {
    uint32_t piece;
    uint32_t large[LARGE]; /* neighbors of largest degree, by rank */
    uint32_t node;
} member;

static int by_piece(const void *a, const void *b)
{
    const member *const x = a, *const y = b;
    if (x->piece != y->piece) return x->piece < y->piece ? -1 : 1;
    for (size_t l = 0; l < LARGE; l++)
        if (x->large[l] != y->large[l]) return x->large[l] < y->large[l] ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* ---- the order ------------------------------------------------------------------------------- */

typedef struct workspace {
    node_place *line;
    member *members;
    uint32_t *rank, *place; /* of each node: by degree; in the order */
} workspace;

static void find_order(uint32_t *order, const workspace *r, const pare_graph *g)
{
    for (size_t i = 0; i < g->n; i++)
        r->line[i] = (node_place){-(double)(g->ptr[i + 1] - g->ptr[i]), (uint32_t)i};
    rank_nodes(r->line, r->rank, g->n);
    memcpy(r->place, r->rank, g->n * sizeof *r->place);
    for (size_t t = 0; t < ROUNDS; t++) {
        for (size_t i = 0; i < g->n; i++) { /* the mean place of the neighbors */
            const size_t count = g->ptr[i + 1] - g->ptr[i];
            uint64_t sum = 0;
            for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) sum += r->place[g->idx[e]];
            const double mean = count ? (double)sum / (double)count : (double)r->place[i];
            r->line[i] = (node_place){mean, (uint32_t)i};
        }
        rank_nodes(r->line, r->place, g->n);
    }
    for (size_t i = 0; i < g->n; i++) {
        member *const m = &r->members[i];
        *m = (member){.piece = r->place[i] / PIECE, .node = (uint32_t)i};
        for (size_t l = 0; l < LARGE; l++) m->large[l] = UINT32_MAX;
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) { /* insert by rank */
            uint32_t rank = r->rank[g->idx[e]];
            for (size_t l = 0; l < LARGE && rank < UINT32_MAX; l++)
                if (rank < m->large[l]) {
                    const uint32_t next = m->large[l];
                    m->large[l] = rank;
                    rank = next;
                }
        }
    }
    qsort(r->members, g->n, sizeof *r->members, by_piece);
    for (size_t i = 0; i < g->n; i++) {
        order[i] = r->members[i].node;
        r->place[order[i]] = (uint32_t)i;
    }
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

pare_status pare_graph_order(pare_graph *out, const uint32_t **order, pare_arena *a,
                             const pare_graph *g, size_t width, pare_err *err)
{
    const size_t n = g->n, edges = g->ptr[n];
    *out = *g;
    *order = NULL;
    if (key_block_size(g, width) >= n) return PARE_OK;
    uint32_t *const nodes = pare_alloc(a, n, sizeof *nodes);
    uint32_t *const idx = pare_alloc(a, edges, sizeof *idx);
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    const workspace r = {malloc(n * sizeof *r.line), malloc(n * sizeof *r.members),
                         malloc(n * sizeof *r.rank), malloc(n * sizeof *r.place)};
    const bool enough = nodes && idx && ptr && r.line && r.members && r.rank && r.place;
    if (enough) {
        find_order(nodes, &r, g);
        for (size_t i = 0; i < n; i++) { /* row i is that of node nodes[i], with new numbers */
            const size_t from = g->ptr[nodes[i]], count = g->ptr[nodes[i] + 1] - from;
            uint32_t *const row = idx + ptr[i];
            for (size_t e = 0; e < count; e++) row[e] = r.place[g->idx[from + e]];
            if (count > 1) qsort(row, count, sizeof *row, by_number);
            ptr[i + 1] = ptr[i] + count;
        }
        *out = (pare_graph){n, ptr, idx};
        *order = nodes;
    }
    free(r.line);
    free(r.members);
    free(r.rank);
    free(r.place);
    return enough ? PARE_OK : pare_no_memory(err);
}
