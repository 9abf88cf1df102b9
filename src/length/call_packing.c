/* call_packing.c - tiles into calls, next fit in the order in which they come: deterministic, and a
 * stream, so that a plan of 10^8 calls needs no memory.
 *
 * Row 0 is the reference. A full call holds queries and keys independently of one another; in a
 * causal one, tiles follow each other. Tiles with the same sinks in front share one copy of them,
 * in rows 1 .. s; so there is one open call for tiles with sinks and one for those without. */
#include "attend_plan.h"
#include "calls.h"
#include <stdlib.h>

typedef struct open_call {
    placed *tiles;
    size_t count, capacity;
    uint32_t queries, keys; /* rows in use; causal: keys counts both */
    uint32_t shared;
} open_call;

typedef struct packer {
    call_rule rule;
    call_fn fn;
    void *ctx;
    pare_err *err;
    open_call open[2]; /* without and with sinks */
} packer;

uint32_t placed_key_row(const placed *p, uint32_t x)
{
    return x < p->shared ? 1 + x : p->k_at + x;
}

static pare_status close_call(packer *p, open_call *c)
{
    if (!c->count) return PARE_OK;
    const bool causal = p->rule.kind == CALL_CAUSAL;
    const uint32_t n = causal || c->keys > c->queries ? c->keys : c->queries;
    const pare_status st = p->fn(p->ctx, c->tiles, c->count, n);
    c->count = c->queries = c->keys = c->shared = 0;
    return st;
}

static pare_status push_tile(packer *p, open_call *c, const placed *t)
{
    if (c->count == c->capacity) {
        const size_t capacity = 2 * c->capacity + 8;
        placed *const tiles = realloc(c->tiles, capacity * sizeof *tiles);
        if (!tiles) return pare_no_memory(p->err);
        c->tiles = tiles;
        c->capacity = capacity;
    }
    c->tiles[c->count++] = *t;
    return PARE_OK;
}

static pare_status add_full(void *self, const pare_tile *t)
{
    packer *const p = self;
    open_call *const c = &p->open[0];
    pare_tile own = *t;
    PARE_ASSERT(t->nq <= p->rule.m && t->nk + 1 <= p->rule.m);
    if (c->count &&
        (!p->rule.pack || c->queries + t->nq > p->rule.m || c->keys + t->nk > p->rule.m)) {
        const pare_status st = close_call(p, c);
        if (st) return st;
    }
    if (!c->count) c->keys = 1;
    own.vis0 = PARE_VIS_ALL;
    const placed here = {own, c->queries, c->keys, 0}; /* sinks are keys like others here */
    c->queries += t->nq;
    c->keys += t->nk;
    return push_tile(p, c, &here);
}

static pare_status add_causal(void *self, const pare_tile *t)
{
    packer *const p = self;
    const uint32_t shared = p->rule.pack ? t->shared : 0;
    open_call *const c = &p->open[shared ? 1 : 0];
    const uint32_t first = (uint32_t)pare_tile_sees(t, 0), last = first + t->nq - 1;
    const uint32_t span = t->nk > last ? t->nk : last; /* rows behind the reference */
    if (c->count && (!p->rule.pack || c->shared != shared || c->keys + span - shared > p->rule.m)) {
        const pare_status st = close_call(p, c);
        if (st) return st;
    }
    if (!c->count) {
        c->keys = 1 + shared;
        c->shared = shared;
    }
    const uint32_t off = c->keys - 1 - shared;
    const placed here = {*t, off + first, 1 + off, shared};
    c->keys += span - shared;
    PARE_ASSERT(c->keys <= p->rule.m);
    return push_tile(p, c, &here);
}

static pare_status add_tile(void *self, const pare_tile *t)
{
    packer *const p = self;
    if (p->rule.kind == CALL_FULL) return tile_to_rects(t, add_full, p);
    if (p->rule.kind == CALL_CAUSAL) return tile_to_stairs(t, p->rule.m, add_causal, p);
    const uint32_t first = p->rule.reference ? 1 : 0, keys = t->nk + first;
    const placed here = {*t, 0, first, 0};
    return p->fn(p->ctx, &here, 1, keys > t->nq ? keys : t->nq);
}

/* Closes the calls that are open, and frees them. */
static pare_status packer_end(packer *p, pare_status st)
{
    for (size_t i = 0; i < 2; i++) {
        if (!st) st = close_call(p, &p->open[i]);
        free(p->open[i].tiles);
    }
    return st;
}

