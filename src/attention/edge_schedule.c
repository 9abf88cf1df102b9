/* edge_schedule.c - order the edges of a graph for the cache, once for many passes.
 *
 * A row has neighbors anywhere. Where their rows do not all fit the cache next to a core, all rows
 * take their neighbors of the first block, then all those of the second (as in sparse_blocks.c).
 * Here that order is stored, and lists, scores and weights of edges lie in it: they stream, and no
 * pass searches again for the edge where a row leaves a block. A row with few edges in a block
 * takes them together with those in the next: fetching the row once more costs more than fetching
 * these neighbors. */
#include "edge_schedule.h"
#include "sparse.h"
#include <string.h>

enum { UNIT = 64 /* segments of one unit of work */ };

typedef struct builder {
    const pare_graph *g;
    size_t block, blocks;
    /* Counts of segments and edges of block b at [b + 1], then the place of the next of block b at
     * [b]. */
    size_t *first, *edges;
    bool *opens;
    uint32_t *row, *start, *neighbor; /* NULL while segments are counted */
    uint32_t *place;                  /* of each edge of the graph: its place in the schedule */
} builder;

static void cut_segments(builder *p)
{
    const pare_graph *const g = p->g;
    for (size_t i = 0; i < g->n; i++)
        for (size_t e = g->ptr[i], end = g->ptr[i + 1], last, to; e < end; e = to) {
            to = e;
            do { /* to the end of the block, and on where that is few edges */
                last = to;
                const size_t next = (g->idx[to] / p->block + 1) * p->block;
                while (to < end && g->idx[to] < next) to++;
            } while (to < end && to - e < FEW_EDGES);
            const size_t block = g->idx[last] / p->block;
            if (end - to < FEW_EDGES) to = end;
            if (!p->row) { /* edges e .. to - 1 become a segment of the block: counted, */
                p->first[block + 1]++;
                p->edges[block + 1] += to - e;
                continue;
            }
            const size_t s = p->first[block]++, at = p->edges[block]; /* then written */
            p->row[s] = (uint32_t)i;
            p->opens[s] = e == g->ptr[i];
            p->start[s] = (uint32_t)at;
            memcpy(p->neighbor + at, g->idx + e, (to - e) * sizeof *p->neighbor);
            for (size_t k = e; k < to; k++) p->place[k] = (uint32_t)(at + k - e);
            p->edges[block] += to - e;
        }
}

static pare_status build(pare_edge_schedule **out, uint32_t **place, pare_arena *a,
                         const pare_graph *g, size_t block, pare_err *err)
{
    const size_t edges = g->ptr[g->n];
    builder p = {.g = g, .block = block, .blocks = g->n ? (g->n - 1) / block + 1 : 0};
    pare_edge_schedule *const v = *out = pare_alloc(a, 1, sizeof *v);
    p.first = pare_alloc(a, p.blocks + 1, sizeof *p.first);
    p.edges = pare_alloc(a, p.blocks + 1, sizeof *p.edges);
    if (!v || !p.first || !p.edges) return pare_no_memory(err);
    cut_segments(&p);
    for (size_t b = 0; b < p.blocks; b++) {
        p.first[b + 1] += p.first[b];
        p.edges[b + 1] += p.edges[b];
    }
    const size_t segments = p.first[p.blocks];
    p.row = pare_alloc(a, segments + SEGMENTS_AHEAD, sizeof *p.row);
    p.opens = pare_alloc(a, segments + 1, sizeof *p.opens);
    p.start = pare_alloc(a, segments + 1, sizeof *p.start);
    p.neighbor = pare_alloc(a, edges + 1, sizeof *p.neighbor);
    *place = p.place = pare_alloc(a, edges + 1, sizeof *p.place);
    if (!p.row || !p.opens || !p.start || !p.neighbor || !p.place) return pare_no_memory(err);
    cut_segments(&p);
    p.start[segments] = (uint32_t)edges;
    /* first[b] is now the end of block b: one place further it is the start of the next. */
    for (size_t b = p.blocks; b > 0; b--) p.first[b] = p.first[b - 1];
    p.first[0] = 0;
    *v = (pare_edge_schedule){p.blocks, p.first, p.row, p.opens, p.start, p.neighbor, NULL};
    return PARE_OK;
}

pare_status edge_schedule_build(pare_transposed_graph *t, pare_arena *a, const pare_graph *g,
                                size_t width, pare_err *err)
{
    const size_t block = key_block_size(g, width), edges = g->ptr[g->n];
    pare_edge_schedule *by_query, *by_key;
    uint32_t *query_place, *key_place;
    pare_status st;
    if ((st = build(&by_query, &query_place, a, g, block ? block : 1, err)) ||
        (st = build(&by_key, &key_place, a, &t->by_key, block ? block : 1, err)))
        return st;
    uint32_t *const from = pare_alloc(a, edges + EDGES_AHEAD, sizeof *from);
    if (!from) return pare_no_memory(err);
    for (size_t e = 0; e < edges; e++) from[key_place[e]] = query_place[t->edge[e]];
    by_key->from = from;
    t->queries = by_query;
    t->keys = by_key;
    return PARE_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct block_run {
    edge_segment_fn *fn;
    void *ctx;
    size_t first, end;
} block_run;

static void unit_of_segments(void *self, size_t unit)
{
    const block_run *const r = self;
    const size_t from = r->first + unit * UNIT, end = r->end - from < UNIT ? r->end : from + UNIT;
    for (size_t s = from; s < end; s++) r->fn(r->ctx, s);
}

void edge_schedule_run(const pare_edge_schedule *v, edge_segment_fn *fn, void *ctx,
                       const pare_exec *exec)
{
    for (size_t b = 0; b < v->blocks; b++) {
        block_run r = {fn, ctx, v->first[b], v->first[b + 1]};
        pare_parallel(exec, (r.end - r.first + UNIT - 1) / UNIT, unit_of_segments, &r);
    }
}
