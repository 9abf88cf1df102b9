/* rounds.c - the executor: rounds of calls, in batches.
 *
 * Calls are generated, never stored: a batch holds as many as its memory takes, is built over the
 * threads, handed to the oracle, and merged over stripes of rows (merge_rows.c). */
#include "attend_plan.h"
#include "rounds.h"
#include "instances.h"
#include <stdlib.h>
#include <string.h>

/* ---- evaluating a batch ---------------------------------------------------------------------- */

static void build_one(void *ctx, size_t i)
{
    const length_run *const r = ctx;
    r->round.ops->build(r, &r->batch.entries[i], &r->batch.calls[i]);
}

static uint64_t *call_counter(const length_run *r)
{
    return r->round.only_bad || r->round.extra ? &r->stats->fallback_calls : &r->stats->calls;
}

static pare_status evaluate(length_run *r)
{
    const call_batch *const b = &r->batch;
    const pare_oracle *const o = r->in.oracle;
    if (!r->in.strict) {
        const pare_status st = o->ops->evaluate(o->self, b->calls, b->count, r->in.err);
        return st ? st : o->ops->barrier(o->self, r->in.err);
    }
    instance *const list = calloc(b->count, sizeof *list); /* the same as tokens and weights */
    if (!list) return pare_no_memory(r->in.err);
    for (size_t i = 0; i < b->count; i++) {
        const pending_call *const e = &b->entries[i];
        list[i] = (instance){.n = e->n,
                             .dk = e->dk,
                             .dv = e->dv,
                             .causal = r->in.rule.kind == CALL_CAUSAL,
                             .q = e->q,
                             .k = e->k,
                             .v = e->v,
                             .y = e->y};
    }
    const pare_status st = instances_run(&r->in, list, b->count, call_counter(r));
    free(list);
    return st;
}

static void clear_batch(call_batch *b)
{
    for (size_t x = 0; x < b->stripe_count; x++) b->touched[b->stripes[x]] = 0;
    b->count = b->tile_count = b->used = b->stripe_count = 0;
}

/* The calls so far are evaluated and merged. */
static pare_status flush(length_run *r)
{
    call_batch *const b = &r->batch;
    if (!b->count) return PARE_OK;
    pare_parallel(r->in.exec, b->count, build_one, r);
    pare_status st = pare_stopped(r->in.exec, r->in.err);
    if (!st) st = evaluate(r);
    size_t failed = st ? SIZE_MAX : merge_batch(r);
    if (failed != SIZE_MAX) {
        if (r->round.fused) failed = fused_find_failed(r, failed);
        const pending_call *const e = &b->entries[failed];
        const pare_tile *const t = &b->tiles[e->tile].t;
        st = run_check_overflow(r, e->head);
        if (!st)
            st = pare_fail(r->in.err, PARE_ERR_NUMERIC,
                           "length: oracle call %llu (head %zu, queries from token %zu, keys from "
                           "token %zu) answers nan, infinity or nothing",
                           (unsigned long long)e->number, e->head, pare_tile_query(t, 0),
                           pare_tile_key(t, 0));
    }
    clear_batch(b);
    return st;
}

/* ---- filling a batch ------------------------------------------------------------------------- */

static pare_status reserve(length_run *r, size_t tiles)
{
    call_batch *const b = &r->batch;
    if (!b->stripes) {
        const size_t stripes = (r->in.n + STRIPE - 1) / STRIPE * r->in.nheads;
        b->touched = pare_alloc(r->arena, stripes, 1);
        b->stripes = pare_alloc(r->arena, stripes, sizeof *b->stripes);
        if (!b->touched || !b->stripes) return pare_no_memory(r->in.err);
    }
    if (b->count == b->capacity) {
        const size_t capacity = 2 * b->capacity + 64;
        pending_call *const e = realloc(b->entries, capacity * sizeof *e);
        if (e) b->entries = e;
        pare_call *const c = realloc(b->calls, capacity * sizeof *c);
        if (c) b->calls = c;
        if (!e || !c) return pare_no_memory(r->in.err);
        b->capacity = capacity;
    }
    if (b->tile_count + tiles > b->tile_capacity) {
        const size_t capacity = 2 * b->tile_capacity + tiles;
        placed *const t = realloc(b->tiles, capacity * sizeof *t);
        if (!t) return pare_no_memory(r->in.err);
        b->tiles = t;
        b->tile_capacity = capacity;
    }
    return PARE_OK;
}

/* The batch's memory is made once, unless one call alone needs more; whole groups of calls that
 * share keys (call_packing.c) go into it. */
static pare_status batch_memory(length_run *r, size_t need, char **out)
{
    enum { LINE = 64 };
    call_batch *const b = &r->batch;
    if (need > b->bytes - b->used) {
        const pare_status st = flush(r);
        if (st) return st;
    }
    if (need > b->bytes) {
        const size_t usual = run_batch_bytes(r, need);
        free(b->memory);
        b->bytes = need > usual ? need : usual / need < 8 ? usual : usual / need / 8 * 8 * need;
        b->memory = aligned_alloc(LINE, (b->bytes + LINE - 1) / LINE * LINE);
        if (!b->memory) {
            b->bytes = 0;
            return pare_no_memory(r->in.err);
        }
    }
    *out = b->memory + b->used;
    b->used += need;
    return PARE_OK;
}

