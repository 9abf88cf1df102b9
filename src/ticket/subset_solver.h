/* subset_solver.h - which of these integers add up closest to a target?
 *
 *   const int64_t x[] = {30, -7, 12, 55, 8};
 *   uint64_t mask[1];
 *   pare_subset best;
 *   pare_status st = pare_subset_sum(&best, mask, x, 5, 43, NULL, &err);
 *   // 30 - 7 + 12 + 8: best.error == 0, best.proof == PARE_SUBSET_BEST, mask[0] == 0x17
 *
 * Everything is in exact integers: same answer on every machine, and an answer that calls itself
 * the best one is the best one. Up to 26 items the search is always exact. */
#ifndef PARE_TICKET_SUBSET_SOLVER_H
#define PARE_TICKET_SUBSET_SOLVER_H
#include <pare/ticket.h>

/* Memory to work in, kept from one search to the next. One solver per thread. */
typedef struct pare_subset_solver pare_subset_solver;
PARE_MUST_USE pare_status pare_subset_new(pare_subset_solver **out, pare_err *err);
void pare_subset_free(pare_subset_solver *s); /* accepts NULL */

/* Bit k of mask[k / 64]: item k is chosen. mask has (n + 63) / 64 words. o may be NULL.
 * PARE_ERR_INPUT names the item that is too large; nothing is written then. */
PARE_MUST_USE pare_status pare_subset_solve(pare_subset_solver *s, pare_subset *out, uint64_t *mask,
                                            const int64_t *x, size_t n, int64_t target,
                                            const pare_subset_opts *o, pare_err *err);
#endif
