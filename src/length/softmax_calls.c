/* softmax_calls.c - softmax calls as an oracle sees them (docs/theory/length.md "Codes", "The zero
 * reference", "Engines with one mask").
 *
 * Queries, keys and values in their rows, the logit of the reference as one more entry of queries
 * and keys, the codes of packed tiles behind it, and two indicator columns beside the values, 1 on
 * the keys and 1 on the reference, whose results are the softmax weights of both. Three kinds of
 * calls are made of them: with a reference, plain, and with the keys themselves as values, which
 * gives their softmax mean. */
#include "attend_plan.h"
#include "group_codes.h"
#include "modes.h"
#include "numbers.h"
#include <math.h>
#include <string.h>

/* ---- layout ---------------------------------------------------------------------------------- */

static size_t fit_width(const length_run *r, size_t need, uint32_t have, const char *what)
{
    if (!have || need <= have) return have ? have : need;
    (void)pare_fail(r->in.err, PARE_ERR_INPUT,
                    "length: a call needs %s of %zu numbers, the oracle takes %u", what, need,
                    (unsigned)have);
    return 0;
}

/* Whether the indicator columns are an array of their own: rows of values then fill whole cache
 * lines, as before, and the weights of all rows are side by side. */
static bool is_split(const length_run *r, const call_ops *ops)
{
    return ops->reference && r->in.caps.features & PARE_ORC_SPLIT && !r->in.strict &&
           !r->in.caps.d_v;
}

static bool has_logits(const length_run *r, const call_ops *ops, const pending_call *e)
{
    return ops->reference && (ops->keys_as_values || r->heads[e->head].ref_logit);
}

/* The indicator columns of the block of keys from k0 on: all blocks but the last share them. */
static char *indicator_of_block(const length_run *r, const head_state *h, size_t k0)
{
    const size_t whole =
        r->in.n - k0 >= r->in.rule.m - 1 ? 0 : run_padded_bytes(r, (size_t)r->in.rule.m * 2);
    return h->indicator_blocks + whole;
}

static size_t lay_out_as(const length_run *r, pending_call *e, const placed *tiles,
                         const call_ops *ops)
{
    head_state *const h = &r->heads[e->head];
    const pare_length_job *const j = &h->job;
    const pare_tile *const t = &tiles->t;
    const call_rule *const rule = &r->in.rule;
    const size_t size = num_size(r->in.caps.dtype), n = e->n;
    const bool bias = rule->kind == CALL_TILE, split = is_split(r, ops);
    e->split_weights = split;
    e->code = group_width(e->tiles);
    const size_t dk = j->dk + e->code + (has_logits(r, ops, e) && !bias ? 1 : 0);
    const size_t dv = (ops->keys_as_values ? j->dk : j->dv) + (ops->reference && !split ? 2 : 0);
    e->dk = (uint32_t)fit_width(r, dk, r->in.caps.d_k, "queries");
    e->dv = (uint32_t)fit_width(r, dv, r->in.caps.d_v, "values");
    if (!e->dk || (!e->dv && !split)) return SIZE_MAX;

    /* Keys in rows 1, 2, ... of a full call, a whole block of the pattern's: the same for every
     * block of queries, so they are laid out once. */
    e->kv_in_block = ops->reference && rule->kind == CALL_FULL &&
                     r->in.pattern->kind == PARE_FULL && e->tiles == 1 && !t->keys && !t->k_down &&
                     t->k0 % (rule->m - 1) == 0 && h->key_blocks;
    /* Queries as they are in memory: rows behind the tile's own do no harm. */
    e->q_in_place = e->tiles == 1 && !e->code && e->dk == j->dk && j->ldq == j->dk &&
                    !tiles->q_at && !t->rows && !t->q_down && t->q0 + n <= r->in.n &&
                    !has_logits(r, ops, e);

    /* What a call has to itself, one part after the other from e->y on. */
    const size_t own = e->kv_in_block ? 0 : n, out = r->round.fused ? 0 : n;
    size_t bytes = 0;
    if (own || out || !e->q_in_place || bias) { /* else: mostly, where rows are fused */
        const size_t parts[] = {
            e->q_in_place ? 0 : n * e->dk, own * e->dk,         own * e->dv, bias ? n * n : 0,
            split ? own * 2 : 0,           split ? out * 2 : 0, out * e->dv};
        char **const to[] = {&e->q, &e->k, &e->v, &e->bias, &e->indicator, &e->weights, &e->y};
        char *const at = e->y;
        for (size_t i = 0; i < 7; i++) {
            if (at) *to[i] = at + bytes;
            bytes += run_padded_bytes(r, parts[i]);
        }
        if (!bias) e->bias = NULL;
        if (!split) e->indicator = e->weights = NULL;
    }
    if (e->q_in_place) e->q = (char *)j->q + t->q0 * j->ldq * size;
    if (e->kv_in_block) {
        const size_t rows = t->k0 / (rule->m - 1) * rule->m;
        e->k = h->key_blocks + rows * e->dk * size;
        e->v = h->value_blocks + rows * e->dv * size;
        if (split) e->indicator = indicator_of_block(r, h, t->k0);
    }
    return bytes;
}

