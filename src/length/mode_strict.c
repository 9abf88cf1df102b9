/* mode_strict.c - strict plans: the merge is made by the oracle as well (docs/theory/length.md
 * "Strict plans and Lemma 3.3").
 *
 * The merge is a softmax: one token for each partial result, of logit log r - log w (its sum
 * relative to the row's reference) and value acc / r; both come from a token function. Rows of a
 * call are isolated by group codes, and a row's result is at its last token, so that causal oracles
 * can do it, too.
 *
 * More than M results of a row are merged in a tree: M - 1 of them beside a reference of logit 0
 * give (acc, r, w) once more, of the same form. Nothing is computed outside: rows are moved,
 * weights are compared with w_min, and references are chosen by norms or probes. */
#include "call_counts.h"
#include "group_codes.h"
#include "instances.h"
#include "modes.h"
#include "numbers.h"
#include <math.h>
#include "attend_plan.h"
#include "linalg/dd.h"
#include <string.h>

/* ---- partial results ------------------------------------------------------------------------- */

/* Saves the results; the accumulators only decide whether a row is bad. */
static bool save_and_merge(length_run *r, const pending_call *e, size_t row, size_t i, size_t n,
                           double *scale_old, double *scale_new)
{
    head_state *const h = &r->heads[e->head];
    const size_t b = pare_dtype_size(r->in.caps.dtype);
    for (size_t p = 0; p < n; p++) {
        const size_t at = (i + p) * r->partials.max + h->partial_count[i + p]++;
        PARE_ASSERT(h->partial_count[i + p] <= r->partials.max);
        memcpy(h->partials + at * r->partials.width * b, e->y + (row + p) * e->dv * b,
               (h->job.dv + 2) * b);
    }
    return zeroref_merge(r, e, row, i, n, scale_old, scale_new);
}

typedef struct partial_counter {
    uint32_t *partials; /* of each row */
    size_t most;
} partial_counter;

static pare_status count_partials(void *ctx, const placed *tiles, size_t count, uint32_t n)
{
    partial_counter *const c = ctx;
    (void)n;
    for (size_t x = 0; x < count; x++)
        for (size_t p = 0; p < tiles[x].t.nq; p++) {
            const size_t now = ++c->partials[pare_tile_query(&tiles[x].t, p)];
            if (now > c->most) c->most = now;
        }
    return PARE_OK;
}

static pare_status partials_new(length_run *r)
{
    const run_inputs *const in = &r->in;
    const pare_mark mark = pare_arena_mark(r->arena);
    partial_counter c = {.partials = pare_alloc(r->arena, in->n, sizeof *c.partials)};
    if (!c.partials) return pare_no_memory(in->err);
    const pare_status st =
        calls_of_pattern(&in->rule, in->n, in->pattern, in->graph, count_partials, &c, in->err);
    pare_arena_reset(r->arena, mark);
    if (st) return st;
    r->partials.max = c.most;
    for (size_t a = 0; a < in->nheads; a++) {
        const size_t width = r->heads[a].job.dv + 2;
        if (width > r->partials.width) r->partials.width = width;
    }
    for (size_t a = 0; a < in->nheads; a++) {
        head_state *const h = &r->heads[a];
        size_t numbers;
        h->partial_count = pare_alloc(r->arena, in->n, sizeof *h->partial_count);
        if (!h->partial_count || !pare_mul(&numbers, in->n, r->partials.max * r->partials.width) ||
            !(h->partials = pare_alloc(r->arena, numbers, pare_dtype_size(in->caps.dtype))))
            return pare_no_memory(in->err);
    }
    return PARE_OK;
}

/* ---- merge tokens ---------------------------------------------------------------------------- */

typedef struct merging { /* one level of the tree, for one head */
    length_run *r;
    size_t head;
    pare_dtype type;
    uint32_t dv, code;
    double pen;
    bool last;      /* rows come out; else partial results */
    size_t groups;  /* of a row */
    size_t size;    /* of a group, at most */
    size_t at_once; /* groups of a call */
} merging;

static uint32_t raw_width(const merging *m)
{
    return m->dv + 2 + 2 * m->code;
}

static uint32_t value_width(const merging *m)
{
    return m->last ? m->dv : m->dv + 2;
}

/* (acc, r, w, P u, v) -> q = (1, P u) | k = (log r - log w, v) | value = acc / r. A reference has
 * r < 0: logit 0 for everybody. */
