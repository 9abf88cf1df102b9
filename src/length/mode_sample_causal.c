/* Sampling under a causal mask, an extension of Theorem 4.1 of Yu 2025 (docs/theory/length.md
 * "Sampling (Theorem 4.1)"): a block of M - 1 queries sees its own block exactly, and of the P keys
 * before it n that are drawn, each of which stands for P / n. Blocks with at most n keys before
 * them see all of them.
 *
 * The drawn parts of all rows come first, are multiplied by P / n, and the own blocks are added to
 * them: calls of one round all the same, for they do not depend on one another. Rows that are not
 * proven look again at twice as many keys, in the end at all. */
#include "sampling.h"

/* ---- the calls: sizes alone decide how many -------------------------------------------------- */

/* The own blocks of queries. */
static pare_status own_tiles(size_t n, uint32_t m, packer *pack)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; b < n && !st; b += m) {
        const uint32_t nq = (uint32_t)(n - b < m ? n - b : m);
        const pare_tile t = {.q0 = b, .nq = nq, .k0 = b, .nk = nq, .vis0 = 1};
        st = packer_add(pack, &t);
    }
    return st;
}

/* Of the keys before block b those in the list, or all of them. */
static pare_status tiles_before(size_t b, uint32_t nq, uint32_t m, const uint32_t *list,
                                size_t keys, packer *pack)
{
    pare_status st = PARE_OK;
    for (size_t k = 0; k < keys && !st; k += m) {
        const pare_tile t = {.q0 = b,
                             .nq = nq,
                             .k0 = k,
                             .nk = (uint32_t)(keys - k < m ? keys - k : m),
                             .keys = list ? list + k : NULL,
                             .vis0 = PARE_VIS_ALL};
        st = packer_add(pack, &t);
    }
    return st;
}

static pare_status drawn_tiles(size_t n, uint32_t m, const causal_draw *d, packer *pack,
                               pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t b = m; b < n && !st; b += m) {
        const bool all = b <= d->keys;
        const uint32_t *const list = all ? NULL : d->fn(d->ctx, b / m, b);
        if (!all && !list) return pare_no_memory(err);
        st = tiles_before(b, (uint32_t)(n - b < m ? n - b : m), m, list, all ? b : d->keys, pack);
    }
    return st;
}

pare_status calls_of_causal_sample(const call_rule *r, size_t n, const causal_draw *d, call_fn fn,
                                   void *ctx, pare_err *err)
{
    packer *const pack = packer_new(r, fn, ctx, err);
    if (!pack) return PARE_ERR_MEMORY;
    const pare_status st =
        d ? drawn_tiles(n, r->m - 1, d, pack, err) : own_tiles(n, r->m - 1, pack);
    return packer_end(pack, st);
}

/* ---- a look ---------------------------------------------------------------------------------- */

static const uint32_t *draw_for_head(void *ctx, size_t block, size_t of)
{
    sampling *const s = ctx;
    return sampling_draw(s, s->r->round.head, block, of);
}

static pare_status ask(sampling *s, bool own)
{
    length_run *const r = s->r;
    const causal_draw d = {draw_for_head, s, s->keys};
    pare_status st = PARE_OK;
    for (r->round.head = 0; r->round.head < r->in.nheads && !st; r->round.head++)
        st = calls_of_causal_sample(&r->in.rule, r->in.n, own ? NULL : &d, round_add_call, r,
                                    r->in.err);
    return round_end(r, st);
}

static size_t keys_before(const length_run *r, size_t i)
{
    return i / (r->in.rule.m - 1) * (r->in.rule.m - 1);
}

/* Rows of this look: all of them at first, then the bad ones. */
static bool looks_at(const length_run *r, const head_state *h, size_t i)
{
    return !r->round.only_bad || h->bad[i];
}

static void weigh_drawn(sampling *s)
{
    length_run *const r = s->r;
    for (size_t a = 0; a < r->in.nheads; a++)
        for (size_t i = 0; i < r->in.n; i++) {
            head_state *const h = &r->heads[a];
            const size_t before = keys_before(r, i);
            if (before <= s->keys || !looks_at(r, h, i)) continue;
            const double times = (double)before / (double)s->keys;
            h->weight_sum[i] *= times;
            for (size_t c = 0; c < h->job.dv; c++) h->acc[i * h->job.dv + c] *= times;
        }
}

static pare_status look(sampling *s)
{
    length_run *const r = s->r;
    accumulators_clear_bad(r);
    round_begin(r, &zeroref_calls);
    pare_status st = ask(s, false);
    if (!st) weigh_drawn(s);
    if (!st) st = ask(s, true);
    s->looks++;
    return st;
}

/* Rows that are not proven are bad: they look again. */
static uint64_t settle(sampling *s)
{
    length_run *const r = s->r;
    uint64_t left = 0;
    for (size_t a = 0; a < r->in.nheads; a++)
        for (size_t i = 0; i < r->in.n; i++) {
            head_state *const h = &r->heads[a];
            const size_t before = keys_before(r, i);
            const drawn d = {(double)s->keys, (double)before, true};
            double size = 0, bound = 0;
            if (!looks_at(r, h, i)) continue;
            if (before > s->keys)
                bound = sampling_bound(s, a, i, &d, &size);
            else if (h->job.bound) /* has seen all its keys */
                h->job.bound[i] = sampling_exact_bound(s, a, i);
            h->bad[i] =
                before > s->keys
                    ? !sampling_settle(s, a, i, bound, size, r->in.opts.no_fallback)
                    : !accumulators_finite(r, h, i) || !(h->weight_sum[i] >= r->in.caps.w_min);
            left += h->bad[i];
        }
    return left;
}

/* ---- what is left is computed ---------------------------------------------------------------- */

static pare_status exact(sampling *s)
{
    length_run *const r = s->r;
    accumulators_clear_bad(r);
    const pare_status st = round_pattern(r, &zeroref_calls);
    for (size_t a = 0; a < r->in.nheads && !st; a++)
        for (size_t i = 0; i < r->in.n; i++) {
            head_state *const h = &r->heads[a];
            if (!h->bad[i]) continue;
            if (h->job.bound) h->job.bound[i] = sampling_exact_bound(s, a, i);
            h->bad[i] = !accumulators_finite(r, h, i);
        }
    r->round.only_bad = false;
    return st ? st : zeroref_retry_bad_rows(r, &zeroref_calls);
}

pare_status sample_causal(length_run *r)
{
    sampling s;
    uint64_t left = 1;
    pare_status st = sampling_new(&s, r);
    while (!st && left && s.keys < r->in.n) {
        st = look(&s);
        if (!st) left = settle(&s);
        r->round.only_bad = true;
        s.keys *= 2;
    }
    if (!st && left) {
        r->stats->exact_rows = r->round.only_bad ? left : r->in.n * r->in.nheads;
        if (!r->round.only_bad) /* as many keys as there are: nothing was drawn */
            for (size_t a = 0; a < r->in.nheads; a++)
                for (size_t i = 0; i < r->in.n; i++) r->heads[a].bad[i] = 1;
        st = exact(&s);
    }
    r->round.only_bad = false;
    return st;
}
