/* collapse_chain.c - one-layer networks as chains.
 *
 *   identity          every block adds nothing
 *   keep, keepbias k  block k is g's, the others add nothing
 *   uniform, umix     every block has uniform attention: x <- x + U x V_b + c_b. Multiplied out,
 *                     sum_j U^j x E_j + bias; under full attention U^2 = U and one power is left
 *   rankone           every head of block b has g's constant query; its values are f's. Every block
 *                     adds a common row, softmax does not see common rows of keys, and so all
 *                     weights are those at the input
 * f against the chain is Theorem 1. What is left is linear in averages of the input's tokens: the
 * difference between the chain's matrices, multiplied out with their rounding, and the stored ones.
 */
#include "collapse_chain.h"

void chain_block(pare_work *k, eff_attn *out, const pare_model *m, size_t b)
{
    const char *why = NULL;
    const bool affine = effective_attn(k, out, &m->blocks[b].attn, pare_model_width(m, b), &why);
    PARE_ASSERT(affine); /* pure: no norms */
}

void chain_attn(pare_work *k, chain *c, eff_attn *out, bool *same, const eff_attn *fb, size_t b)
{
    eff_attn g;
    *same = false;
    *out = (eff_attn){.din = fb->din, .dout = fb->dout}; /* adds nothing */
    out->t = imat_identity(k, fb->din);
    out->inside = imat_zero(k, 1, fb->dout);
    out->outside = imat_zero(k, 1, fb->dout);
    switch (c->kind) {
    case PARE_ONE_IDENTITY:
        break;
    case PARE_ONE_KEEP:
    case PARE_ONE_KEEPBIAS:
        if (b == c->keep) chain_block(k, out, c->g, 0);
        *same = b == c->keep && c->keeps_same;
        break;
    case PARE_ONE_UNIFORM:
    case PARE_ONE_UMIX: /* the heads become one power of the mean */
        *out = *fb;
        out->nheads = 0;
        out->heads = NULL;
        if (fb->nheads == 0) break;
        out->npowers = 1;
        out->mix = pare_work_alloc(k, 1, sizeof *out->mix);
        if (!k->st) out->mix[0] = heads_total(k, fb);
        break;
    case PARE_ONE_RANKONE: /* g's heads from c->heads on give the queries */
        chain_block(k, &g, c->g, 0);
        if (k->st) break;
        *out = *fb;
        out->heads = pare_work_alloc(k, fb->nheads, sizeof *out->heads);
        for (size_t h = 0; !k->st && h < fb->nheads; h++) {
            out->heads[h] = fb->heads[h];
            out->heads[h].query = QUERY_SAME;
            out->heads[h].b = imat_zero(k, fb->din, fb->din);
            out->heads[h].l = g.heads[c->heads + h].l;
        }
        c->heads += fb->nheads;
        break;
    case PARE_ONE_PARALLEL:
    case PARE_ONE_UNIFORM_KEEP:
    case PARE_ONE_PARALLEL_UNIFORM:
    case PARE_ONES:
        pare_assert_failed(__FILE__, __LINE__, "a collapse that is no chain");
    }
}

/* E_0 = I, E_j and the bias of the uniform chain; `full`: one power. */
static imat *uniform_chain_maps(pare_work *k, const chain *c, bool full, size_t *n, imat *bias)
{
    const size_t d = pare_model_width(c->f, 0), most = full ? 1 : c->f->nblocks;
    imat *const e = pare_work_alloc(k, most + 1, sizeof *e);
    *n = most + 1;
    *bias = imat_zero(k, 1, d);
    for (size_t j = 0; !k->st && j <= most; j++)
        e[j] = j == 0 ? imat_identity(k, d) : imat_zero(k, d, d);
    for (size_t b = 0; !k->st && c->kind != PARE_ONE_IDENTITY && b < c->f->nblocks; b++) {
        eff_attn fb;
        chain_block(k, &fb, c->f, b);
        const imat v = heads_total(k, &fb), constant = imat_sum(k, &fb.inside, &fb.outside);
        const imat last = full ? imat_mul(k, &e[1], &v) : (imat){0};
        for (size_t j = most; !k->st && j > 0; j--) {
            const imat more = imat_mul(k, &e[j - 1], &v);
            e[j] = imat_sum(k, &e[j], &more);
        }
        if (full) e[1] = imat_sum(k, &e[1], &last);
        const imat moved = imat_mul(k, bias, &v), sum = imat_sum(k, bias, &moved);
        *bias = imat_sum(k, &sum, &constant);
    }
    return e;
}

