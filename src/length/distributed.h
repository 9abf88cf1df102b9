/* distributed.h - attention by several processes. */
#ifndef PARE_LENGTH_DISTRIBUTED_H
#define PARE_LENGTH_DISTRIBUTED_H
#include <pare/length.h>

typedef struct rank_job {
    const pare_oracle *orc; /* of this rank */
    const pare_length_opts *opts;
    const pare_ranks *ranks; /* NULL: alone */
    const pare_pattern *pattern;
    const pare_graph *graph;
    const pare_exec *exec;
} rank_job;

/* pare_length_attend by all ranks, each of which comes with the same jobs and has all rows in the
 * end; *stats is of all of them together. */
PARE_MUST_USE pare_status attend_by_ranks(const rank_job *d, const pare_length_job *jobs,
                                          size_t count, pare_length_stats *stats, pare_err *err);
/* Adds s to t; together: at the same time, else one after the other. */
void length_add_stats(pare_length_stats *t, const pare_length_stats *s, bool together);
#endif