static void merge_token(const void *ctx, uint32_t pos, const void *in, void *out)
{
    const merging *const m = ctx;
    const pare_dtype t = m->type;
    const uint32_t dk = 1 + m->code, at = m->dv + 2;
    const double mass = num_at(t, in, m->dv), w = num_at(t, in, m->dv + 1);
    (void)pos;
    for (uint32_t c = 0; c < 2 * dk + value_width(m); c++) num_put(t, out, c, 0);
    if (mass < 0) {
        if (!m->last) num_put(t, out, 2 * dk + m->dv + 1, 1);
        return;
    }
    num_put(t, out, 0, 1);
    num_put(t, out, dk, mass > 0 ? pare_dd_log(mass).hi - pare_dd_log(w).hi : -m->pen);
    for (uint32_t c = 0; c < m->code; c++) {
        num_put(t, out, 1 + c, num_at(t, in, at + c));
        num_put(t, out, dk + 1 + c, num_at(t, in, at + m->code + c));
    }
    for (uint32_t c = 0; mass > 0 && c < m->dv; c++)
        num_put(t, out, 2 * dk + c, num_at(t, in, c) / mass);
    if (!m->last) num_put(t, out, 2 * dk + m->dv, mass > 0);
}

/* ---- one level ------------------------------------------------------------------------------- */

typedef struct merge_call {
    instance i;
    char *raw;
    size_t first, groups; /* the groups it holds, counted over all rows */
    uint32_t *end;        /* the row of each group's last token; 0: it has none */
} merge_call;

static pare_status lay_out(merge_call *c, const merging *m, const pare_tokfn *phi, pare_arena *a)
{
    const length_run *const r = m->r;
    const head_state *const h = &r->heads[m->head];
    const size_t b = pare_dtype_size(m->type), raw = raw_width(m), code = m->dv + 2;
    uint32_t n = m->last ? 0 : 1; /* behind the reference */
    c->raw = pare_alloc(a, r->in.rule.m * raw, b);
    c->end = pare_alloc(a, c->groups, sizeof *c->end);
    char *const y = pare_alloc(a, (size_t)r->in.rule.m * value_width(m), b);
    if (!c->raw || !c->end || !y) return pare_no_memory(r->in.err);
    if (!m->last) num_put(m->type, c->raw, m->dv, -1);
    for (size_t g = 0; g < c->groups; g++) {
        const size_t row = (c->first + g) / m->groups, have = h->partial_count[row];
        const size_t begin = (c->first + g) % m->groups * m->size,
                     from = begin < have ? begin : have;
        const size_t to = have - from < m->size ? have : from + m->size;
        const uint64_t bits = m->code ? group_bits(m->code, g) : 0;
        for (size_t x = from; x < to; x++, n++) {
            char *const at = c->raw + n * raw * b;
            memcpy(at, h->partials + (row * r->partials.max + x) * r->partials.width * b, code * b);
            put_query_code(m->type, at, code, m->code, bits, m->pen);
            put_key_code(m->type, at, code + m->code, m->code, bits);
        }
        c->end[g] = to > from ? n : 0;
    }
    if (!n) n = 1;
    c->i = (instance){.n = rule_pads(&r->in.rule, &r->in.caps) ? r->in.rule.m : n,
                      .dk = 1 + m->code,
                      .dv = value_width(m),
                      .causal = r->in.rule.kind == CALL_CAUSAL,
                      .raw = c->raw,
                      .phi = phi,
                      .y = y};
    return PARE_OK;
}

/* What all heads have left to merge, in one round. */
typedef struct level {
    merging *m;
    pare_tokfn *phi;
    merge_call *calls;
    instance *list;
    size_t count;
} level;

static merging merging_of(length_run *r, size_t at, uint64_t parts)
{
    const head_state *const h = &r->heads[at];
    double c = 0;
    for (size_t i = 0; h->ref_logit && i < r->in.n; i++) c = fmax(c, fabs(h->ref_logit[i]));
    merging m = {.r = r, .head = at, .type = r->in.caps.dtype, .dv = (uint32_t)h->job.dv};
    m.last = parts <= r->in.rule.m;
    m.size = m.last ? (size_t)parts : r->in.rule.m - 1;
    m.groups = (size_t)((parts + m.size - 1) / m.size);
    m.at_once = m.last ? r->in.rule.m / m.size : 1;
    m.code = group_width(m.at_once);
    m.pen = penalty(m.type, r->in.caps.exp_flush, h->lmax + c + log((double)r->in.n + 2) + 2);
    return m;
}

