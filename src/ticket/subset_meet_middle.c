/* subset_meet_middle.c - the best subset by meeting in the middle: the items in two halves, the
 * sums of each sorted, one list walked up while the other is walked down. The walk visits, for
 * every sum of the one list, the sums of the other just below and just above what is missing, so
 * the closest pair is on it.
 *
 * As in subset_sums.c the walk is cut into four by diagonals, and the four are taken in lock step.
  */
#include "subset_parts.h"
#include <string.h>

enum { CHAINS = 4 };

typedef struct walk { /* up in a, down in b */
    const int64_t *a, *b;
    size_t na, nb;
    int64_t target;
} walk;
typedef struct spot {
    int64_t far; /* |a + b - target| */
    int64_t a, b;
} spot;

/* Where the walk is after `steps`: how many of them were steps up. */
static size_t steps_up(const walk *w, size_t steps)
{
    size_t from = steps > w->nb ? steps - w->nb : 0, to = steps < w->na ? steps : w->na;
    while (from < to) {
        const size_t mid = (from + to) / 2;
        if (w->a[mid] + w->b[w->nb - (steps - mid)] < w->target)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static inline void check_sum(const walk *w, spot *best, const int64_t **a, const int64_t **b)
{
    const int64_t gap = **a + **b - w->target;
    const int64_t far = subset_abs(gap);
    if (__builtin_expect(far < best->far, 0)) *best = (spot){far, **a, **b};
    const bool up = gap < 0;
    *a += up;
    *b -= !up;
}

static spot closest(const walk *w)
{
    const size_t steps = w->na + w->nb, part = steps / CHAINS;
    const int64_t *a[CHAINS], *b[CHAINS];
    spot best[CHAINS];
    for (size_t c = 0; c < CHAINS; c++) {
        const size_t up = steps_up(w, c * part);
        a[c] = w->a + up;
        b[c] = w->b + w->nb - 1 - (c * part - up);
        best[c] = (spot){.far = INT64_MAX};
    }
    for (size_t k = 0; k < part; k++)
#pragma GCC unroll 4 /* the cursors of all chains in registers */
        for (size_t c = 0; c < CHAINS; c++) check_sum(w, &best[c], &a[c], &b[c]);
    for (size_t k = CHAINS * part; k < steps; k++)
        check_sum(w, &best[CHAINS - 1], &a[CHAINS - 1], &b[CHAINS - 1]);
    for (size_t c = 1; c < CHAINS; c++)
        if (best[c].far < best[0].far) best[0] = best[c];
    return best[0];
}

int64_t subset_pair_distance(const int64_t *a, size_t na, const int64_t *b, size_t nb,
                             int64_t target)
{
    const walk w = {a, b, na, nb, target};
    return closest(&w).far;
}

bool subset_meet_middle(pare_subset_solver *s, subset_job *j)
{
    PARE_ASSERT(j->n <= 2 * SUBSET_HALF);
    const unsigned ma = (unsigned)(j->n / 2), mb = (unsigned)j->n - ma;
    int64_t *const cells = subset_cells(s, subset_sums_cells(ma) + subset_sums_cells(mb));
    if (!cells) return false;
    subset_sums a, b;
    subset_sums_build(&a, j->x, ma, cells);
    subset_sums_build(&b, j->x + ma, mb, cells + subset_sums_cells(ma));
    const walk w = {subset_sums_list(&a), subset_sums_list(&b), subset_sums_count(&a),
                    subset_sums_count(&b), j->target};
    const spot best = closest(&w);
    j->error = best.a + best.b - j->target;
    memset(j->mask, 0, (j->n + 63) / 64 * sizeof *j->mask);
    subset_sums_mask(&a, best.a, 0, j->mask);
    subset_sums_mask(&b, best.b, ma, j->mask);
    return true;
}
