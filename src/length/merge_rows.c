/* merge_rows.c - add the results of a batch of calls to the accumulators of their rows.
 *
 * Stripes of rows go over the threads; in each, a row takes its results in the order of the plan,
 * so that neither threads nor batches change a bit. Several calls of a batch ask the same queries:
 * a row takes the results of all of them at once, while its accumulators are in registers. */
#include "attend_plan.h"
#include "numbers.h"
#include "rounds.h"
#include <math.h>

/* Calls of the batch with results for the same queries, i to i + n - 1, which stand in rows `row`
 * to row + n - 1 of all of them. */
typedef struct call_group {
    size_t count, row, i, n;
    const pending_call *calls[ADDENDS];
    bool finite; /* all accumulators so far */
} call_group;

static void merge_group(length_run *r, call_group *g)
{
    if (!g->count) return;
    const pare_dtype type = r->in.caps.dtype;
    const head_state *const h = &r->heads[g->calls[0]->head];
    const size_t dv = h->job.dv, ld = g->calls[0]->dv;
    addends a;
    a.count = 0, a.ld = ld;
    for (size_t x = 0; x < g->count; x++) {
        const pending_call *const e = g->calls[x];
        if (r->round.ops->merge(r, e, g->row, g->i, g->n, a.scale_old[a.count],
                                a.scale_new[a.count]))
            a.x[a.count++] = e->y + g->row * ld * num_size(type);
    }
    if (!accumulate_fn_for(type)(accumulator_row(r, h, g->i), g->n, dv, &a)) g->finite = false;
    for (size_t p = 0; p < g->n; p++)
        if (!isfinite(h->weight_sum[g->i + p])) g->finite = false;
    g->count = 0;
}

static void add_to_group(length_run *r, call_group *g, const pending_call *e, size_t row, size_t i,
                         size_t n)
{
    if (g->count == ADDENDS || g->row != row || g->i != i || g->n != n) merge_group(r, g);
    g->row = row, g->i = i, g->n = n;
    g->calls[g->count++] = e;
}

/* Rows [first, end) of a tile. */
static void merge_tile(length_run *r, call_group *g, const pending_call *e, const placed *at,
                       size_t first, size_t end)
{
    const pare_tile *const t = &at->t;
    size_t from = 0, to = t->nq; /* queries of the tile that are in these rows */
    if (t->q_down && !t->rows) {
        const size_t low = t->q0 + 1 - t->nq;
        from = t->q0 >= end ? t->q0 + 1 - end : 0;
        to = low >= first ? t->nq : t->q0 >= first ? t->q0 + 1 - first : 0;
    } else if (!t->rows) {
        from = t->q0 < first ? first - t->q0 : 0;
        to = t->q0 + t->nq <= end ? t->nq : t->q0 < end ? end - t->q0 : 0;
    }
    if (!t->rows && !t->q_down && !r->round.only_bad) {
        if (from < to) add_to_group(r, g, e, at->q_at + from, t->q0 + from, to - from);
        return;
    }
    for (size_t p = from; p < to; p++) { /* one by one */
        const size_t i = pare_tile_query(t, p);
        if (i < first || i >= end || (r->round.only_bad && !r->heads[e->head].bad[i])) continue;
        add_to_group(r, g, e, at->q_at + p, i, 1);
    }
}

/* Whether the call has row i and its answer is not finite there. */
static bool spoils_row(const length_run *r, const pending_call *e, size_t i)
{
    const pare_dtype type = r->in.caps.dtype;
    for (size_t x = e->tile; x < e->tile + e->tiles; x++) {
        const placed *const t = &r->batch.tiles[x];
        for (size_t p = 0; p < t->t.nq; p++) {
            if (pare_tile_query(&t->t, p) != i) continue;
            if (r->round.fused) return true; /* maybe: fused_find_failed decides */
            const size_t row = t->q_at + p;
            if (e->l && !isfinite(num_at(type, e->l, row))) return true;
            if (e->weights && !isfinite(num_at(type, e->weights, row * 2))) return true;
            for (size_t c = 0; c < e->dv; c++)
                if (!isfinite(num_at(type, e->y, row * e->dv + c))) return true;
        }
    }
    return false;
}

/* Row i of the head is not finite: keeps the first call of the batch that may be the reason. */
static void find_failed_call(length_run *r, size_t head, size_t i)
{
    const call_batch *const b = &r->batch;
    size_t e = 0;
    while (e < b->count && (b->entries[e].head != head || !spoils_row(r, &b->entries[e], i))) e++;
    if (e == b->count) e = 0; /* finite answers whose sum overflows */
    size_t was = atomic_load(&r->round.failed);
    while (e < was && !atomic_compare_exchange_weak(&r->round.failed, &was, e)) {}
}

/* One stripe of the batch, as far as it is in the window: other rows have no call in the batch. */
static void merge_stripe(void *ctx, size_t x)
{
    length_run *const r = ctx;
    const call_batch *const b = &r->batch;
    const size_t stripes = (r->in.n + STRIPE - 1) / STRIPE, head = b->stripes[x] / stripes;
    const size_t begin = r->window.first;
    const size_t window = r->in.n - begin < r->window.rows ? r->in.n : begin + r->window.rows;
    size_t first = b->stripes[x] % stripes * STRIPE, end = first + STRIPE;
    if (first < begin) first = begin;
    if (end > window) end = window;
    call_group g = {.count = 0, .finite = !r->round.fused};
    for (size_t at = 0; !r->round.fused && at < b->count; at++) {
        const pending_call *const e = &b->entries[at];
        for (size_t t = 0; e->head == head && t < e->tiles; t++)
            merge_tile(r, &g, e, &b->tiles[e->tile + t], first, end);
    }
    merge_group(r, &g);
    for (size_t i = g.finite ? end : first; i < end; i++) {
        if (accumulators_finite(r, &r->heads[head], i)) continue;
        if (r->round.ops->may_fail)
            r->heads[head].bad[i] = 1;
        else
            find_failed_call(r, head, i);
    }
}

size_t merge_batch(length_run *r)
{
    atomic_store(&r->round.failed, SIZE_MAX);
    pare_parallel(r->in.exec, r->batch.stripe_count, merge_stripe, r);
    return atomic_load(&r->round.failed);
}
