/* theorem2_parallel.c - Theorem 2: all layers side by side on the input.
 *
 * Let X_b be f's stream before block b, V_b the sum of the block's V_h, and
 * N_b(X) = sum_h (P_h - U) X V_h. With Pi_b the product of I + V_m over the blocks after b,
 *     f(X) = X + U X (Pi - I) + sum_b N_b(X_b) + sum_b U N_b(X_b)(Pi_b - I)     (full attention)
 * so that, s and dD bounding X_b - X_0 and the differences of its tokens,
 *   parallel          sum_bh (s + tvPP D0) |V_h|
 *   parallel+uniform  sum_bh (tvPU dD + tvPP D0) |V_h| + sum_b n_b (prod (1 + |V_m|) - 1)
 *   uniform+keep k    the same, but blocks other than k give n_b in the place of the first sum
 * with tvPU = tanh(range of scores / 4), tvPP = tanh(range of their change from X_0 to X_b / 4),
 * n_b = sum_h tvPU D |V_h|. Heads of g that are not exactly f's cost what they differ. */
#include "theorem2_parallel.h"
#include "collapse_chain.h"
#include "initial_set.h"
#include "attention/attend.h"
#include "linalg/bounds.h"
#include <pare/depth.h>
#include <math.h>
#include <stdio.h>

typedef struct side {
    pare_work k;
    const pare_model *f, *g;
    pare_collapse kind;
    size_t keep;
    mask_facts mask;
    eff_attn ge;
    size_t head; /* of g, next */
    token_norm at;
    token_set x0, x;       /* at the input; before block b */
    imat total;            /* uniform: E_1 of the chain so far */
    imat bias;             /* all constants of the chain */
    imat kept_v;           /* sum of the V_h that g has as heads */
    imat kept_c;           /* parallel: all constants, side by side */
    pare_mat grown;        /* sum of w through the stacks: spread of X_b - X_0 */
    pare_mat dd;           /* differences of its tokens */
    pare_mat plain, later; /* sum of n_b, and of n_b (prod - 1) */
    pare_mat e;
} side;

static void add_part(side *s, pare_mat *to, const pare_mat *x, const imat *m)
{
    const pare_mat map = norm_of_map(&s->k, &s->at, &s->at, m), y = up_mul(&s->k, x, &map);
    if (!s->k.st) up_add(&s->k, to, &y);
}

/* size of X_b - X_0 */
static pare_mat moved_by(side *s)
{
    const imat centre = imat_diff(&s->k, &s->x.c, &s->x0.c);
    const pare_mat c = norm_of_row(&s->k, &s->at, &centre);
    return up_sum(&s->k, &c, &s->grown);
}

/* TV between the weights of a head at X_b and at X_0. */
static pare_ub moved_weights(side *s, const eff_head *h, const pare_mat *by)
{
    pare_work *const k = &s->k;
    const pare_mat form = norm_of_form(k, &s->at, &h->b), q = up_mul(k, by, &form);
    const pare_mat from_0 = slope(k, &s->at, &h->b, &h->l, &s->x0);
    const pare_mat from_b = slope(k, &s->at, &h->b, &h->l, &s->x);
    if (k->st) return pare_ub_inf();
    const pare_ub one = pare_ub_add(up_dot(&q, &s->x.d), up_dot(&from_0, &s->dd));
    const pare_ub two = pare_ub_add(up_dot(&q, &s->x0.d), up_dot(&from_b, &s->dd));
    return softmax_variation(pare_ub_min(one, two));
}

/* What g's head, at X_0, is off f's. */
static void other_weights(side *s, const eff_head *f, const eff_head *g)
{
    pare_work *const k = &s->k;
    const imat v = imat_diff(k, &f->v, &g->v), b = imat_diff(k, &f->b, &g->b);
    const imat l = imat_diff(k, &f->l, &g->l), centre = imat_mul(k, &s->x0.c, &v);
    const pare_mat by = slope(k, &s->at, &b, &l, &s->x0), c = norm_of_row(k, &s->at, &centre);
    if (k->st) return;
    const pare_mat reweighted = up_scale(k, &s->x0.d, softmax_variation(up_dot(&by, &s->x0.d)));
    add_part(s, &s->e, &reweighted, &g->v);
    add_part(s, &s->e, &s->x0.w, &v);
    if (!k->st) up_add(k, &s->e, &c);
}

