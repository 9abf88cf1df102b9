/* fit_best.c - uses the same source better than equal blocks do.
 *
 * Donors. The masks of Otsuka 2025 leave n (b - 1) bits of MB unused. The units D of one column,
 * solved first, are donors to all others: switching MB_kj on for k in D adds the fixed vector
 * (MA_ik A_ik)_i B_kj to column j and touches nothing else. 2^s patterns of donors shift the
 * targets of the whole column; the row's own bits then absorb what is left. A single row with bad
 * luck, which is what the largest error is made of, is repaired by almost any shift.
 *
 * Water-filling. Most units are dealt out in blocks, as in Otsuka 2025: that costs no storage, for
 * the blocks are known. The others go, one by one, to the columns that are worst at the time, and
 * are traded between columns afterwards (fit_trade.c). */
#include "fit_best.h"
#include "base/support.h"
#include "model/ticket_store.h"
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 16,
    BLOCK_ROWS = 256, /* up to so many rows units are given out in blocks */
    DONOR_EXTRA = 4   /* units the donor column has beside its block */
};
#define BLOCK_SHARE 0.8 /* of the units that are given out at once */

/* The `count` free units with the largest |B_kj| join the column; fewer when there are no more that
 * can. How many did. */
static size_t take_units(best_job *b, size_t j, size_t count, pare_keyed *buffer)
{
    const fit_problem *const p = b->p;
    fit_column *const c = &b->col[j];
    size_t n = 0;
    for (size_t k = b->each * p->b; k < p->n; k++)
        if (b->free[k] && p->B[k * p->b + j] != 0)
            buffer[n++] = (pare_keyed){abs(p->B[k * p->b + j]), (uint32_t)k};
    pare_largest_first(buffer, n);
    if (count > n) count = n;
    for (size_t i = 0; i < count; i++) {
        c->unit[c->units++] = buffer[i].id;
        b->free[buffer[i].id] = false;
    }
    return count;
}

static void take_block(best_job *b, size_t j)
{
    fit_column *const c = &b->col[j];
    for (c->units = 0; c->units < b->each; c->units++)
        c->unit[c->units] = (uint32_t)(j * b->each + c->units);
}

/* ---- the donor column ------------------------------------------------------------------------ */

/* Beside its block, the units with the smallest largest error: first the largest, then random ones.
 */
static pare_status choose_donors(best_job *b, size_t count, unsigned tries, uint64_t seed,
                                 pare_keyed *buffer, uint32_t *units_buffer)
{
    const fit_problem *const p = b->p;
    const size_t j0 = b->order[0], spare = p->n - b->each * p->b;
    fit_column best = {.worst = INT64_MAX};
    fit_column *const c = &b->col[j0];
    pare_rng r = pare_rng_at(seed, 0);
    for (unsigned t = 0; t < tries; t++) {
        take_block(b, j0);
        if (t == 0) (void)take_units(b, j0, count, buffer);
        for (size_t k = 0; t > 0 && k < spare; k++) units_buffer[k] = (uint32_t)(p->n - spare + k);
        if (t > 0) pare_rng_shuffle(&r, units_buffer, spare);
        for (size_t k = 0; t > 0 && k < count && k < spare; k++)
            c->unit[c->units++] = units_buffer[k];
        const pare_status st = fit_column_solve_alone(c, p, b->target, j0);
        if (st) return st;
        if (c->worst < best.worst) {
            memcpy(best.unit, c->unit, sizeof best.unit);
            best.units = c->units;
            best.worst = c->worst;
        }
    }
    c->units = best.units;
    memcpy(c->unit, best.unit, sizeof best.unit);
    memset(b->free, 1, p->n * sizeof *b->free);
    for (size_t k = 0; k < c->units; k++) b->free[c->unit[k]] = false;
    return fit_column_solve_alone(c, p, b->target, j0);
}

/* ---- the others ------------------------------------------------------------------------------ */

static const fit_column *donor_of(const best_job *b)
{
    return b->donors ? &b->col[b->order[0]] : &b->nobody;
}

