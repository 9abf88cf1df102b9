/* mode_paper.c - the algorithm of Yu 2025 (Lemma 3.1, Theorems 3.5 and 5.1), repaired only where it
 * cannot run, for comparison (docs/theory/length.md "The algorithm of Yu 2025"; docs/errata.md).
 *
 * A dominating token of logit C makes the softmax weight r of a call's keys small beside it, and
 * their mass is S = e^(C-1) r; a plain call gives the mean o. Blocks have floor((M-1)/2) tokens,
 * calls are made on every block and every pair of blocks, and what a pair adds to a row is its
 * union minus the row's own block:
 *
 *     S_u - S_own,   o_u S_u - o_own S_own.
 *
 * A window is a prefix minus a prefix. The parts of a row are added by calls of their own (Lemma
 * A.2 with group codes), and divided. The result is 1 +- eps where nothing cancels or underflows,
 * and wrong, or not finite, where it does: that is reported, never returned. */
#include "call_counts.h"
#include "group_codes.h"
#include "instances.h"
#include "modes.h"
#include "numbers.h"
#include <math.h>
#include <string.h>

#define NONE UINT32_MAX /* a token without a query, or without a key */

typedef enum paper_call {
    MASS, /* dominating token, value 1: the weight r of the keys */
    MEAN, /* the plain call */
    SUM   /* dominating token, values */
} paper_call;

typedef struct paper_head { /* one head */
    length_run *r;
    const pare_length_job *job;
    pare_dtype type;
    double c, scale;  /* C, e^(C-1) */
    instance list[2]; /* calls under way: the mass of some keys, and their mean or sum */
    pare_arena *a;    /* of the calls under way */
    size_t max_parts; /* of a row */
    double *s, *so;   /* parts S and S o: n x max_parts, n x max_parts x dv */
    uint32_t *parts;  /* of each row */
} paper_head;

