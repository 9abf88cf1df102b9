/* Lemma 3.1 and Theorem 3.5, full and causal: blocks and pairs of blocks. What a pair adds is its
 * union minus the own block: S_u - S_own, o_u S_u - o_own S_own (docs/theory/length.md "The
 * algorithm of Yu 2025"). */
#include "mode_paper.h"

typedef struct pairing {
    size_t m, t; /* tokens of a block, blocks */
    double *own_s, *own_o;
} pairing;

static uint32_t block_rows(const paper_run *p, const pairing *w, size_t t, uint32_t *rows)
{
    const size_t from = t * w->m, n = p->r->in.n - from < w->m ? p->r->in.n - from : w->m;
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
        if ((st = paper_ask(p, rows, rows, n, MASS, &mass)) ||
            (st = paper_ask(p, rows, rows, n, MEAN, &mean)) || (st = paper_run_asked(p)))
            return st;
        for (size_t i = 0; i < n; i++) {
            const size_t row = rows[i];
            w->own_s[row] = paper_mass(p, paper_answer(p, mass, i, 0));
            double *const b = paper_part(p, row, w->own_s[row]);
            for (size_t c = 0; c < dv; c++) {
                w->own_o[row * dv + c] = paper_answer(p, mean, i, c);
                b[c] = paper_typed(p, w->own_s[row] * w->own_o[row * dv + c]);
            }
        }
        paper_forget(p, mark);
    }
    return st;
}

/* What the other block adds to row i: the union minus the own block. */
static void add_difference(paper_run *p, const pairing *w, size_t row, size_t mass, size_t mean,
                           size_t at)
{
    const size_t dv = p->h->job.dv;
    const double s = paper_mass(p, paper_answer(p, mass, at, 0));
    double *const b = paper_part(p, row, paper_typed(p, s - w->own_s[row]));
    for (size_t c = 0; c < dv; c++)
        b[c] = paper_typed(p, paper_typed(p, s * paper_answer(p, mean, at, c)) -
                                  paper_typed(p, w->own_s[row] * w->own_o[row * dv + c]));
}

static pare_status both_blocks(paper_run *p, const pairing *w, size_t t, size_t other,
                               uint32_t *rows)
{
    const pare_mark mark = pare_arena_mark(p->a);
    const uint32_t n = block_rows(p, w, t, rows), more = block_rows(p, w, other, rows + n);
    size_t mass, mean;
    pare_status st = paper_ask(p, rows, rows, n + more, MASS, &mass);
    if (!st) st = paper_ask(p, rows, rows, n + more, MEAN, &mean);
    if (!st) st = paper_run_asked(p);
    if (st) return st;
    const bool causal = p->r->in.rule.kind == CALL_CAUSAL;
    for (size_t i = causal ? n : 0; i < n + more; i++) add_difference(p, w, rows[i], mass, mean, i);
    paper_forget(p, mark);
    return PARE_OK;
}

pare_status paper_pairs(paper_run *p)
{
    length_run *const r = p->r;
    pairing w = {.m = (r->in.rule.m - 1) / 2};
    w.t = (r->in.n + w.m - 1) / w.m;
    w.own_s = pare_alloc(r->arena, r->in.n, sizeof *w.own_s);
    w.own_o = pare_alloc(r->arena, r->in.n * p->h->job.dv, sizeof *w.own_o);
    uint32_t *const rows = pare_alloc(r->arena, r->in.rule.m, sizeof *rows);
    if (!w.own_s || !w.own_o || !rows) return pare_no_memory(r->in.err);
    pare_status st = own_blocks(p, &w, rows);
    for (size_t t = 0; t < w.t; t++)
        for (size_t other = t + 1; other < w.t && !st; other++)
            st = both_blocks(p, &w, t, other, rows);
    return st;
}