pare_status best_solve(best_job *b, size_t j, int64_t limit)
{
    return fit_column_search(&b->col[j], b->p, b->target, j, donor_of(b), b->bits, limit);
}

static void solve_other(void *ctx, size_t k)
{
    best_job *const b = ctx;
    const size_t j = b->order[k + b->donors];
    b->status[j] = best_solve(b, j, INT64_MAX);
}

static void finish_other(void *ctx, size_t k)
{
    best_job *const b = ctx;
    const size_t j = b->order[k + b->donors];
    b->status[j] = fit_column_finish(&b->col[j], b->p, b->target, j, donor_of(b));
}

size_t best_worst(const best_job *b, const bool *done)
{
    size_t worst = b->p->b;
    for (size_t j = 0; j < b->p->b; j++)
        if (!done[j] && (worst == b->p->b || b->col[j].worst > b->col[worst].worst)) worst = j;
    return worst;
}

pare_status best_status(const best_job *b)
{
    for (size_t j = 0; j < b->p->b; j++)
        if (b->status[j]) return b->status[j];
    return PARE_OK;
}

typedef struct round_job {
    best_job *b;
    const uint32_t *column;
} round_job;

static void solve_again(void *ctx, size_t k)
{
    const round_job *const r = ctx;
    r->b->status[r->column[k]] = best_solve(r->b, r->column[k], INT64_MAX);
}

/* Columns that get one more unit each: the worst ones that are not full, nor far better than the
 * donor, which no unit can improve any more. Columns in `passed_over` are not considered. */
static size_t pick_round(const best_job *b, bool *passed_over, uint32_t *column, size_t most)
{
    const int64_t enough = donor_of(b)->worst / 4;
    size_t n = 0;
    while (n < most) {
        const size_t j = best_worst(b, passed_over);
        if (j == b->p->b) break;
        passed_over[j] = true;
        if (b->col[j].units < FIT_CAP && b->col[j].worst > enough) column[n++] = (uint32_t)j;
    }
    return n;
}

/* Spare units to the worst columns, some columns at a time: which ones depends on the sizes alone,
 * so that threads change nothing. */
static pare_status give_spare_units(best_job *b, bool *passed_over, uint32_t *column,
                                    pare_keyed *buffer, const pare_exec *exec)
{
    const fit_problem *const p = b->p;
    const size_t most = 1 + p->b / BEST_ROUND;
    size_t left = 0;
    for (size_t k = b->each * p->b; k < p->n; k++) left += b->free[k];
    if (b->donors) passed_over[b->order[0]] = true;
    while (left > 0) {
        const size_t n = pick_round(b, passed_over, column, most < left ? most : left);
        if (n == 0) return PARE_OK;
        size_t served = 0;
        for (size_t k = 0; k < n; k++) {
            if (!take_units(b, column[k], 1, buffer)) continue; /* it stays passed over */
            passed_over[column[k]] = false;
            column[served++] = column[k];
        }
        left -= served;
        round_job r = {b, column};
        pare_status st = pare_parallel_until(exec, served, solve_again, &r, NULL);
        if (!st) st = best_status(b);
        if (st) return st;
    }
    return PARE_OK;
}

static void set_masks(const best_job *b)
{
    const fit_problem *const p = b->p;
    const fit_column *const donor = donor_of(b);
    if (p->b > 1 && b->donors) b->r->donor = b->order[0];
    for (size_t j = 0; j < p->b; j++) {
        const fit_column *const c = &b->col[j];
        for (size_t u = 0; u < c->units; u++) {
            pare_bit_set(&b->r->mb, c->unit[u], j);
            b->r->own[c->unit[u]] = (uint32_t)j;
            for (size_t i = 0; i < p->a; i++)
                if (c->own[i] >> u & 1) pare_bit_set(&b->r->ma, i, c->unit[u]);
        }
        for (size_t u = 0; c != donor && u < donor->units; u++)
            if (c->gift >> u & 1) pare_bit_set(&b->r->mb, donor->unit[u], j);
    }
}

