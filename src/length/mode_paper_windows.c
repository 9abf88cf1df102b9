/* Yu 2025, Theorem 5.1: a window is a prefix minus a prefix, and sinks are parts of their own
 * (docs/errata.md says what that costs). */
#include "mode_paper.h"

/* Queries `lead` tokens behind their keys; parts for queries from `first` on. */
static pare_status prefix(paper_run *p, size_t from, size_t keys, size_t lead, size_t first,
                          double sign, uint32_t *rows)
{
    const pare_mark mark = pare_arena_mark(p->a);
    uint32_t *const q = rows, *const k = rows + p->r->in.rule.m;
    size_t mass, mean;
    for (size_t i = 0; i < keys; i++) {
        k[i] = (uint32_t)(from + i);
        q[i] = (uint32_t)(from + i + lead);
    }
    pare_status st = paper_ask(p, q, k, (uint32_t)keys, MASS, &mass);
    if (!st) st = paper_ask(p, q, k, (uint32_t)keys, MEAN, &mean);
    if (!st) st = paper_run_asked(p);
    for (size_t i = 0; i < keys && !st; i++) {
        if (q[i] < first) continue;
        const double s = paper_mass(p, paper_answer(p, mass, i, 0));
        double *const b = paper_part(p, q[i], sign * s);
        for (size_t c = 0; c < p->h->job.dv; c++)
            b[c] = sign * paper_typed(p, s * paper_answer(p, mean, i, c));
    }
    paper_forget(p, mark);
    return st;
}

static pare_status sink_parts(paper_run *p, size_t window, size_t sinks, uint32_t *rows)
{
    const size_t at_once = p->r->in.rule.m - 1 - sinks;
    uint32_t *const q = rows, *const k = rows + p->r->in.rule.m;
    pare_status st = PARE_OK;
    for (size_t first = window; first < p->r->in.n && !st; first += at_once) {
        const pare_mark mark = pare_arena_mark(p->a);
        const size_t left = p->r->in.n - first, nq = left < at_once ? left : at_once;
        const size_t sees = first - window + 1 < sinks ? first - window + 1 : sinks;
        const size_t n = sees - 1 + nq > sinks ? sees - 1 + nq : sinks;
        size_t mass, sum;
        for (size_t i = 0; i < n; i++) {
            k[i] = i < sinks ? (uint32_t)i : NONE;
            q[i] = i + 1 >= sees && i + 1 < sees + nq ? (uint32_t)(first + i + 1 - sees) : NONE;
        }
        st = paper_ask(p, q, k, (uint32_t)n, MASS, &mass);
        if (!st) st = paper_ask(p, q, k, (uint32_t)n, SUM, &sum);
        if (!st) st = paper_run_asked(p);
        for (size_t x = 0; x < nq && !st; x++) {
            const size_t i = sees - 1 + x;
            double *const b = paper_part(p, first + x, paper_mass(p, paper_answer(p, mass, i, 0)));
            for (size_t c = 0; c < p->h->job.dv; c++)
                b[c] = paper_typed(p, p->scale * paper_answer(p, sum, i, c));
        }
        paper_forget(p, mark);
    }
    return st;
}

pare_status paper_windows(paper_run *p)
{
    length_run *const r = p->r;
    const size_t window = r->in.pattern->window, keys = r->in.rule.m - 1,
                 step = r->in.rule.m - window;
    uint32_t *const rows = pare_alloc(r->arena, 2 * (size_t)r->in.rule.m, sizeof *rows);
    if (!rows) return pare_no_memory(r->in.err);
    pare_status st = PARE_OK;
    for (size_t a = 0; !st; a += step) {
        const size_t end = r->in.n - a < keys ? r->in.n : a + keys, first = a ? a + window - 1 : 0;
        st = prefix(p, a, end - a, 0, first, 1, rows);
        if (!st && end > a + window)
            st = prefix(p, a, end - a - window, window, first > a + window ? first : a + window, -1,
                        rows);
        if (end == r->in.n) break;
    }
    if (!st && r->in.pattern->sinks && r->in.n > window)
        st = sink_parts(p, window, r->in.pattern->sinks, rows);
    return st;
}