static double round_to_type(const paper_head *p, double x)
{
    return p->type == PARE_F32 ? (double)(float)x : x;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call on tokens (q, k). The dominating token comes first where calls are causal, else last. */
static pare_status build_call(paper_head *p, instance *out, const uint32_t *q, const uint32_t *k,
                              uint32_t n, paper_call kind)
{
    const pare_length_job *const j = p->job;
    const bool causal = p->r->in.rule.kind == CALL_CAUSAL, dominated = kind != MEAN;
    const size_t b = pare_dtype_size(p->type), dk = j->dk + dominated;
    const size_t dv = kind == MASS ? 1 : j->dv;
    const uint32_t rows = n + dominated, lead = dominated && causal ? 1 : 0;
    PARE_ASSERT(rows <= p->r->in.rule.m);
    *out = (instance){.n = rows, .dk = (uint32_t)dk, .dv = (uint32_t)dv, .causal = causal};
    if (!instance_alloc(out, p->a, p->type)) return pare_no_memory(p->r->in.err);
    for (size_t i = 0; i < n; i++) {
        const size_t row = i + lead;
        if (q[i] != NONE)
            memcpy(out->q + row * dk * b, (const char *)j->q + q[i] * j->ldq * b, j->dk * b);
        if (dominated) num_put(p->type, out->q, row * dk + j->dk, 1);
        if (dominated) num_put(p->type, out->k, row * dk + j->dk, 1);
        if (k[i] == NONE) continue;
        memcpy(out->k + row * dk * b, (const char *)j->k + k[i] * j->ldk * b, j->dk * b);
        if (kind == MASS)
            num_put(p->type, out->v, row, 1);
        else
            memcpy(out->v + row * dv * b, (const char *)j->v + k[i] * j->ldv * b, dv * b);
    }
    const size_t dominating = causal ? 0 : n;
    if (dominated) num_put(p->type, out->q, dominating * dk + j->dk, p->c);
    if (dominated) num_put(p->type, out->k, dominating * dk + j->dk, p->c);
    return PARE_OK;
}

/* The mass of the keys, and their mean or sum. */
static pare_status run_calls(paper_head *p, const uint32_t *q, const uint32_t *k, uint32_t n,
                             paper_call kind)
{
    pare_status st = build_call(p, &p->list[0], q, k, n, MASS);
    if (!st) st = build_call(p, &p->list[1], q, k, n, kind);
    return st ? st : instances_run_any(&p->r->in, p->list, 2, &p->r->stats->calls);
}

/* Column c for token i of call 0, the mass, or of call 1, the mean or sum. */
static double answer(const paper_head *p, size_t call, size_t i, size_t c)
{
    const instance *const x = &p->list[call];
    const size_t lead = x->causal && x->dk != p->job->dk; /* the dominating token is first */
    return num_at(p->type, x->y, (i + lead) * x->dv + c);
}

/* S = e^(C-1) r for token i, or the exact inverse r / (1 - r). */
static double mass_of(const paper_head *p, size_t i)
{
    const double share = answer(p, 0, i, 0), s = round_to_type(p, p->scale * share);
    return p->r->in.opts.inverse ? round_to_type(p, s / round_to_type(p, 1 - share)) : s;
}

/* One more part of row i: S; S o is to be written. */
static double *add_part(paper_head *p, size_t i, double s)
{
    const size_t at = i * p->max_parts + p->parts[i]++;
    PARE_ASSERT(p->parts[i] <= p->max_parts);
    p->s[at] = s;
    return p->so + at * p->job->dv;
}

/* ---- blocks and pairs of blocks: Lemma 3.1, Theorem 3.5 -------------------------------------- */

static uint32_t block_rows(size_t n, size_t size, size_t block, uint32_t *rows)
{
    const size_t from = block * size, count = n - from < size ? n - from : size;
    for (size_t i = 0; i < count; i++) rows[i] = (uint32_t)(from + i);
    return (uint32_t)count;
}

static pare_status pair_parts(paper_head *p)
{
    const run_inputs *const in = &p->r->in;
    const size_t n = in->n, dv = p->job->dv, size = (in->rule.m - 1) / 2;
    const size_t blocks = (n + size - 1) / size;
    const bool causal = in->rule.kind == CALL_CAUSAL;
    double *const own_s = pare_alloc(p->r->arena, n, sizeof *own_s);
    double *const own_o = pare_alloc(p->r->arena, n * dv, sizeof *own_o);
    uint32_t *const rows = pare_alloc(p->r->arena, in->rule.m, sizeof *rows);
    if (!own_s || !own_o || !rows) return pare_no_memory(in->err);
    const pare_mark mark = pare_arena_mark(p->a);
    for (size_t t = 0; t < blocks; t++) {
        const uint32_t count = block_rows(n, size, t, rows);
        const pare_status st = run_calls(p, rows, rows, count, MEAN);
        if (st) return st;
        for (size_t i = 0; i < count; i++) {
            const size_t row = rows[i];
            own_s[row] = mass_of(p, i);
            double *const so = add_part(p, row, own_s[row]);
            for (size_t c = 0; c < dv; c++) {
                own_o[row * dv + c] = answer(p, 1, i, c);
                so[c] = round_to_type(p, own_s[row] * own_o[row * dv + c]);
            }
        }
        pare_arena_reset(p->a, mark);
    }
    for (size_t t = 0; t < blocks; t++)
        for (size_t other = t + 1; other < blocks; other++) {
            const uint32_t first = block_rows(n, size, t, rows);
            const uint32_t count = first + block_rows(n, size, other, rows + first);
            const pare_status st = run_calls(p, rows, rows, count, MEAN);
            if (st) return st;
            /* the union minus the own block */
            for (size_t i = causal ? first : 0; i < count; i++) {
                const size_t row = rows[i];
                const double s = mass_of(p, i);
                double *const so = add_part(p, row, round_to_type(p, s - own_s[row]));
                for (size_t c = 0; c < dv; c++)
                    so[c] =
                        round_to_type(p, round_to_type(p, s * answer(p, 1, i, c)) -
                                             round_to_type(p, own_s[row] * own_o[row * dv + c]));
            }
            pare_arena_reset(p->a, mark);
        }
    return PARE_OK;
}

/* ---- windows: Theorem 5.1; sinks are parts of their own (docs/errata.md says what that costs)  */

/* Queries `lead` tokens behind their keys; parts for queries from `first` on. */
static pare_status prefix_parts(paper_head *p, size_t from, size_t keys, size_t lead, size_t first,
                                double sign, uint32_t *rows)
{
    const pare_mark mark = pare_arena_mark(p->a);
    uint32_t *const q = rows, *const k = rows + p->r->in.rule.m;
    for (size_t i = 0; i < keys; i++) {
        k[i] = (uint32_t)(from + i);
        q[i] = (uint32_t)(from + i + lead);
    }
    const pare_status st = run_calls(p, q, k, (uint32_t)keys, MEAN);
    for (size_t i = 0; i < keys && !st; i++) {
        if (q[i] < first) continue;
        const double s = mass_of(p, i);
        double *const so = add_part(p, q[i], sign * s);
        for (size_t c = 0; c < p->job->dv; c++)
            so[c] = sign * round_to_type(p, s * answer(p, 1, i, c));
    }
    pare_arena_reset(p->a, mark);
    return st;
}

static pare_status window_parts(paper_head *p)
{
    const run_inputs *const in = &p->r->in;
    const size_t n = in->n, m = in->rule.m, window = in->pattern->window;
    const size_t sinks = n > window ? in->pattern->sinks : 0;
    uint32_t *const rows = pare_alloc(p->r->arena, 2 * m, sizeof *rows);
    if (!rows) return pare_no_memory(in->err);
    pare_status st = PARE_OK;
    for (size_t a = 0; !st; a += m - window) {
        const size_t end = n - a < m - 1 ? n : a + m - 1, first = a ? a + window - 1 : 0;
        st = prefix_parts(p, a, end - a, 0, first, 1, rows);
        if (!st && end > a + window)
            st = prefix_parts(p, a, end - a - window, window,
                              first > a + window ? first : a + window, -1, rows);
        if (end == n) break;
    }
    const size_t at_once = m - 1 - sinks;
    uint32_t *const q = rows, *const k = rows + m;
    for (size_t first = window; sinks && first < n && !st; first += at_once) {
        const pare_mark mark = pare_arena_mark(p->a);
        const size_t nq = n - first < at_once ? n - first : at_once;
        const size_t sees = first - window + 1 < sinks ? first - window + 1 : sinks;
        const size_t count = sees - 1 + nq > sinks ? sees - 1 + nq : sinks;
        for (size_t i = 0; i < count; i++) {
            k[i] = i < sinks ? (uint32_t)i : NONE;
            q[i] = i + 1 >= sees && i + 1 < sees + nq ? (uint32_t)(first + i + 1 - sees) : NONE;
        }
        st = run_calls(p, q, k, (uint32_t)count, SUM);
        for (size_t x = 0; x < nq && !st; x++) {
            const size_t i = sees - 1 + x;
            double *const so = add_part(p, first + x, mass_of(p, i));
            for (size_t c = 0; c < p->job->dv; c++)
                so[c] = round_to_type(p, p->scale * answer(p, 1, i, c));
        }
        pare_arena_reset(p->a, mark);
    }
    return st;
}

/* ---- the sum of the parts: Lemma A.2 with group codes ---------------------------------------- */

typedef struct level {
    size_t have;                  /* parts of a row so far */
    size_t size, groups, at_once; /* parts of a group; groups of a row, of a call */
} level;

/* Groups first, first + 1, ... by uniform attention within a group: the mean of its parts. All
 * groups have the same size, so that the ratio of the two sums is that of the means. */
static pare_status sum_groups(paper_head *p, const level *l, size_t first, size_t groups)
{
    const run_inputs *const in = &p->r->in;
    const size_t dv = p->job->dv;
    const uint32_t code = group_width(l->at_once), dk = code ? code : 1;
    const uint32_t n = (uint32_t)(groups * l->size);
    const double pen = penalty(p->type, in->caps.exp_flush, 0);
    instance call = {
        .n = n, .dk = dk, .dv = (uint32_t)dv + 1, .causal = in->rule.kind == CALL_CAUSAL};
    if (!instance_alloc(&call, p->a, p->type)) return pare_no_memory(in->err);
    for (size_t i = 0; i < n; i++) {
        const size_t g = i / l->size, row = (first + g) / l->groups;
        const size_t part = (first + g) % l->groups * l->size + i % l->size;
        const uint64_t bits = code ? group_bits(code, g) : 0;
        put_query_code(p->type, call.q, i * dk, code, bits, pen);
        put_key_code(p->type, call.k, i * dk, code, bits);
        if (part >= l->have) continue;
        const size_t at = row * p->max_parts + part;
        for (size_t c = 0; c < dv; c++)
            num_put(p->type, call.v, i * (dv + 1) + c, p->so[at * dv + c]);
        num_put(p->type, call.v, i * (dv + 1) + dv, p->s[at]);
    }
    const uint64_t before = p->r->stats->calls;
    const pare_status st = instances_run_any(in, &call, 1, &p->r->stats->calls);
    p->r->stats->merge_calls += p->r->stats->calls - before;
    for (size_t g = 0; g < groups && !st; g++) { /* the last token of each group */
        const size_t row = (first + g) / l->groups, from = (g + 1) * l->size - 1;
        const size_t to = row * p->max_parts + (first + g) % l->groups;
        for (size_t c = 0; c < dv; c++)
            p->so[to * dv + c] = num_at(p->type, call.y, from * (dv + 1) + c);
        p->s[to] = num_at(p->type, call.y, from * (dv + 1) + dv);
    }
    return st;
}

static pare_status sum_parts(paper_head *p)
{
    const size_t m = p->r->in.rule.m, n = p->r->in.n, dv = p->job->dv;
    pare_status st = PARE_OK;
    for (level l = {.have = p->max_parts}; l.have > 1 && !st; p->r->stats->rounds++) {
        l.size = l.have <= m ? l.have : m;
        l.groups = (l.have + l.size - 1) / l.size;
        l.at_once = m / l.size;
        const size_t all = n * l.groups;
        for (size_t first = 0; first < all && !st; first += l.at_once) {
            const pare_mark mark = pare_arena_mark(p->a);
            st = sum_groups(p, &l, first, all - first < l.at_once ? all - first : l.at_once);
            pare_arena_reset(p->a, mark);
        }
        l.have = l.groups;
    }
    for (size_t i = 0; i < n && !st; i++)
        for (size_t c = 0; c < dv; c++) {
            const size_t at = i * p->max_parts;
            const double y = round_to_type(p, p->so[at * dv + c] / p->s[at]);
            if (!isfinite(y))
                return pare_fail(
                    p->r->in.err, PARE_ERR_NUMERIC,
                    "length: paper mode: row %zu is no number (C = %.4g, sum of masses "
                    "%.3g): its construction cannot do this input in %s",
                    i, p->c, p->s[at], p->type == PARE_F32 ? "f32" : "f64");
            num_put(p->type, p->job->y, i * p->job->ldy + c, y);
        }
    return st;
}

/* ---- the mode -------------------------------------------------------------------------------- */

pare_status paper_attend(length_run *r)
{
    const size_t n = r->in.n, m = r->in.rule.m,
                 max_parts = paper_parts(n, (uint32_t)m, r->in.pattern);
    const double eps = r->in.opts.eps > 0 ? r->in.opts.eps : 1e-6;
    const bool window = r->in.pattern->kind == PARE_WINDOW;
    const double tokens = window ? (double)m : 2 * floor((double)(m - 1) / 2.0);
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(r->in.err);
    pare_status st = PARE_OK;
    uint64_t rounds = 0;
    for (size_t i = 0; i < r->in.nheads && !st; i++) {
        paper_head p = {.r = r,
                        .job = &r->heads[i].job,
                        .type = r->in.caps.dtype,
                        .a = a,
                        .max_parts = max_parts};
        r->stats->rounds = 1;
        double max_logit = 0;
        for (size_t q = 0; q < n; q++)
            for (size_t k = 0; k < n; k++)
                max_logit = fmax(max_logit, fabs(run_logit(r, p.job, q, k)));
        p.c = round_to_type(&p, 1 + log(tokens) + log(10 / eps) + max_logit);
        p.scale = round_to_type(&p, exp(round_to_type(&p, p.c - 1)));
        p.so = pare_alloc(r->arena, n * max_parts * p.job->dv, sizeof *p.so);
        p.s = pare_alloc(r->arena, n * max_parts, sizeof *p.s);
        p.parts = pare_alloc(r->arena, n, sizeof *p.parts);
        st = p.so && p.s && p.parts ? PARE_OK : pare_no_memory(r->in.err);
        if (!st) st = window ? window_parts(&p) : pair_parts(&p);
        if (!st) st = sum_parts(&p);
        if (r->stats->rounds > rounds) rounds = r->stats->rounds;
    }
    r->stats->rounds = rounds;
    r->stats->max_partials = max_parts;
    pare_arena_free(a);
    return st;
}