static size_t lay_out(const length_run *r, pending_call *e, const placed *tiles)
{
    return lay_out_as(r, e, tiles, r->round.ops);
}

/* ---- building -------------------------------------------------------------------------------- */

/* Logit of the reference for query i; in calls for the mean far below all keys. */
static double logit_of(const length_run *r, const call_ops *ops, const head_state *h, size_t i)
{
    if (!ops->keys_as_values) return h->ref_logit ? h->ref_logit[i] : 0;
    const double flush = isfinite(r->in.caps.exp_flush) ? r->in.caps.exp_flush : 104;
    return -(h->lmax + flush + 16);
}

static void place_queries(const length_run *r, const pending_call *e, const placed *t,
                          uint64_t bits, double p, const call_ops *ops)
{
    const head_state *const h = &r->heads[e->head];
    const pare_dtype type = r->in.caps.dtype;
    const size_t b = num_size(type), dk = h->job.dk;
    for (uint32_t x = 0; x < t->t.nq; x++) {
        const size_t i = pare_tile_query(&t->t, x);
        char *const row = e->q + (size_t)(t->q_at + x) * e->dk * b;
        memcpy(row, (const char *)h->job.q + i * h->job.ldq * b, dk * b);
        put_query_code(type, row, dk, e->code, bits, p);
        if (has_logits(r, ops, e) && !e->bias)
            num_put(type, row, dk + e->code, logit_of(r, ops, h, i));
    }
}

/* A 1 in row `at`, in the first indicator column (a key) or in the second (the reference), unless
 * another call has put it there. */
static void put_indicator(const length_run *r, const pending_call *e, size_t at, size_t wide,
                          size_t which)
{
    if (e->indicator)
        num_put(r->in.caps.dtype, e->indicator, at * 2 + which, 1);
    else if (!e->split_weights)
        num_put(r->in.caps.dtype, e->v, at * e->dv + wide + which, 1);
}

static void place_keys(const length_run *r, const pending_call *e, const placed *t, uint64_t bits,
                       const call_ops *ops)
{
    const pare_length_job *const j = &r->heads[e->head].job;
    const pare_dtype type = r->in.caps.dtype;
    const size_t b = num_size(type), wide = ops->keys_as_values ? j->dk : j->dv;
    for (uint32_t x = 0; x < t->t.nk; x++) {
        const size_t key = pare_tile_key(&t->t, x), at = placed_key_row(t, x);
        char *const row = e->k + at * e->dk * b, *const value = e->v + at * e->dv * b;
        memcpy(row, (const char *)j->k + key * j->ldk * b, j->dk * b);
        if (x >= t->shared) put_key_code(type, row, j->dk, e->code, bits);
        if (has_logits(r, ops, e) && !e->bias) num_put(type, row, j->dk + e->code, 0);
        memcpy(value, ops->keys_as_values ? row : (const char *)j->v + key * j->ldv * b, wide * b);
        if (ops->reference) put_indicator(r, e, at, wide, 0);
    }
}

