/* Rounds of calls, in batches.
 *
 * Calls are generated, never stored: a batch holds as many as its memory takes, is built over the
 * threads, handed to the oracle, and merged over stripes of rows (merge_rows.c). */
#include "group_codes.h"
#include "instances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, CACHE = 576 << 10 }; /* bytes: of a line; of calls that a core keeps near */

struct room { /* a line; its memory is behind it */
    _Alignas(LINE) struct room *below;
};

void *run_room(run *r, size_t count, size_t size)
{
    size_t bytes, all;
    if (!pare_mul(&bytes, count, size) || !pare_add(&all, bytes, 2 * LINE - 1)) return NULL;
    struct room *const here = aligned_alloc(LINE, all / LINE * LINE);
    if (!here) return NULL;
    here->below = r->rooms;
    r->rooms = here;
    return here + 1;
}

size_t run_bytes(const run *r, size_t count)
{
    const size_t bytes = count * num_size(r->caps.dtype);
    return (bytes + LINE - 1) / LINE * LINE;
}

void run_poison(const run *r, char *y, size_t rows, size_t ld)
{
    if (r->adds || r->caps.features & PARE_ORC_WHOLE) return;
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

static void touch_stripe(run *r, size_t stripe)
{
    batch *const b = &r->b;
    const size_t at = r->at * ((r->n + STRIPE - 1) / STRIPE) + stripe;
    if (b->touched[at]) return;
    b->touched[at] = 1;
    b->stripes[b->stripe_count++] = at;
}

static void touch(run *r, const pare_tile *t)
{
    for (size_t p = 0; t->rows && p < t->nq; p++) touch_stripe(r, t->rows[p] / STRIPE);
    if (t->rows || !t->nq) return;
    const size_t a = pare_tile_query(t, 0), b = pare_tile_query(t, t->nq - 1);
    for (size_t s = (a < b ? a : b) / STRIPE; s <= (a < b ? b : a) / STRIPE; s++)
        touch_stripe(r, s);
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

pare_status run_flush(run *r)
{
    batch *const b = &r->b;
    if (!b->count) return PARE_OK;
    pare_parallel(r->exec, b->count, build_one, r);
    pare_status st = pare_stopped(r->exec, r->err);
    if (!st) st = evaluate(r);
    if (!st) {
        size_t failed = merge_batch(r);
        if (failed != SIZE_MAX && r->adds) failed = adding_blame(r, failed);
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

/* As much as the caches of the threads hold: results are merged while they are still there. Small
 * calls go in larger batches, and an engine that wants many at once gets them. */
size_t run_batch_bytes(const run *r, size_t need)
{
    enum { SMALL = 8 << 10 };
    const size_t threads = r->exec ? (size_t)r->exec->threads : 1;
    if (r->o.batch_bytes) return r->o.batch_bytes;
    if (r->caps.batch || need < SMALL || threads > LENGTH_BATCH / CACHE) return LENGTH_BATCH;
    return threads * CACHE;
}

/* The batch's memory is made once, unless one call alone needs more; whole groups of calls that
 * share keys (call_packing.c) go into it. */
static pare_status find_memory(run *r, size_t need, char **out)
{
    batch *const b = &r->b;
    if (need > b->bytes - b->used) {
        const pare_status st = run_flush(r);
        if (st) return st;
    }
    if (need > b->bytes) {
        const size_t usual = run_batch_bytes(r, need);
        free(b->memory);
        b->bytes = need > usual ? need : usual / need < 8 ? usual : usual / need / 8 * 8 * need;
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

/* The construction divides up what the call needs, as if it had it where the last one ends: mostly
 * it has. Where several pieces share a call, a round is one batch: which of them share must not
 * depend on memory. */
static pare_status take_memory(run *r, entry *e, const placed *tiles)
{
    char *const next = r->b.memory ? r->b.memory + r->b.used : NULL, *at = NULL;
    e->y = next;
    const size_t need = r->how->size(r, e, tiles);
    if (need == SIZE_MAX) return PARE_ERR_INPUT;
    if (!need) return PARE_OK;
    if (r->capacity > 1) {
        at = pare_alloc(r->arena, need, 1);
        if (!at) return pare_no_memory(r->err);
    } else {
        const pare_status st = find_memory(r, need, &at);
        if (st) return st;
    }
    if (at == next) return PARE_OK;
    e->y = at;
    r->how->size(r, e, tiles);
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
    r->adds = adding_can(r, how);
    r->stats->rounds++;
}

pare_status run_call(void *ctx, const placed *tiles, size_t count, uint32_t n)
{
    enum { ADDED = 512 }; /* calls of a batch, at most, that need no memory */
    run *const r = ctx;
    if (r->only_bad && !has_bad_row(r, tiles, count)) return PARE_OK;
    batch *const b = &r->b;
    entry e = {.head = r->at, .tiles = count, .n = n, .number = r->number};
    if (rule_pads(&r->rule, &r->caps)) e.n = r->caps.max_len;
    pare_status st = held_reach(r, tiles, count);
    if (!st && r->adds && b->count == ADDED) st = run_flush(r);
    if (!st) st = make_room(r, count);
    if (!st) st = take_memory(r, &e, tiles);
    if (st) return st;
    e.tile = b->tile_count;
    memcpy(b->tiles + b->tile_count, tiles, count * sizeof *tiles);
    b->tile_count += count;
    for (size_t x = 0; x < count; x++) touch(r, &tiles[x].t);
    b->entries[b->count++] = e;
    r->number++;
    if (!r->strict) *(r->only_bad || r->extra ? &r->stats->fallback_calls : &r->stats->calls) += 1;
    return PARE_OK;
}

pare_status run_end(run *r, pare_status st)
{
    if (!st) st = run_flush(r);
    if (r->b.stripes) forget(&r->b);
    return st;
}

pare_status run_round(run *r, const construction *how)
{
    pare_status st = PARE_OK;
    run_begin(r, how);
    for (r->at = 0; r->at < r->count && !st; r->at++) {
        st = calls_of_pattern(&r->rule, r->n, r->p, r->g, run_call, r, r->err);
        if (!st) st = held_end(r);
    }
    return run_end(r, st);
}

void run_free(run *r)
{
    while (r->rooms) {
        struct room *const last = r->rooms;
        r->rooms = last->below;
        free(last);
    }
    free(r->b.entries);
    free(r->b.calls);
    free(r->b.tiles);
    free(r->b.memory);
    pare_arena_free(r->arena);
}
