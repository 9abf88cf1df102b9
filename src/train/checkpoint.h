/* checkpoint.h - the state of a run in one file that is complete or not there (docs/format.md). */
#ifndef PARE_SRC_CHECKPOINT_H
#define PARE_SRC_CHECKPOINT_H
#include "base/json.h"

typedef struct checkpoint {
    size_t count, nstats;            /* of values, m, v and of stats: of the model */
    float *values, *stats, *m, *v;   /* now */
    float *best_values, *best_stats; /* at the best score */
    uint64_t step, best_step;        /* steps done; 0: no score yet */
    double val, test, loss;          /* of the best score; of the last step */
} checkpoint;

/* `run` says which run it is: an object of numbers, strings and booleans. */
PARE_MUST_USE pare_status checkpoint_write(const char *path, const checkpoint *c, const cJSON *run,
                                           pare_err *err);
/* Fills the arrays (count and nstats say how long they are) and the scores. PARE_ERR_INPUT when the
 * file is torn, altered, of another run (naming what differs) or holds what no run can be at; then
 * *c is as it was. */
PARE_MUST_USE pare_status checkpoint_read(checkpoint *c, const char *path, const cJSON *run,
                                          uint64_t steps, pare_err *err);
#endif
