/* subset_parts.h - the pieces of the subset-sum search (subset.c puts them together). */
#ifndef PARE_SRC_TICKET_SUBSET_PARTS_H
#define PARE_SRC_TICKET_SUBSET_PARTS_H
#include "subset_solver.h"

/* Beyond every sum and every target: a list can be read one cell past both ends. */
#define SUBSET_FAR  ((int64_t)1 << 62)
#define SUBSET_HALF 32 /* most items of one list of sums */

struct pare_subset_solver {
    int64_t *cells;
    size_t ncells;
};
/* At least `n` cells, not kept from the last call; NULL when memory is out. */
int64_t *subset_cells(pare_subset_solver *s, size_t n);

/* A search in progress: the closest subset so far. */
typedef struct subset_job {
    const int64_t *x;
    size_t n;
    int64_t target;
    int64_t error;
    uint64_t *mask;
} subset_job;
static inline int64_t subset_abs(int64_t a)
{
    return a < 0 ? -a : a;
}
static inline void subset_put(uint64_t *mask, size_t k)
{
    mask[k / 64] |= (uint64_t)1 << (k % 64);
}

/* ---- sorted lists of all subset sums (subset_sums.c) ----------------------------------------- */

/* level[r]: the 2^r sums of the first r items, ascending, between -FAR and FAR. All levels are
 * kept: which items make a sum is then found by looking, so that no masks are carried along. */
typedef struct subset_sums {
    const int64_t *x;
    unsigned m;
    int64_t *level[SUBSET_HALF + 1];
} subset_sums;
size_t subset_sums_cells(unsigned m);
void subset_sums_build(subset_sums *s, const int64_t *x, unsigned m, int64_t *cells);
static inline size_t subset_sums_count(const subset_sums *s)
{
    return (size_t)1 << s->m;
}
static inline const int64_t *subset_sums_list(const subset_sums *s)
{
    return s->level[s->m];
}
bool subset_sums_has(const int64_t *list, size_t n, int64_t value);
/* Sets the bits first, first + 1, ... of the items whose sum is `value`, which must be one. */
void subset_sums_mask(const subset_sums *s, int64_t value, size_t first, uint64_t *mask);

/* ---- the methods; false: memory is out ------------------------------------------------------- */

/* The best subset of all n <= 2 * SUBSET_HALF items, by two lists of 2^(n/2)
 * (subset_meet_middle.c). Writes mask and error whatever they were. */
bool subset_meet_middle(pare_subset_solver *s, subset_job *j);
/* |target - nearest sum of one of a and one of b|; both ascending with the ends of subset_sums. */
int64_t subset_pair_distance(const int64_t *a, size_t na, const int64_t *b, size_t nb,
                             int64_t target);

/* Four lists of 2^(n/4), windows of their pair sums joined (subset_four_lists.c). Improves on
 * mask and error; `windows`: how many at most (0: all of them, and then *all says that nothing
 * is closer). Ends when |error| <= tolerance. */
bool subset_four_lists(pare_subset_solver *s, subset_job *j, size_t windows, int64_t tolerance,
                       bool *all);

/* Improve on mask and error. Largest differencing (subset_differencing.c), good from about a
 * hundred items on; and greedy on all but the last `fine` items towards what those can best correct
 * (subset_coarse.c): leaves their target in *rest and the chosen ones in mask. */
bool subset_differencing(pare_subset_solver *s, subset_job *j);
bool subset_coarse(pare_subset_solver *s, const subset_job *j, size_t fine, int64_t *rest,
                   uint64_t *mask);
#endif