static pare_status search(best_job *b, const fit_best_opts *o, const pare_exec *exec)
{
    const fit_problem *const p = b->p;
    pare_keyed *const buffer = pare_alloc(b->arena, p->n + p->b, sizeof *buffer);
    uint32_t *const units_buffer = pare_alloc(b->arena, p->n + 1, sizeof *units_buffer);
    bool *const passed_over = pare_alloc(b->arena, p->b + 1, sizeof *passed_over);
    if (!buffer || !units_buffer || !passed_over) return PARE_ERR_MEMORY;
    for (size_t j = 0; j < p->b; j++) { /* columns, largest entry first */
        buffer[j] = (pare_keyed){0, (uint32_t)j};
        for (size_t i = 0; i < p->a; i++) {
            const double t = (double)llabs(b->target[i * p->b + j]);
            if (t > buffer[j].key) buffer[j].key = t;
        }
    }
    pare_largest_first(buffer, p->b);
    for (size_t j = 0; j < p->b; j++) b->order[j] = buffer[j].id;
    size_t each = pare_min_size(FIT_CAP, (size_t)(BLOCK_SHARE * (double)p->n / (double)p->b));
    if (each == 0) each = 1;
    b->each = p->a <= BLOCK_ROWS && b->donors ? each : 0; /* units of a ReLU are chosen by sign */
    const size_t spare = p->n - each * (p->b - 1);        /* everyone else has a share */
    memset(b->free, 1, p->n * sizeof *b->free);
    pare_status st = PARE_OK;
    if (b->donors)
        st = choose_donors(b, pare_min_size(each - b->each + DONOR_EXTRA, spare - b->each),
                           o->tries ? o->tries : TRIES, o->seed, buffer, units_buffer);
    for (size_t k = b->donors; !st && k < p->b; k++) {
        take_block(b, b->order[k]);
        (void)take_units(b, b->order[k], each - b->each, buffer);
    }
    if (!st && p->b > b->donors)
        st = pare_parallel_until(exec, p->b - b->donors, solve_other, b, NULL);
    if (!st) st = best_status(b);
    if (!st) st = give_spare_units(b, passed_over, units_buffer, buffer, exec);
    if (!st && !o->no_trade) st = best_trade(b, o, exec);
    if (!st && p->b > b->donors)
        st = pare_parallel_until(exec, p->b - b->donors, finish_other, b, NULL);
    return st ? st : best_status(b);
}

pare_status fit_best(fit_result *out, pare_arena *a, const fit_problem *p, const fit_best_opts *o,
                     const pare_exec *exec, pare_err *err)
{
    const fit_best_opts none = {0};
    if (!o) o = &none;
    best_job b = {.p = p, .r = out, .arena = a, .donors = p->inputs ? 0 : 1};
    /* the gain of donor bits fades with the number of rows, their cost does not */
    const unsigned bits = p->a <= 32 ? 12 : p->a <= 64 ? 9 : 6;
    if (b.donors) b.bits = o->donors ? o->donors : bits;
    int64_t *target;
    pare_status st = fit_targets(&target, a, p, err);
    if (!st) st = fit_result_new(out, a, p, err);
    if (st) return st;
    b.target = target;
    b.order = pare_alloc(a, p->b + 1, sizeof *b.order);
    b.free = pare_alloc(a, p->n + 1, sizeof *b.free);
    b.col = pare_alloc(a, p->b + 1, sizeof *b.col);
    b.status = pare_alloc(a, p->b + 1, sizeof *b.status);
    uint32_t *const own = pare_alloc(a, p->a * p->b + 1, sizeof *own);
    if (!b.order || !b.free || !b.col || !b.status || !own) return pare_no_memory(err);
    for (size_t j = 0; j < p->b; j++) b.col[j].own = own + j * p->a;
    /* The search fails when memory is out or when it is stopped. */
    if (p->a > 0 && p->b > 0 && search(&b, o, exec))
        return pare_or_stopped(exec, pare_no_memory(err), err);
    set_masks(&b);
    return fit_residual(out, a, p, exec, err);
}