/* The mask as a bias, which also holds the logit of the reference. */
static void place_bias(const length_run *r, const pending_call *e, const placed *t,
                       const call_ops *ops)
{
    const head_state *const h = &r->heads[e->head];
    for (uint32_t p = 0; p < t->t.nq; p++) {
        const size_t sees = pare_tile_sees(&t->t, p), row = (size_t)(t->q_at + p) * e->n;
        const double c = logit_of(r, ops, h, pare_tile_query(&t->t, p));
        for (uint32_t x = 0; x < e->n; x++) {
            const bool key = x >= t->k_at && x < t->k_at + t->t.nk;
            num_put(r->in.caps.dtype, e->bias, row + x,
                    !key                 ? c
                    : x - t->k_at < sees ? 0
                                         : -(double)INFINITY);
        }
    }
}

/* All zero, but for the reference; rows without a key get a value of 0. */
static void clear_keys(const length_run *r, const pending_call *e, const call_ops *ops)
{
    const head_state *const h = &r->heads[e->head];
    const pare_dtype type = r->in.caps.dtype;
    const size_t b = num_size(type);
    memset(e->k, 0, e->n * e->dk * b);
    memset(e->v, 0, e->n * e->dv * b);
    if (e->indicator) memset(e->indicator, 0, e->n * 2 * b);
    if (has_logits(r, ops, e) && !e->bias)
        for (size_t i = 0; i < e->n; i++) num_put(type, e->k, i * e->dk + h->job.dk + e->code, 1);
    if (ops->reference) put_indicator(r, e, 0, ops->keys_as_values ? h->job.dk : h->job.dv, 1);
}

static void build(const length_run *r, const pending_call *e, pare_call *out)
{
    const call_ops *const ops = r->round.ops;
    const head_state *const h = &r->heads[e->head];
    const size_t b = num_size(r->in.caps.dtype), n = e->n;
    double p = 0; /* the penalty between tiles */
    if (e->tiles > 1) {
        double most = ops->keys_as_values ? -logit_of(r, ops, h, 0) : h->lmax;
        for (size_t i = 0; !ops->keys_as_values && h->ref_logit && i < r->in.n; i++)
            most = fmax(most, fabs(h->ref_logit[i]));
        p = penalty(r->in.caps.dtype, r->in.caps.exp_flush, most);
    }
    if (!e->q_in_place) memset(e->q, 0, n * e->dk * b);
    if (!e->kv_in_block) clear_keys(r, e, ops);
    if (e->bias) memset(e->bias, 0, n * n * b);
    for (size_t g = 0; g < e->tiles; g++) {
        const placed *const t = &r->batch.tiles[e->tile + g];
        const uint64_t bits = e->code ? group_bits(e->code, g) : 0;
        if (!e->q_in_place) place_queries(r, e, t, bits, p, ops);
        if (!e->kv_in_block) place_keys(r, e, t, bits, ops);
        if (e->bias) place_bias(r, e, t, ops);
    }
    if (e->dv) run_mark_unwritten(r, e->y, n, e->dv);
    if (e->weights) run_mark_unwritten(r, e->weights, n, 2);
    *out = (pare_call){.kind = PARE_CALL_QKV,
                       .u.a = {.q = e->q,
                               .k = e->k,
                               .v = e->v,
                               .n = e->n,
                               .dk = e->dk,
                               .dv = e->dv,
                               .causal = r->in.rule.kind == CALL_CAUSAL,
                               .bias = e->bias,
                               .y = e->y,
                               .v2 = e->indicator,
                               .y2 = e->weights,
                               .dv2 = e->split_weights ? 2 : 0},
                       .into = fused_sums(r, e)};
}

/* ---- blocks of keys that many calls share ---------------------------------------------------- */

typedef struct key_blocks {
    length_run *r;
    const call_ops *ops;
    size_t count;
    uint32_t dk, dv;
} key_blocks;

