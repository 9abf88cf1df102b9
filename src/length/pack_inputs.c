/* pack_inputs.c - many short inputs in one long call, without a mask (Yu 2025, Theorem 4.2,
 * repaired; docs/theory/length.md "Many short inputs in one call (Theorem 4.2)").
 *
 * Input g's queries carry P u_g and its keys v_g: logits within an input get exactly +0, those
 * between inputs at most -P. A row that sees `own` keys of its own input and `others` of the others
 * has at most
 *
 *     t = (others / own) e^(2 C1 - P),     |q.k| <= C1,
 *
 * of its weight elsewhere, which moves it by 2 C2 t at most, |v| <= C2. With the P that is chosen
 * here t is exactly 0: the weights of other inputs are, for e^-x = 0 beyond exp_flush. */
#include "call_counts.h"
#include "group_codes.h"
#include "instances.h"
#include "numbers.h"
#include <math.h>
#include "attend_plan.h"
#include "linalg/bounds.h"
#include <string.h>

typedef struct packing {
    run_inputs in; /* oracle, caps, strict, err */
    const pare_length_job *jobs;
    size_t count;
    bool causal, isolates; /* isolates: no weight passes between inputs */
    double penalty;        /* P */
    double logit, value;   /* C1, C2 */
    pare_pack_stats *stats;
} packing;

/* The largest norm of a row, rounded up. */
static double max_norm(pare_dtype t, const void *x, size_t n, size_t ld, size_t cols)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double s = 0;
        for (size_t c = 0; c < cols; c++) s += num_at(t, x, i * ld + c) * num_at(t, x, i * ld + c);
        if (!(s <= most)) most = s;
    }
    return sqrt(most) * (1 + 0x1p-40);
}

/* ---- one call -------------------------------------------------------------------------------- */

/* Input g from row `row` of the call on: queries and keys carry the code of the group behind their
 * own numbers. */
static void place_input(const packing *p, const pare_length_job *j, size_t g, size_t row,
                        uint32_t code, const instance *to)
{
    const pare_dtype t = p->in.caps.dtype;
    const size_t b = num_size(t);
    const uint64_t bits = code ? group_bits(code, g) : 0;
    for (size_t i = 0; i < j->n; i++) {
        char *const q = to->q + (row + i) * to->dk * b;
        char *const k = to->k + (row + i) * to->dk * b;
        char *const v = to->v + (row + i) * to->dv * b;
        for (size_t c = 0; c < j->dk; c++)
            num_put(t, q, c, j->scale * num_at(t, j->q, i * j->ldq + c));
        memcpy(k, (const char *)j->k + i * j->ldk * b, j->dk * b);
        put_query_code(t, q, j->dk, code, bits, p->penalty);
        put_key_code(t, k, j->dk, code, bits);
        memcpy(v, (const char *)j->v + i * j->ldv * b, j->dv * b);
    }
}

/* Jobs [first, end) in one call of n rows; an oracle that wants max_len of them gets rows of
 * zeros, which are one more group. */
static pare_status pack_call(packing *p, size_t first, size_t end, size_t n)
{
    run_inputs *const in = &p->in;
    const bool pads = in->caps.features & PARE_ORC_STATIC && n < in->caps.max_len;
    const size_t rows = pads ? in->caps.max_len : n, b = num_size(in->caps.dtype);
    const size_t dk = p->jobs[0].dk, dv = p->jobs[0].dv;
    const uint32_t code = group_width(end - first + pads);
    const size_t wide = in->caps.d_k ? in->caps.d_k : dk + code,
                 values = in->caps.d_v ? in->caps.d_v : dv;
    if (wide < dk + code || values < dv)
        return pare_fail(in->err, PARE_ERR_INPUT,
                         "length: a packed call needs queries of %zu and values of %zu numbers, "
                         "the oracle takes %zu and %zu",
                         dk + code, dv, wide, values);
    pare_arena *const a = pare_arena_new();
    instance c = {
        .n = (uint32_t)rows, .dk = (uint32_t)wide, .dv = (uint32_t)values, .causal = p->causal};
    pare_status st = a && instance_alloc(&c, a, in->caps.dtype) ? PARE_OK : pare_no_memory(in->err);
    for (size_t x = first, row = 0; !st && x < end; row += p->jobs[x++].n)
        place_input(p, &p->jobs[x], x - first, row, code, &c);
    const uint64_t padding = pads ? group_bits(code, end - first) : 0;
    for (size_t row = n; !st && row < rows; row++) {
        put_query_code(in->caps.dtype, c.q, row * wide + dk, code, padding, p->penalty);
        put_key_code(in->caps.dtype, c.k, row * wide + dk, code, padding);
    }
    for (size_t row = 0; !st && !(in->caps.features & PARE_ORC_WHOLE) && row < rows; row++)
        num_put(in->caps.dtype, c.y, row * values, NAN); /* what is not written is no answer */
    if (!st) st = instances_run_any(in, &c, 1, &p->stats->calls);
    for (size_t x = first, row = 0; !st && x < end; x++) {
        if (!p->isolates && rows > p->jobs[x].n) { /* how far the others can move its outputs */
            const double own = p->causal ? 1 : (double)p->jobs[x].n;
            const double others = (double)(rows - p->jobs[x].n);
            const double t = others / own * pare_exp_up(2 * p->logit - p->penalty);
            const double leak = 2 * p->value * (t < 1 ? t : 1) * (1 + 0x1p-40);
            p->stats->leak = fmax(p->stats->leak, leak);
        }
        for (size_t i = 0; i < p->jobs[x].n && !st; i++, row++) {
            for (size_t e = 0; e < dv && !st; e++)
                if (!isfinite(num_at(in->caps.dtype, c.y, row * values + e)))
                    st = pare_fail(in->err, PARE_ERR_NUMERIC,
                                   "length: packed call %llu: row %zu of input %zu is no number",
                                   (unsigned long long)p->stats->calls - 1, i, x);
            memcpy((char *)p->jobs[x].y + i * p->jobs[x].ldy * b, c.y + row * values * b, dv * b);
        }
    }
    if (rows > p->stats->max_len) p->stats->max_len = rows;
    if (wide > p->stats->dk) p->stats->dk = (uint32_t)wide;
    if (values > p->stats->dv) p->stats->dv = (uint32_t)values;
    if (code > p->stats->code) p->stats->code = code;
    const uint64_t slot = 2 * wide + values;
    const uint64_t token = in->strict ? token_width(slot, 1, c.n) : slot;
    if (token > p->stats->d_token) p->stats->d_token = token;
    pare_arena_free(a);
    return st;
}

