/* mode_sample.c - attention to a random sample of the keys (Yu 2025, Theorem 4.1;
 * docs/theory/length.md "Sampling (Theorem 4.1)").
 *
 * Full attention: each block of queries sees g blocks of M - 1 keys, drawn without replacement.
 * Rows whose bound (sampling_bound.c) is too large are sampled again with twice as many keys, in
 * the end with all of them, regrouped. The theorem's own condition on M is vacuous at any size in
 * use, and its permutation is data movement: no call of M tokens moves tokens of other chunks
 * (docs/errata.md).
 *
 * Causal attention, an extension: a block of M - 1 queries sees its own block exactly, and of the P
 * keys before it n that are drawn, each of which stands for P / n. Blocks with at most n keys
 * before them see all of them. The drawn parts of all rows come first, are multiplied by P / n, and
 * the own blocks are added to them: calls of one round all the same, for they do not depend on one
 * another. */
#include "attend_plan.h"
#include "sampling.h"
#include <string.h>

/* ---- full attention -------------------------------------------------------------------------- */

typedef struct open_rows { /* rows of each head that are not proven yet */
    uint32_t **rows;
    size_t *count;
} open_rows;

static size_t total_open(const length_run *r, const open_rows *w)
{
    size_t n = 0;
    for (size_t a = 0; a < r->in.nheads; a++) n += w->count[a];
    return n;
}

/* Every block of open rows with the keys that are drawn for it, or with all. Lists of keys live in
 * the arena, since calls may wait in a batch. */
static pare_status sample_rows(sampling *s, const open_rows *w, bool all)
{
    length_run *const r = s->r;
    const size_t m = r->in.rule.m;
    for (size_t a = 0; a < r->in.nheads; a++)
        for (size_t x = 0; x < w->count[a]; x++) {
            head_state *const h = &r->heads[a];
            const size_t i = w->rows[a][x];
            memset(h->acc + i * h->job.dv, 0, h->job.dv * sizeof(double));
            h->weight_sum[i] = 0;
            h->bad[i] = 0;
        }
    pare_status st = PARE_OK;
    round_begin(r, &zeroref_calls);
    for (size_t a = r->round.head = 0; a < r->in.nheads && !st; r->round.head = ++a)
        for (size_t q = 0; q < w->count[a] && !st; q += m) {
            const size_t left = w->count[a] - q, nq = left < m ? left : m;
            const uint32_t *const keys = all ? s->order : sampling_draw(s, a, q / m, r->in.n);
            if (!keys) st = pare_no_memory(r->in.err);
            for (size_t k = 0; k < s->keys && !st; k += m - 1) {
                const size_t nk = s->keys - k < m - 1 ? s->keys - k : m - 1;
                placed p = {.t = tile_of(0, nq, 0, nk, PARE_VIS_ALL), .k_at = 1};
                p.t.rows = w->rows[a] + q;
                p.t.keys = keys + k;
                st = round_add_call(r, &p, 1, (uint32_t)(nq > nk + 1 ? nq : nk + 1));
            }
        }
    st = round_end(r, st);
    r->round.extra = true;
    s->passes++;
    return st;
}

/* Rows that are proven leave the list. */
static pare_status close_proven(const sampling *s, open_rows *w)
{
    length_run *const r = s->r;
    const drawn d = {(double)s->keys, (double)s->keys, false};
    for (size_t a = 0; a < r->in.nheads; a++) {
        uint32_t *const rows = w->rows[a], *const open = pare_alloc(r->arena, w->count[a] + 1, 4);
        size_t left = 0;
        if (!open) return pare_no_memory(r->in.err);
        for (size_t x = 0; x < w->count[a]; x++) {
            double size;
            const double e = sampling_bound(s, a, rows[x], &d, &size);
            if (!sampling_accept(s, a, rows[x], e, size, r->in.opts.no_fallback))
                open[left++] = rows[x];
        }
        w->rows[a] = open;
        w->count[a] = left;
    }
    return PARE_OK;
}

static pare_status sample_full(length_run *r)
{
    const size_t n = r->in.n;
    sampling s;
    pare_status st = sampling_new(&s, r);
    if (st) return st;
    open_rows w = {.rows = pare_alloc(r->arena, r->in.nheads, sizeof *w.rows),
                   .count = pare_alloc(r->arena, r->in.nheads, sizeof *w.count)};
    if (!w.rows || !w.count) return pare_no_memory(r->in.err);
    for (size_t a = 0; a < r->in.nheads; a++) {
        w.rows[a] = pare_alloc(r->arena, n, sizeof **w.rows);
        if (!w.rows[a]) return pare_no_memory(r->in.err);
        for (uint32_t i = 0; i < n; i++) w.rows[a][i] = i;
        w.count[a] = n;
    }
    for (; !st && s.keys < n && total_open(r, &w); s.keys *= 2) {
        st = sample_rows(&s, &w, false);
        if (!st) st = close_proven(&s, &w);
    }
    if (st || !total_open(r, &w)) return st;
    s.keys = n; /* what is left is computed exactly */
    for (uint32_t i = 0; i < n; i++) s.order[i] = i;
    r->stats->exact_rows = total_open(r, &w);
    st = sample_rows(&s, &w, true);
    for (size_t a = 0; a < r->in.nheads; a++) {
        double *const bound = r->heads[a].job.bound;
        for (size_t x = 0; bound && x < w.count[a]; x++)
            bound[w.rows[a][x]] = sampling_exact_bound(&s, a, w.rows[a][x]);
    }
    return st ? st : zeroref_retry_bad_rows(r, &zeroref_calls);
}

