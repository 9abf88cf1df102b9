/* Rounds of calls, in batches.
 *
 * Calls are generated, never stored: a batch holds as many as its memory takes, is built over the
 * threads, handed to the oracle, and merged over stripes of rows. Each row is merged in the order
 * of the plan, so that neither threads nor batches change a bit. */
#include "codes.h"
#include "instances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

size_t run_bytes(const run *r, size_t count)
{
    const size_t bytes = count * pare_dtype_size(r->caps.dtype);
    return (bytes + LINE - 1) / LINE * LINE;
}

void run_poison(const run *r, char *y, size_t rows, size_t ld)
{
    if (r->caps.dtype == PARE_F32)
        for (size_t i = 0; i < rows; i++) ((float *)(void *)y)[i * ld] = NAN;
    else
        for (size_t i = 0; i < rows; i++) ((double *)(void *)y)[i * ld] = NAN;
}

/* ---- one batch ------------------------------------------------------------------------------- */

static void build_one(void *ctx, size_t i)
{
    const run *const r = ctx;
    r->how->build(r, &r->b.entries[i], &r->b.calls[i]);
}

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

static void merge_entry(run *r, const entry *e, size_t first, size_t end)
{
    for (size_t x = e->tile; x < e->tile + e->tiles; x++) {
        const placed *const t = &r->b.tiles[x];
        size_t from, to;
        rows_of_tile(&t->t, first, end, &from, &to);
        if (!t->t.rows && !r->only_bad) {
            if (from < to) r->how->merge(r, e, t, from, to);
            continue;
        }
        for (size_t p = from; p < to; p++) { /* one by one */
            const size_t i = pare_tile_query(&t->t, p);
            if (i < first || i >= end) continue;
            if (r->only_bad && !r->heads[e->head].bad[i]) continue;
            r->how->merge(r, e, t, p, p + 1);
        }
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
    for (size_t e = 0; e < r->b.count; e++)
        if (r->b.entries[e].head == head_at) merge_entry(r, &r->b.entries[e], first, end);
    for (size_t i = first; i < end; i++) {
        if (r->how->sound(r, h, i)) continue;
        if (r->how->may_fail)
            h->bad[i] = 1;
        else
            blame(r, head_at, i);
    }
}

typedef struct striped {
    run *r;
    size_t stripes;
    void (*fn)(run *r, size_t head, size_t first, size_t end);
} striped;

static void one_stripe(void *ctx, size_t b)
{
    const striped *const s = ctx;
    const size_t first = b % s->stripes * STRIPE, n = s->r->n;
    s->fn(s->r, b / s->stripes, first, n - first < STRIPE ? n : first + STRIPE);
}

void run_rows(const run *r, void (*fn)(run *r, size_t head, size_t first, size_t end), run *ctx)
{
    striped s = {ctx, (r->n + STRIPE - 1) / STRIPE, fn};
    pare_parallel(r->exec, s.stripes * r->count, one_stripe, &s);
}

static void merge_touched(void *ctx, size_t x)
{
    run *const r = ctx;
    const size_t stripes = (r->n + STRIPE - 1) / STRIPE, at = r->b.stripes[x];
    const size_t first = at % stripes * STRIPE;
    merge_stripe(r, at / stripes, first, r->n - first < STRIPE ? r->n : first + STRIPE);
}

static void touch(run *r, const pare_tile *t)
{
    batch *const b = &r->b;
    const size_t stripes = (r->n + STRIPE - 1) / STRIPE;
    for (size_t p = 0; p < t->nq; p++) {
        const size_t at = r->at * stripes + pare_tile_query(t, p) / STRIPE;
        if (b->touched[at]) continue;
        b->touched[at] = 1;
        b->stripes[b->stripe_count++] = at;
    }
}

static void forget(batch *b)
{
    for (size_t x = 0; x < b->stripe_count; x++) b->touched[b->stripes[x]] = 0;
    b->count = b->tile_count = b->used = b->stripe_count = 0;
}

pare_status run_overflow(const run *r, size_t at)
{
    const double limit = r->caps.dtype == PARE_F32 ? 0x1p125 : 0x1p1021;
    if (!(r->stats->lmax >= limit)) return PARE_OK;
    return pare_fail(r->err, PARE_ERR_NUMERIC,
                     "length: logit overflow: queries and keys of head %zu may give %.3g", at,
                     r->stats->lmax);
}

static pare_status fail_call(const run *r, const entry *e)
{
    const pare_tile *const t = &r->b.tiles[e->tile].t;
    const pare_status overflow = run_overflow(r, e->head);
    if (overflow) return overflow;
    return pare_fail(r->err, PARE_ERR_NUMERIC,
                     "length: oracle call %llu (head %zu, queries from token %zu, keys from token "
                     "%zu) answers nan, infinity or nothing",
                     (unsigned long long)e->number, e->head, pare_tile_query(t, 0),
                     pare_tile_key(t, 0));
}

/* The same calls for an oracle of tokens and weights. */
static pare_status evaluate_strictly(run *r)
{
    const batch *const b = &r->b;
    instance *const list = calloc(b->count, sizeof *list);
    if (!list) return pare_no_memory(r->err);
    for (size_t i = 0; i < b->count; i++) {
        const entry *const e = &b->entries[i];
        list[i] = (instance){.n = e->n,
                             .dk = e->dk,
                             .dv = e->dv,
                             .causal = r->rule.kind == CALL_CAUSAL,
                             .q = e->q,
                             .k = e->k,
                             .v = e->v,
                             .y = e->y};
    }
    const pare_status st = instances_run(
        r, list, b->count, r->only_bad || r->extra ? &r->stats->fallback_calls : &r->stats->calls);
    free(list);
    return st;
}

static pare_status evaluate(run *r)
{
    if (r->strict) return evaluate_strictly(r);
    const pare_status st = r->orc->ops->evaluate(r->orc->self, r->b.calls, r->b.count, r->err);
    return st ? st : r->orc->ops->barrier(r->orc->self, r->err);
}

static pare_status flush(run *r)
{
    batch *const b = &r->b;
    if (!b->count) return PARE_OK;
    pare_parallel(r->exec, b->count, build_one, r);
    pare_status st = evaluate(r);
    if (!st) {
        atomic_store(&r->failed, SIZE_MAX);
        pare_parallel(r->exec, b->stripe_count, merge_touched, r);
        const size_t failed = atomic_load(&r->failed);
        if (failed != SIZE_MAX) st = fail_call(r, &b->entries[failed]);
    }
    forget(b);
    return st;
}

/* ---- filling it ------------------------------------------------------------------------------ */

static pare_status make_stripes(run *r)
{
    batch *const b = &r->b;
    const size_t stripes = (r->n + STRIPE - 1) / STRIPE * r->count;
    b->touched = pare_alloc(r->arena, stripes, 1);
    b->stripes = pare_alloc(r->arena, stripes, sizeof *b->stripes);
    return b->touched && b->stripes ? PARE_OK : pare_no_memory(r->err);
}

static pare_status make_room(run *r, size_t tiles)
{
    batch *const b = &r->b;
    if (!b->stripes) {
        const pare_status st = make_stripes(r);
        if (st) return st;
    }
    if (b->count == b->room) {
        const size_t room = 2 * b->room + 64;
        entry *const e = realloc(b->entries, room * sizeof *e);
        if (e) b->entries = e;
        pare_call *const c = realloc(b->calls, room * sizeof *c);
        if (c) b->calls = c;
        if (!e || !c) return pare_no_memory(r->err);
        b->room = room;
    }
    if (b->tile_count + tiles > b->tile_room) {
        const size_t room = 2 * b->tile_room + tiles;
        placed *const t = realloc(b->tiles, room * sizeof *t);
        if (!t) return pare_no_memory(r->err);
        b->tiles = t;
        b->tile_room = room;
    }
    return PARE_OK;
}

/* The batch's memory is made once, unless one call alone needs more. Where several pieces share a
 * call, a round is one batch: which of them share must not depend on memory. */
static pare_status take_memory(run *r, size_t need, char **out)
{
    batch *const b = &r->b;
    if (r->capacity > 1) {
        *out = pare_alloc(r->arena, need, 1);
        return *out ? PARE_OK : pare_no_memory(r->err);
    }
    if (need > b->bytes - b->used) {
        const pare_status st = flush(r);
        if (st) return st;
    }
    if (need > b->bytes) {
        const size_t usual = r->o.batch_bytes ? r->o.batch_bytes : LENGTH_BATCH;
        free(b->memory);
        b->bytes = need > usual ? need : usual;
        b->memory = aligned_alloc(LINE, (b->bytes + LINE - 1) / LINE * LINE);
        if (!b->memory) {
            b->bytes = 0;
            return pare_no_memory(r->err);
        }
    }
    *out = b->memory + b->used;
    b->used += need;
    return PARE_OK;
}

static bool has_bad_row(const run *r, const placed *tiles, size_t count)
{
    for (size_t x = 0; x < count; x++)
        for (size_t p = 0; p < tiles[x].t.nq; p++)
            if (r->heads[r->at].bad[pare_tile_query(&tiles[x].t, p)]) return true;
    return false;
}

void run_begin(run *r, const construction *how)
{
    r->how = how;
    r->stats->rounds++;
}

pare_status run_call(void *ctx, const placed *tiles, size_t count, uint32_t n)
{
    run *const r = ctx;
    if (r->only_bad && !has_bad_row(r, tiles, count)) return PARE_OK;
    entry e = {.head = r->at, .tiles = count, .n = n, .number = r->number};
    if (rule_pads(&r->rule, &r->caps)) e.n = r->caps.max_len;
    const size_t need = r->how->size(r, &e, tiles);
    if (!need) return PARE_ERR_INPUT;
    pare_status st = take_memory(r, need, &e.y); /* the construction divides it up */
    if (!st) st = make_room(r, count);
    if (st) return st;
    batch *const b = &r->b;
    e.tile = b->tile_count;
    memcpy(b->tiles + b->tile_count, tiles, count * sizeof *tiles);
    b->tile_count += count;
    for (size_t x = 0; x < count; x++) touch(r, &tiles[x].t);
    b->entries[b->count] = e;
    r->how->size(r, &b->entries[b->count++], tiles); /* pointers, now that there is memory */
    r->number++;
    if (!r->strict) *(r->only_bad || r->extra ? &r->stats->fallback_calls : &r->stats->calls) += 1;
    return PARE_OK;
}

pare_status run_end(run *r, pare_status st)
{
    if (!st) st = flush(r);
    if (r->b.stripes) forget(&r->b);
    return st;
}

pare_status run_round(run *r, const construction *how)
{
    pare_status st = PARE_OK;
    run_begin(r, how);
    for (r->at = 0; r->at < r->count && !st; r->at++)
        st = calls_of_pattern(&r->rule, r->n, r->p, r->g, run_call, r, r->err);
    return run_end(r, st);
}

void run_free(run *r)
{
    free(r->b.entries);
    free(r->b.calls);
    free(r->b.tiles);
    free(r->b.memory);
    pare_arena_free(r->arena);
}
