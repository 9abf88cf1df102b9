/* Calls of the algorithm of Yu 2025: with a dominating token, or plain, and what their answers
 * mean.
 */
#include "numbers.h"
#include "mode_paper.h"
#include <math.h>
#include <string.h>

double paper_typed(const paper_run *p, double x)
{
    return p->type == PARE_F32 ? (double)(float)x : x;
}

pare_status paper_ask(paper_run *p, const uint32_t *q, const uint32_t *k, uint32_t n, ask_kind kind,
                      size_t *at)
{
    const pare_length_job *const j = &p->h->job;
    const size_t b = pare_dtype_size(p->type), dk = j->dk + (kind != MEAN);
    const size_t dv = kind == MASS ? 1 : j->dv;
    const bool causal = p->r->in.rule.kind == CALL_CAUSAL;
    const uint32_t rows = n + (kind != MEAN), lead = kind != MEAN && causal ? 1 : 0;
    char *const qs = pare_alloc(p->a, rows * dk, b), *const ks = pare_alloc(p->a, rows * dk, b);
    char *const vs = pare_alloc(p->a, rows * dv, b), *const y = pare_alloc(p->a, rows * dv, b);
    if (!qs || !ks || !vs || !y) return pare_no_memory(p->r->in.err);
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
    PARE_ASSERT(p->count < p->room && rows <= p->r->in.rule.m);
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

double paper_answer(const paper_run *p, size_t call, size_t i, size_t c)
{
    const instance *const x = &p->list[call];
    const size_t lead = x->causal && x->dk != p->h->job.dk; /* the dominating token is first */
    return num_at(p->type, x->y, (i + lead) * x->dv + c);
}

double paper_mass(const paper_run *p, double share)
{
    const double s = paper_typed(p, p->scale * share);
    return p->r->in.opts.inverse ? paper_typed(p, s / paper_typed(p, 1 - share)) : s;
}

pare_status paper_run_asked(paper_run *p)
{
    return instances_run_any(&p->r->in, p->list, p->count, &p->r->stats->calls);
}

void paper_forget(paper_run *p, pare_mark mark)
{
    p->count = 0;
    pare_arena_reset(p->a, mark);
}

double *paper_part(paper_run *p, size_t i, double s)
{
    const size_t at = i * p->most + p->parts[i]++;
    PARE_ASSERT(p->parts[i] <= p->most);
    p->s[at] = s;
    return p->b + at * p->h->job.dv;
}