static void lay_out_block(void *ctx, size_t x)
{
    const key_blocks *const w = ctx;
    const length_run *const r = w->r;
    const size_t b = num_size(r->in.caps.dtype), m = r->in.rule.m, at = x % w->count;
    const size_t k0 = at * (m - 1), left = r->in.n - k0;
    const head_state *const h = &r->heads[x / w->count];
    const pending_call e = {.head = x / w->count,
                            .n = r->in.rule.m,
                            .dk = w->dk,
                            .dv = w->dv,
                            .k = h->key_blocks + at * m * w->dk * b,
                            .v = h->value_blocks + at * m * w->dv * b,
                            .split_weights = h->indicator_blocks,
                            .indicator = h->indicator_blocks && (!at || left < m - 1)
                                             ? indicator_of_block(r, h, k0)
                                             : NULL};
    const size_t nk = left < m - 1 ? left : m - 1;
    const placed t = {.t = tile_of(0, 0, k0, nk, PARE_VIS_ALL), .k_at = 1};
    clear_keys(r, &e, w->ops);
    place_keys(r, &e, &t, 0, w->ops);
}

pare_status softmax_lay_out_blocks(length_run *r, const call_ops *ops)
{
    const size_t m = r->in.rule.m;
    for (size_t i = 0; i < r->in.nheads; i++) {
        head_state *const h = &r->heads[i];
        h->key_blocks = h->value_blocks = h->indicator_blocks = NULL;
        if (h->job.dk != r->heads[0].job.dk || h->job.dv != r->heads[0].job.dv) return PARE_OK;
    }
    if (r->in.rule.kind != CALL_FULL || r->in.pattern->kind != PARE_FULL || r->round.only_bad)
        return PARE_OK;
    key_blocks w = {.r = r, .ops = ops, .count = (r->in.n + m - 2) / (m - 1)};
    const placed one = {.t = {.nq = 1, .nk = 1}};
    pending_call e = {.n = r->in.rule.m, .tiles = 1};
    if (lay_out_as(r, &e, &one, ops) == SIZE_MAX) return PARE_ERR_INPUT;
    w.dk = e.dk, w.dv = e.dv;
    const size_t keys = run_padded_bytes(r, w.count * m * w.dk);
    const size_t values = run_padded_bytes(r, w.count * m * w.dv);
    for (size_t i = 0; i < r->in.nheads; i++) {
        head_state *const h = &r->heads[i];
        h->key_blocks = run_alloc_aligned(r, keys + values + 2 * run_padded_bytes(r, m * 2), 1);
        if (!h->key_blocks) return pare_no_memory(r->in.err);
        h->value_blocks = h->key_blocks + keys;
        h->indicator_blocks = is_split(r, ops) ? h->value_blocks + values : NULL;
    }
    pare_parallel(r->in.exec, w.count * r->in.nheads, lay_out_block, &w);
    return PARE_OK;
}

/* ---- calls with a reference ------------------------------------------------------------------ */

/* Softmax weight of the keys in a row, and, behind it, of the reference. `wide`: its values. */
static const void *weights_of(const length_run *r, const pending_call *e, size_t row, size_t wide)
{
    const size_t b = num_size(r->in.caps.dtype);
    return e->weights ? e->weights + row * 2 * b : e->y + (row * e->dv + wide) * b;
}

static void merge_weights(const length_run *r, const head_state *h, size_t i, size_t n,
                          const void *keys, const void *reference, bool f32, double *scale_old,
                          double *scale_new)
{
    /* Softmax weights are no more than 1 together, but for the rounding of their sum: an engine
     * that answers more would make the keys of a call vanish, or count twice. */
    const double u = r->in.caps.dtype == PARE_F32 ? 0x1p-24 : 0x1p-53;
    const double most = 1 + fmax(0.0625, 4 * (r->in.caps.exp_err + 2) * u * (r->in.rule.m + 4.0));
    const reference_merge s = {
        keys, reference, h->weight_sum + i, scale_old, scale_new, r->in.caps.w_min, most};
    merge_reference_rows(&s, n, f32);
}