/* ---- causal attention ------------------------------------------------------------------------ */

static const uint32_t *draw_for_head(void *ctx, size_t block, size_t of)
{
    sampling *const s = ctx;
    return sampling_draw(s, s->r->round.head, block, of);
}

static pare_status add_calls(sampling *s, bool own_blocks)
{
    length_run *const r = s->r;
    const causal_draw d = {draw_for_head, s, s->keys};
    pare_status st = PARE_OK;
    for (r->round.head = 0; r->round.head < r->in.nheads && !st; r->round.head++)
        st = calls_of_causal_sample(&r->in.rule, r->in.n, own_blocks ? NULL : &d, round_add_call, r,
                                    r->in.err);
    return round_end(r, st);
}

static size_t keys_before(const length_run *r, size_t i)
{
    return i / (r->in.rule.m - 1) * (r->in.rule.m - 1);
}

/* Rows of this pass: all of them at first, then the bad ones. */
static bool is_sampled(const length_run *r, const head_state *h, size_t i)
{
    return !r->round.only_bad || h->bad[i];
}

static pare_status sample_causal_rows(sampling *s)
{
    length_run *const r = s->r;
    accumulators_clear_bad(r);
    round_begin(r, &zeroref_calls);
    pare_status st = add_calls(s, false);
    for (size_t a = 0; a < r->in.nheads && !st; a++)
        for (size_t i = 0; i < r->in.n; i++) {
            head_state *const h = &r->heads[a];
            const size_t before = keys_before(r, i);
            if (before <= s->keys || !is_sampled(r, h, i)) continue;
            const double times = (double)before / (double)s->keys;
            h->weight_sum[i] *= times;
            for (size_t c = 0; c < h->job.dv; c++) h->acc[i * h->job.dv + c] *= times;
        }
    if (!st) st = add_calls(s, true);
    s->passes++;
    return st;
}

/* Rows that are not proven are bad: they are sampled again. How many there are. */
static uint64_t mark_unproven(sampling *s)
{
    length_run *const r = s->r;
    uint64_t left = 0;
    for (size_t a = 0; a < r->in.nheads; a++)
        for (size_t i = 0; i < r->in.n; i++) {
            head_state *const h = &r->heads[a];
            const size_t before = keys_before(r, i);
            if (!is_sampled(r, h, i)) continue;
            if (before > s->keys) {
                const drawn d = {(double)s->keys, (double)before, true};
                double size = 0;
                const double bound = sampling_bound(s, a, i, &d, &size);
                h->bad[i] = !sampling_accept(s, a, i, bound, size, r->in.opts.no_fallback);
            } else { /* has seen all its keys */
                if (h->job.bound) h->job.bound[i] = sampling_exact_bound(s, a, i);
                h->bad[i] =
                    !accumulators_finite(r, h, i) || !(h->weight_sum[i] >= r->in.caps.w_min);
            }
            left += h->bad[i];
        }
    return left;
}

static pare_status sample_causal(length_run *r)
{
    sampling s;
    uint64_t left = 1;
    pare_status st = sampling_new(&s, r);
    for (; !st && left && s.keys < r->in.n; s.keys *= 2) {
        st = sample_causal_rows(&s);
        if (!st) left = mark_unproven(&s);
        r->round.only_bad = true;
    }
    if (!st && left) { /* what is left is computed exactly */
        r->stats->exact_rows = r->round.only_bad ? left : r->in.n * r->in.nheads;
        for (size_t a = 0; a < r->in.nheads && !r->round.only_bad; a++)
            memset(r->heads[a].bad, 1, r->in.n); /* as many keys as there are: nothing was drawn */
        accumulators_clear_bad(r);
        st = round_pattern(r, &zeroref_calls);
        for (size_t a = 0; a < r->in.nheads && !st; a++)
            for (size_t i = 0; i < r->in.n; i++) {
                head_state *const h = &r->heads[a];
                if (!h->bad[i]) continue;
                if (h->job.bound) h->job.bound[i] = sampling_exact_bound(&s, a, i);
                h->bad[i] = !accumulators_finite(r, h, i);
            }
        r->round.only_bad = false;
        if (!st) st = zeroref_retry_bad_rows(r, &zeroref_calls);
    }
    r->round.only_bad = false;
    return st;
}

pare_status sample_attend(length_run *r)
{
    pare_status st = accumulators_new(r);
    if (!st) st = reference_choose(r);
    if (!st)
        st = r->in.rule.plain                     ? round_pattern(r, &plain_calls)
             : r->in.pattern->kind == PARE_CAUSAL ? sample_causal(r)
                                                  : sample_full(r);
    if (!st) accumulators_write(r);
    return st;
}
