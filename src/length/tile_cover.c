/* tile_cover.c - attention patterns as disjoint unions of staircase tiles (docs/theory/length.md
 * "Covers").
 *
 * A block of queries [b, b + nq) under a window of r keys sees three parts, none of which needs a
 * subtraction: its own block (a staircase), the lower boundary (a strict staircase when both lists
 * are reversed), and the middle, which every query sees whole. Sinks are a fourth part, as far as
 * they are not in the window; where every query of the block sees all of them, they are fused into
 * the tile of the own block, in front. */
#include "attend_plan.h"
#include "calls.h"

size_t pare_tile_query(const pare_tile *t, size_t p)
{
    if (t->rows) return t->rows[p];
    return t->q_down ? t->q0 - p : t->q0 + p;
}

size_t pare_tile_key(const pare_tile *t, size_t x)
{
    if (t->keys) return t->k_down ? *(t->keys - x) : t->keys[x];
    if (x < t->shared) return x;
    x -= t->shared;
    return t->k_down ? t->k0 - x : t->k0 + x;
}

size_t pare_tile_sees(const pare_tile *t, size_t p)
{
    if (t->vis0 == PARE_VIS_ALL) return t->nk;
    const int64_t n = t->vis0 + (int64_t)p;
    return n <= 0 ? 0 : n < (int64_t)t->nk ? (size_t)n : t->nk;
}

typedef struct cover {
    size_t n;
    uint32_t bq, bk, group;
    pare_tile_fn fn;
    void *ctx;
} cover;

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* All of queries [q0, q0 + nq) with all keys of [from, to), in blocks of at most bk. */
static pare_status cover_rect(const cover *c, size_t q0, uint32_t nq, size_t from, size_t to,
                              uint32_t bk)
{
    pare_status st = PARE_OK;
    for (size_t k = from; k < to && !st; k += bk) {
        const pare_tile t = tile_of(q0, nq, k, to - k < bk ? to - k : bk, PARE_VIS_ALL);
        st = c->fn(c->ctx, &t);
    }
    return st;
}

/* The end of the group of blocks that begins with row q. */
static size_t group_end(const cover *c, size_t q, uint32_t size)
{
    const size_t left = c->n - q, rows = (size_t)c->group * size;
    return left < rows ? c->n : q + rows;
}

static uint32_t block_rows(const cover *c, size_t q, uint32_t size)
{
    return (uint32_t)(c->n - q < size ? c->n - q : size);
}

static pare_status cover_full(const cover *c)
{
    pare_status st = PARE_OK;
    for (size_t q = 0, end; q < c->n && !st; q = end) {
        end = group_end(c, q, c->bq);
        for (size_t k = 0; k < c->n && !st; k += c->bk)
            for (size_t x = q; x < end && !st; x += c->bq)
                st = cover_rect(c, x, block_rows(c, x, c->bq), k, k + block_rows(c, k, c->bk),
                                c->bk);
    }
    return st;
}

static pare_status cover_causal(const cover *c)
{
    const uint32_t m = c->bq < c->bk ? c->bq : c->bk;
    pare_status st = PARE_OK;
    for (size_t q = 0, end; q < c->n && !st; q = end) {
        end = group_end(c, q, m);
        for (size_t x = q; x < end && !st; x += m) {
            const uint32_t nq = block_rows(c, x, m);
            const pare_tile own = tile_of(x, nq, x, nq, 1);
            st = c->fn(c->ctx, &own);
            if (!st && c->group == 1) st = cover_rect(c, x, nq, 0, x, m);
        }
        for (size_t k = 0; c->group > 1 && k < end && !st; k += m)
            for (size_t x = k < q ? q : k + m; x < end && !st; x += m)
                st = cover_rect(c, x, block_rows(c, x, m), k, k + m, m);
    }
    return st;
}

/* ---- windows and sinks ----------------------------------------------------------------------- */

static pare_status cover_window(const cover *c, const pare_pattern *p)
{
    const int64_t n = (int64_t)c->n, r = (int64_t)p->window;
    const int64_t s = p->sinks < c->n ? (int64_t)p->sinks : n, most = min_i64(c->bq, c->bk);
    const bool fuse = s > 0 && s <= (most - 1) / 2;
    const int64_t m = min_i64(fuse ? most - s : most, r); /* queries of a block */
    pare_status st = PARE_OK;
    for (int64_t b = 0; b < n && !st; b += m) {
        const int64_t nq = min_i64(m, n - b), end = b + nq - 1;
        const bool fused = fuse && b - r + 1 >= s;
        const uint32_t shared = fused ? (uint32_t)s : 0;
        const size_t first_row = (size_t)b, rows = (size_t)nq;
        pare_tile own = tile_of(first_row, rows, first_row, rows + shared, (int64_t)shared + 1);
        own.shared = shared;
        st = c->fn(c->ctx, &own);

        /* The boundary: query i sees keys i-r+1 .. below b-r+m: the later the fewer, so both lists
         * go downwards, from the last query that sees a key. */
        const int64_t low = max_i64(b - r + 1, 0), high = min_i64(b - r + m, b);
        const int64_t last = min_i64(end, high + r - 2);
        if (!st && high > low && last >= b) {
            pare_tile t = tile_of((size_t)last, (size_t)(last - b + 1), (size_t)(high - 1),
                                  (size_t)(high - low), high - max_i64(last - r + 1, low));
            t.q_down = t.k_down = true;
            st = c->fn(c->ctx, &t);
        }
        if (!st)
            st = cover_rect(c, first_row, (uint32_t)nq, (size_t)max_i64(b - r + m, 0), first_row,
                            c->bk);

        /* Query i sees the sinks j <= i-r, in blocks. */
        const int64_t sinks = fused ? 0 : min_i64(s, end - r + 1);
        for (int64_t k = 0; k < sinks && !st; k += c->bk) {
            const int64_t first = max_i64(b, k + r); /* sees key k */
            const int64_t nk = min_i64(sinks - k, c->bk), vis0 = first - r + 1 - k;
            const pare_tile t = tile_of((size_t)first, (size_t)(end - first + 1), (size_t)k,
                                        (size_t)nk, vis0 >= nk ? PARE_VIS_ALL : vis0);
            st = c->fn(c->ctx, &t);
        }
    }
    return st;
}

pare_status tiles_in_groups(size_t n, const pare_pattern *p, const pare_graph *g, uint32_t bq,
                            uint32_t bk, uint32_t group, pare_tile_fn fn, void *ctx)
{
    PARE_ASSERT(bq >= 1 && bk >= 1 && (p->kind != PARE_GRAPH || (g && g->n == n)));
    PARE_ASSERT(p->kind != PARE_WINDOW || p->window >= 1);
    const cover c = {n, bq, bk, group, fn, ctx};
    switch (p->kind) {
    case PARE_FULL:
        return cover_full(&c);
    case PARE_CAUSAL:
        return cover_causal(&c);
    case PARE_WINDOW:
        return p->window < n ? cover_window(&c, p) : cover_causal(&c);
    case PARE_GRAPH:
        break;
    }
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n; i++)
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1] && !st; e += bk) {
            const size_t left = g->ptr[i + 1] - e;
            pare_tile t = tile_of(i, 1, 0, left < bk ? left : bk, PARE_VIS_ALL);
            t.keys = g->idx + e;
            st = fn(ctx, &t);
        }
    return st;
}

pare_status pare_tiles(size_t n, const pare_pattern *p, const pare_graph *g, uint32_t bq,
                       uint32_t bk, pare_tile_fn fn, void *ctx)
{
    return tiles_in_groups(n, p, g, bq, bk, 1, fn, ctx);
}