static void zeroref_merge_raw(const length_run *r, const head_state *h, size_t i, size_t n,
                              const void *keys, const void *reference, double *scale_old,
                              double *scale_new)
{
    const bool f32 = r->in.caps.dtype == PARE_F32;
    merge_weights(r, h, i, n, keys, reference, f32, scale_old, scale_new);
}

bool zeroref_merge(length_run *r, const pending_call *e, size_t row, size_t i, size_t n,
                   double *scale_old, double *scale_new)
{
    enum { AHEAD = 16 }; /* rows that are prefetched: they may lie apart */
    const head_state *const h = &r->heads[e->head];
    double keys[STRIPE], reference[STRIPE];
    for (size_t p = 0; p < n; p++) {
        const void *const here = weights_of(r, e, row + p, h->job.dv);
        __builtin_prefetch(weights_of(r, e, row + p + AHEAD, h->job.dv));
        keys[p] = num_at(r->in.caps.dtype, here, 0);
        reference[p] = num_at(r->in.caps.dtype, here, 1);
    }
    merge_weights(r, h, i, n, keys, reference, false, scale_old, scale_new);
    return true;
}

void zeroref_judge_row(const length_run *r, head_state *h, size_t i)
{
    const bool enough = h->weight_sum[i] >= r->in.caps.w_min;
    if (!r->round.only_bad && !enough && !row_sees_nothing(r, i)) h->bad[i] = 1;
    if (r->round.only_bad && h->bad[i] && enough && accumulators_finite(r, h, i)) h->bad[i] = 0;
}

/* Rows that can be trusted are written, but for those that were before. */
static void zeroref_finish(length_run *r, size_t head, size_t first, size_t end)
{
    head_state *const h = &r->heads[head];
    for (size_t i = first; i < end; i++) {
        const bool asked = !r->round.only_bad || h->bad[i];
        zeroref_judge_row(r, h, i);
        if (asked && !h->bad[i]) accumulators_write_rows(r, head, i, i + 1);
    }
}

const call_ops zeroref_calls = {.lay_out = lay_out,
                                .build = build,
                                .merge = zeroref_merge,
                                .reference = true,
                                .may_fail = true,
                                .finish = zeroref_finish,
                                .merge_raw = zeroref_merge_raw};

/* ---- the plain call: n <= M ------------------------------------------------------------------ */

static bool plain_merge(length_run *r, const pending_call *e, size_t row, size_t i, size_t n,
                        double *scale_old, double *scale_new)
{
    (void)row;
    for (size_t p = 0; p < n; p++) {
        r->heads[e->head].weight_sum[i + p] = scale_new[p] = 1;
        scale_old[p] = 0;
    }
    return true;
}

const call_ops plain_calls = {.lay_out = lay_out, .build = build, .merge = plain_merge};

/* ---- the mean key ---------------------------------------------------------------------------- */

/* The candidate for a reference: the largest q_i . (mean key) of all calls, in row_max. */
static bool mean_merge(length_run *r, const pending_call *e, size_t row, size_t i, size_t n,
                       double *scale_old, double *scale_new)
{
    const pare_dtype type = r->in.caps.dtype;
    head_state *const h = &r->heads[e->head];
    const size_t dk = h->job.dk;
    (void)scale_old, (void)scale_new;
    for (size_t p = 0; p < n; p++) {
        const char *const y = e->y + (row + p) * e->dv * num_size(type);
        const double mass = num_at(type, weights_of(r, e, row + p, dk), 0);
        double s = 0;
        for (size_t c = 0; c < dk; c++)
            s += num_at(type, h->job.q, (i + p) * h->job.ldq + c) * num_at(type, y, c);
        if (!(mass > 0.5) || !isfinite(s))
            h->weight_sum[i + p] = NAN;
        else
            h->row_max[i + p] = fmax(h->row_max[i + p], s / mass);
    }
    return false;
}

const call_ops mean_calls = {.lay_out = lay_out,
                             .build = build,
                             .merge = mean_merge,
                             .reference = true,
                             .keys_as_values = true};
