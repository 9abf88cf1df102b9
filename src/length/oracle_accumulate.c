/* Calls whose rows the engine itself adds to the sums: nothing is written and read again in
 * between, and every bit is the same as if it were. Only rounds in which each call asks rows that
 * stand one after the other are made of them; what several calls say about a row comes in the order
 * of the plan either way. */
#include "group_codes.h"
#include "rounds.h"
#include <math.h>
#include <stdlib.h>

bool adding_can(const run *r, const construction *how)
{
    const uint32_t need = PARE_ORC_ADD | PARE_ORC_SPLIT; /* weights stand alone */
    const bool rows = r->p->kind == PARE_FULL || r->p->kind == PARE_CAUSAL;
    return how->weigh && (r->caps.features & need) == need && !r->caps.d_v && rows && r->in_order &&
           !r->only_bad && !r->strict;
}

static void weigh(void *ctx, size_t row, size_t n, const void *a, const void *b, double *keep,
                  double *by)
{
    const head *const h = ctx;
    h->of->how->weigh(h->of, h, row, n, a, b, keep, by);
}

pare_call_sums adding_sums(const run *r, const entry *e)
{
    head *const h = &r->heads[e->head];
    const placed *const t = &r->b.tiles[e->tile];
    if (!r->adds) return (pare_call_sums){0};
    PARE_ASSERT(e->tiles == 1 && !t->q_at && !t->t.rows && !t->t.q_down);
    return (pare_call_sums){.weigh = weigh,
                            .ctx = h,
                            .sum = held_row(r, h, t->t.q0),
                            .ld = h->job.dv,
                            .row = t->t.q0,
                            .rows = t->t.nq};
}

/* ---- which call was it? ---------------------------------------------------------------------- */

/* As they are; *ctx: what the call says of its rows is numbers. */
static void weigh_alone(void *ctx, size_t row, size_t n, const void *a, const void *b, double *keep,
                        double *by)
{
    atomic_bool *const sound = ctx;
    (void)row;
    for (size_t p = 0; p < n; p++) {
        const double x = num_at(PARE_F32, a, p), y = num_at(PARE_F32, b, p);
        keep[p] = by[p] = 1;
        if (!isfinite(x) || !isfinite(y)) atomic_store(sound, false);
    }
}

/* Whether the call answers numbers. */
static bool answers(const run *r, const entry *e, double *sum, size_t count)
{
    atomic_bool sound = true;
    pare_call c;
    r->how->build(r, e, &c);
    c.into = (pare_call_sums){weigh_alone, &sound, sum, c.into.ld, 0, c.into.rows};
    for (size_t i = 0; i < count; i++) sum[i] = 0;
    const pare_oracle_ops *const ops = r->orc->ops;
    if (ops->evaluate(r->orc->self, &c, 1, NULL) || ops->barrier(r->orc->self, NULL)) return true;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(sum[i])) sound = false;
    return sound;
}

size_t adding_blame(const run *r, size_t from)
{
    for (size_t x = from; x < r->b.count; x++) {
        const entry *const e = &r->b.entries[x];
        const size_t count = r->b.tiles[e->tile].t.nq * r->heads[e->head].job.dv;
        double *const sum = malloc(count * sizeof *sum + 1);
        const bool found = sum && !answers(r, e, sum, count);
        free(sum);
        if (found) return x;
    }
    return from; /* sums of numbers overflow */
}
