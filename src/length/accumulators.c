/* accumulators.c - the accumulators of the rows, in f64 whatever the oracle's type
 * (docs/theory/length.md "Merging"), and the window of rows that have them.
 *
 * Where calls come in order, a window of a few groups of rows is enough: a full or causal plan goes
 * through the queries by groups of blocks, others by blocks or rows, and no call of a head has rows
 * before the group in which the calls before it begin. The window stays in the cache from the first
 * call of a row to its output. When a call reaches the last group of the window, groups before its
 * own are complete: they are written out, and those behind them move up. (The last group is for
 * calls that lie across two groups.) */
#include "base/support.h"
#include "attend_plan.h"
#include "numbers.h"
#include "run.h"
#include <math.h>
#include <string.h>

pare_status accumulators_new(length_run *r)
{
    const size_t n = r->in.n;
    size_t dv = 0, rows = n;
    for (size_t i = 0; i < r->in.nheads; i++) dv = pare_max_size(dv, r->heads[i].job.dv);
    if (r->window.in_order) { /* whole groups in a fourth of what a batch takes, and one more */
        const size_t row = (dv ? dv : 1) * sizeof(double);
        const size_t group = rows_of_group(&r->in.rule, r->in.pattern);
        const size_t call = r->in.rule.m * dv * num_size(r->in.caps.dtype);
        const size_t groups = run_batch_bytes(r, call) / 4 / row / group;
        rows = group * ((groups ? groups : 1) + 1);
    }
    r->window.first = r->window.reached = 0;
    r->window.rows = pare_min_size(rows, n);
    for (size_t i = 0; i < r->in.nheads; i++) {
        head_state *const h = &r->heads[i];
        h->acc = i && !window_is_whole(r)
                     ? r->heads[0].acc
                     : pare_alloc(r->arena, r->window.rows * dv, sizeof *h->acc);
        h->weight_sum = pare_alloc(r->arena, n, sizeof *h->weight_sum);
        h->row_max = pare_alloc(r->arena, n, sizeof *h->row_max);
        h->bad = pare_alloc(r->arena, n, 1);
        if (!h->acc || !h->weight_sum || !h->row_max || !h->bad) return pare_no_memory(r->in.err);
        for (size_t j = 0; j < n; j++) h->row_max[j] = -INFINITY;
    }
    return PARE_OK;
}

static void clear_rows(length_run *r, size_t head, size_t first, size_t end)
{
    head_state *const h = &r->heads[head];
    for (size_t i = first; i < end; i++) {
        if (!h->bad[i]) continue;
        if (window_is_whole(r)) memset(accumulator_row(r, h, i), 0, h->job.dv * sizeof *h->acc);
        h->weight_sum[i] = 0;
        h->row_max[i] = -INFINITY;
        if (h->partial_count) h->partial_count[i] = 0;
    }
}

void accumulators_clear_bad(length_run *r)
{
    run_for_rows(r, clear_rows);
}

bool accumulators_finite(const length_run *r, const head_state *h, size_t i)
{
    const double *const acc = accumulator_row(r, h, i);
    double zero = h->weight_sum[i] * 0; /* 0, or nan */
    double4 zeros[4] = {{0}};           /* four independent chains of sums */
    size_t c = 0;
    for (; c + 16 <= h->job.dv; c += 16)
        for (size_t e = 0; e < 4; e++) zeros[e] += *(const double4 *)(acc + c + 4 * e) * 0.0;
    for (; c < h->job.dv; c++) zero += acc[c] * 0;
    zeros[0] += zeros[1] + (zeros[2] + zeros[3]);
    for (size_t e = 0; e < 4; e++) zero += zeros[0][e];
    return zero == 0;
}

bool row_sees_nothing(const length_run *r, size_t i)
{
    return r->in.pattern->kind == PARE_GRAPH &&
           pare_visible(r->in.pattern, r->in.graph, r->in.n, i).count == 0;
}

void accumulators_write_rows(length_run *r, size_t head, size_t first, size_t end)
{
    const head_state *const h = &r->heads[head];
    const pare_dtype type = r->in.caps.dtype;
    const size_t dv = h->job.dv;
    for (size_t i = first; i < end; i++) {
        const double *const acc = accumulator_row(r, h, i), sum = h->weight_sum[i];
        if (h->job.lse) num_put(type, h->job.lse, i, h->row_max[i] + log(sum));
        if (type == PARE_F32) {
            float *const y = (float *)h->job.y + i * h->job.ldy;
            const double scale = sum > 0 ? 1 / sum : 0;
            size_t c = 0;
            for (; c + 4 <= dv; c += 4)
                *(float4 *)(y + c) =
                    __builtin_convertvector(*(const double4 *)(acc + c) * scale, float4);
            for (; c < dv; c++) y[c] = (float)(acc[c] * scale);
        } else {
            double *const y = (double *)h->job.y + i * h->job.ldy;
            for (size_t c = 0; c < dv; c++) y[c] = acc[c] / (sum > 0 ? sum : 1);
        }
    }
}

void accumulators_write(length_run *r)
{
    if (window_is_whole(r)) run_for_rows(r, accumulators_write_rows);
}

/* ---- the window ------------------------------------------------------------------------------ */

size_t window_admit(const length_run *r, const placed *tiles, size_t count, size_t *end)
{
    const size_t group = rows_of_group(&r->in.rule, r->in.pattern);
    size_t low = r->in.n, high = 0;
    *end = 0;
    if (window_is_whole(r)) return 0;
    for (size_t x = 0; x < count; x++) {
        const size_t a = pare_tile_query(&tiles[x].t, 0);
        const size_t b = pare_tile_query(&tiles[x].t, tiles[x].t.nq - 1);
        low = pare_min_size(low, pare_min_size(a, b));
        high = pare_max_size(high, pare_max_size(a, b));
    }
    *end = high + 1;
    const size_t begin = low / group * group, last = r->window.first + r->window.rows - group;
    PARE_ASSERT(low >= r->window.first && high < begin + r->window.rows);
    return high >= last && begin > r->window.first ? begin : 0;
}

static void finish_stripe(void *ctx, size_t x)
{
    length_run *const r = ctx;
    const size_t first = r->window.first + x * STRIPE;
    r->round.ops->finish(r, r->round.head, first,
                         pare_min_size(r->window.complete_to, first + STRIPE));
}

void window_complete(length_run *r, size_t to)
{
    const head_state *const h = &r->heads[r->round.head];
    const size_t row = h->job.dv * sizeof *h->acc;
    while (r->window.first < to) { /* rows beyond the window have had no call: their sums are 0 */
        const size_t first = r->window.first, next = pare_min_size(to, first + r->window.rows);
        r->window.complete_to = next;
        if (r->round.ops->finish)
            pare_parallel(r->in.exec, (next - first + STRIPE - 1) / STRIPE, finish_stripe, r);
        const size_t done = next - first, left = pare_max_size(r->window.reached, next) - next;
        memmove(h->acc, (char *)h->acc + done * row, left * row);
        memset((char *)h->acc + left * row, 0, done * row);
        r->window.first = next;
    }
}
