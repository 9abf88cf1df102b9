/* injected_error.c - the error that a replaced attention injects at its own sublayer, behind a
 * norm.
 *
 * u = (x - mean x) / sqrt((|x - mean x|^2 + shift) / divisor + eps), or without the mean, has
 * |u|_2 <= sqrt(divisor) for every x. So the branch reads z = u gain + bias from a ball, whatever
 * the input, and walk_attention bounds |branch_f(z) - branch_g(z)| over it. How the error goes on
 * from there is not bounded: a norm may stretch it by 1 / sqrt(eps). */
#include "depth_bounds.h"
#include "walk.h"
#include "attention/attend.h"
#include "linalg/bounds.h"
#include "model/model_equality.h"
#include <math.h>

static pare_ub over_the_ball(pare_work *k, const pare_model *f, const pare_attn *fa,
                             const pare_attn *ga)
{
    const affine_map in = norm_gain(k, &fa->in_norm, fa->din);
    const mask_facts s = {f->pattern.kind == PARE_FULL, pare_never_empty(&f->pattern)};
    const token_norm two = norm_plain(NORM_TWO, fa->din), out = norm_plain(NORM_TWO, fa->dout);
    eff_attn fe, ge;
    effective_branch(k, &fe, fa, &in);
    effective_branch(k, &ge, ga, &in);
    if (k->st || (!s.never_empty && (fe.npowers > 1 || ge.npowers > 1))) return pare_ub_inf();
    const pare_ub radius = pare_ub_sqrt(pare_ub_exact(fa->in_norm.divisor));
    const pare_ub wide = pare_ub_mul(radius, pare_ub_exact(2));
    const token_set r = {imat_zero(k, 1, fa->din), up_row(k, 1, radius.v), up_row(k, 1, wide.v)};
    const track t = {.at = two, .x = r, .y = r, .e = work_matrix(k, 1, 1)};
    const attn_pair p = attn_pair_of(k, &fe, &ge, false);
    const track n = walk_attention(k, &p, &out, &t, s);
    return k->st ? pare_ub_inf() : (pare_ub){n.e.v[0]};
}

pare_status depth_injected(pare_ub *out, const pare_model *f, const pare_model *g, size_t b,
                           const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(b < f->nblocks && b < g->nblocks);
    const pare_attn *const fa = &f->blocks[b].attn, *const ga = &g->blocks[b].attn;
    *out = pare_ub_exact(0);
    if (pare_same_attn(fa, ga)) return PARE_OK;
    *out = pare_ub_inf();
    const pare_norm *const n = &fa->in_norm;
    const bool divides = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    const bool ball = divides && n->divisor > 0 && n->shift >= 0 && n->eps >= 0;
    /* a constant output does not depend on the norm of its input */
    const bool reads_input = ga->kind != PARE_ATTN_ZERO && ga->kind != PARE_ATTN_CONST;
    if (fa->kind == PARE_ATTN_NONE || ga->kind == PARE_ATTN_NONE || fa->din != ga->din ||
        fa->dout != ga->dout || !ball || (reads_input && !pare_same_norm(n, &ga->in_norm)))
        return PARE_OK;
    pare_work k = {.arena = pare_arena_new(), .exec = exec, .err = err};
    if (!k.arena) return pare_no_memory(err);
    *out = over_the_ball(&k, f, fa, ga);
    pare_arena_free(k.arena);
    return k.st;
}
