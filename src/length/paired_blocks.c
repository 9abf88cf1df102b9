/* Engines whose tokens carry one vector: in every row of a call query, key and value are those of
 * the same token, so that a token is d wide and not 2d (docs/theory/length.md "Strict plans and
 * Lemma 3.3").
 *
 * A call holds the reference and two blocks S_t, S_t' of floor((M-1)/2) tokens. Queries carry -P on
 * the block they must not see, keys 1 on their own: seen crosswise, one call gives both S_t x S_t'
 * and S_t' x S_t; with the two flags of the keys swapped, the two blocks by themselves. T(T-1)/2 +
 * ceil(T/2) calls for T blocks. */
#include "calls.h"

typedef struct unions {
    size_t n, m; /* tokens; of a block */
    call_fn fn;
    void *ctx;
} unions;

static uint32_t block_size(const unions *u, size_t t)
{
    const size_t from = t * u->m;
    return (uint32_t)(from >= u->n ? 0 : u->n - from < u->m ? u->n - from : u->m);
}

/* Block t stands in rows 1 and on, the other one behind it. */
static pare_status two_blocks(const unions *u, size_t t, size_t other, bool crossed)
{
    const uint32_t n[2] = {block_size(u, t), block_size(u, other)}, at[2] = {1, 1 + n[0]};
    const size_t from[2] = {t * u->m, other * u->m};
    placed p[2];
    for (size_t i = 0; i < 2; i++) {
        const size_t keys = crossed ? 1 - i : i;
        p[i] = (placed){
            .t = {.q0 = from[i], .nq = n[i], .k0 = from[keys], .nk = n[keys], .vis0 = PARE_VIS_ALL},
            .q_at = at[i],
            .k_at = at[keys]};
    }
    return u->fn(u->ctx, p, n[1] ? 2 : 1, 1 + n[0] + n[1]);
}

pare_status calls_of_unions(const call_rule *r, size_t n, call_fn fn, void *ctx)
{
    const unions u = {n, (r->m - 1) / 2, fn, ctx};
    pare_status st = PARE_OK;
    for (size_t t = 0; t * u.m < n && !st; t += 2) st = two_blocks(&u, t, t + 1, false);
    for (size_t t = 0; t * u.m < n; t++)
        for (size_t other = t + 1; other * u.m < n && !st; other++)
            st = two_blocks(&u, t, other, true);
    return st;
}