static pare_status level_new(level *l, length_run *r, uint64_t parts, pare_arena *a)
{
    const merging one = merging_of(r, 0, parts);
    const size_t each = (r->in.n * one.groups + one.at_once - 1) / one.at_once;
    l->m = pare_alloc(a, r->in.nheads, sizeof *l->m);
    l->phi = pare_alloc(a, r->in.nheads, sizeof *l->phi);
    l->calls = pare_alloc(a, each * r->in.nheads, sizeof *l->calls);
    l->list = pare_alloc(a, each * r->in.nheads, sizeof *l->list);
    if (!l->m || !l->phi || !l->calls || !l->list) return pare_no_memory(r->in.err);
    pare_status st = PARE_OK;
    for (size_t at = 0; at < r->in.nheads; at++) {
        merging *const m = &l->m[at];
        *m = merging_of(r, at, parts);
        l->phi[at] = (pare_tokfn){.name = "merge",
                                  .din = raw_width(m),
                                  .dout = 2 * (1 + m->code) + value_width(m),
                                  .fn = merge_token,
                                  .ctx = m};
        for (size_t x = 0; x < each && !st; x++) {
            merge_call *const c = &l->calls[l->count];
            const size_t left = r->in.n * m->groups - x * m->at_once;
            c->first = x * m->at_once;
            c->groups = left < m->at_once ? left : m->at_once;
            st = lay_out(c, m, &l->phi[at], a);
            l->list[l->count++] = c->i;
        }
    }
    return st;
}

/* Results of a level: rows of y, or partial results in place of the old ones. */
static pare_status take_results(length_run *r, const level *l, pare_arena *a)
{
    const size_t b = pare_dtype_size(r->in.caps.dtype), each = l->count / r->in.nheads;
    const size_t max = r->partials.max, width = r->partials.width;
    for (size_t head = 0; head < r->in.nheads; head++) {
        head_state *const h = &r->heads[head];
        const merging *const m = &l->m[head];
        const size_t wide = value_width(m);
        char *const next = pare_alloc(a, r->in.n * max * width, b);
        uint32_t *const count = pare_alloc(a, r->in.n, sizeof *count);
        if (!next || !count) return pare_no_memory(r->in.err);
        for (size_t x = 0; x < each; x++) {
            const merge_call *const c = &l->calls[head * each + x];
            for (size_t g = 0; g < c->groups; g++) {
                const size_t row = (c->first + g) / m->groups;
                if (!c->end[g]) continue;
                const char *const from = c->i.y + (c->end[g] - 1) * wide * b;
                if (m->last)
                    memcpy((char *)h->job.y + row * h->job.ldy * b, from, m->dv * b);
                else
                    memcpy(next + (row * max + count[row]++) * width * b, from, wide * b);
            }
        }
        if (m->last) continue;
        memcpy(h->partials, next, r->in.n * max * width * b);
        memcpy(h->partial_count, count, r->in.n * sizeof *count);
    }
    return PARE_OK;
}

static pare_status merge_level(length_run *r, uint64_t *parts)
{
    pare_arena *const a = pare_arena_new();
    level l = {0};
    pare_status st = a ? level_new(&l, r, *parts, a) : pare_no_memory(r->in.err);
    const uint64_t before = r->stats->calls;
    if (!st) st = instances_run(&r->in, l.list, l.count, &r->stats->calls);
    if (!st) {
        r->stats->merge_calls += r->stats->calls - before;
        r->stats->rounds++;
        st = take_results(r, &l, a);
        *parts = l.m[0].last ? 1 : l.m[0].groups;
    }
    pare_arena_free(a);
    return st;
}

/* ---- the mode -------------------------------------------------------------------------------- */

pare_status strict_attend(length_run *r)
{
    call_ops strict_calls = zeroref_calls;
    strict_calls.merge = save_and_merge;
    pare_status st = r->in.rule.plain ? PARE_OK : partials_new(r);
    if (!st) st = rule_merges(&r->in.rule, r->partials.max, r->in.err);
    if (!st) st = zeroref_rounds(r, &strict_calls);
    r->stats->max_partials = r->partials.max;
    if (st) return st;
    accumulators_write(r); /* rows without a key, and all rows where there is nothing to merge */
    uint64_t parts = r->in.rule.plain ? 1 : r->partials.max;
    while (parts > 1 && !st) st = merge_level(r, &parts);
    for (size_t a = 0; a < r->in.nheads && !st; a++) {
        const pare_length_job *const j = &r->heads[a].job;
        for (size_t i = 0; i < r->in.n * j->dv && !st; i++)
            if (!isfinite(num_at(r->in.caps.dtype, j->y, i / j->dv * j->ldy + i % j->dv)))
                st = pare_fail(r->in.err, PARE_ERR_NUMERIC,
                               "length: row %zu of head %zu: a merge call answers no number",
                               i / j->dv, a);
    }
    return st;
}
