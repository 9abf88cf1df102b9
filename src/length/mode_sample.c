/* Sampling (Yu 2025, Theorem 4.1; docs/theory/length.md "Sampling (Theorem 4.1)"): query block t
 * sees g blocks of M - 1 keys, drawn without replacement. Rows whose bound (sampling_bound.c) is
 * too large look again at twice as many keys, in the end at all of them, regrouped. The theorem's
 * own condition on M is vacuous at any size in use, and its permutation is data movement: no call
 * of M tokens moves tokens of other chunks (docs/errata.md). */
#include "sampling.h"
#include <string.h>

typedef struct looks {
    sampling s;
    uint32_t **rows; /* of each head: those still to be settled */
    size_t *count;
} looks;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Calls of every block of unsettled queries with the keys in `order`; copies live in the arena, for
 * calls may wait in a batch. */
static pare_status ask(looks *w, bool all)
{
    sampling *const s = &w->s;
    length_run *const r = s->r;
    pare_status st = PARE_OK;
    const size_t m = r->in.rule.m;
    for (r->round.head = 0; r->round.head < r->in.nheads && !st; r->round.head++)
        for (size_t q = 0; q < w->count[r->round.head] && !st; q += m) {
            const size_t nq = least(m, w->count[r->round.head] - q);
            const uint32_t *const keys =
                all ? s->order : sampling_draw(s, r->round.head, q / m, r->in.n);
            if (!keys) return pare_no_memory(r->in.err);
            for (size_t k = 0; k < s->keys && !st; k += m - 1) {
                const placed p = {.t = {.rows = w->rows[r->round.head] + q,
                                        .nq = (uint32_t)nq,
                                        .keys = keys + k,
                                        .nk = (uint32_t)least(m - 1, s->keys - k),
                                        .vis0 = PARE_VIS_ALL},
                                  .k_at = 1};
                st = round_add_call(r, &p, 1, (uint32_t)(nq > p.t.nk + 1 ? nq : p.t.nk + 1));
            }
        }
    return st;
}

static void begin_look(looks *w)
{
    length_run *const r = w->s.r;
    for (size_t a = 0; a < r->in.nheads; a++)
        for (size_t x = 0; x < w->count[a]; x++) {
            const size_t i = w->rows[a][x];
            memset(r->heads[a].acc + i * r->heads[a].job.dv, 0,
                   r->heads[a].job.dv * sizeof(double));
            r->heads[a].weight_sum[i] = 0;
            r->heads[a].bad[i] = 0;
        }
}

/* Rows that are proven leave the list. */
static pare_status settle(looks *w)
{
    sampling *const s = &w->s;
    length_run *const r = s->r;
    const drawn d = {(double)s->keys, (double)s->keys, false};
    for (size_t a = 0; a < r->in.nheads; a++) {
        uint32_t *const rows = w->rows[a], *const kept = pare_alloc(r->arena, w->count[a] + 1, 4);
        size_t left = 0;
        if (!kept) return pare_no_memory(r->in.err);
        for (size_t x = 0; x < w->count[a]; x++) {
            double size;
            const double e = sampling_bound(s, a, rows[x], &d, &size);
            if (!sampling_settle(s, a, rows[x], e, size, r->in.opts.no_fallback))
                kept[left++] = rows[x];
        }
        w->rows[a] = kept;
        w->count[a] = left;
    }
    return PARE_OK;
}

static size_t unsettled(const looks *w)
{
    size_t n = 0;
    for (size_t a = 0; a < w->s.r->in.nheads; a++) n += w->count[a];
    return n;
}

static pare_status look(looks *w, bool all)
{
    length_run *const r = w->s.r;
    begin_look(w);
    round_begin(r, &zeroref_calls);
    pare_status st = round_end(r, ask(w, all));
    r->round.extra = true;
    w->s.looks++;
    return st;
}

/* What is left is computed exactly. */
static pare_status exact(looks *w)
{
    length_run *const r = w->s.r;
    w->s.keys = r->in.n;
    for (uint32_t i = 0; i < r->in.n; i++) w->s.order[i] = i;
    r->stats->exact_rows = unsettled(w);
    const pare_status st = look(w, true);
    for (size_t a = 0; a < r->in.nheads; a++) /* what is left is rounding */
        for (size_t x = 0; r->heads[a].job.bound && x < w->count[a]; x++)
            r->heads[a].job.bound[w->rows[a][x]] = sampling_exact_bound(&w->s, a, w->rows[a][x]);
    return st ? st : zeroref_retry_bad_rows(r, &zeroref_calls);
}

static pare_status start(looks *w, length_run *r)
{
    const pare_status st = sampling_new(&w->s, r);
    if (st) return st;
    w->rows = pare_alloc(r->arena, r->in.nheads, sizeof *w->rows);
    w->count = pare_alloc(r->arena, r->in.nheads, sizeof *w->count);
    if (!w->rows || !w->count) return pare_no_memory(r->in.err);
    for (size_t a = 0; a < r->in.nheads; a++) {
        w->rows[a] = pare_alloc(r->arena, r->in.n, sizeof **w->rows);
        if (!w->rows[a]) return pare_no_memory(r->in.err);
        for (uint32_t i = 0; i < r->in.n; i++) w->rows[a][i] = i;
        w->count[a] = r->in.n;
    }
    return PARE_OK;
}

static pare_status sample_full(length_run *r)
{
    looks w;
    pare_status st = start(&w, r);
    while (!st && w.s.keys < r->in.n && unsettled(&w)) {
        st = look(&w, false);
        if (!st) st = settle(&w);
        w.s.keys *= 2;
    }
    return !st && unsettled(&w) ? exact(&w) : st;
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
