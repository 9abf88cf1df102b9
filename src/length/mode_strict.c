/* Strict plans: the merge is made by the oracle as well (docs/theory/length.md "Strict plans and
 * Lemma 3.3"). It is a softmax: a token for each partial result, logit log r - log w (its sum
 * relative to the row's reference), value acc / r; both come from a token function. Rows of a call
 * are isolated by group codes, and a row's result stands at its last token, so that causal oracles
 * do it too.
 *
 * More than M results of a row are merged in a tree: M - 1 of them beside a reference of logit 0
 * give (acc, r, w) once more, of the same form. Nothing is computed outside: rows are moved,
 * weights are compared with w_min, and references are chosen by norms or probes. */
#include "group_codes.h"
#include <pare/dd.h>
#include "call_counts.h"
#include "instances.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- keeping partial results ----------------------------------------------------------------- */

static void keep_row(run *r, const entry *e, size_t row, size_t i)
{
    head *const h = &r->heads[e->head];
    const size_t b = pare_dtype_size(r->caps.dtype);
    const size_t at = i * r->most_parts + h->nparts[i]++;
    PARE_ASSERT(h->nparts[i] <= r->most_parts);
    memcpy(h->parts + at * r->part_width * b, e->y + row * e->dv * b, (h->job.dv + 2) * b);
}

/* The sums say whether a row is bad, and nothing else. */
static bool keep_part(run *r, const entry *e, size_t row, size_t i, size_t n, double *keep,
                      double *by)
{
    for (size_t p = 0; p < n; p++) keep_row(r, e, row + p, i + p);
    return zeroref_part(r, e, row, i, n, keep, by);
}

typedef struct counter {
    uint32_t *parts;
    size_t most;
} counter;

static pare_status count_parts(void *ctx, const placed *tiles, size_t count, uint32_t n)
{
    counter *const c = ctx;
    (void)n;
    for (size_t x = 0; x < count; x++)
        for (size_t p = 0; p < tiles[x].t.nq; p++) {
            const size_t now = ++c->parts[pare_tile_query(&tiles[x].t, p)];
            if (now > c->most) c->most = now;
        }
    return PARE_OK;
}

static pare_status make_parts(run *r)
{
    const pare_mark mark = pare_arena_mark(r->arena);
    counter c = {.parts = pare_alloc(r->arena, r->n, sizeof *c.parts)};
    if (!c.parts) return pare_no_memory(r->err);
    const pare_status st = calls_of_pattern(&r->rule, r->n, r->p, r->g, count_parts, &c, r->err);
    pare_arena_reset(r->arena, mark);
    if (st) return st;
    r->most_parts = c.most;
    for (size_t a = 0; a < r->count; a++) {
        head *const h = &r->heads[a];
        if (h->job.dv + 2 > r->part_width) r->part_width = h->job.dv + 2;
    }
    for (size_t a = 0; a < r->count; a++) {
        head *const h = &r->heads[a];
        size_t rows;
        h->nparts = pare_alloc(r->arena, r->n, sizeof *h->nparts);
        if (!h->nparts || !pare_mul(&rows, r->n, r->most_parts * r->part_width) ||
            !(h->parts = pare_alloc(r->arena, rows, pare_dtype_size(r->caps.dtype))))
            return pare_no_memory(r->err);
    }
    return PARE_OK;
}

/* ---- merge tokens ---------------------------------------------------------------------------- */

