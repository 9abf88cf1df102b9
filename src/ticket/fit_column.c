/* fit_column.c - one column of W: bits of its own for each row, and bits of the donor column that
 * all rows share.
 *
 * All sums of a row's own items are listed once; where that is too much, those of two halves. The
 * donors' patterns are walked in Gray order, each one addition a row away from the last; a pattern
 * is given up at the first row that is not better than the best pattern's worst one, and that row
 * is asked first from then on. */
#include "fit_column.h"
#include "subset_parts.h"
#include <stdlib.h>
#include <string.h>

enum { FULL = 1 << 18 }; /* cells: above it sums are listed by halves */

typedef struct search {
    const fit_problem *p;
    const fit_column *donor;
    bool full;
    size_t na, nb;            /* sums of the two halves of a row; full: nb is all of them */
    size_t cells;             /* of a row, the ends of both lists included */
    int64_t *list;            /* a x cells, ascending */
    int64_t *goal;            /* a: target less what the donors give */
    int64_t *gift;            /* units of the donor x a, smallest first */
    uint32_t name[FIT_UNITS]; /* which unit of the donor each of these is */
    uint32_t *row;            /* a: in which order they are asked */
} search;

/* |goal - nearest sum| of row i */
static int64_t row_distance(const search *s, size_t i, int64_t goal)
{
    const int64_t *const a = s->list + i * s->cells + 1, *at = a;
    if (!s->full) return subset_pair_distance(a, s->na, a + s->na + 2, s->nb, goal);
    for (size_t m = s->nb; m > 1; m -= m / 2) at += at[m / 2] <= goal ? m / 2 : 0;
    const int64_t below = subset_abs(goal - *at), above = subset_abs(at[1] - goal);
    return above < below ? above : below;
}

static bool open_search(search *s, const fit_column *c)
{
    const size_t a = s->p->a, half = c->units / 2;
    s->full = a << c->units <= FULL;
    s->na = s->full ? 0 : (size_t)1 << half;
    s->nb = (size_t)1 << (s->full ? c->units : c->units - half);
    s->cells = s->nb + 2 + (s->full ? 0 : s->na + 2);
    s->list = malloc(a * s->cells * sizeof *s->list);
    s->goal = malloc(a * sizeof *s->goal);
    s->gift = malloc((a * s->donor->units + 1) * sizeof *s->gift);
    s->row = malloc(a * sizeof *s->row);
    return s->list && s->goal && s->gift && s->row;
}

/* The sums of m items with the cells at both ends; the levels below the last are thrown away. */
static int64_t *put_sums(int64_t *to, const int64_t *item, unsigned m, int64_t *cells)
{
    subset_sums all;
    const size_t n = ((size_t)1 << m) + 2;
    subset_sums_build(&all, item, m, cells);
    memcpy(to, subset_sums_list(&all) - 1, n * sizeof *to);
    return to + n;
}

static bool list_sums(search *s, const fit_column *c, size_t j)
{
    const unsigned m = (unsigned)c->units, half = s->full ? 0 : m / 2;
    int64_t *const cells = malloc(subset_sums_cells(m - half) * sizeof *cells);
    int64_t item[FIT_UNITS] = {0};
    for (size_t i = 0; cells && i < s->p->a; i++) {
        int64_t *to = s->list + i * s->cells;
        for (size_t u = 0; u < c->units; u++) item[u] = fit_item(s->p, i, c->unit[u], j);
        if (!s->full) to = put_sums(to, item, half, cells);
        put_sums(to, item + half, m - half, cells);
        s->row[i] = (uint32_t)i;
    }
    const bool listed = cells != NULL;
    free(cells);
    return listed;
}

/* What each donor would add to each row: small ones first, so that all patterns of a few bits are
 * small shifts. */
static void list_gifts(search *s, size_t j)
{
    const fit_column *const d = s->donor;
    const fit_problem *const p = s->p;
    for (size_t u = 0; u < d->units; u++) {
        const int64_t size = llabs((int64_t)p->B[d->unit[u] * p->b + j]);
        size_t at = u;
        for (; at > 0; at--) {
            if (llabs((int64_t)p->B[d->unit[s->name[at - 1]] * p->b + j]) <= size) break;
            s->name[at] = s->name[at - 1];
        }
        s->name[at] = (uint32_t)u;
    }
    for (size_t g = 0; g < d->units; g++)
        for (size_t i = 0; i < p->a; i++) {
            const uint32_t u = s->name[g];
            s->gift[g * p->a + i] = d->own[i] >> u & 1 ? fit_item(p, i, d->unit[u], j) : 0;
        }
}

