/* The results of a batch into the sums of its rows.
 *
 * Stripes of rows go over the threads; in each, a row takes its results in the order of the plan,
 * so that neither threads nor batches change a bit. Calls that ask the same queries stand side by
 * side in the batch: a row takes its results from all of them at once, while its sums are in
 * registers. */
#include "codes.h"
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

/* Rows row, row + 1, ... of `count` calls, which are those of queries i, i + 1, ... in all of them.
 */
static void merge_block(run *r, const entry *e, size_t count, size_t row, size_t i, size_t n)
{
    const head *const h = &r->heads[e->head];
    const size_t dv = h->job.dv, at = row * e->dv * pare_dtype_size(r->caps.dtype);
    sums_add_fn *const add = sums_adder(r->caps.dtype);
    addends a;
    a.count = 0, a.ld = e->dv;
    for (size_t x = 0; x < count; x++) {
        if (r->how->part(r, &e[x], row, i, n, a.keep[a.count], a.by[a.count]))
            a.x[a.count++] = e[x].y + at;
        if (a.count < ADDENDS && x + 1 < count) continue;
        add(h->num + i * dv, n, dv, &a);
        a.count = 0;
    }
}

/* Rows [first, end) of a tile of `count` calls. */
static void merge_tile(run *r, const entry *e, size_t count, const placed *t, size_t first,
                       size_t end)
{
    const head *const h = &r->heads[e->head];
    size_t from, to;
    rows_of_tile(&t->t, first, end, &from, &to);
    if (from < to && !t->t.rows && !t->t.q_down && !r->only_bad) {
        merge_block(r, e, count, t->q_at + from, t->t.q0 + from, to - from);
        return;
    }
    for (size_t p = from; p < to; p++) { /* one by one */
        const size_t i = pare_tile_query(&t->t, p);
        if (i < first || i >= end || (r->only_bad && !h->bad[i])) continue;
        merge_block(r, e, count, t->q_at + p, i, 1);
    }
}

/* How many calls of the batch from e on have one tile each, of the same queries in the same rows:
 * the tiles of a block of queries follow one another. */
static size_t calls_alike(const run *r, size_t e)
{
    const entry *const a = &r->b.entries[e];
    const placed *const t = &r->b.tiles[a->tile];
    size_t n = 1;
    if (a->tiles != 1 || t->t.rows || t->t.q_down) return 1;
    for (; e + n < r->b.count; n++) {
        const entry *const b = a + n;
        const placed *const u = &r->b.tiles[b->tile];
        if (b->head != a->head || b->tiles != 1 || u->t.rows || u->t.q_down || u->q_at != t->q_at ||
            u->t.q0 != t->t.q0 || u->t.nq != t->t.nq)
            break;
    }
    return n;
}

/* Whether the call has row i and answers numbers that are none there. */
static bool spoils_row(const run *r, const entry *e, size_t i)
{
    const pare_dtype type = r->caps.dtype;
    for (size_t x = e->tile; x < e->tile + e->tiles; x++) {
        const placed *const t = &r->b.tiles[x];
        for (size_t p = 0; p < t->t.nq; p++) {
            if (pare_tile_query(&t->t, p) != i) continue;
            const size_t row = t->q_at + p;
            if (e->l && !isfinite(num_at(type, e->l, row))) return true;
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
    for (size_t at = 0, alike; at < r->b.count; at += alike) {
        const entry *const e = &r->b.entries[at];
        alike = calls_alike(r, at);
        for (size_t x = 0; e->head == head_at && x < e->tiles; x++)
            merge_tile(r, e, alike, &r->b.tiles[e->tile + x], first, end);
    }
    for (size_t i = first; i < end; i++) {
        if (r->how->sound(r, h, i)) continue;
        if (r->how->may_fail)
            h->bad[i] = 1;
        else
            blame(r, head_at, i);
    }
}

static void merge_touched(void *ctx, size_t x)
{
    run *const r = ctx;
    const size_t stripes = (r->n + STRIPE - 1) / STRIPE, at = r->b.stripes[x];
    const size_t first = at % stripes * STRIPE;
    merge_stripe(r, at / stripes, first, r->n - first < STRIPE ? r->n : first + STRIPE);
}

size_t merge_batch(run *r)
{
    atomic_store(&r->failed, SIZE_MAX);
    pare_parallel(r->exec, r->b.stripe_count, merge_touched, r);
    return atomic_load(&r->failed);
}