/* ---- what can be packed ---------------------------------------------------------------------- */

/* The oracle: a softmax with the mask that is needed, which gives small weights as 0. */
static pare_status check_oracle(packing *p, const pare_pattern *pattern, size_t longest_input)
{
    pare_oracle_caps *const caps = &p->in.caps;
    const bool window = pattern->kind == PARE_WINDOW && pattern->window < longest_input;
    p->in.oracle->ops->caps(p->in.oracle->self, caps);
    p->in.strict = !(caps->features & PARE_ORC_QKV);
    p->causal = pattern->kind != PARE_FULL;
    if (pattern->kind == PARE_GRAPH || window)
        return pare_fail(p->in.err, PARE_ERR_INPUT,
                         "length: short inputs are packed under full or causal attention, not over "
                         "a %s",
                         window ? "window shorter than an input" : "graph");
    if (!(caps->features & (p->causal ? PARE_ORC_CAUSAL : PARE_ORC_FULL)) ||
        !(caps->features & (PARE_ORC_QKV | PARE_ORC_STRICT)))
        return pare_fail(p->in.err, PARE_ERR_INPUT, "length: packing needs a %s softmax",
                         p->causal ? "causal" : "full");
    if (!isfinite(caps->exp_flush))
        return pare_fail(p->in.err, PARE_ERR_INPUT,
                         "length: packing needs an oracle whose small weights are 0; this one "
                         "clamps them (exp_flush is inf)");
    if (longest_input <= caps->max_len) return PARE_OK;
    return pare_fail(p->in.err, PARE_ERR_INPUT,
                     "length: an input has %zu tokens, the oracle takes %u: what is packed is "
                     "shorter than a call",
                     longest_input, (unsigned)caps->max_len);
}

/* Logits between two inputs are bounded by the longest of all. `by`: 0 = large enough. */
static pare_status choose_penalty(packing *p, double by)
{
    const pare_oracle_caps *const caps = &p->in.caps;
    double q = 0, k = 0;
    for (size_t x = 0; x < p->count; x++) {
        const pare_length_job *const j = &p->jobs[x];
        PARE_ASSERT(j->dk == p->jobs[0].dk && j->dv == p->jobs[0].dv);
        const double rows[3] = {fabs(j->scale) * max_norm(caps->dtype, j->q, j->n, j->ldq, j->dk),
                                max_norm(caps->dtype, j->k, j->n, j->ldk, j->dk),
                                max_norm(caps->dtype, j->v, j->n, j->ldv, j->dv)};
        if (!(rows[0] <= q)) q = rows[0];
        if (!(rows[1] <= k)) k = rows[1];
        if (!(rows[2] <= p->value)) p->value = rows[2];
    }
    p->logit = q * k * (1 + 0x1p-40);
    const double enough = penalty(caps->dtype, caps->exp_flush, p->logit);
    p->penalty = by > 0 ? by : enough;
    p->isolates = p->penalty >= enough;
    p->stats->penalty = fmax(p->stats->penalty, p->penalty);
    if (isfinite(p->logit) && isfinite(p->value) && isfinite(p->penalty)) return PARE_OK;
    return pare_fail(p->in.err, PARE_ERR_NUMERIC, "length: logit overflow: inputs may give %.3g",
                     p->logit);
}

pare_status pare_length_pack(const pare_oracle *orc, const pare_length_job *jobs, size_t count,
                             const pare_pattern *pattern, double by, pare_pack_stats *stats,
                             pare_err *err)
{
    pare_pack_stats own = {0}, *const all = stats ? stats : &own;
    packing p = {.in = {.oracle = orc, .err = err}, .jobs = jobs, .count = count, .stats = all};
    size_t most = 0;
    for (size_t x = 0; x < count; x++)
        if (jobs[x].n > most) most = jobs[x].n;
    pare_status st = count ? check_oracle(&p, pattern, most) : PARE_OK;
    if (!st && count) st = choose_penalty(&p, by);
    for (size_t first = 0; first < count && !st;) {
        size_t end = first, n = 0;
        while (end < count && n + jobs[end].n <= p.in.caps.max_len) n += jobs[end++].n;
        st = n ? pack_call(&p, first, end, n) : PARE_OK;
        first = end;
    }
    all->alone += st ? 0 : count;
    return st;
}
