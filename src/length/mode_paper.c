/* The algorithm of Yu 2025 (Lemma 3.1, Theorems 3.5 and 5.1), repaired only where it cannot run,
 * for comparison (docs/theory/length.md "The algorithm of Yu 2025"; docs/errata.md).
 *
 * A dominating token of logit C makes a call's mass S = e^(C-1) r small beside it; a plain call
 * gives the mean o. Blocks have floor((M-1)/2) tokens, calls are made on every block and every pair
 * of blocks, and what a pair adds is its union minus the own block: S_u - S_own, o_u S_u - o_own
 * S_own. A window is a prefix minus a prefix. The parts of a row are added by calls of their own
 * (Lemma A.2 with group codes), and divided. The result is 1 +- eps where nothing cancels or
 * underflows, and wrong, or no number, where it does: that is reported, never returned. */
#include "mode_paper.h"
#include "numbers.h"
#include "call_counts.h"
#include <math.h>

static double largest_logit(const length_run *r, const pare_length_job *j)
{
    double most = 0;
    for (size_t i = 0; i < r->in.n; i++)
        for (size_t k = 0; k < r->in.n; k++) {
            double s = 0;
            for (size_t c = 0; c < j->dk; c++)
                s += num_at(r->in.caps.dtype, j->q, i * j->ldq + c) *
                     num_at(r->in.caps.dtype, j->k, k * j->ldk + c);
            most = fmax(most, fabs(s));
        }
    return most;
}

static pare_status one_head(paper_run *p)
{
    length_run *const r = p->r;
    const double eps = r->in.opts.eps > 0 ? r->in.opts.eps : 1e-6;
    const bool window = r->in.pattern->kind == PARE_WINDOW;
    const double tokens = window ? r->in.rule.m : 2 * floor((r->in.rule.m - 1) / 2.0);
    p->c = paper_typed(p, 1 + log(tokens) + log(10 / eps) + largest_logit(r, &p->h->job));
    p->scale = paper_typed(p, exp(paper_typed(p, p->c - 1)));
    p->b = pare_alloc(r->arena, r->in.n * p->most * p->h->job.dv, sizeof *p->b);
    p->s = pare_alloc(r->arena, r->in.n * p->most, sizeof *p->s);
    p->parts = pare_alloc(r->arena, r->in.n, sizeof *p->parts);
    if (!p->b || !p->s || !p->parts) return pare_no_memory(r->in.err);
    pare_status st = window ? paper_windows(p) : paper_pairs(p);
    return st ? st : paper_aggregate(p);
}

pare_status paper_attend(length_run *r)
{
    instance list[2];
    pare_status st = PARE_OK;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(r->in.err);
    uint64_t rounds = 0;
    for (size_t i = 0; i < r->in.nheads && !st; i++) {
        paper_run p = {.r = r,
                       .h = &r->heads[i],
                       .type = r->in.caps.dtype,
                       .list = list,
                       .room = 2,
                       .a = a,
                       .most = paper_parts(r->in.n, r->in.rule.m, r->in.pattern)};
        r->stats->rounds = 1;
        st = one_head(&p);
        if (r->stats->rounds > rounds) rounds = r->stats->rounds;
    }
    r->stats->rounds = rounds;
    r->stats->max_partials = paper_parts(r->in.n, r->in.rule.m, r->in.pattern);
    pare_arena_free(a);
    return st;
}