typedef struct merging { /* one level of the tree, for one head */
    run *r;
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

static void put_group(const merging *m, char *row, size_t g)
{
    const uint64_t bits = m->code ? group_bits(m->code, g) : 0;
    for (uint32_t b = 0; b < m->code; b++) {
        const bool in = bits >> b & 1;
        num_put(m->type, row, m->dv + 2 + b, in ? 0 : -m->pen);
        num_put(m->type, row, m->dv + 2 + m->code + b, in ? 1 : 0);
    }
}

/* ---- one level ------------------------------------------------------------------------------- */

typedef struct merge_call {
    instance i;
    char *raw;
    size_t first, groups; /* the groups it holds, counted over all rows */
    uint32_t *end;        /* the row of each group's last token; 0: it has none */
} merge_call;

/* Parts [from, to) of row i that group g has. */
static void part_range(const merging *m, size_t group, size_t *row, size_t *from, size_t *to)
{
    const head *const h = &m->r->heads[m->head];
    *row = group / m->groups;
    *from = group % m->groups * m->size;
    const size_t have = h->nparts[*row];
    if (*from > have) *from = have;
    *to = have - *from < m->size ? have : *from + m->size;
}

static pare_status lay_out(merge_call *c, const merging *m, const pare_tokfn *phi, pare_arena *a)
{
    const run *const r = m->r;
    const head *const h = &r->heads[m->head];
    const size_t b = pare_dtype_size(m->type), raw = raw_width(m), lead = m->last ? 0 : 1;
    const bool pads = rule_pads(&r->rule, &r->caps);
    uint32_t n = (uint32_t)lead;
    c->raw = pare_alloc(a, r->rule.m * raw, b);
    c->end = pare_alloc(a, c->groups, sizeof *c->end);
    char *const y = pare_alloc(a, (size_t)r->rule.m * value_width(m), b);
    if (!c->raw || !c->end || !y) return pare_no_memory(r->err);
    if (lead) num_put(m->type, c->raw, m->dv, -1);
    for (size_t g = 0; g < c->groups; g++) {
        size_t row, from, to;
        part_range(m, c->first + g, &row, &from, &to);
        for (size_t x = from; x < to; x++, n++) {
            char *const at = c->raw + n * raw * b;
            memcpy(at, h->parts + (row * r->most_parts + x) * r->part_width * b, (m->dv + 2) * b);
            put_group(m, at, g);
        }
        c->end[g] = to > from ? n : 0;
    }
    if (!n) n = 1;
    c->i = (instance){.n = pads ? r->rule.m : n,
                      .dk = 1 + m->code,
                      .dv = value_width(m),
                      .causal = r->rule.kind == CALL_CAUSAL,
                      .raw = c->raw,
                      .phi = phi,
                      .y = y};
    return PARE_OK;
}

static void take_groups(const merge_call *c, const merging *m, char *next, uint32_t *count)
{
    const run *const r = m->r;
    const head *const h = &r->heads[m->head];
    const size_t b = pare_dtype_size(m->type), wide = value_width(m);
    for (size_t g = 0; g < c->groups; g++) {
        const size_t group = c->first + g, row = group / m->groups;
        if (!c->end[g]) continue;
        const char *const from = c->i.y + (c->end[g] - 1) * wide * b;
        if (m->last)
            memcpy((char *)h->job.y + row * h->job.ldy * b, from, m->dv * b);
        else
            memcpy(next + (row * r->most_parts + count[row]++) * r->part_width * b, from, wide * b);
    }
}

/* What all heads have left to merge, in one round. */
typedef struct level {
    merging *m;
    pare_tokfn *phi;
    merge_call *calls;
    instance *list;
    size_t count;
} level;

static merging merging_of(run *r, size_t at, uint64_t parts)
{
    const head *const h = &r->heads[at];
    double c = 0;
    for (size_t i = 0; h->c && i < r->n; i++) c = fmax(c, fabs(h->c[i]));
    merging m = {.r = r, .head = at, .type = r->caps.dtype, .dv = (uint32_t)h->job.dv};
    m.last = parts <= r->rule.m;
    m.size = m.last ? (size_t)parts : r->rule.m - 1;
    m.groups = (size_t)((parts + m.size - 1) / m.size);
    m.at_once = m.last ? r->rule.m / m.size : 1;
    m.code = group_width(m.at_once);
    m.pen = penalty(m.type, r->caps.exp_flush, h->lmax + c + log((double)r->n + 2) + 2);
    return m;
}

static pare_status make_level(level *l, run *r, uint64_t parts, pare_arena *a)
{
    const merging one = merging_of(r, 0, parts);
    const size_t each = (r->n * one.groups + one.at_once - 1) / one.at_once;
    l->m = pare_alloc(a, r->count, sizeof *l->m);
    l->phi = pare_alloc(a, r->count, sizeof *l->phi);
    l->calls = pare_alloc(a, each * r->count, sizeof *l->calls);
    l->list = pare_alloc(a, each * r->count, sizeof *l->list);
    if (!l->m || !l->phi || !l->calls || !l->list) return pare_no_memory(r->err);
    pare_status st = PARE_OK;
    for (size_t at = 0; at < r->count; at++) {
        merging *const m = &l->m[at];
        *m = merging_of(r, at, parts);
        l->phi[at] = (pare_tokfn){.name = "merge",
                                  .din = raw_width(m),
                                  .dout = 2 * (1 + m->code) + value_width(m),
                                  .fn = merge_token,
                                  .ctx = m};
        for (size_t x = 0; x < each && !st; x++) {
            merge_call *const c = &l->calls[l->count];
            const size_t left = r->n * m->groups - x * m->at_once;
            c->first = x * m->at_once;
            c->groups = left < m->at_once ? left : m->at_once;
            st = lay_out(c, m, &l->phi[at], a);
            l->list[l->count++] = c->i;
        }
    }
    return st;
}

static pare_status replace_parts(run *r, const level *l, pare_arena *a)
{
    const size_t b = pare_dtype_size(r->caps.dtype), each = l->count / r->count;
    for (size_t at = 0; at < r->count; at++) {
        head *const h = &r->heads[at];
        char *const next = pare_alloc(a, r->n * r->most_parts * r->part_width, b);
        uint32_t *const count = pare_alloc(a, r->n, sizeof *count);
        if (!next || !count) return pare_no_memory(r->err);
        for (size_t x = 0; x < each; x++)
            take_groups(&l->calls[at * each + x], &l->m[at], next, count);
        if (l->m[at].last) continue;
        memcpy(h->parts, next, r->n * r->most_parts * r->part_width * b);
        memcpy(h->nparts, count, r->n * sizeof *count);
    }
    return PARE_OK;
}

static pare_status merge_level(run *r, uint64_t *parts)
{
    pare_arena *const a = pare_arena_new();
    level l = {0};
    pare_status st = a ? make_level(&l, r, *parts, a) : pare_no_memory(r->err);
    const uint64_t before = r->stats->calls;
    if (!st) st = instances_run(r, l.list, l.count, &r->stats->calls);
    if (!st) {
        r->stats->merge_calls += r->stats->calls - before;
        r->stats->rounds++;
        st = replace_parts(r, &l, a);
        *parts = l.m[0].last ? 1 : l.m[0].groups;
    }
    pare_arena_free(a);
    return st;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static pare_status check_rows(const run *r)
{
    for (size_t a = 0; a < r->count; a++)
        for (size_t i = 0; i < r->n * r->heads[a].job.dv; i++) {
            const pare_length_job *const j = &r->heads[a].job;
            if (!isfinite(num_at(r->caps.dtype, j->y, i / j->dv * j->ldy + i % j->dv)))
                return pare_fail(r->err, PARE_ERR_NUMERIC,
                                 "length: row %zu of head %zu: a merge call answers no number",
                                 i / j->dv, a);
        }
    return PARE_OK;
}

pare_status strict_attend(run *r)
{
    construction strict_calls = zeroref_calls;
    strict_calls.part = keep_part;
    pare_status st = r->rule.plain ? PARE_OK : make_parts(r);
    if (!st) st = rule_merges(&r->rule, r->most_parts, r->err);
    if (!st) st = zeroref_rounds(r, &strict_calls);
    r->stats->max_partials = r->most_parts;
    if (st) return st;
    sums_write(r); /* rows without a key, and all rows where there is nothing to merge */
    uint64_t parts = r->rule.plain ? 1 : r->most_parts;
    while (parts > 1 && !st) st = merge_level(r, &parts);
    return st ? st : check_rows(r);
}
