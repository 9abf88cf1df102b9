/* A column with its own bits per row and the donor's bits for all rows together.
 *
 * All sums of a row's own items are listed once. The donors' patterns are walked in Gray order,
 * each one addition a row away from the last; a pattern is given up at the first row that is not
 * better than the best pattern's worst one, and that row is asked first from then on. */
#include "column.h"
#include "subset_parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct search {
    const fit_problem *p;
    const fit_column *donor;
    size_t sums;              /* of a row */
    int64_t *list;            /* a x sums, ascending */
    int64_t *goal;            /* a: target less what the donors give */
    int64_t *gift;            /* units of the donor x a, smallest first */
    uint32_t name[FIT_UNITS]; /* which unit of the donor each of these is */
    uint32_t *row;            /* a: in which order they are asked */
} search;

/* |goal - nearest sum| */
static int64_t off(const int64_t *list, size_t n, int64_t goal)
{
    const int64_t *at = list;
    for (size_t m = n; m > 1; m -= m / 2) at += at[m / 2] <= goal ? m / 2 : 0;
    const int64_t below = subset_abs(goal - *at);
    if (at + 1 == list + n) return below;
    const int64_t above = subset_abs(at[1] - goal);
    return above < below ? above : below;
}

static bool open_search(search *s, const fit_column *c)
{
    const size_t a = s->p->a;
    s->sums = (size_t)1 << c->units;
    s->list = malloc(a * s->sums * sizeof *s->list);
    s->goal = malloc(a * sizeof *s->goal);
    s->gift = malloc((a * s->donor->units + 1) * sizeof *s->gift);
    s->row = malloc(a * sizeof *s->row);
    return s->list && s->goal && s->gift && s->row;
}

static void close_search(search *s)
{
    free(s->list);
    free(s->goal);
    free(s->gift);
    free(s->row);
}

/* The sums of every row; the levels below the last are thrown away. */
static bool list_sums(search *s, const fit_column *c, size_t j)
{
    const unsigned m = (unsigned)c->units;
    int64_t *const cells = malloc(subset_sums_cells(m) * sizeof *cells), item[FIT_UNITS] = {0};
    for (size_t i = 0; cells && i < s->p->a; i++) {
        subset_sums all;
        for (size_t u = 0; u < c->units; u++) item[u] = fit_item(s->p, i, c->unit[u], j);
        subset_sums_build(&all, item, m, cells);
        memcpy(s->list + i * s->sums, subset_sums_list(&all), s->sums * sizeof *s->list);
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
        const int64_t far = off(s->list + i * s->sums, s->sums, s->goal[i]);
        if (far >= limit) {
            memmove(s->row + 1, s->row, k * sizeof *s->row);
            s->row[0] = i;
            return false;
        }
        if (far > *worst) *worst = far;
    }
    return true;
}

static uint32_t best_pattern(search *s, unsigned bits)
{
    const size_t a = s->p->a;
    if (bits > s->donor->units) bits = (unsigned)s->donor->units;
    int64_t limit = INT64_MAX, worst;
    uint32_t pattern = 0, best = 0;
    for (uint32_t step = 0; step < (uint32_t)1 << bits; step++) {
        if (step) {
            const int g = __builtin_ctz(step);
            pattern ^= (uint32_t)1 << g;
            const bool on = pattern >> g & 1;
            const int64_t *const gift = s->gift + (size_t)g * a;
            for (size_t i = 0; i < a; i++) s->goal[i] -= on ? gift[i] : -gift[i];
        }
        if (!all_closer(s, limit, &worst)) continue;
        limit = worst;
        best = pattern;
        if (limit == 0) break;
    }
    return best;
}

/* Each row's own bits for targets less `shift` (a; NULL: none), exactly. */
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

/* The goals once more, for the pattern that was chosen; its bits by the donor's own numbering. */
static void take_pattern(search *s, fit_column *c, const int64_t *target, size_t j,
                         uint32_t pattern)
{
    const fit_problem *const p = s->p;
    c->gift = 0;
    for (size_t i = 0; i < p->a; i++) s->goal[i] = target[i * p->b + j];
    for (size_t g = 0; g < s->donor->units; g++) {
        if (!(pattern >> g & 1)) continue;
        c->gift |= (uint32_t)1 << s->name[g];
        for (size_t i = 0; i < p->a; i++) s->goal[i] -= s->gift[g * p->a + i];
    }
}

pare_status fit_column_solve(fit_column *c, const fit_problem *p, const int64_t *target, size_t j,
                             const fit_column *donor, unsigned bits)
{
    search s = {.p = p, .donor = donor};
    pare_status st = PARE_ERR_MEMORY;
    if (open_search(&s, c) && list_sums(&s, c, j)) {
        list_gifts(&s, j);
        for (size_t i = 0; i < p->a; i++) s.goal[i] = target[i * p->b + j];
        take_pattern(&s, c, target, j, best_pattern(&s, bits));
        st = solve_rows(c, p, target, j, s.goal);
    }
    close_search(&s);
    return st;
}
