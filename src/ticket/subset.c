/* subset.c - pare_subset_sum: chooses the method by the number of items.
 *
 * Two lists are the fastest exact search while they fit a cache; four lists are slower and need
 * next to no memory. Beyond what is exact, all but the last items are fixed roughly and the last
 * ones searched: exactly, or by one window of four lists. With a hundred items and more the
 * differencing of the whole is better than any search of a part. */
#include "subset_parts.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALWAYS = 26, /* items that are searched exactly, asked or not: about 50 microseconds */
    TWO = 40,    /* two lists up to here: 32 MB */
    FINE = 24,   /* exact part of a coarse search */
    TREE = 48,   /* items of one window of four lists */
    MANY = 64    /* differencing from here on */
};
#define WORDS (PARE_SUBSET_ITEMS / 64)

pare_status pare_subset_new(pare_subset_solver **out, pare_err *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? PARE_OK : pare_no_memory(err);
}

void pare_subset_free(pare_subset_solver *s)
{
    if (s) free(s->cells);
    free(s);
}

int64_t *subset_cells(pare_subset_solver *s, size_t n)
{
    if (n + 1 > s->ncells) { /* never NULL for success */
        free(s->cells);
        s->cells = malloc((n + 1) * sizeof *s->cells);
        s->ncells = s->cells ? n + 1 : 0;
    }
    return s->cells;
}

static pare_status check_problem(const int64_t *x, size_t n, int64_t target,
                                 const pare_subset_opts *o, pare_err *err)
{
    if (n > PARE_SUBSET_ITEMS)
        return pare_fail(err, PARE_ERR_INPUT, "subset sum: %zu items, at most %d", n,
                         PARE_SUBSET_ITEMS);
    if (o->exact && n > PARE_SUBSET_EXACT)
        return pare_fail(err, PARE_ERR_INPUT,
                         "subset sum: exact for %zu items would take 2^%zu steps; at most %d items",
                         n, n / 2, PARE_SUBSET_EXACT);
    if (o->tolerance < 0)
        return pare_fail(err, PARE_ERR_INPUT, "subset sum: tolerance %" PRId64 " is negative",
                         o->tolerance);
    if (target > PARE_SUBSET_TARGET || target < -PARE_SUBSET_TARGET)
        return pare_fail(err, PARE_ERR_INPUT, "subset sum: target %" PRId64 " is beyond 2^60",
                         target);
    for (size_t k = 0; k < n; k++)
        if (x[k] > PARE_SUBSET_ITEM || x[k] < -PARE_SUBSET_ITEM)
            return pare_fail(err, PARE_ERR_INPUT,
                             "subset sum: item %zu, %" PRId64 ", is beyond 2^49", k, x[k]);
    return PARE_OK;
}

/* The coarse choice with the last `fine` items searched, if that is closer than what j has. */
static bool coarse_then(pare_subset_solver *s, subset_job *j, size_t fine, size_t windows)
{
    uint64_t whole[WORDS], part[1] = {0};
    subset_job last = {.x = j->x + j->n - fine, .n = fine, .mask = part};
    if (!subset_coarse(s, j, fine, &last.target, whole)) return false;
    last.error = j->error; /* only what is closer counts: it keeps the search of one window small */
    bool all;
    const bool ok =
        windows ? subset_four_lists(s, &last, windows, 0, &all) : subset_meet_middle(s, &last);
    if (!ok || subset_abs(last.error) >= subset_abs(j->error)) return ok;
    j->error = last.error;
    memcpy(j->mask, whole, (j->n + 63) / 64 * sizeof *whole);
    for (size_t k = 0; k < fine; k++)
        if (part[0] >> k & 1) subset_put(j->mask, j->n - fine + k);
    return true;
}

/* From the cheap to the expensive methods, until the error is within the tolerance. */
static bool search(pare_subset_solver *s, subset_job *j, const pare_subset_opts *o, bool *best)
{
    *best = j->n <= ALWAYS || (o->exact && j->n <= TWO);
    if (*best) return subset_meet_middle(s, j);
    bool ok = coarse_then(s, j, FINE, 0);
    if (ok && j->n >= MANY && subset_abs(j->error) > o->tolerance) ok = subset_differencing(s, j);
    if (ok && j->n >= TREE && subset_abs(j->error) > o->tolerance) ok = coarse_then(s, j, TREE, 1);
    if (!ok || !o->exact || subset_abs(j->error) <= o->tolerance) return ok;
    return subset_four_lists(s, j, 0, o->tolerance, best);
}

pare_status pare_subset_solve(pare_subset_solver *s, pare_subset *out, uint64_t *mask,
                              const int64_t *x, size_t n, int64_t target, const pare_subset_opts *o,
                              pare_err *err)
{
    const pare_subset_opts none = PARE_SUBSET_OPTS_DEFAULT;
    if (!o) o = &none;
    const pare_status st = check_problem(x, n, target, o, err);
    if (st) return st;
    uint64_t chosen[WORDS] = {0}; /* the empty subset to begin with */
    subset_job j = {.x = x, .n = n, .target = target, .error = -target, .mask = chosen};
    bool best = false;
    if (!search(s, &j, o, &best)) return pare_no_memory(err);
    out->error = j.error;
    out->proof = best || j.error == 0                  ? PARE_SUBSET_BEST
                 : subset_abs(j.error) <= o->tolerance ? PARE_SUBSET_REACHED
                                                       : PARE_SUBSET_FOUND;
    memcpy(mask, chosen, (n + 63) / 64 * sizeof *mask);
    return PARE_OK;
}

pare_status pare_subset_sum(pare_subset *out, uint64_t *mask, const int64_t *x, size_t n,
                            int64_t target, const pare_subset_opts *o, pare_err *err)
{
    pare_subset_solver *s;
    pare_status st = pare_subset_new(&s, err);
    if (st) return st;
    st = pare_subset_solve(s, out, mask, x, n, target, o, err);
    pare_subset_free(s);
    return st;
}
