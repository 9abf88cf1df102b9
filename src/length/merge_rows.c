/* The results of a batch into the sums of its rows.
 *
 * Stripes of rows go over the threads; in each, a row takes its results in the order of the plan,
 * so that neither threads nor batches change a bit. Several calls of a batch ask the same queries:
 * a row takes its results from all of them at once, while its sums are in registers. */
#include "group_codes.h"
#include "rounds.h"
#include <math.h>

/* Queries p of the tile that are in rows [first, end). */
static void rows_of_tile(const pare_tile *t, size_t first, size_t end, size_t *from, size_t *to)
{
    *from = 0;
    *to = t->nq;
    if (t->rows) return; /* one by one */
    if (t->q_down) {
        const size_t low = t->q0 + 1 - t->nq;
        *from = t->q0 >= end ? t->q0 + 1 - end : 0;
        *to = low >= first ? t->nq : t->q0 >= first ? t->q0 + 1 - first : 0;
    } else {
        *from = t->q0 < first ? first - t->q0 : 0;
        *to = t->q0 + t->nq <= end ? t->nq : t->q0 < end ? end - t->q0 : 0;
    }
}

/* Calls of the batch with results for the same queries, i and those behind it, which stand in rows
 * `row` and behind it in all of them. */
typedef struct alike {
    size_t count, row, i, n;
    const entry *calls[ADDENDS];
    bool clean; /* all sums so far are numbers */
} alike;

static void merge_alike(run *r, alike *l)
{
    if (!l->count) return;
    const head *const h = &r->heads[l->calls[0]->head];
    const size_t dv = h->job.dv, ld = l->calls[0]->dv;
    addends a;
    a.count = 0, a.ld = ld;
    for (size_t x = 0; x < l->count; x++) {
        const entry *const e = l->calls[x];
        if (r->how->part(r, e, l->row, l->i, l->n, a.keep[a.count], a.by[a.count]))
            a.x[a.count++] = e->y + l->row * ld * num_size(r->caps.dtype);
    }
    if (!sums_adder(r->caps.dtype)(held_row(r, h, l->i), l->n, dv, &a)) l->clean = false;
    for (size_t p = 0; p < l->n; p++)
        if (!isfinite(h->den[l->i + p])) l->clean = false;
    l->count = 0;
}

static void take(run *r, alike *l, const entry *e, size_t row, size_t i, size_t n)
{
    if (l->count == ADDENDS || l->row != row || l->i != i || l->n != n) merge_alike(r, l);
    l->row = row, l->i = i, l->n = n;
    l->calls[l->count++] = e;
}

/* Rows [first, end) of a tile. */
static void merge_tile(run *r, alike *l, const entry *e, const placed *t, size_t first, size_t end)
{
    const head *const h = &r->heads[e->head];
    size_t from, to;
    rows_of_tile(&t->t, first, end, &from, &to);
    if (!t->t.rows && !t->t.q_down && !r->only_bad) {
        if (from < to) take(r, l, e, t->q_at + from, t->t.q0 + from, to - from);
        return;
    }
    for (size_t p = from; p < to; p++) { /* one by one */
        const size_t i = pare_tile_query(&t->t, p);
        if (i < first || i >= end || (r->only_bad && !h->bad[i])) continue;
        take(r, l, e, t->q_at + p, i, 1);
    }
}

/* Whether the call has row i and answers numbers that are none there. */
static bool spoils_row(const run *r, const entry *e, size_t i)
{
    const pare_dtype type = r->caps.dtype;
    for (size_t x = e->tile; x < e->tile + e->tiles; x++) {
        const placed *const t = &r->b.tiles[x];
        for (size_t p = 0; p < t->t.nq; p++) {
            if (pare_tile_query(&t->t, p) != i) continue;
            if (r->adds) return true; /* may be; oracle_accumulate.c will look */
            const size_t row = t->q_at + p;
            if (e->l && !isfinite(num_at(type, e->l, row))) return true;
            if (e->mass && !isfinite(num_at(type, e->mass, row * 2))) return true;
            for (size_t c = 0; c < e->dv; c++)
                if (!isfinite(num_at(type, e->y, row * e->dv + c))) return true;
        }
    }
    return false;
}

static void blame(run *r, size_t which, size_t i)
{
    size_t e = 0;
    while (e < r->b.count && (r->b.entries[e].head != which || !spoils_row(r, &r->b.entries[e], i)))
        e++;
    if (e == r->b.count) e = 0; /* sums of numbers overflow */
    size_t was = atomic_load(&r->failed);
    while (e < was && !atomic_compare_exchange_weak(&r->failed, &was, e)) {}
}

static void merge_stripe(run *r, size_t head_at, size_t first, size_t end)
{
    head *const h = &r->heads[head_at];
    alike l = {.count = 0, .clean = !r->adds};
    for (size_t at = 0; !r->adds && at < r->b.count; at++) {
        const entry *const e = &r->b.entries[at];
        for (size_t x = 0; e->head == head_at && x < e->tiles; x++)
            merge_tile(r, &l, e, &r->b.tiles[e->tile + x], first, end);
    }
    merge_alike(r, &l);
    for (size_t i = l.clean ? end : first; i < end; i++) {
        if (r->how->sound(r, h, i)) continue;
        if (r->how->may_fail)
            h->bad[i] = 1;
        else
            blame(r, head_at, i);
    }
}

/* As far as there are sums for its rows: others have no call in the batch. */
static void merge_touched(void *ctx, size_t x)
{
    run *const r = ctx;
    const size_t stripes = (r->n + STRIPE - 1) / STRIPE, at = r->b.stripes[x];
    const size_t first = at % stripes * STRIPE, end = first + STRIPE;
    const size_t held = r->n - r->first < r->held ? r->n : r->first + r->held;
    merge_stripe(r, at / stripes, first < r->first ? r->first : first, end < held ? end : held);
}

size_t merge_batch(run *r)
{
    atomic_store(&r->failed, SIZE_MAX);
    pare_parallel(r->exec, r->b.stripe_count, merge_touched, r);
    return atomic_load(&r->failed);
}
