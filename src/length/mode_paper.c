/* The paper's own algorithm (Lemma 3.1, Theorems 3.5 and 5.1), repaired only where it cannot run,
 * for comparison (spec of length, 4.10; errata E1 - E13).
 *
 * A dominating token of logit C makes a call's mass S = e^(C-1) r small beside it; a plain call
 * gives the mean o. Blocks have floor((M-1)/2) tokens, calls are made on every block and every pair
 * of blocks, and what a pair adds is its union minus the own block: S_u - S_own, o_u S_u - o_own
 * S_own. A window is a prefix minus a prefix. The parts of a row are added by calls of their own
 * (Lemma A.2 with group codes), and divided. The result is 1 +- eps where nothing cancels or
 * underflows, and wrong, or no number, where it does: that is reported, never returned. */
#include "codes.h"
#include "counts.h"
#include "instances.h"
#include <math.h>
#include <string.h>

#define NONE UINT32_MAX /* a token without a query, or without a key */

typedef enum ask_kind {
    MASS, /* dominating token, value 1: the share r of the keys */
    MEAN, /* the plain call */
    SUM   /* dominating token, values */
} ask_kind;

typedef struct paper_run {
    run *r;
    head *h;
    pare_dtype type;
    double c, scale; /* C, e^(C-1) */
    instance *list;
    size_t count, room;
    pare_arena *a; /* of the calls under way */
    size_t most;   /* parts of a row */
    double *b, *s; /* parts: n x most x dv, n x most */
    uint32_t *parts;
} paper_run;

