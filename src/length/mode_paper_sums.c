/* Aggregation: the parts of a row are added by calls (Lemma A.2 with group codes), and divided. */
#include "group_codes.h"
#include "numbers.h"
#include "mode_paper.h"
#include <math.h>

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
    const double pen = penalty(p->type, p->r->in.caps.exp_flush, 0);
    char *const q = pare_alloc(p->a, (size_t)n * dk, b), *const k =
                                                             pare_alloc(p->a, (size_t)n * dk, b);
    char *const v = pare_alloc(p->a, n * (dv + 1), b), *const y = pare_alloc(p->a, n * (dv + 1), b);
    if (!q || !k || !v || !y) return pare_no_memory(p->r->in.err);
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
                                     .causal = p->r->in.rule.kind == CALL_CAUSAL,
                                     .q = q,
                                     .k = k,
                                     .v = v,
                                     .y = y};
    return PARE_OK;
}

static pare_status aggregate_level(paper_run *p, size_t *have)
{
    length_run *const r = p->r;
    const level l = level_of(*have, r->in.rule.m);
    const size_t dv = p->h->job.dv, all = r->in.n * l.groups;
    pare_status st = PARE_OK;
    for (size_t first = 0; first < all && !st; first += l.at_once) {
        const pare_mark mark = pare_arena_mark(p->a);
        const size_t groups = all - first < l.at_once ? all - first : l.at_once;
        const uint64_t before = r->stats->calls;
        st = aggregate_call(p, &l, first, groups, *have);
        if (!st) st = paper_run_asked(p);
        r->stats->merge_calls += r->stats->calls - before;
        for (size_t g = 0; g < groups && !st; g++) { /* the last token of each group */
            const size_t row = (first + g) / l.groups, to = row * p->most + (first + g) % l.groups;
            const size_t from = (g + 1) * l.size - 1;
            for (size_t c = 0; c < dv; c++)
                p->b[to * dv + c] = num_at(p->type, p->list[0].y, from * (dv + 1) + c);
            p->s[to] = num_at(p->type, p->list[0].y, from * (dv + 1) + dv);
        }
        paper_forget(p, mark);
    }
    *have = l.groups;
    return st;
}

pare_status paper_aggregate(paper_run *p)
{
    size_t have = p->most;
    pare_status st = PARE_OK;
    for (; have > 1 && !st; p->r->stats->rounds++) st = aggregate_level(p, &have);
    const pare_length_job *const j = &p->h->job;
    for (size_t i = 0; i < p->r->in.n && !st; i++)
        for (size_t c = 0; c < j->dv; c++) {
            const double y = paper_typed(p, p->b[i * p->most * j->dv + c] / p->s[i * p->most]);
            if (!isfinite(y))
                return pare_fail(
                    p->r->in.err, PARE_ERR_NUMERIC,
                    "length: paper mode: row %zu is no number (C = %.4g, sum of masses "
                    "%.3g): its construction cannot do this input in %s",
                    i, p->c, p->s[i * p->most], p->type == PARE_F32 ? "f32" : "f64");
            num_put(p->type, j->y, i * j->ldy + c, y);
        }
    return st;
}