typedef struct remainder {
    pare_work *k;
    const token_norm *in, *out;
    const token_set *x0;
    imat constant; /* 1 x d, what the center becomes and all constants */
    pare_mat size;
} remainder;

/* An average of the input's tokens times m. */
static void add_remainder(remainder *r, const imat *m)
{
    const imat moved = imat_mul(r->k, &r->x0->c, m);
    const pare_mat map = norm_of_map(r->k, r->in, r->out, m), y = up_mul(r->k, &r->x0->w, &map);
    r->constant = imat_sum(r->k, &r->constant, &moved);
    if (!r->k->st) up_add(r->k, &r->size, &y);
}

static void uniform_remainder(remainder *r, const chain *c, const eff_attn *g, bool full)
{
    size_t n = 0;
    imat bias, *const e = uniform_chain_maps(r->k, c, full, &n, &bias);
    const imat stored = imat_sum(r->k, &g->inside, &g->outside);
    r->constant = imat_diff(r->k, &bias, &stored);
    const size_t most = n > g->npowers + 1 ? n : g->npowers + 1;
    for (size_t j = 0; !r->k->st && j < most; j++) {
        const imat none = imat_zero(r->k, g->din, g->dout);
        const imat *const have = j == 0 ? &g->t : j <= g->npowers ? &g->mix[j - 1] : &none;
        const imat off = imat_diff(r->k, j < n ? &e[j] : &none, have);
        add_remainder(r, &off);
    }
}

/* V_h of block b times the product of I + V_m over the later blocks, against g's value matrices. */
static void rankone_remainder(remainder *r, const chain *c, const eff_attn *g)
{
    pare_work *const k = r->k;
    const size_t d = pare_model_width(c->f, 0);
    imat later = imat_identity(k, d), bias = imat_zero(k, 1, d);
    size_t at = g->nheads;
    for (size_t b = c->f->nblocks; !k->st && b-- > 0;) {
        eff_attn fb;
        chain_block(k, &fb, c->f, b);
        const imat constant = imat_sum(k, &fb.inside, &fb.outside);
        const imat moved = imat_mul(k, &constant, &later), v = heads_total(k, &fb);
        bias = imat_sum(k, &bias, &moved);
        for (size_t h = fb.nheads; !k->st && h-- > 0;) {
            const imat through = imat_mul(k, &fb.heads[h].v, &later);
            const imat off = imat_diff(k, &through, &g->heads[--at].v);
            add_remainder(r, &off);
        }
        const imat more = imat_mul(k, &v, &later);
        later = imat_sum(k, &later, &more);
    }
    const imat stored = imat_sum(k, &g->inside, &g->outside), off = imat_diff(k, &bias, &stored);
    r->constant = imat_sum(k, &r->constant, &off);
}

pare_mat chain_remainder(pare_work *k, chain *c, const token_norm *in, const token_norm *out,
                         const token_set *x0, mask_facts s)
{
    remainder r = {k, in, out, x0, imat_zero(k, 1, out->d), work_matrix(k, 1, out->k)};
    if (c->kind == PARE_ONE_KEEP || c->kind == PARE_ONE_KEEPBIAS || k->st) return r.size;
    eff_attn g;
    chain_block(k, &g, c->g, 0);
    if (c->kind == PARE_ONE_RANKONE)
        rankone_remainder(&r, c, &g);
    else
        uniform_remainder(&r, c, &g, s.full && c->kind != PARE_ONE_UMIX);
    const pare_mat constant = norm_of_row(k, out, &r.constant);
    return up_sum(k, &r.size, &constant);
}