/* The call is laid out as if its memory began where the last one ends: mostly it does. Where
 * several instances share a call, a round is one batch: which of them share must not depend on
 * memory. */
static pare_status lay_out_call(length_run *r, pending_call *e, const placed *tiles)
{
    char *const next = r->batch.memory ? r->batch.memory + r->batch.used : NULL, *at = NULL;
    e->y = next;
    const size_t need = r->round.ops->lay_out(r, e, tiles);
    if (need == SIZE_MAX) return PARE_ERR_INPUT;
    if (!need) return PARE_OK;
    if (r->in.capacity > 1) {
        at = pare_alloc(r->arena, need, 1);
        if (!at) return pare_no_memory(r->in.err);
    } else {
        const pare_status st = batch_memory(r, need, &at);
        if (st) return st;
    }
    if (at == next) return PARE_OK;
    e->y = at;
    r->round.ops->lay_out(r, e, tiles);
    return PARE_OK;
}

static bool has_bad_row(const length_run *r, const placed *tiles, size_t count)
{
    for (size_t x = 0; x < count; x++)
        for (size_t p = 0; p < tiles[x].t.nq; p++)
            if (r->heads[r->round.head].bad[pare_tile_query(&tiles[x].t, p)]) return true;
    return false;
}

static void touch_stripe(length_run *r, size_t stripe)
{
    call_batch *const b = &r->batch;
    const size_t at = r->round.head * ((r->in.n + STRIPE - 1) / STRIPE) + stripe;
    if (b->touched[at]) return;
    b->touched[at] = 1;
    b->stripes[b->stripe_count++] = at;
}

static void touch_tile(length_run *r, const pare_tile *t)
{
    for (size_t p = 0; t->rows && p < t->nq; p++) touch_stripe(r, t->rows[p] / STRIPE);
    if (t->rows || !t->nq) return;
    const size_t a = pare_tile_query(t, 0), b = pare_tile_query(t, t->nq - 1);
    for (size_t s = (a < b ? a : b) / STRIPE; s <= (a < b ? b : a) / STRIPE; s++)
        touch_stripe(r, s);
}

/* ---- a round --------------------------------------------------------------------------------- */

void round_begin(length_run *r, const call_ops *ops)
{
    r->round.ops = ops;
    r->round.fused = can_fuse(r, ops);
    r->stats->rounds++;
}

/* Rows below `to` of the head at work have no further calls. */
static pare_status complete_rows(length_run *r, size_t to)
{
    const pare_status st = flush(r);
    if (!st) window_complete(r, to);
    return st;
}

pare_status round_add_call(void *run, const placed *tiles, size_t count, uint32_t n)
{
    enum { MOST_FUSED = 512 }; /* calls of a batch that need no memory */
    length_run *const r = run;
    if (r->round.only_bad && !has_bad_row(r, tiles, count)) return PARE_OK;
    call_batch *const b = &r->batch;
    pending_call e = {.head = r->round.head, .tiles = count, .n = n, .number = r->round.calls};
    if (rule_pads(&r->in.rule, &r->in.caps)) e.n = r->in.caps.max_len;
    size_t end;
    const size_t complete = window_admit(r, tiles, count, &end);
    pare_status st = complete ? complete_rows(r, complete) : PARE_OK;
    if (end > r->window.reached) r->window.reached = end;
    if (!st && r->round.fused && b->count == MOST_FUSED) st = flush(r);
    if (!st) st = reserve(r, count);
    if (!st) st = lay_out_call(r, &e, tiles);
    if (st) return st;
    e.tile = b->tile_count;
    memcpy(b->tiles + b->tile_count, tiles, count * sizeof *tiles);
    b->tile_count += count;
    for (size_t x = 0; x < count; x++) touch_tile(r, &tiles[x].t);
    b->entries[b->count++] = e;
    r->round.calls++;
    if (!r->in.strict) ++*call_counter(r); /* instances_run counts strict ones */
    return PARE_OK;
}

pare_status round_end(length_run *r, pare_status st)
{
    if (!st) st = flush(r);
    if (r->batch.stripes) clear_batch(&r->batch);
    return st;
}

pare_status round_pattern(length_run *r, const call_ops *ops)
{
    const run_inputs *const in = &r->in;
    pare_status st = PARE_OK;
    round_begin(r, ops);
    for (r->round.head = 0; r->round.head < in->nheads && !st; r->round.head++) {
        st = calls_of_pattern(&in->rule, in->n, in->pattern, in->graph, round_add_call, r, in->err);
        if (st || window_is_whole(r)) continue;
        st = complete_rows(r, in->n);
        r->window.first = r->window.reached = 0;
    }
    return round_end(r, st);
}