static bool g_has_heads_of(const side *s, size_t b)
{
    return s->kind != PARE_ONE_UNIFORM_KEEP || b == s->keep;
}

/* One head of block b; `by`: size of X_b - X_0. Adds its n to *n. */
static void one_head(side *s, const eff_head *h, size_t b, const pare_mat *by, pare_mat *n)
{
    pare_work *const k = &s->k;
    const pare_ub tv = softmax_variation(score_range(k, &s->at, h, &s->x));
    const pare_mat far = up_scale(k, &s->x.d, tv);
    add_part(s, n, &far, &h->v);
    if (!g_has_heads_of(s, b)) {
        add_part(s, &s->e, &far, &h->v);
        return;
    }
    const pare_mat reweighted = up_scale(k, &s->x0.d, moved_weights(s, h, by));
    const pare_mat near = s->kind == PARE_ONE_PARALLEL ? *by : up_scale(k, &s->dd, tv);
    const pare_mat both = up_sum(k, &near, &reweighted);
    add_part(s, &s->e, &both, &h->v);
    if (!k->st) other_weights(s, h, &s->ge.heads[s->head++]);
}

/* Differences of the tokens of X_b+1 - X_b, and its spread. */
static void grow_sets(side *s, const eff_attn *fb)
{
    pare_work *const k = &s->k;
    const attn_pair p = attn_pair_of(k, fb, fb, true);
    const track t = {.at = s->at, .x = s->x, .y = s->x, .e = work_matrix(k, 1, s->at.k)};
    const track next = walk_attention(k, &p, &s->at, &t, s->mask);
    if (k->st) return;
    const imat **const heads = pare_work_alloc(k, fb->nheads, sizeof *heads);
    if (k->st) return;
    for (size_t h = 0; h < fb->nheads; h++) {
        const pare_ub tau = contraction(k, &s->at, &fb->heads[h], &s->x, s->mask);
        const pare_mat part = up_scale(k, &s->x.d, tau);
        heads[h] = &fb->heads[h].v;
        add_part(s, &s->dd, &part, heads[h]);
    }
    const pare_mat stack = norm_of_stack(k, &s->at, &s->at, heads, fb->nheads);
    const pare_mat values = up_mul(k, &s->x.w, &stack);
    if (!k->st) up_add(k, &s->grown, &values);
    s->x = next.x;
    const pare_mat far = moved_by(s), twice = up_scale(k, &far, pare_ub_exact(2));
    s->dd = up_min(k, &s->dd, &twice);
}

/* The uniform chain multiplied out, its constants, and n_b (prod - 1). */
static void multiply_out(side *s, const eff_attn *fb, size_t b, const pare_mat *n)
{
    pare_work *const k = &s->k;
    const imat v = heads_total(k, fb), constant = imat_sum(k, &fb->inside, &fb->outside);
    const imat more = imat_mul(k, &s->total, &v), sum = imat_sum(k, &s->total, &v);
    const imat moved = imat_mul(k, &s->bias, &v), all = imat_sum(k, &s->bias, &moved);
    const pare_mat both = up_sum(k, &s->plain, &s->later);
    add_part(s, &s->later, &both, &v);
    if (!k->st) up_add(k, &s->plain, n);
    s->total = imat_sum(k, &sum, &more);
    s->bias = imat_sum(k, &all, &constant);
    s->kept_c = imat_sum(k, &s->kept_c, &constant);
    if (g_has_heads_of(s, b)) s->kept_v = imat_sum(k, &s->kept_v, &v);
}

