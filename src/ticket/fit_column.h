/* fit_column.h - one column of the matrix that is fitted (fit_best.c). */
#ifndef PARE_SRC_TICKET_FIT_COLUMN_H
#define PARE_SRC_TICKET_FIT_COLUMN_H
#include "fit.h"

enum {
    FIT_UNITS = 32, /* of a column at most; the donor may have so many */
    FIT_CAP = 24    /* others */
};
typedef struct fit_column {
    size_t units;
    uint32_t unit[FIT_UNITS];
    uint32_t *own; /* a: bit u of row i: MA of unit[u] */
    uint32_t gift; /* bit u: MB of the donor column's unit[u] */
    int64_t worst; /* largest |sum - target| over the rows */
} fit_column;

/* own and worst for the units it has: the donor column's. */
PARE_MUST_USE pare_status fit_column_solve_alone(fit_column *c, const fit_problem *p,
                                                 const int64_t *target, size_t j);
/* Of 2^bits patterns of the donor's units the one with the smallest worst: gift and worst. Nothing
 * below `limit` (INT64_MAX: none): worst is limit. own is left to fit_column_finish. */
PARE_MUST_USE pare_status fit_column_search(fit_column *c, const fit_problem *p,
                                            const int64_t *target, size_t j,
                                            const fit_column *donor, unsigned bits, int64_t limit);
PARE_MUST_USE pare_status fit_column_finish(fit_column *c, const fit_problem *p,
                                            const int64_t *target, size_t j,
                                            const fit_column *donor);
#endif
