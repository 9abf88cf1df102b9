/* The zero-reference call (docs/theory/length.md "The zero reference"): unnormalized sums out of a
 * plain softmax.
 *
 * Row 0 is a key of logit c_i, the reference; so is every row without a key, but those are silent.
 * Values carry two more columns, 1 on the keys and 1 on the reference, and the call answers
 *     acc_i = sum_j a_ij v_j / Z_i,   r_i = sum_j a_ij / Z_i,   w_i = e^(c_i) / Z_i,
 * whatever Z_i is: acc / w and r / w are the sums over this call's keys, divided by e^(c_i),
 * exactly in real numbers. All calls of a row use the same c_i, so y = (sum acc / w) / (sum r / w).
 * Rows where w, or the sum of r / w, is below what the oracle's type can be trusted with are bad;
 * for these, c_i becomes q_i times the softmax mean of the keys (two more rounds), for which 0 <=
 * log-sum - c_i <= log N for any data. */
#include "group_codes.h"
#include <pare/elementary.h>
#include "rounds.h"
#include <math.h>
#include <string.h>

/* ---- keys left to the host ------------------------------------------------------------------- */

/* N = kM leaves k keys over after blocks of M-1: 1/M of the work, and a whole column of calls. */
static void host_stripe(run *r, size_t at, size_t first, size_t end)
{
    head *const h = &r->heads[at];
    const pare_length_job *const j = &h->job;
    const pare_dtype type = r->caps.dtype;
    sums_add_fn *const add = sums_adder(type);
    addends one;
    one.count = 1, one.ld = j->ldv, one.keep[0][0] = 1;
    for (size_t i = first; i < end; i++) {
        if (r->only_bad && !h->bad[i]) continue;
        for (size_t k = r->n / (r->rule.m - 1) * (r->rule.m - 1); k < r->n; k++) {
            double s = 0;
            for (size_t c = 0; c < j->dk; c++)
                s += num_at(type, j->q, i * j->ldq + c) * num_at(type, j->k, k * j->ldk + c);
            const double a = pare_exp(s - (h->c ? h->c[i] : 0));
            h->den[i] += a;
            const char *const v = (const char *)j->v + k * j->ldv * pare_dtype_size(type);
            one.x[0] = v, one.by[0][0] = a;
            (void)add(held_row(r, h, i), 1, j->dv, &one);
        }
        if (!sums_finite(r, h, i)) h->bad[i] = 1;
    }
}

static pare_status zeroref_round(run *r, const construction *how)
{
    pare_status st = softmax_blocks(r, false);
    if (!st) st = run_round(r, how);
    if (!st && r->rule.leave_remainder) run_rows(r, host_stripe, r);
    return st;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Row i after a round; where only bad rows were asked, whether it is one still. */
static void judge_row(const run *r, head *h, size_t i)
{
    const bool weighs = h->den[i] >= r->caps.w_min;
    if (!r->only_bad && !weighs && !sums_empty(r, i)) h->bad[i] = 1;
    if (r->only_bad && h->bad[i] && weighs && sums_finite(r, h, i)) h->bad[i] = 0;
}

static void judge_stripe(run *r, size_t at, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) judge_row(r, &r->heads[at], i);
}

/* Rows that can be trusted are answered, but for those that were before. */
void zeroref_done(run *r, size_t at, size_t first, size_t end)
{
    head *const h = &r->heads[at];
    for (size_t i = first; i < end; i++) {
        const bool asked = !r->only_bad || h->bad[i];
        judge_row(r, h, i);
        if (asked && !h->bad[i]) sums_write_rows(r, at, i, i + 1);
    }
}

/* Rows that cannot be trusted after a round. */
static uint64_t judge(run *r)
{
    uint64_t bad = 0;
    for (size_t a = 0; a < r->count; a++)
        for (size_t i = 0; i < r->n; i++) {
            judge_row(r, &r->heads[a], i);
            bad += r->heads[a].bad[i];
        }
    return bad;
}

static pare_status still_bad(const run *r)
{
    size_t a = 0, i = 0;
    for (; a < r->count; a++) {
        for (i = 0; i < r->n && !r->heads[a].bad[i];) i++;
        if (i < r->n) break;
    }
    const pare_status overflow = run_overflow(r, a);
    if (overflow) return overflow;
    return pare_fail(
        r->err, PARE_ERR_NUMERIC,
        "length: row %zu of head %zu: the oracle's weights cannot be trusted (they are "
        "nan, below %.3g or above 1)%s",
        i, a, r->caps.w_min, r->o.no_fallback ? "" : ", nor after the fall-back");
}

/* The mean key of every call with a bad row gives these rows a reference near their log-sum. */
static pare_status find_references(run *r)
{
    for (size_t a = 0; a < r->count; a++) {
        head *const h = &r->heads[a];
        if (!h->c) h->c = pare_alloc(r->arena, r->n, sizeof *h->c);
        if (!h->c) return pare_no_memory(r->err);
    }
    sums_clear_bad(r);
    pare_status st = softmax_blocks(r, true);
    if (!st) st = run_round(r, &mean_calls);
    for (size_t a = 0; a < r->count && !st; a++)
        for (size_t i = 0; i < r->n; i++)
            if (r->heads[a].bad[i]) r->heads[a].c[i] = reference_logit(r, r->heads[a].top[i]);
    return st;
}

static void mark_all(run *r, unsigned char bad)
{
    for (size_t a = 0; a < r->count; a++)
        for (size_t i = 0; i < r->n; i++)
            r->heads[a].bad[i] = (unsigned char)(bad && !sums_empty(r, i));
}

/* Bad rows once more, with references of their own. */
static pare_status fall_back(run *r, const construction *how)
{
    r->only_bad = true;
    pare_status st = find_references(r);
    if (st) return st;
    sums_clear_bad(r);
    st = zeroref_round(r, how);
    if (!st && held_all(r)) run_rows(r, judge_stripe, r);
    r->only_bad = false;
    return !st && judge(r) ? still_bad(r) : st;
}

pare_status zeroref_settle(run *r, const construction *how)
{
    r->stats->bad_rows = judge(r);
    if (!r->stats->bad_rows) return PARE_OK;
    return r->o.no_fallback ? still_bad(r) : fall_back(r, how);
}

pare_status zeroref_rounds(run *r, const construction *how)
{
    pare_status st = sums_new(r);
    if (!st) st = reference_choose(r);
    if (!st && r->rule.plain) return run_round(r, &plain_calls);
    if (!st && r->stats->reference == PARE_REF_MEAN) {
        mark_all(r, 1);
        r->extra = r->o.reference != PARE_REF_MEAN; /* it is the data that asks for this round */
        st = find_references(r);
        r->extra = false;
        mark_all(r, 0);
    }
    if (!st) st = zeroref_round(r, how);
    return st ? st : zeroref_settle(r, how);
}

pare_status zeroref_attend(run *r)
{
    r->in_order = r->p->kind == PARE_FULL && r->rule.kind == CALL_FULL && !r->rule.one_vector &&
                  !r->rule.leave_remainder && !r->strict;
    const pare_status st = zeroref_rounds(r, &zeroref_calls);
    if (!st) sums_write(r);
    return st;
}
