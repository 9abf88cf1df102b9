/* oracle_accumulate.c - calls whose rows the engine itself adds to the accumulators.
 *
 * Nothing is written and read again in between, and every bit is the same as if it were. Only
 * rounds in which each call asks consecutive rows are made of such calls; the results of several
 * calls for a row come in the order of the plan either way. */
#include "numbers.h"
#include "rounds.h"
#include <math.h>
#include <stdlib.h>

bool can_fuse(const length_run *r, const call_ops *ops)
{
    const uint32_t need = PARE_ORC_ADD | PARE_ORC_SPLIT; /* weights are separate */
    const pare_pattern_kind kind = r->in.pattern->kind;
    return ops->merge_raw && (r->in.caps.features & need) == need && !r->in.caps.d_v &&
           (kind == PARE_FULL || kind == PARE_CAUSAL) && r->window.in_order && !r->round.only_bad &&
           !r->in.strict;
}

static void merge_raw(void *ctx, size_t row, size_t n, const void *a, const void *b,
                      double *scale_old, double *scale_new)
{
    const head_state *const h = ctx;
    h->run->round.ops->merge_raw(h->run, h, row, n, a, b, scale_old, scale_new);
}

pare_call_sums fused_sums(const length_run *r, const pending_call *e)
{
    head_state *const h = &r->heads[e->head];
    const placed *const t = &r->batch.tiles[e->tile];
    if (!r->round.fused) return (pare_call_sums){0};
    PARE_ASSERT(e->tiles == 1 && !t->q_at && !t->t.rows && !t->t.q_down);
    return (pare_call_sums){.weigh = merge_raw,
                            .ctx = h,
                            .sum = accumulator_row(r, h, t->t.q0),
                            .ld = h->job.dv,
                            .row = t->t.q0,
                            .rows = t->t.nq};
}

/* ---- which call failed ----------------------------------------------------------------------- */

/* Rows as they are; *ctx becomes false where the weights of a row are not finite. */
static void check_weights(void *ctx, size_t row, size_t n, const void *a, const void *b,
                          double *scale_old, double *scale_new)
{
    atomic_bool *const finite = ctx;
    (void)row;
    for (size_t p = 0; p < n; p++) {
        const double x = num_at(PARE_F32, a, p), y = num_at(PARE_F32, b, p);
        scale_old[p] = scale_new[p] = 1;
        if (!isfinite(x) || !isfinite(y)) atomic_store(finite, false);
    }
}

/* Evaluates the call once more by itself; true where it cannot be evaluated, either. */
static bool answer_is_finite(const length_run *r, const pending_call *e, double *sum, size_t count)
{
    const pare_oracle *const o = r->in.oracle;
    atomic_bool finite = true;
    pare_call c;
    r->round.ops->build(r, e, &c);
    c.into = (pare_call_sums){check_weights, &finite, sum, c.into.ld, 0, c.into.rows};
    for (size_t i = 0; i < count; i++) sum[i] = 0;
    if (o->ops->evaluate(o->self, &c, 1, NULL) || o->ops->barrier(o->self, NULL)) return true;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(sum[i])) finite = false;
    return finite;
}

size_t fused_find_failed(const length_run *r, size_t from)
{
    for (size_t x = from; x < r->batch.count; x++) {
        const pending_call *const e = &r->batch.entries[x];
        const size_t count = r->batch.tiles[e->tile].t.nq * r->heads[e->head].job.dv;
        double *const sum = malloc(count * sizeof *sum + 1);
        const bool found = sum && !answer_is_finite(r, e, sum, count);
        free(sum);
        if (found) return x;
    }
    return from; /* finite answers whose sum overflows */
}
