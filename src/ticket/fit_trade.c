/* fit_trade.c - trades units between columns: a bad column takes a unit from another column, or
 * exchanges one with it, where the worse of the two is then better than the bad one was. A few
 * rounds bring all columns close to one another, and a column that had bad luck with its units
 * gets others.
 *
 * A round pairs the worst columns with others, each column in one pair at most, so that the pairs
 * can be tried at the same time; pairs and exchanges come from the seed. */
#include "base/support.h"
#include "fit_best.h"
#include <string.h>

enum { SMALL = 1024, ROUNDS_SMALL = 24, ROUNDS = 8 };

typedef struct trade {
    size_t bad, other;
    size_t u, v; /* which unit of each */
    bool swap;   /* else the bad one takes v */
} trade;

typedef struct trades_job {
    best_job *b;
    trade *pair;
} trades_job;

static void try_pair(void *ctx, size_t k)
{
    const trades_job *const t = ctx;
    trade *const d = &t->pair[k];
    fit_column *const bad = &t->b->col[d->bad], *const other = &t->b->col[d->other];
    const int64_t limit = bad->worst;
    const fit_problem *const p = t->b->p;
    const uint32_t given = bad->unit[d->u], taken = other->unit[d->v];
    /* a unit that passes nothing on to its new column is no gain */
    if (p->B[taken * p->b + d->bad] == 0) return;
    if (d->swap && p->B[given * p->b + d->other] == 0) return;
    const fit_column old[2] = {*bad, *other}; /* own is not there yet */
    if (d->swap) {
        other->unit[d->v] = given;
        bad->unit[d->u] = taken;
    } else {
        other->unit[d->v] = other->unit[--other->units];
        bad->unit[bad->units++] = taken;
    }
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
static size_t choose_trades(trade *pair, const best_job *b, bool *taken, size_t most, pare_rng *r)
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
        trade *const d = &pair[n++];
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
    trades_job t = {b, pare_alloc(b->arena, most, sizeof *t.pair)};
    bool *const taken = pare_alloc(b->arena, p->b + 1, sizeof *taken);
    if (!t.pair || !taken) return PARE_ERR_MEMORY;
    pare_rng r = pare_rng_at(o->seed, 1);
    for (size_t k = 0; p->b > 2 && k < rounds; k++) {
        const size_t n = choose_trades(t.pair, b, taken, most, &r);
        pare_status st = pare_parallel_until(exec, n, try_pair, &t, NULL);
        if (!st) st = best_status(b);
        if (st) return st;
    }
    return PARE_OK;
}
