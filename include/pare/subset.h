/* pare/subset.h - which of these integers add up closest to a target?
 *
 *   const int64_t x[] = {30, -7, 12, 55, 8};
 *   uint64_t mask[1];
 *   pare_subset best;
 *   pare_status st = pare_subset_sum(&best, mask, x, 5, 43, NULL, &err);
 *   // 30 - 7 + 12 + 8: best.error == 0, best.proof == PARE_SUBSET_BEST, mask[0] == 0x17
 *
 * Everything is in exact integers: same answer on every machine, and an answer that calls itself
 * the best one is the best one. Up to 26 items the search is always exact. */
#ifndef PARE_SUBSET_H
#define PARE_SUBSET_H
#include <pare/base.h>

#define PARE_SUBSET_ITEMS  4096               /* at most */
#define PARE_SUBSET_ITEM   ((int64_t)1 << 49) /* |x| at most */
#define PARE_SUBSET_TARGET ((int64_t)1 << 60) /* |target| at most */
#define PARE_SUBSET_EXACT  60                 /* most items of an exact search */

typedef enum pare_subset_proof {
    PARE_SUBSET_FOUND,   /* by a heuristic: another subset may be closer */
    PARE_SUBSET_REACHED, /* |error| <= tolerance, which is all that was asked */
    PARE_SUBSET_BEST     /* no subset is closer */
} pare_subset_proof;

typedef struct pare_subset {
    int64_t error; /* sum of the chosen items - target */
    pare_subset_proof proof;
} pare_subset;

typedef struct pare_subset_opts {
    int64_t tolerance; /* good enough; heuristics end there, an exact search over more than 40 items
                          as well. 0: as close as the method gets */
    bool exact;        /* search until no subset can be closer: time 2^(n/2), memory 2^(n/4) above
                          40 items; refused above PARE_SUBSET_EXACT */
} pare_subset_opts;

/* Memory to work in, kept from one search to the next. One solver per thread. */
typedef struct pare_subset_solver pare_subset_solver;
PARE_MUST_USE pare_status pare_subset_new(pare_subset_solver **out, pare_err *err);
void pare_subset_free(pare_subset_solver *s); /* accepts NULL */

/* Bit k of mask[k / 64]: item k is chosen. mask has (n + 63) / 64 words. o may be NULL.
 * PARE_ERR_INPUT names the item that is too large; nothing is written then. */
PARE_MUST_USE pare_status pare_subset_solve(pare_subset_solver *s, pare_subset *out, uint64_t *mask,
                                            const int64_t *x, size_t n, int64_t target,
                                            const pare_subset_opts *o, pare_err *err);
/* The same with a solver of its own. */
PARE_MUST_USE pare_status pare_subset_sum(pare_subset *out, uint64_t *mask, const int64_t *x,
                                          size_t n, int64_t target, const pare_subset_opts *o,
                                          pare_err *err);
#endif