/* The uniform head of g against E_1 minus what the other heads carry, and g's constants. */
static void add_remainder(side *s)
{
    pare_work *const k = &s->k;
    const bool uniform = s->kind != PARE_ONE_PARALLEL;
    const imat stored = imat_sum(k, &s->ge.inside, &s->ge.outside);
    imat row = imat_diff(k, uniform ? &s->bias : &s->kept_c, &stored);
    if (uniform) {
        const imat want = imat_diff(k, &s->total, &s->kept_v);
        const imat off = imat_diff(k, &want, &s->ge.heads[s->head].v);
        const imat centre = imat_mul(k, &s->x0.c, &off);
        row = imat_sum(k, &row, &centre);
        add_part(s, &s->e, &s->x0.w, &off);
        if (!k->st) up_add(k, &s->e, &s->later);
    }
    const pare_mat c = norm_of_row(k, &s->at, &row);
    if (!k->st) up_add(k, &s->e, &c);
}

static bool all_blocks(side *s, const depth_domain *d, const char **why)
{
    pare_work *const k = &s->k;
    const size_t width = pare_model_width(s->f, 0);
    if (!initial_set(k, &s->x0, &s->at, s->f, d, why)) return false;
    chain_block(k, &s->ge, s->g, 0);
    s->x = s->x0;
    s->grown = work_matrix(k, 1, s->at.k);
    s->dd = work_matrix(k, 1, s->at.k);
    s->plain = work_matrix(k, 1, s->at.k);
    s->later = work_matrix(k, 1, s->at.k);
    s->e = work_matrix(k, 1, s->at.k);
    s->total = s->kept_v = imat_zero(k, width, width);
    s->bias = s->kept_c = imat_zero(k, 1, width);
    for (size_t b = 0; !k->st && b < s->f->nblocks; b++) {
        eff_attn fb;
        chain_block(k, &fb, s->f, b);
        const pare_mat by = moved_by(s);
        pare_mat n = work_matrix(k, 1, s->at.k);
        for (size_t h = 0; !k->st && h < fb.nheads; h++) one_head(s, &fb.heads[h], b, &by, &n);
        multiply_out(s, &fb, b, &n);
        grow_sets(s, &fb);
    }
    if (!k->st) add_remainder(s);
    return true;
}

static bool bound_outputs(side *s, depth_bound *out, size_t way, const char **why)
{
    eff_ffn head;
    bool extra;
    if (!effective_output_head(&s->k, &head, &extra, s->f, why)) return false;
    /* the head's slopes are taken between anything f and g can give */
    track t = {.at = s->at, .x = s->x, .y = s->x, .e = s->e};
    t.y.w = s->k.st ? s->e : up_sum(&s->k, &s->x.w, &s->e);
    take_output_bound(&s->k, out, way, &head, extra, &t);
    return true;
}

pare_status depth_parallel(depth_bound *out, const pare_model *f, const pare_model *g,
                           const depth_domain *d, pare_collapse kind, size_t keep, pare_err *err)
{
    static const norm_kind kinds[] = {NORM_INF, NORM_TWO, NORM_BOX};
    const char *why = "";
    pare_status st = PARE_OK;
    *out = depth_nothing_proven(pare_collapse_names[kind], NULL);
    for (size_t i = 0; !st && i < sizeof kinds / sizeof *kinds; i++) {
        side s = {.k = {.arena = pare_arena_new(), .err = err},
                  .f = f,
                  .g = g,
                  .kind = kind,
                  .keep = keep};
        if (!s.k.arena) return pare_no_memory(err);
        s.mask = (mask_facts){f->pattern.kind == PARE_FULL, pare_never_empty(&f->pattern)};
        s.at = norm_plain(kinds[i], pare_model_width(f, 0));
        if (!all_blocks(&s, d, &why) || !bound_outputs(&s, out, i, &why))
            snprintf(out->why, sizeof out->why, "%s", why);
        st = s.k.st;
        pare_arena_free(s.k.arena);
    }
    return st;
}
