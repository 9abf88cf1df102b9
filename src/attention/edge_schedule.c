/* The order of visits: a row names rows anywhere; where these do not all fit the cache next to a
 * core, all rows visit the first block of them, then all the second (as in list_sweep.c). Here the
 * order is written down once for a graph, and lists, scores and weights of edges lie in that order:
 * they stream, and nobody has to find out again where a row leaves a block. A row with few edges in
 * a block visits them together with those in the next: fetching the row once more costs more than
 * fetching what these edges name. */
#include "edge_schedule.h"
#include "sparse.h"
#include <string.h>

enum { UNIT = 64 /* stretches of one unit of work */ };

/* ---- writing it down --------------------------------------------------------------------------
 */

typedef struct plan {
    const pare_graph *g;
    size_t block, blocks;
    size_t *first, *edges; /* of each block: its first stretch and edge, while it fills the next */
    bool *opens;
    uint32_t *row, *start, *other;
    uint32_t *place; /* of each edge of the graph: where it is visited */
} plan;

/* First edge from e on, before `end`, whose other row is not in the block of that of e. */
static size_t block_end(const plan *p, size_t e, size_t end)
{
    const uint32_t *const idx = p->g->idx;
    const size_t next = (idx[e] / p->block + 1) * p->block;
    while (e < end && idx[e] < next) e++;
    return e;
}

/* Calls each(p, row, from, to, block) for every stretch, row after row. */
typedef void stretch_fn(plan *p, size_t row, size_t from, size_t to, size_t block);

static void stretches_of(plan *p, stretch_fn *each)
{
    const pare_graph *const g = p->g;
    for (size_t i = 0; i < g->n; i++)
        for (size_t e = g->ptr[i], end = g->ptr[i + 1], last, to; e < end; e = to) {
            to = e;
            do {
                last = to;
                to = block_end(p, to, end);
            } while (to < end && to - e < VISIT_FEW);
            const size_t block = g->idx[last] / p->block;
            if (end - to < VISIT_FEW) to = end;
            each(p, i, e, to, block);
        }
}

static void count(plan *p, size_t row, size_t from, size_t to, size_t block)
{
    (void)row;
    p->first[block + 1]++;
    p->edges[block + 1] += to - from;
}

static void put(plan *p, size_t row, size_t from, size_t to, size_t block)
{
    const size_t s = p->first[block]++, at = p->edges[block];
    p->row[s] = (uint32_t)row;
    p->opens[s] = from == p->g->ptr[row];
    p->start[s] = (uint32_t)at;
    memcpy(p->other + at, p->g->idx + from, (to - from) * sizeof *p->other);
    for (size_t e = from; e < to; e++) p->place[e] = (uint32_t)(at + e - from);
    p->edges[block] += to - from;
}

/* first and edges hold the ends of what has been filled: one place further they are the starts. */
static void fill(plan *p)
{
    const size_t edges = p->g->ptr[p->g->n];
    for (size_t b = 0; b < p->blocks; b++) {
        p->first[b + 1] += p->first[b];
        p->edges[b + 1] += p->edges[b];
    }
    const size_t stretches = p->first[p->blocks];
    stretches_of(p, put);
    p->start[stretches] = (uint32_t)edges;
    for (size_t b = p->blocks; b > 0; b--) p->first[b] = p->first[b - 1];
    p->first[0] = 0;
}

static pare_status write_down(pare_visits **out, uint32_t **place, pare_arena *a,
                              const pare_graph *g, size_t block, pare_err *err)
{
    const size_t edges = g->ptr[g->n] + 1;
    plan p = {.g = g, .block = block, .blocks = g->n ? (g->n - 1) / block + 1 : 0};
    pare_visits *const v = *out = pare_alloc(a, 1, sizeof *v);
    p.first = pare_alloc(a, p.blocks + 1, sizeof *p.first);
    p.edges = pare_alloc(a, p.blocks + 1, sizeof *p.edges);
    if (!v || !p.first || !p.edges) return pare_no_memory(err);
    stretches_of(&p, count);
    size_t stretches = 0;
    for (size_t b = 0; b < p.blocks; b++) stretches += p.first[b + 1];
    p.row = pare_alloc(a, stretches + VISIT_AHEAD, sizeof *p.row);
    p.opens = pare_alloc(a, stretches + 1, sizeof *p.opens);
    p.start = pare_alloc(a, stretches + 1, sizeof *p.start);
    p.other = pare_alloc(a, edges, sizeof *p.other);
    *place = p.place = pare_alloc(a, edges, sizeof *p.place);
    if (!p.row || !p.opens || !p.start || !p.other || !p.place) return pare_no_memory(err);
    fill(&p);
    *v = (pare_visits){p.blocks, p.first, p.row, p.opens, p.start, p.other, NULL};
    return PARE_OK;
}

pare_status visits_plan(pare_turned *t, pare_arena *a, const pare_graph *g, size_t width,
                        pare_err *err)
{
    const size_t block = list_block(g, width), edges = g->ptr[g->n];
    pare_visits *by_query, *by_key;
    uint32_t *query_place, *key_place;
    pare_status st;
    if ((st = write_down(&by_query, &query_place, a, g, block ? block : 1, err)) ||
        (st = write_down(&by_key, &key_place, a, &t->by_key, block ? block : 1, err)))
        return st;
    uint32_t *const from = pare_alloc(a, edges + LIST_AHEAD, sizeof *from);
    if (!from) return pare_no_memory(err);
    for (size_t e = 0; e < edges; e++) from[key_place[e]] = query_place[t->edge[e]];
    by_key->from = from;
    t->queries = by_query;
    t->keys = by_key;
    return PARE_OK;
}

/* ---- going -------------------------------------------------------------------------------------
 */

typedef struct trip {
    visit_fn *fn;
    void *ctx;
    size_t first, end;
} trip;

static void unit_of_stretches(void *self, size_t unit)
{
    const trip *const t = self;
    const size_t from = t->first + unit * UNIT, end = t->end - from < UNIT ? t->end : from + UNIT;
    for (size_t s = from; s < end; s++) t->fn(t->ctx, s);
}

void visit_all(const pare_visits *v, visit_fn *fn, void *ctx, const pare_exec *exec)
{
    for (size_t b = 0; b < v->blocks; b++) {
        trip t = {fn, ctx, v->first[b], v->first[b + 1]};
        pare_parallel(exec, (t.end - t.first + UNIT - 1) / UNIT, unit_of_stretches, &t);
    }
}