static uint32_t min_rows(size_t a, size_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* ---- a whole pattern ------------------------------------------------------------------------- */

/* Blocks of queries that share keys while these are in a cache. Where tiles are packed into calls,
 * their order decides which of them meet, and stays as it is. */
static uint32_t blocks_of_group(const call_rule *r, const pare_pattern *p, uint32_t queries)
{
    enum { FEW = 64 };
    const bool free_order = r->kind == CALL_TILE || p->kind == PARE_FULL;
    return free_order && queries >= FEW && queries < r->group_rows ? r->group_rows / queries : 1;
}

static uint32_t block_keys(const call_rule *r)
{
    return r->reference ? r->m - 1 : r->m;
}

static uint32_t block_queries(const call_rule *r, const pare_pattern *p)
{
    return r->kind == CALL_CAUSAL || (r->reference && p->kind != PARE_FULL) ? block_keys(r) : r->m;
}

size_t rows_of_group(const call_rule *r, const pare_pattern *p)
{
    const uint32_t queries = block_queries(r, p);
    return (size_t)blocks_of_group(r, p, queries) * queries;
}

/* Blocks t and `other`, the one behind the other from row 1 on: each with the other, or each with
 * itself. */
static pare_status pair_call(size_t n, size_t size, size_t t, size_t other, bool crossed,
                             call_fn fn, void *ctx)
{
    const size_t from[2] = {t * size, other * size};
    const uint32_t rows[2] = {min_rows(n - from[0], size),
                              from[1] < n ? min_rows(n - from[1], size) : 0};
    const uint32_t at[2] = {1, 1 + rows[0]};
    placed p[2];
    for (size_t i = 0; i < 2; i++) {
        const size_t keys = crossed ? 1 - i : i;
        const pare_tile pair = tile_of(from[i], rows[i], from[keys], rows[keys], PARE_VIS_ALL);
        p[i] = (placed){.t = pair, .q_at = at[i], .k_at = at[keys]};
    }
    return fn(ctx, p, rows[1] ? 2 : 1, 1 + rows[0] + rows[1]);
}

/* Engines whose tokens carry one vector: in every row of a call query, key and value are those of
 * the same token, so that a token is d wide and not 2d (docs/theory/length.md "Strict plans and
 * Lemma 3.3").
 *
 * A call holds the reference and two blocks S_t, S_t' of floor((M-1)/2) tokens. Queries carry -P on
 * the block they must not see, keys 1 on their own: seen crosswise, one call gives both S_t x S_t'
 * and S_t' x S_t; with the two flags of the keys swapped, the two blocks by themselves.
 * T(T-1)/2 + ceil(T/2) calls for T blocks. */
static pare_status calls_of_pairs(const call_rule *r, size_t n, call_fn fn, void *ctx)
{
    const size_t size = (r->m - 1) / 2;
    pare_status st = PARE_OK;
    for (size_t t = 0; t * size < n && !st; t += 2)
        st = pair_call(n, size, t, t + 1, false, fn, ctx);
    for (size_t t = 0; t * size < n; t++)
        for (size_t other = t + 1; other * size < n && !st; other++)
            st = pair_call(n, size, t, other, true, fn, ctx);
    return st;
}

pare_status calls_of_pattern(const call_rule *r, size_t n, const pare_pattern *p,
                             const pare_graph *g, call_fn fn, void *ctx, pare_err *err)
{
    if (r->plain) {
        const placed all = {.t = tile_of(0, n, 0, n, p->kind == PARE_FULL ? PARE_VIS_ALL : 1)};
        return n ? fn(ctx, &all, 1, (uint32_t)n) : PARE_OK;
    }
    if (r->one_vector) return calls_of_pairs(r, n, fn, ctx);
    packer pack = {.rule = *r, .fn = fn, .ctx = ctx, .err = err};
    const uint32_t keys = block_keys(r), queries = block_queries(r, p);
    if (!r->leave_remainder)
        return packer_end(&pack, tiles_in_groups(n, p, g, queries, keys,
                                                 blocks_of_group(r, p, queries), add_tile, &pack));
    const size_t whole = n / (r->m - 1) * (r->m - 1); /* keys of whole blocks only */
    pare_status st = PARE_OK;
    for (size_t q = 0; q < n; q += r->m)
        for (size_t k = 0; k < whole && !st; k += r->m - 1) {
            const pare_tile t = tile_of(q, min_rows(n - q, r->m), k, r->m - 1, PARE_VIS_ALL);
            st = add_tile(&pack, &t);
        }
    return packer_end(&pack, st);
}

pare_status calls_of_causal_sample(const call_rule *r, size_t n, const causal_draw *d, call_fn fn,
                                   void *ctx, pare_err *err)
{
    const uint32_t m = r->m - 1;
    packer pack = {.rule = *r, .fn = fn, .ctx = ctx, .err = err};
    pare_status st = PARE_OK;
    for (size_t b = 0; !d && b < n && !st; b += m) {
        const uint32_t nq = min_rows(n - b, m);
        const pare_tile own = tile_of(b, nq, b, nq, 1);
        st = add_tile(&pack, &own);
    }
    for (size_t b = m; d && b < n && !st; b += m) {
        const bool all = b <= d->keys;
        const size_t keys = all ? b : d->keys;
        const uint32_t *const list = all ? NULL : d->fn(d->ctx, b / m, b);
        if (!all && !list) st = pare_no_memory(err);
        for (size_t k = 0; k < keys && !st; k += m) {
            pare_tile t = tile_of(b, min_rows(n - b, m), k, min_rows(keys - k, m), PARE_VIS_ALL);
            t.keys = list ? list + k : NULL;
            st = add_tile(&pack, &t);
        }
    }
    return packer_end(&pack, st);
}
