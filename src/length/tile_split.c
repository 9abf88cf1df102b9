/* tile_split.c - tiles for oracles that know only one mask (docs/theory/length.md "Engines with one
 * mask").
 *
 * Without a mask, a staircase becomes rectangles by halving: queries a .. b-1 and the keys all of
 * them see, then both halves with what is left; a triangle of M-1 takes about log2 M packed calls.
 * With a causal mask, a rectangle becomes a forward staircase (query p sees min(nk, p+1) keys) and
 * a strict one with both lists reversed (query p sees nk-p-1): two calls of half the work. */
#include "attend_plan.h"
#include "calls.h"

/* Queries a .. b-1 of t and keys from .. to-1. */
static pare_tile sub_tile(const pare_tile *t, size_t a, size_t b, size_t from, size_t to)
{
    pare_tile r = *t;
    r.nq = (uint32_t)(b - a);
    r.nk = (uint32_t)(to - from);
    if (t->rows)
        r.rows = t->rows + a;
    else
        r.q0 = pare_tile_query(t, a);
    if (t->keys)
        r.keys = t->k_down ? t->keys - from : t->keys + from;
    else if (from >= t->shared)
        r.k0 = pare_tile_key(t, from < t->nk ? from : t->nk - 1);
    r.shared = from < t->shared ? (uint32_t)((to < t->shared ? to : t->shared) - from) : 0;
    return r;
}

/* ---- without a mask -------------------------------------------------------------------------- */

typedef struct halving {
    const pare_tile *t;
    pare_tile_fn fn;
    void *ctx;
} halving;

/* Keys [from, to) for queries [a, b): sinks that are only partly among them make two tiles. */
static pare_status emit_rect(const halving *h, size_t a, size_t b, size_t from, size_t to)
{
    const size_t s = h->t->shared;
    if (from > 0 && from < s) { /* keys from .. s-1 are tokens of the same number */
        pare_tile t = sub_tile(h->t, a, b, from, to < s ? to : s);
        t.k0 = from;
        t.k_down = false;
        t.shared = 0;
        t.vis0 = PARE_VIS_ALL;
        const pare_status st = h->fn(h->ctx, &t);
        return st || to <= s ? st : emit_rect(h, a, b, s, to);
    }
    pare_tile t = sub_tile(h->t, a, b, from, to);
    t.vis0 = PARE_VIS_ALL;
    return h->fn(h->ctx, &t);
}

static pare_status halve(const halving *h, size_t a, size_t b, size_t done)
{
    const size_t first = pare_tile_sees(h->t, a);
    pare_status st = PARE_OK;
    if (first > done) {
        st = emit_rect(h, a, b, done, first);
        done = first;
    }
    if (st || b - a == 1 || pare_tile_sees(h->t, b - 1) <= done) return st;
    const size_t middle = (a + b + 1) / 2;
    if (middle > a + 1) st = halve(h, a + 1, middle, done);
    return st ? st : halve(h, middle, b, done);
}

pare_status tile_to_rects(const pare_tile *t, pare_tile_fn fn, void *ctx)
{
    if (t->vis0 == PARE_VIS_ALL) return fn(ctx, t);
    const halving h = {t, fn, ctx};
    return halve(&h, 0, t->nq, 0);
}

/* ---- with a causal mask ---------------------------------------------------------------------- */

/* Query p stands in the row of the last key it sees, those that see all of them one after the
 * other behind it: row sees(first) + p. In pieces that fit into m rows. */
static pare_status split_rows(const pare_tile *t, uint32_t m, pare_tile_fn fn, void *ctx)
{
    pare_status st = PARE_OK;
    PARE_ASSERT(t->nk + 1 <= m);
    for (size_t a = 0; a < t->nq && !st;) {
        const size_t sees = pare_tile_sees(t, a), space = m - sees;
        const size_t b = t->nq - a < space ? t->nq : a + space;
        pare_tile piece = sub_tile(t, a, b, 0, t->nk);
        piece.vis0 = t->vis0 == PARE_VIS_ALL ? (int64_t)t->nk : t->vis0 + (int64_t)a;
        st = fn(ctx, &piece);
        a = b;
    }
    return st;
}

/* Both lists the other way round, without the queries that see nothing then. */
static bool reverse_tile(pare_tile *out, const pare_tile *t)
{
    if (t->nk < 2) return false;
    const size_t nq = t->nq < t->nk - 1 ? t->nq : t->nk - 1; /* queries 0 .. nq-1 see a key */
    *out = sub_tile(t, 0, nq, 0, t->nk);
    out->q0 = pare_tile_query(t, nq - 1);
    out->q_down = !t->q_down;
    if (t->keys)
        out->keys = t->k_down ? t->keys - (t->nk - 1) : t->keys + (t->nk - 1);
    else
        out->k0 = pare_tile_key(t, t->nk - 1);
    out->k_down = !t->k_down;
    out->vis0 = (int64_t)t->nk - (int64_t)nq;
    return true;
}

pare_status tile_to_stairs(const pare_tile *t, uint32_t m, pare_tile_fn fn, void *ctx)
{
    if (t->vis0 != PARE_VIS_ALL || t->nq == 1) return split_rows(t, m, fn, ctx);
    PARE_ASSERT(!t->rows && !t->shared);
    pare_tile forward = *t, back;
    forward.vis0 = 1;
    pare_status st = split_rows(&forward, m, fn, ctx);
    if (!st && reverse_tile(&back, t)) st = split_rows(&back, m, fn, ctx);
    return st;
}
