/* walk_pairs.c - the attention of a block in two models, side by side: what differs between them,
 * formed once for all norms that walk through it. */
#include "walk.h"

static imat common(pare_work *k, const eff_attn *e)
{
    const imat v = heads_total(k, e);
    imat sum = imat_sum(k, &e->t, &v);
    for (size_t j = 0; !k->st && j < e->npowers; j++) sum = imat_sum(k, &sum, &e->mix[j]);
    return sum;
}

static imat *buffer(pare_work *k, size_t n)
{
    imat *const r = pare_alloc(k->arena, n ? n : 1, sizeof *r);
    if (!r) pare_work_keep(k, pare_no_memory(k->err));
    return r;
}

static imat power_of(pare_work *k, const eff_attn *e, size_t j)
{
    return j < e->npowers ? e->mix[j] : imat_zero(k, e->din, e->dout);
}

static void pair_heads(pare_work *k, attn_pair *p)
{
    const size_t n = p->f->nheads;
    p->v = buffer(k, n);
    p->b = buffer(k, n);
    p->l = buffer(k, n);
    for (size_t h = 0; !k->st && !p->same && h < n; h++) {
        const eff_head *const f = &p->f->heads[h], *const g = &p->g->heads[h];
        p->v[h] = imat_diff(k, &f->v, &g->v);
        p->b[h] = imat_diff(k, &f->b, &g->b);
        p->l[h] = imat_diff(k, &f->l, &g->l);
    }
}

static bool any_rotary(const eff_attn *e)
{
    for (size_t h = 0; h < e->nheads; h++)
        if (e->heads[h].rotary) return true;
    return false;
}

attn_pair attn_pair_of(pare_work *k, const eff_attn *f, const eff_attn *g, bool same)
{
    attn_pair p = {.f = f, .g = g, .same = same};
    if (k->st) return p;
    const bool turning = !same && (any_rotary(f) || any_rotary(g));
    p.paired = f->nheads > 0 && f->nheads == g->nheads && !turning;
    p.npowers = f->npowers > g->npowers ? f->npowers : g->npowers;
    if (p.npowers == 0) p.npowers = 1;
    p.ft = common(k, f);
    p.gt = same ? p.ft : common(k, g);
    p.fv = heads_total(k, f);
    if (p.paired) pair_heads(k, &p);
    if (same || k->st) return p;
    p.t = imat_diff(k, &f->t, &g->t);
    p.mix = buffer(k, p.npowers);
    for (size_t j = 0; !k->st && j < p.npowers; j++) {
        const imat a = power_of(k, f, j), b = power_of(k, g, j);
        p.mix[j] = imat_diff(k, &a, &b);
    }
    p.inside = imat_diff(k, &f->inside, &g->inside);
    p.outside = imat_diff(k, &f->outside, &g->outside);
    return p;
}
