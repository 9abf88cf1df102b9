/* mode_zeroref.c - the zero reference: unnormalized sums out of a plain softmax
 * (docs/theory/length.md "The zero reference").
 *
 * Row 0 of a call is a key of logit c_i, the reference; so is every row without a key, but its
 * value is 0. Values carry two more columns, 1 on the keys and 1 on the reference. With a_ij =
 * e^(s_ij) and Z_i the sum of all weights of a call, the call answers
 *
 *     acc_i = sum_j a_ij v_j / Z_i,   r_i = sum_j a_ij / Z_i,   w_i = e^(c_i) / Z_i,
 *
 * whatever Z_i is: acc / w and r / w are the sums over this call's keys, divided by e^(c_i),
 * exactly in real numbers. All calls of a row use the same c_i, so
 *
 *     y = (sum acc / w) / (sum r / w).
 *
 * Rows where w, or the sum of r / w, is below what the oracle's type can be trusted with are bad;
 * for these, c_i becomes q_i times the softmax mean of the keys (two more rounds), for which
 * 0 <= log-sum-exp - c_i <= log N for any data. */
#include "modes.h"
#include "linalg/elementary.h"
#include <pare/length.h>

/* The keys left to the host: N = kM leaves k keys over after blocks of M - 1, which is 1/M of the
 * work, and a whole column of calls. */
static void add_remainder(length_run *r, size_t head, size_t first, size_t end)
{
    head_state *const h = &r->heads[head];
    const pare_length_job *const j = &h->job;
    const pare_dtype type = r->in.caps.dtype;
    const size_t block = r->in.rule.m - 1;
    accumulate_fn *const add = accumulate_fn_for(type);
    addends one;
    one.count = 1, one.ld = j->ldv, one.scale_old[0][0] = 1;
    for (size_t i = first; i < end; i++) {
        if (r->round.only_bad && !h->bad[i]) continue;
        for (size_t k = r->in.n / block * block; k < r->in.n; k++) {
            const double c = h->ref_logit ? h->ref_logit[i] : 0;
            const double a = pare_exp(run_logit(r, j, i, k) - c);
            h->weight_sum[i] += a;
            one.x[0] = (const char *)j->v + k * j->ldv * pare_dtype_size(type);
            one.scale_new[0][0] = a;
            (void)add(accumulator_row(r, h, i), 1, j->dv, &one);
        }
        if (!accumulators_finite(r, h, i)) h->bad[i] = 1;
    }
}

static pare_status zeroref_round(length_run *r, const call_ops *ops)
{
    pare_status st = softmax_lay_out_blocks(r, &zeroref_calls);
    if (!st) st = round_pattern(r, ops);
    if (!st && r->in.rule.leave_remainder) run_for_rows(r, add_remainder);
    return st;
}

/* ---- bad rows -------------------------------------------------------------------------------- */

static void judge_rows(length_run *r, size_t head, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) zeroref_judge_row(r, &r->heads[head], i);
}

static uint64_t count_bad_rows(length_run *r)
{
    uint64_t bad = 0;
    for (size_t a = 0; a < r->in.nheads; a++) {
        judge_rows(r, a, 0, r->in.n);
        for (size_t i = 0; i < r->in.n; i++) bad += r->heads[a].bad[i];
    }
    return bad;
}

static pare_status fail_bad_row(const length_run *r)
{
    size_t a = 0, i = 0;
    for (; a < r->in.nheads; a++) {
        for (i = 0; i < r->in.n && !r->heads[a].bad[i];) i++;
        if (i < r->in.n) break;
    }
    const pare_status overflow = run_check_overflow(r, a);
    if (overflow) return overflow;
    return pare_fail(
        r->in.err, PARE_ERR_NUMERIC,
        "length: row %zu of head %zu: the oracle's weights cannot be trusted (they are "
        "nan, below %.3g or above 1)%s",
        i, a, r->in.caps.w_min, r->in.opts.no_fallback ? "" : ", nor after the fall-back");
}

/* The mean key of every call with a bad row gives these rows a reference near their log-sum-exp. */
static pare_status find_references(length_run *r)
{
    for (size_t a = 0; a < r->in.nheads; a++) {
        head_state *const h = &r->heads[a];
        if (!h->ref_logit) h->ref_logit = pare_alloc(r->arena, r->in.n, sizeof *h->ref_logit);
        if (!h->ref_logit) return pare_no_memory(r->in.err);
    }
    accumulators_clear_bad(r);
    pare_status st = softmax_lay_out_blocks(r, &mean_calls);
    if (!st) st = round_pattern(r, &mean_calls);
    for (size_t a = 0; a < r->in.nheads && !st; a++) {
        head_state *const h = &r->heads[a];
        for (size_t i = 0; i < r->in.n; i++)
            if (h->bad[i]) h->ref_logit[i] = reference_logit(r, h->row_max[i]);
    }
    return st;
}

pare_status zeroref_retry_bad_rows(length_run *r, const call_ops *ops)
{
    r->stats->bad_rows = count_bad_rows(r);
    if (!r->stats->bad_rows) return PARE_OK;
    if (r->in.opts.no_fallback) return fail_bad_row(r);
    r->round.only_bad = true; /* once more, with references of their own */
    pare_status st = find_references(r);
    if (st) return st;
    accumulators_clear_bad(r);
    st = zeroref_round(r, ops);
    if (!st && window_is_whole(r)) run_for_rows(r, judge_rows);
    r->round.only_bad = false;
    return !st && count_bad_rows(r) ? fail_bad_row(r) : st;
}

/* ---- the mode -------------------------------------------------------------------------------- */

static void set_all_bad(length_run *r, bool bad)
{
    for (size_t a = 0; a < r->in.nheads; a++)
        for (size_t i = 0; i < r->in.n; i++) r->heads[a].bad[i] = bad && !row_sees_nothing(r, i);
}

pare_status zeroref_rounds(length_run *r, const call_ops *ops)
{
    pare_status st = accumulators_new(r);
    if (!st) st = reference_choose(r);
    if (!st && r->in.rule.plain) return round_pattern(r, &plain_calls);
    if (!st && r->stats->reference == PARE_REF_MEAN) {
        set_all_bad(r, true);
        r->round.extra = r->in.opts.reference != PARE_REF_MEAN; /* the data needs this round */
        st = find_references(r);
        r->round.extra = false;
        set_all_bad(r, false);
    }
    if (!st) st = zeroref_round(r, ops);
    return st ? st : zeroref_retry_bad_rows(r, ops);
}

pare_status zeroref_attend(length_run *r)
{
    const call_rule *const rule = &r->in.rule;
    r->window.in_order = r->in.pattern->kind == PARE_FULL && rule->kind == CALL_FULL &&
                         !rule->one_vector && !rule->leave_remainder && !r->in.strict;
    const pare_status st = zeroref_rounds(r, &zeroref_calls);
    if (!st) accumulators_write(r);
    return st;
}
