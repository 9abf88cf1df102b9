/* fit_best.h - the pieces of fit_best: choosing, filling (fit_best.c), trading (fit_trade.c). */
#ifndef PARE_SRC_TICKET_FIT_BEST_H
#define PARE_SRC_TICKET_FIT_BEST_H
#include "fit_column.h"

enum { BEST_ROUND = 8 }; /* a round works on one column in so many */

typedef struct best_job {
    const fit_problem *p;
    fit_result *r;
    const int64_t *target;
    pare_arena *arena;
    uint32_t *order;   /* columns, largest entry first */
    size_t donors;     /* 1: order[0] is the donor; 0: a ReLU source has none */
    size_t each;       /* units of a column's block, the first of its list; 0: no blocks */
    bool *free;        /* units beyond the blocks */
    fit_column *col;   /* b */
    fit_column nobody; /* in the place of a donor */
    pare_status *status;
    unsigned bits;
} best_job;

/* fit_column_search of column j. */
PARE_MUST_USE pare_status best_solve(best_job *b, size_t j, int64_t limit);
/* The worst column that is not `done`; b: all are. */
size_t best_worst(const best_job *b, const bool *done);
PARE_MUST_USE pare_status best_status(const best_job *b);
PARE_MUST_USE pare_status best_trade(best_job *b, const fit_best_opts *o, const pare_exec *exec);
#endif
