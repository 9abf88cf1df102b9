/* rank_collapse.c - Lemma R as a certificate of rank collapse for networks without skips.
 *
 *     D(next) <= sum_h tanh(Bil(B_h) D^2 / 4) N(V_h) D
 * for full attention, whatever the weights and inputs: what Dong et al. found (doubly exponential
 * in depth) without a condition on the scores. Evaluated in logarithms, as D underflows after five
 * or six layers. tanh(x) <= min(1, x). Logarithms and exponentials round upwards (directed.c); the
 * sums between them are raised by SLACK of their size. */
#include "linalg/bounds.h"
#include "initial_set.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

static const double SLACK = 1e-14;

static double raised(double x)
{
    return isinf(x) ? x : x + SLACK * (1 + fabs(x));
}

static double log_up(pare_ub x)
{
    return x.v > 0 ? pare_log_up(x.v) : -INFINITY;
}

/* log(e^a + e^b) */
static double log_sum(double a, double b)
{
    const double most = fmax(a, b), least = fmin(a, b);
    if (isinf(most) || isinf(least)) return most;
    /* ln(1 + e) <= e, which is the sharper one for small e */
    const double e = pare_exp_up(raised(least - most));
    return raised(most + fmin(e, pare_log_up(nextafter(1 + e, INFINITY))));
}

/* log tanh(b D^2 / 4), from above, where log D = d. */
static double log_contraction(double log_b, double d)
{
    const double x = raised(raised(log_b + 2 * d) - pare_log_down(4));
    if (!(x < 0)) return 0;
    if (x < -8) return x; /* tanh(x) = x there, but for 1e-7 */
    return fmin(0, pare_log_up(pare_tanh_up(pare_exp_up(x))));
}

static double next_log(pare_work *k, const token_norm *at, const eff_attn *e, double d)
{
    double sum = -INFINITY;
    for (size_t h = 0; !k->st && h < e->nheads; h++) {
        const eff_head *const head = &e->heads[h];
        if (head->query != QUERY_EACH) continue; /* one row for all: no difference at all */
        const pare_mat b = norm_of_form(k, at, &head->b), v = norm_of_map(k, at, at, &head->v);
        if (k->st) return INFINITY;
        const double tau = log_contraction(log_up((pare_ub){b.v[0]}), d);
        sum = log_sum(sum, raised(raised(tau + log_up((pare_ub){v.v[0]})) + d));
    }
    return sum;
}

static const char *missing_hypothesis(const pare_model *f, size_t b)
{
    const pare_attn *const at = &f->blocks[b].attn;
    if (f->pattern.kind != PARE_FULL) return "the pattern is not full: rows may not share a key";
    if (f->blocks[b].ffn.kind != PARE_FFN_NONE) return "a block has an FFN";
    if (at->kind == PARE_ATTN_NONE) return "a block has no attention";
    if (at->skip.kind != PARE_SKIP_NONE) return "a block has a skip: with skips rank need not fall";
    if (at->kind == PARE_ATTN_LINEAR || at->kind == PARE_ATTN_AFFMIX ||
        at->kind == PARE_ATTN_UMIX || at->kind == PARE_ATTN_POOL)
        return "a block keeps each token's own part";
    for (size_t h = 0; h < at->nheads; h++)
        if (at->heads[h].planes) return "a block has rotary positions";
    return NULL;
}

static bool bound_blocks(pare_work *k, depth_rank *out, const pare_model *f, const depth_domain *d,
                         const char **why)
{
    static const norm_kind kinds[DEPTH_NORMS] = {NORM_INF, NORM_TWO};
    for (size_t i = 0; i < DEPTH_NORMS; i++) {
        token_norm at = norm_plain(kinds[i], pare_model_width(f, 0));
        token_set x;
        if (!initial_set(k, &x, &at, f, d, why)) return false;
        double log_d = k->st ? INFINITY : log_up((pare_ub){x.d.v[0]});
        if (i == DEPTH_NORM_INF && !k->st) out->input = (pare_ub){x.d.v[0]};
        for (size_t b = 0; !k->st && b < f->nblocks; b++) {
            eff_attn e;
            const pare_mark mark = pare_arena_mark(k->arena);
            at.d = pare_model_width(f, b);
            if (!effective_attn(k, &e, &f->blocks[b].attn, at.d, why)) return false;
            log_d = next_log(k, &at, &e, log_d);
            pare_arena_reset(k->arena, mark);
        }
        out->log_bound[i] = log_d;
    }
    return true;
}

static pare_ub from_log(double x)
{
    if (x == -INFINITY) return pare_ub_exact(0);
    return pare_ub_max((pare_ub){pare_exp_up(x)}, pare_ub_exact(DBL_MIN));
}

pare_status depth_rank_collapse(depth_rank *out, const pare_model *f, const depth_domain *d,
                                const pare_exec *exec, pare_err *err)
{
    const char *why = f->nblocks ? NULL : "the model has no blocks";
    *out = (depth_rank){.log_bound = {INFINITY, INFINITY}, .bound = pare_ub_inf()};
    for (size_t b = 0; !why && b < f->nblocks; b++) why = missing_hypothesis(f, b);
    pare_work k = {.arena = why ? NULL : pare_arena_new(), .exec = exec, .err = err};
    if (!why && !k.arena) return pare_no_memory(err);
    depth_rank r = *out;
    if (!why && bound_blocks(&k, &r, f, d, &why) && !k.st) {
        *out = r;
        out->bound = pare_ub_min(from_log(r.log_bound[DEPTH_NORM_INF]),
                                 from_log(r.log_bound[DEPTH_NORM_TWO]));
        out->collapses = out->bound.v < out->input.v;
        why = NULL;
    }
    if (why) snprintf(out->why, sizeof out->why, "%s", why);
    pare_arena_free(k.arena);
    return k.st;
}
