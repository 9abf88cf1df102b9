/* column.h - one column of a matrix that is being fitted (fit_best.c). */
#ifndef PARE_SRC_TICKET_COLUMN_H
#define PARE_SRC_TICKET_COLUMN_H
#include "fit.h"

enum { FIT_UNITS = 32 };
typedef struct fit_column {
    size_t units;
    uint32_t unit[FIT_UNITS];
    uint32_t *own; /* a: bit u of row i: MA of unit[u] */
    uint32_t gift; /* bit u: MB of the donor column's unit[u] */
    int64_t worst; /* largest |sum - target| over the rows */
} fit_column;

/* own and worst for the units it has. */
PARE_MUST_USE pare_status fit_column_solve_alone(fit_column *c, const fit_problem *p,
                                                 const int64_t *target, size_t j);
/* The same, and of 2^bits patterns of the donor's units the one with the smallest `worst`. */
PARE_MUST_USE pare_status fit_column_solve(fit_column *c, const fit_problem *p,
                                           const int64_t *target, size_t j, const fit_column *donor,
                                           unsigned bits);
#endif