/* Whether every row is closer than `limit`; *worst is then the largest. */
static bool all_closer(search *s, int64_t limit, int64_t *worst)
{
    *worst = 0;
    for (size_t k = 0; k < s->p->a; k++) {
        const uint32_t i = s->row[k];
        const int64_t far = row_distance(s, i, s->goal[i]);
        if (far >= limit) {
            memmove(s->row + 1, s->row, k * sizeof *s->row);
            s->row[0] = i;
            return false;
        }
        if (far > *worst) *worst = far;
    }
    return true;
}

/* Of those with all rows closer than *limit, which becomes what it reaches; 0 where none is. */
static uint32_t best_pattern(search *s, unsigned bits, int64_t *limit)
{
    const size_t a = s->p->a;
    if (bits > s->donor->units) bits = (unsigned)s->donor->units;
    int64_t worst;
    uint32_t pattern = 0, best = 0;
    for (uint32_t step = 0; step < (uint32_t)1 << bits; step++) {
        if (step) {
            const int g = __builtin_ctz(step);
            pattern ^= (uint32_t)1 << g;
            const bool on = pattern >> g & 1;
            const int64_t *const gift = s->gift + (size_t)g * a;
            for (size_t i = 0; i < a; i++) s->goal[i] -= on ? gift[i] : -gift[i];
        }
        if (!all_closer(s, *limit, &worst)) continue;
        *limit = worst;
        best = pattern;
        if (worst == 0) break;
    }
    return best;
}

/* Each row's own bits for the goals (NULL: the targets), exactly. */
static pare_status solve_rows(fit_column *c, const fit_problem *p, const int64_t *target, size_t j,
                              const int64_t *goal)
{
    pare_subset_solver *s;
    pare_status st = pare_subset_new(&s, NULL);
    if (st) return st;
    c->worst = 0;
    for (size_t i = 0; !st && i < p->a; i++) {
        int64_t item[FIT_UNITS];
        uint64_t mask = 0;
        pare_subset best = {0};
        for (size_t u = 0; u < c->units; u++) item[u] = fit_item(p, i, c->unit[u], j);
        st = pare_subset_solve(s, &best, &mask, item, c->units,
                               goal ? goal[i] : target[i * p->b + j], NULL, NULL);
        c->own[i] = (uint32_t)mask;
        if (subset_abs(best.error) > c->worst) c->worst = subset_abs(best.error);
    }
    pare_subset_free(s);
    return st;
}

pare_status fit_column_solve_alone(fit_column *c, const fit_problem *p, const int64_t *target,
                                   size_t j)
{
    c->gift = 0;
    return solve_rows(c, p, target, j, NULL);
}

pare_status fit_column_search(fit_column *c, const fit_problem *p, const int64_t *target, size_t j,
                              const fit_column *donor, unsigned bits, int64_t limit)
{
    search s = {.p = p, .donor = donor};
    const bool open = open_search(&s, c) && list_sums(&s, c, j);
    if (open) {
        list_gifts(&s, j);
        for (size_t i = 0; i < p->a; i++) s.goal[i] = target[i * p->b + j];
        c->worst = limit;
        const uint32_t pattern = best_pattern(&s, bits, &c->worst);
        c->gift = 0; /* by the donor's own numbering */
        for (size_t g = 0; g < donor->units; g++)
            if (pattern >> g & 1) c->gift |= (uint32_t)1 << s.name[g];
    }
    free(s.list);
    free(s.goal);
    free(s.gift);
    free(s.row);
    return open ? PARE_OK : PARE_ERR_MEMORY;
}

pare_status fit_column_finish(fit_column *c, const fit_problem *p, const int64_t *target, size_t j,
                              const fit_column *donor)
{
    int64_t *const goal = malloc(p->a * sizeof *goal);
    if (!goal) return PARE_ERR_MEMORY;
    for (size_t i = 0; i < p->a; i++) {
        goal[i] = target[i * p->b + j];
        for (size_t u = 0; u < donor->units; u++)
            if (c->gift >> u & donor->own[i] >> u & 1) goal[i] -= fit_item(p, i, donor->unit[u], j);
    }
    const pare_status st = solve_rows(c, p, target, j, goal);
    free(goal);
    return st;
}
