/* edge_schedule.h - a cache-blocked order of the edges of a graph, built once (training). */
#ifndef PARE_ATTENTION_EDGE_SCHEDULE_H
#define PARE_ATTENTION_EDGE_SCHEDULE_H
#include "attend.h"

enum {
    SEGMENTS_AHEAD = 3, /* segments whose rows may be prefetched */
    FEW_EDGES = 8,      /* fewer are no reason to fetch a row: they join the next segment */
    MAX_EDGES = 128     /* edges at a time: their scores stay in the first-level cache */
};

/* Edges in blocks of neighbors, so that the rows of the neighbors stay in the cache while all rows
 * use them. A segment is what one row has in one block, and the few edges that it has in the blocks
 * next to it. */
struct pare_visits {
    size_t blocks;
    const size_t *first;      /* blocks + 1: block b has segments first[b] .. first[b + 1] - 1 */
    const uint32_t *row;      /* of each segment, and SEGMENTS_AHEAD more */
    const bool *opens;        /* of each segment: it is the first of its row */
    const uint32_t *start;    /* segments + 1: the edges of s are start[s] .. start[s + 1] - 1 */
    const uint32_t *neighbor; /* of each edge: the row at its other end */
    const uint32_t *from;     /* by key: place of the edge in the schedule by query (and EDGES_AHEAD
                                 more, 0); NULL by query */
};

/* The schedules by query and by key, for rows of which `width` floats are read together. */
PARE_MUST_USE pare_status edge_schedule_build(pare_turned *t, pare_arena *a, const pare_graph *g,
                                              size_t width, pare_err *err);

/* Calls fn for every segment, block after block, the segments of a block over the threads. The
 * segments of one row come in order and never at the same time. */
typedef void edge_segment_fn(void *ctx, size_t segment);
void edge_schedule_run(const pare_visits *v, edge_segment_fn *fn, void *ctx, const pare_exec *exec);

static inline void prefetch_row(const pare_mat32 *m, size_t row)
{
    for (size_t c = 0; c < m->cols; c += 16) __builtin_prefetch(m->v + row * m->ld + c);
}

#endif
