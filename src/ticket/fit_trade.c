/* fit_trade.c - trades units between columns: a bad column takes a unit from another column, or
 * exchanges one with it, where the worse of the two is then better than the bad one was. A few
 * rounds bring all columns close to one another, and a column that had bad luck with its units
 * gets others.
 *
 * A round pairs the worst columns with others, each column in one pair at most, so that the pairs
 * can be tried at the same time; pairs and exchanges come from the seed. */
#include "fit_best.h"
#include <string.h>

enum { SMALL = 1024, ROUNDS_SMALL = 24, ROUNDS = 8 };

typedef struct deal_pair {
    size_t bad, other;
    size_t u, v; /* which unit of each */
    bool swap;   /* else the bad one takes v */
} deal_pair;

typedef struct trade_job {
    best_job *b;
    deal_pair *pair;
} trade_job;

/* A unit that passes nothing on to its new column is no gain to anybody. */
static bool fits(const best_job *b, const deal_pair *d)
{
    const fit_problem *const p = b->p;
    const uint32_t u = b->col[d->bad].unit[d->u], v = b->col[d->other].unit[d->v];
    return p->B[v * p->b + d->bad] != 0 && (!d->swap || p->B[u * p->b + d->other] != 0);
}

static void exchange(fit_column *bad, fit_column *other, const deal_pair *d)
{
    const uint32_t taken = other->unit[d->v];
    if (d->swap) {
        other->unit[d->v] = bad->unit[d->u];
        bad->unit[d->u] = taken;
    } else {
        other->unit[d->v] = other->unit[--other->units];
        bad->unit[bad->units++] = taken;
    }
}

static void try_pair(void *ctx, size_t k)
{
    const trade_job *const t = ctx;
    deal_pair *const d = &t->pair[k];
    fit_column *const bad = &t->b->col[d->bad], *const other = &t->b->col[d->other];
    const int64_t limit = bad->worst;
    if (!fits(t->b, d)) return;
    const fit_column old[2] = {*bad, *other}; /* own is not there yet */
    exchange(bad, other, d);
    pare_status st = best_solve(t->b, d->other, limit);
    bool better = !st && other->worst < limit;
    if (better) st = best_solve(t->b, d->bad, limit);
    better = better && !st && bad->worst < limit;
    if (!better) {
        *bad = old[0];
        *other = old[1];
    }
    t->b->status[d->bad] = st;
}

/* How many pairs this round has; none: the donor, which cannot trade, is the worst. */
static size_t pair_up(deal_pair *pair, const best_job *b, bool *taken, size_t most, pare_rng *r)
{
    const size_t columns = b->p->b;
    const int64_t enough = b->donors ? b->col[b->order[0]].worst : 0;
    size_t n = 0;
    memset(taken, 0, columns * sizeof *taken);
    if (b->donors) taken[b->order[0]] = true;
    while (n < most) {
        const size_t bad = best_worst(b, taken);
        if (bad == columns || b->col[bad].worst <= enough) break;
        taken[bad] = true;
        const size_t other = (size_t)pare_rng_below(r, columns);
        if (taken[other] || b->col[other].units == b->each) continue;
        taken[other] = true;
        deal_pair *const d = &pair[n++];
        d->bad = bad;
        d->other = other;
        const size_t own = b->col[bad].units - b->each;
        d->swap = own > 0 && (b->col[bad].units >= FIT_CAP || pare_rng_below(r, 2));
        d->u = b->each + (own ? (size_t)pare_rng_below(r, own) : 0);
        d->v = b->each + (size_t)pare_rng_below(r, b->col[other].units - b->each);
    }
    return n;
}

pare_status best_trade(best_job *b, const fit_best_opts *o, const pare_exec *exec)
{
    const fit_problem *const p = b->p;
    const size_t most = 1 + p->b / BEST_ROUND;
    const size_t rounds = p->a * p->b <= SMALL ? ROUNDS_SMALL : ROUNDS;
    trade_job t = {b, pare_alloc(b->arena, most, sizeof *t.pair)};
    bool *const taken = pare_alloc(b->arena, p->b + 1, sizeof *taken);
    if (!t.pair || !taken) return PARE_ERR_MEMORY;
    pare_rng r = pare_rng_at(o->seed, 1);
    for (size_t k = 0; p->b > 2 && k < rounds; k++) {
        const size_t n = pair_up(t.pair, b, taken, most, &r);
        pare_status st = pare_parallel_until(exec, n, try_pair, &t, NULL);
        if (!st) st = best_status(b);
        if (st) return st;
    }
    return PARE_OK;
}
