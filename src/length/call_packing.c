/* Tiles into calls, next fit in the order in which they come: deterministic, and a stream, so that
 * a plan of 10^8 calls needs no memory.
 *
 * Row 0 is the reference. A full call holds queries and keys independently of one another; in a
 * causal one, tiles follow each other. Tiles with the same sinks in front share one copy of them,
 * in rows 1 .. s; so there is one open call for tiles with sinks and one for those without. */
#include "calls.h"
#include <stdlib.h>

typedef struct open_call {
    placed *tiles;
    size_t count, room;
    uint32_t queries, keys; /* rows in use; causal: keys counts both */
    uint32_t shared;
} open_call;

struct packer {
    call_rule rule;
    call_fn fn;
    void *ctx;
    pare_err *err;
    open_call open[2]; /* without and with sinks */
};

uint32_t placed_key_row(const placed *p, uint32_t x)
{
    return x < p->shared ? 1 + x : p->k_at + x;
}

packer *packer_new(const call_rule *r, call_fn fn, void *ctx, pare_err *err)
{
    packer *const p = calloc(1, sizeof *p);
    if (!p) {
        (void)pare_no_memory(err);
        return NULL;
    }
    *p = (packer){.rule = *r, .fn = fn, .ctx = ctx, .err = err};
    return p;
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

static pare_status push(packer *p, open_call *c, const placed *t)
{
    if (c->count == c->room) {
        const size_t room = 2 * c->room + 8;
        placed *const tiles = realloc(c->tiles, room * sizeof *tiles);
        if (!tiles) return pare_no_memory(p->err);
        c->tiles = tiles;
        c->room = room;
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
    return push(p, c, &here);
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
    return push(p, c, &here);
}

static pare_status one_tile(packer *p, const pare_tile *t)
{
    const uint32_t first = p->rule.reference ? 1 : 0, keys = t->nk + first;
    const placed here = {*t, 0, first, 0};
    return p->fn(p->ctx, &here, 1, keys > t->nq ? keys : t->nq);
}

pare_status packer_add(void *self, const pare_tile *t)
{
    packer *const p = self;
    switch (p->rule.kind) {
    case CALL_TILE:
        return one_tile(p, t);
    case CALL_FULL:
        return tile_to_rects(t, add_full, p);
    case CALL_CAUSAL:
        break;
    }
    return tile_to_stairs(t, p->rule.m, add_causal, p);
}

pare_status packer_end(packer *p, pare_status st)
{
    for (size_t i = 0; i < 2; i++) {
        if (!st) st = close_call(p, &p->open[i]);
        free(p->open[i].tiles);
    }
    free(p);
    return st;
}

/* ---- a whole pattern ------------------------------------------------------------------------- */

static pare_status plain_call(size_t n, const pare_pattern *p, call_fn fn, void *ctx)
{
    const placed all = {.t = {.nq = (uint32_t)n,
                              .nk = (uint32_t)n,
                              .vis0 = p->kind == PARE_FULL ? PARE_VIS_ALL : 1}};
    return n ? fn(ctx, &all, 1, (uint32_t)n) : PARE_OK;
}

/* Blocks of queries against whole blocks of keys only. */
static pare_status whole_blocks(const call_rule *r, size_t n, packer *pack)
{
    const size_t keys = n / (r->m - 1) * (r->m - 1);
    pare_status st = PARE_OK;
    for (size_t q = 0; q < n; q += r->m)
        for (size_t k = 0; k < keys && !st; k += r->m - 1) {
            const pare_tile t = {.q0 = q,
                                 .nq = (uint32_t)(n - q < r->m ? n - q : r->m),
                                 .k0 = k,
                                 .nk = r->m - 1,
                                 .vis0 = PARE_VIS_ALL};
            st = packer_add(pack, &t);
        }
    return st;
}

/* Blocks of queries that share keys while these are in a cache. Where tiles are packed into calls,
 * their order decides which of them meet, and stays as it is. */
static uint32_t group_of(const call_rule *r, const pare_pattern *p, uint32_t queries)
{
    enum { FEW = 64 };
    const bool free = r->kind == CALL_TILE || p->kind == PARE_FULL;
    return free && queries >= FEW && queries < r->together ? r->together / queries : 1;
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
    return (size_t)group_of(r, p, queries) * queries;
}

pare_status calls_of_pattern(const call_rule *r, size_t n, const pare_pattern *p,
                             const pare_graph *g, call_fn fn, void *ctx, pare_err *err)
{
    if (r->plain) return plain_call(n, p, fn, ctx);
    if (r->one_vector) return calls_of_unions(r, n, fn, ctx);
    packer *const pack = packer_new(r, fn, ctx, err);
    if (!pack) return PARE_ERR_MEMORY;
    const uint32_t keys = block_keys(r), queries = block_queries(r, p);
    const pare_status st =
        r->leave_remainder
            ? whole_blocks(r, n, pack)
            : tiles_in_groups(n, p, g, queries, keys, group_of(r, p, queries), packer_add, pack);
    return packer_end(pack, st);
}
