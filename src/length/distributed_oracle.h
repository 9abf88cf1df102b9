/* distributed_oracle.h - attention by several processes. */
#ifndef PARE_LENGTH_SHARED_H
#define PARE_LENGTH_SHARED_H
#include <pare/length.h>
#include <pare/ranks.h>

/* ---- distributed_oracle.c: calls shared out -------------------------------------------------------------- */

typedef struct shared {
    pare_oracle inner; /* borrowed */
    const pare_ranks *ranks;
    pare_oracle_caps caps;
    uint8_t *mine, *all;
    size_t bytes; /* room in mine, and in all for each rank */
} shared;
/* Every rank must come with the same calls in the same order. */
pare_oracle shared_open(shared *o, const pare_oracle *inner, const pare_ranks *ranks);
void shared_close(shared *o);
/* n rows, `step` bytes apart, to or (out) from a place without gaps; NULL: only counts. Returns
 * their bytes. */
size_t shared_copy_rows(uint8_t *at, void *rows, size_t n, size_t bytes, size_t step, bool out);

/* ---- rank_partition.c: heads dealt out ----------------------------------------------------------------- */

typedef struct deal {
    const pare_oracle *orc; /* of this rank */
    const pare_length_opts *opts;
    const pare_ranks *ranks; /* NULL: alone */
    const pare_pattern *pattern;
    const pare_graph *graph;
    const pare_exec *exec;
} deal;

/* pare_length_attend by all ranks, each of which comes with the same jobs and has all rows in the
 * end; *stats is of all of them together. */
PARE_MUST_USE pare_status length_deal(const deal *d, const pare_length_job *jobs, size_t count,
                                      pare_length_stats *stats, pare_err *err);
/* Adds s to t; together: at the same time, else one after the other. */
void length_add_stats(pare_length_stats *t, const pare_length_stats *s, bool together);
#endif
