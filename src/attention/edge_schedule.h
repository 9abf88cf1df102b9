/* visits.h - the order in which the edges of a graph are visited when it is known long before. */
#ifndef PARE_ATTENTION_VISITS_H
#define PARE_ATTENTION_VISITS_H
#include <pare/attention.h>

enum {
    VISIT_AHEAD = 3, /* stretches whose rows may be asked for in advance */
    VISIT_FEW = 8,   /* edges: fewer are no reason to fetch a row, they go along elsewhere */
    VISIT_MOST = 128 /* edges at a time: their scores stay in the first cache */
};

/* Edges in blocks of the row at their other end, so that those rows stay in the cache while all
 * rows come by. A stretch is what one row has in one block, and the few edges that it has in the
 * blocks around. */
struct pare_visits {
    size_t blocks;
    const size_t *first;   /* blocks + 1: block b has the stretches first[b] .. first[b + 1] - 1 */
    const uint32_t *row;   /* of each stretch, and VISIT_AHEAD more */
    const bool *opens;     /* of each stretch: the first of its row */
    const uint32_t *start; /* stretches + 1: its edges are start[s] .. start[s + 1] - 1 */
    const uint32_t *other; /* of each edge: the row at its other end */
    const uint32_t *from;  /* by key: where the edge is visited by query (and LIST_AHEAD more, 0);
                              NULL by query */
};

/* Both orders of a graph, for rows of which `width` floats are read together. */
PARE_MUST_USE pare_status visits_plan(pare_turned *t, pare_arena *a, const pare_graph *g,
                                      size_t width, pare_err *err);

/* Calls fn for every stretch, block after block, in each of them over the threads. What belongs to
 * one row comes in order and not at once. */
typedef void visit_fn(void *ctx, size_t stretch);
void visit_all(const pare_visits *v, visit_fn *fn, void *ctx, const pare_exec *exec);

static inline void visit_ask_for(const pare_mat32 *m, size_t row)
{
    for (size_t c = 0; c < m->cols; c += 16) __builtin_prefetch(m->v + row * m->ld + c);
}

#endif
