/* Rows whose sums are held: all of them, or, where calls come in order, those that calls are at.
 *
 * A full or causal plan goes through the queries by groups of blocks, others by blocks or rows: no
 * call of a head has rows before the group in which the calls before it begin. So the sums of a few
 * groups are enough, and they stay in the cache from the first call of a row to its answer. When
 * calls come to the last group that is held, groups before theirs are complete: they are answered,
 * and those behind move up. (The last one is for calls that lie across two groups.) */
#include "group_codes.h"
#include "rounds.h"
#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Whole groups in a fourth of what the calls under way take, and one more. */
static size_t rows_at_a_time(const run *r, size_t dv)
{
    const size_t row = (dv ? dv : 1) * sizeof(double), group = rows_of_group(&r->rule, r->p);
    const size_t call = r->rule.m * dv * num_size(r->caps.dtype);
    const size_t groups = run_batch_bytes(r, call) / 4 / row / group;
    return group * ((groups ? groups : 1) + 1);
}

pare_status held_new(run *r)
{
    size_t dv = 0;
    for (size_t i = 0; i < r->count; i++) dv = most(dv, r->heads[i].job.dv);
    const size_t rows = r->in_order ? rows_at_a_time(r, dv) : r->n;
    r->first = r->reached = 0;
    r->held = least(rows, r->n);
    for (size_t i = 0; i < r->count; i++) {
        head *const h = &r->heads[i];
        h->num = i && !held_all(r) ? r->heads[0].num
                                   : pare_alloc(r->arena, r->held * dv, sizeof *h->num);
        if (!h->num) return pare_no_memory(r->err);
    }
    return PARE_OK;
}

static void done_stripe(void *ctx, size_t x)
{
    run *const r = ctx;
    const size_t first = r->first + x * STRIPE;
    r->how->done(r, r->at, first, least(r->done_to, first + STRIPE));
}

/* The sums of the rows from `to` on become the first. */
static void move_up(run *r, size_t to)
{
    const head *const h = &r->heads[r->at];
    const size_t row = h->job.dv * sizeof *h->num, used = most(r->reached, to) - r->first;
    const size_t gone = to - r->first, left = used - gone;
    memmove(h->num, (char *)h->num + gone * row, left * row);
    memset((char *)h->num + left * row, 0, gone * row);
    r->first = to;
}

/* Rows below `to` are complete. Those beyond the held ones have had no call: their sums are 0. */
static pare_status complete(run *r, size_t to)
{
    const pare_status st = run_flush(r);
    while (!st && r->first < to) {
        r->done_to = least(to, r->first + r->held);
        if (r->how->done)
            pare_parallel(r->exec, (r->done_to - r->first + STRIPE - 1) / STRIPE, done_stripe, r);
        move_up(r, r->done_to);
    }
    return st;
}

pare_status held_reach(run *r, const placed *tiles, size_t count)
{
    const size_t group = rows_of_group(&r->rule, r->p);
    size_t low = r->n, high = 0;
    if (held_all(r)) return PARE_OK;
    for (size_t x = 0; x < count; x++) {
        const size_t a = pare_tile_query(&tiles[x].t, 0);
        const size_t b = pare_tile_query(&tiles[x].t, tiles[x].t.nq - 1);
        low = least(low, least(a, b));
        high = most(high, most(a, b));
    }
    const size_t begin = low / group * group;
    PARE_ASSERT(low >= r->first && high < begin + r->held);
    const bool behind = high >= r->first + r->held - group && begin > r->first;
    const pare_status st = behind ? complete(r, begin) : PARE_OK;
    r->reached = most(r->reached, high + 1);
    return st;
}

pare_status held_end(run *r)
{
    if (held_all(r)) return PARE_OK;
    const pare_status st = complete(r, r->n);
    r->first = r->reached = 0;
    return st;
}