static double typed(const paper_run *p, double x)
{
    return p->type == PARE_F32 ? (double)(float)x : x;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* One more call on tokens (q, k); its number is *at. The dominating token comes first where calls
 * are causal, else last. */
static pare_status ask(paper_run *p, const uint32_t *q, const uint32_t *k, uint32_t n,
                       ask_kind kind, size_t *at)
{
    const pare_length_job *const j = &p->h->job;
    const size_t b = pare_dtype_size(p->type), dk = j->dk + (kind != MEAN);
    const size_t dv = kind == MASS ? 1 : j->dv;
    const bool causal = p->r->rule.kind == CALL_CAUSAL;
    const uint32_t rows = n + (kind != MEAN), lead = kind != MEAN && causal ? 1 : 0;
    char *const qs = pare_alloc(p->a, rows * dk, b), *const ks = pare_alloc(p->a, rows * dk, b);
    char *const vs = pare_alloc(p->a, rows * dv, b), *const y = pare_alloc(p->a, rows * dv, b);
    if (!qs || !ks || !vs || !y) return pare_no_memory(p->r->err);
    for (size_t i = 0; i < n; i++) {
        const size_t row = i + lead;
        if (q[i] != NONE)
            memcpy(qs + row * dk * b, (const char *)j->q + q[i] * j->ldq * b, j->dk * b);
        if (kind != MEAN) num_put(p->type, qs, row * dk + j->dk, 1);
        if (kind != MEAN) num_put(p->type, ks, row * dk + j->dk, 1);
        if (k[i] == NONE) continue;
        memcpy(ks + row * dk * b, (const char *)j->k + k[i] * j->ldk * b, j->dk * b);
        if (kind == MASS)
            num_put(p->type, vs, row, 1);
        else
            memcpy(vs + row * dv * b, (const char *)j->v + k[i] * j->ldv * b, dv * b);
    }
    const size_t dummy = causal ? 0 : n;
    if (kind != MEAN) num_put(p->type, qs, dummy * dk + j->dk, p->c);
    if (kind != MEAN) num_put(p->type, ks, dummy * dk + j->dk, p->c);
    PARE_ASSERT(p->count < p->room && rows <= p->r->rule.m);
    *at = p->count;
    p->list[p->count++] = (instance){.n = rows,
                                     .dk = (uint32_t)dk,
                                     .dv = (uint32_t)dv,
                                     .causal = causal,
                                     .q = qs,
                                     .k = ks,
                                     .v = vs,
                                     .y = y};
    return PARE_OK;
}

/* Column c of token i of a call. */
static double answer(const paper_run *p, size_t call, size_t i, size_t c)
{
    const instance *const x = &p->list[call];
    const size_t lead = x->causal && x->dk != p->h->job.dk; /* the dominating token is first */
    return num_at(p->type, x->y, (i + lead) * x->dv + c);
}

/* S = e^(C-1) r, or the exact inverse r / (1 - r). */
static double mass_of(const paper_run *p, double share)
{
    const double s = typed(p, p->scale * share);
    return p->r->o.inverse ? typed(p, s / typed(p, 1 - share)) : s;
}

static pare_status run_asked(paper_run *p)
{
    return pieces_run(p->r, p->list, p->count, &p->r->stats->calls);
}

static void forget(paper_run *p, pare_mark mark)
{
    p->count = 0;
    pare_arena_reset(p->a, mark);
}

/* One more part of row i: S, and S o. */
static double *new_part(paper_run *p, size_t i, double s)
{
    const size_t at = i * p->most + p->parts[i]++;
    PARE_ASSERT(p->parts[i] <= p->most);
    p->s[at] = s;
    return p->b + at * p->h->job.dv;
}

/* ---- full and causal: blocks and pairs of blocks --------------------------------------------- */

typedef struct pairing {
    size_t m, t; /* tokens of a block, blocks */
    double *own_s, *own_o;
} pairing;

static uint32_t block_rows(const paper_run *p, const pairing *w, size_t t, uint32_t *rows)
{
    const size_t from = t * w->m, n = p->r->n - from < w->m ? p->r->n - from : w->m;
    for (size_t i = 0; i < n; i++) rows[i] = (uint32_t)(from + i);
    return (uint32_t)n;
}

static pare_status own_blocks(paper_run *p, pairing *w, uint32_t *rows)
{
    const size_t dv = p->h->job.dv;
    pare_status st = PARE_OK;
    for (size_t t = 0; t < w->t && !st; t++) {
        const pare_mark mark = pare_arena_mark(p->a);
        size_t mass, mean;
        const uint32_t n = block_rows(p, w, t, rows);
        if ((st = ask(p, rows, rows, n, MASS, &mass)) ||
            (st = ask(p, rows, rows, n, MEAN, &mean)) || (st = run_asked(p)))
            return st;
        for (size_t i = 0; i < n; i++) {
            const size_t row = rows[i];
            w->own_s[row] = mass_of(p, answer(p, mass, i, 0));
            double *const b = new_part(p, row, w->own_s[row]);
            for (size_t c = 0; c < dv; c++) {
                w->own_o[row * dv + c] = answer(p, mean, i, c);
                b[c] = typed(p, w->own_s[row] * w->own_o[row * dv + c]);
            }
        }
        forget(p, mark);
    }
    return st;
}

/* What the other block adds to row i: the union minus the own block. */
static void add_difference(paper_run *p, const pairing *w, size_t row, size_t mass, size_t mean,
                           size_t at)
{
    const size_t dv = p->h->job.dv;
    const double s = mass_of(p, answer(p, mass, at, 0));
    double *const b = new_part(p, row, typed(p, s - w->own_s[row]));
    for (size_t c = 0; c < dv; c++)
        b[c] = typed(p, typed(p, s * answer(p, mean, at, c)) -
                            typed(p, w->own_s[row] * w->own_o[row * dv + c]));
}

static pare_status both_blocks(paper_run *p, const pairing *w, size_t t, size_t other,
                               uint32_t *rows)
{
    const pare_mark mark = pare_arena_mark(p->a);
    const uint32_t n = block_rows(p, w, t, rows), more = block_rows(p, w, other, rows + n);
    size_t mass, mean;
    pare_status st = ask(p, rows, rows, n + more, MASS, &mass);
    if (!st) st = ask(p, rows, rows, n + more, MEAN, &mean);
    if (!st) st = run_asked(p);
    if (st) return st;
    const bool causal = p->r->rule.kind == CALL_CAUSAL;
    for (size_t i = causal ? n : 0; i < n + more; i++) add_difference(p, w, rows[i], mass, mean, i);
    forget(p, mark);
    return PARE_OK;
}

static pare_status pairs_of_blocks(paper_run *p)
{
    run *const r = p->r;
    pairing w = {.m = (r->rule.m - 1) / 2};
    w.t = (r->n + w.m - 1) / w.m;
    w.own_s = pare_alloc(r->arena, r->n, sizeof *w.own_s);
    w.own_o = pare_alloc(r->arena, r->n * p->h->job.dv, sizeof *w.own_o);
    uint32_t *const rows = pare_alloc(r->arena, r->rule.m, sizeof *rows);
    if (!w.own_s || !w.own_o || !rows) return pare_no_memory(r->err);
    pare_status st = own_blocks(p, &w, rows);
    for (size_t t = 0; t < w.t; t++)
        for (size_t other = t + 1; other < w.t && !st; other++)
            st = both_blocks(p, &w, t, other, rows);
    return st;
}

/* ---- windows: a prefix minus a prefix -------------------------------------------------------- */

/* Queries `lead` tokens behind their keys; parts for queries from `first` on. */
static pare_status prefix(paper_run *p, size_t from, size_t keys, size_t lead, size_t first,
                          double sign, uint32_t *rows)
{
    const pare_mark mark = pare_arena_mark(p->a);
    uint32_t *const q = rows, *const k = rows + p->r->rule.m;
    size_t mass, mean;
    for (size_t i = 0; i < keys; i++) {
        k[i] = (uint32_t)(from + i);
        q[i] = (uint32_t)(from + i + lead);
    }
    pare_status st = ask(p, q, k, (uint32_t)keys, MASS, &mass);
    if (!st) st = ask(p, q, k, (uint32_t)keys, MEAN, &mean);
    if (!st) st = run_asked(p);
    for (size_t i = 0; i < keys && !st; i++) {
        if (q[i] < first) continue;
        const double s = mass_of(p, answer(p, mass, i, 0));
        double *const b = new_part(p, q[i], sign * s);
        for (size_t c = 0; c < p->h->job.dv; c++) b[c] = sign * typed(p, s * answer(p, mean, i, c));
    }
    forget(p, mark);
    return st;
}

static pare_status sink_parts(paper_run *p, size_t window, size_t sinks, uint32_t *rows)
{
    const size_t at_once = p->r->rule.m - 1 - sinks;
    uint32_t *const q = rows, *const k = rows + p->r->rule.m;
    pare_status st = PARE_OK;
    for (size_t first = window; first < p->r->n && !st; first += at_once) {
        const pare_mark mark = pare_arena_mark(p->a);
        const size_t left = p->r->n - first, nq = left < at_once ? left : at_once;
        const size_t sees = first - window + 1 < sinks ? first - window + 1 : sinks;
        const size_t n = sees - 1 + nq > sinks ? sees - 1 + nq : sinks;
        size_t mass, sum;
        for (size_t i = 0; i < n; i++) {
            k[i] = i < sinks ? (uint32_t)i : NONE;
            q[i] = i + 1 >= sees && i + 1 < sees + nq ? (uint32_t)(first + i + 1 - sees) : NONE;
        }
        st = ask(p, q, k, (uint32_t)n, MASS, &mass);
        if (!st) st = ask(p, q, k, (uint32_t)n, SUM, &sum);
        if (!st) st = run_asked(p);
        for (size_t x = 0; x < nq && !st; x++) {
            const size_t i = sees - 1 + x;
            double *const b = new_part(p, first + x, mass_of(p, answer(p, mass, i, 0)));
            for (size_t c = 0; c < p->h->job.dv; c++)
                b[c] = typed(p, p->scale * answer(p, sum, i, c));
        }
        forget(p, mark);
    }
    return st;
}

static pare_status windows(paper_run *p)
{
    run *const r = p->r;
    const size_t window = r->p->window, keys = r->rule.m - 1, step = r->rule.m - window;
    uint32_t *const rows = pare_alloc(r->arena, 2 * (size_t)r->rule.m, sizeof *rows);
    if (!rows) return pare_no_memory(r->err);
    pare_status st = PARE_OK;
    for (size_t a = 0; !st; a += step) {
        const size_t end = r->n - a < keys ? r->n : a + keys, first = a ? a + window - 1 : 0;
        st = prefix(p, a, end - a, 0, first, 1, rows);
        if (!st && end > a + window)
            st = prefix(p, a, end - a - window, window, first > a + window ? first : a + window, -1,
                        rows);
        if (end == r->n) break;
    }
    if (!st && r->p->sinks && r->n > window) st = sink_parts(p, window, r->p->sinks, rows);
    return st;
}

/* ---- aggregation: Lemma A.2 with group codes ------------------------------------------------- */

typedef struct level {
    size_t size, groups, at_once; /* parts of a group; groups of a row, of a call */
} level;

static level level_of(size_t parts, uint32_t m)
{
    level l = {.size = parts <= m ? parts : m};
    l.groups = (parts + l.size - 1) / l.size;
    l.at_once = m / l.size;
    return l;
}

/* Uniform attention within a group: the mean of its parts. All groups have the same size, so that
 * the ratio of the two sums is that of the means. */
static pare_status aggregate_call(paper_run *p, const level *l, size_t first, size_t groups,
                                  size_t have)
{
    const size_t dv = p->h->job.dv, b = pare_dtype_size(p->type);
    const uint32_t code = group_width(l->at_once), dk = code ? code : 1;
    const uint32_t n = (uint32_t)(groups * l->size);
    const double pen = penalty(p->type, p->r->caps.exp_flush, 0);
    char *const q = pare_alloc(p->a, (size_t)n * dk, b), *const k =
                                                             pare_alloc(p->a, (size_t)n * dk, b);
    char *const v = pare_alloc(p->a, n * (dv + 1), b), *const y = pare_alloc(p->a, n * (dv + 1), b);
    if (!q || !k || !v || !y) return pare_no_memory(p->r->err);
    for (size_t i = 0; i < n; i++) {
        const size_t g = i / l->size, group = first + g, row = group / l->groups;
        const size_t part = group % l->groups * l->size + i % l->size;
        const uint64_t bits = code ? group_bits(code, g) : 0;
        for (uint32_t e = 0; e < code; e++) {
            num_put(p->type, q, i * dk + e, bits >> e & 1 ? 0 : -pen);
            num_put(p->type, k, i * dk + e, bits >> e & 1 ? 1 : 0);
        }
        if (part >= have) continue;
        const size_t at = row * p->most + part;
        for (size_t c = 0; c < dv; c++) num_put(p->type, v, i * (dv + 1) + c, p->b[at * dv + c]);
        num_put(p->type, v, i * (dv + 1) + dv, p->s[at]);
    }
    p->list[p->count++] = (instance){.n = n,
                                     .dk = dk,
                                     .dv = (uint32_t)dv + 1,
                                     .causal = p->r->rule.kind == CALL_CAUSAL,
                                     .q = q,
                                     .k = k,
                                     .v = v,
                                     .y = y};
    return PARE_OK;
}

static pare_status aggregate_level(paper_run *p, size_t *have)
{
    run *const r = p->r;
    const level l = level_of(*have, r->rule.m);
    const size_t dv = p->h->job.dv, all = r->n * l.groups;
    pare_status st = PARE_OK;
    for (size_t first = 0; first < all && !st; first += l.at_once) {
        const pare_mark mark = pare_arena_mark(p->a);
        const size_t groups = all - first < l.at_once ? all - first : l.at_once;
        const uint64_t before = r->stats->calls;
        st = aggregate_call(p, &l, first, groups, *have);
        if (!st) st = run_asked(p);
        r->stats->merge_calls += r->stats->calls - before;
        for (size_t g = 0; g < groups && !st; g++) { /* the last token of each group */
            const size_t row = (first + g) / l.groups, to = row * p->most + (first + g) % l.groups;
            const size_t from = (g + 1) * l.size - 1;
            for (size_t c = 0; c < dv; c++)
                p->b[to * dv + c] = num_at(p->type, p->list[0].y, from * (dv + 1) + c);
            p->s[to] = num_at(p->type, p->list[0].y, from * (dv + 1) + dv);
        }
        forget(p, mark);
    }
    *have = l.groups;
    return st;
}

static pare_status aggregate(paper_run *p)
{
    size_t have = p->most;
    pare_status st = PARE_OK;
    for (; have > 1 && !st; p->r->stats->rounds++) st = aggregate_level(p, &have);
    const pare_length_job *const j = &p->h->job;
    for (size_t i = 0; i < p->r->n && !st; i++)
        for (size_t c = 0; c < j->dv; c++) {
            const double y = typed(p, p->b[i * p->most * j->dv + c] / p->s[i * p->most]);
            if (!isfinite(y))
                return pare_fail(
                    p->r->err, PARE_ERR_NUMERIC,
                    "length: paper mode: row %zu is no number (C = %.4g, sum of masses "
                    "%.3g): its construction cannot do this input in %s",
                    i, p->c, p->s[i * p->most], p->type == PARE_F32 ? "f32" : "f64");
            num_put(p->type, j->y, i * j->ldy + c, y);
        }
    return st;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static double largest_logit(const run *r, const pare_length_job *j)
{
    double most = 0;
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->n; k++) {
            double s = 0;
            for (size_t c = 0; c < j->dk; c++)
                s += num_at(r->caps.dtype, j->q, i * j->ldq + c) *
                     num_at(r->caps.dtype, j->k, k * j->ldk + c);
            most = fmax(most, fabs(s));
        }
    return most;
}

static pare_status one_head(paper_run *p)
{
    run *const r = p->r;
    const double eps = r->o.eps > 0 ? r->o.eps : 1e-6;
    const bool window = r->p->kind == PARE_WINDOW;
    const double tokens = window ? r->rule.m : 2 * floor((r->rule.m - 1) / 2.0);
    p->c = typed(p, 1 + log(tokens) + log(10 / eps) + largest_logit(r, &p->h->job));
    p->scale = typed(p, exp(typed(p, p->c - 1)));
    p->b = pare_alloc(r->arena, r->n * p->most * p->h->job.dv, sizeof *p->b);
    p->s = pare_alloc(r->arena, r->n * p->most, sizeof *p->s);
    p->parts = pare_alloc(r->arena, r->n, sizeof *p->parts);
    if (!p->b || !p->s || !p->parts) return pare_no_memory(r->err);
    pare_status st = window ? windows(p) : pairs_of_blocks(p);
    return st ? st : aggregate(p);
}

pare_status paper_attend(run *r)
{
    instance list[2];
    pare_status st = PARE_OK;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(r->err);
    uint64_t rounds = 0;
    for (size_t i = 0; i < r->count && !st; i++) {
        paper_run p = {.r = r,
                       .h = &r->heads[i],
                       .type = r->caps.dtype,
                       .list = list,
                       .room = 2,
                       .a = a,
                       .most = paper_parts(r->n, r->rule.m, r->p)};
        r->stats->rounds = 1;
        st = one_head(&p);
        if (r->stats->rounds > rounds) rounds = r->stats->rounds;
    }
    r->stats->rounds = rounds;
    r->stats->max_partials = paper_parts(r->n, r->rule.m, r->p);
    pare_arena_free(a);
    return st;
}
