/* length_plan.c - plans: what a run will do, from sizes alone (docs/theory/length.md "Plans"). The
 * calls are counted by generating them, so that a plan cannot differ from its execution; closed
 * forms are given beside them. */
#include "attend_plan.h"
#include "call_counts.h"
#include "group_codes.h"
#include <math.h>
#include <string.h>

/* Sums over the calls of one head that the costs of any widths follow from. */
typedef struct tally {
    uint64_t calls, rows, queries, keys, max_len; /* rows: of queries and keys, padded ones too */
    double pairs, coded_pairs, coded_rows; /* pairs gone through; times the width of the codes */
    size_t tiles;                          /* of a call, at most */
    uint32_t *parts;                       /* partial results of each row */
    bool causal, tile, fixed;
    uint32_t m;
} tally;

static pare_status count_call(void *ctx, const placed *tiles, size_t count, uint32_t n)
{
    tally *const s = ctx;
    const double rows = s->fixed ? s->m : n, code = group_width(count);
    double pairs = s->causal ? rows * (rows + 1) / 2 : rows * rows;
    if (s->tile) {
        const pare_tile *const t = &tiles->t;
        pairs = t->vis0 == PARE_VIS_ALL ? (double)t->nq * t->nk : 0;
        for (size_t p = 0; t->vis0 != PARE_VIS_ALL && p < t->nq; p++)
            pairs += (double)pare_tile_sees(t, p);
    }
    s->calls++;
    s->rows += (uint64_t)rows;
    s->pairs += pairs;
    s->coded_pairs += pairs * code;
    s->coded_rows += rows * code;
    if (rows > (double)s->max_len) s->max_len = (uint64_t)rows;
    if (count > s->tiles) s->tiles = count;
    for (size_t x = 0; x < count; x++) {
        s->queries += tiles[x].t.nq;
        s->keys += tiles[x].t.nk;
        for (size_t p = 0; p < tiles[x].t.nq; p++) s->parts[pare_tile_query(&tiles[x].t, p)]++;
    }
    return PARE_OK;
}

/* Which keys are drawn makes no difference to the sizes. */
static const uint32_t *any_keys(void *ctx, size_t block, size_t of)
{
    (void)block, (void)of;
    return ctx;
}

static pare_status count_causal_sample(tally *s, const pare_length_plan *p, const call_rule *r,
                                       pare_arena *a, pare_err *err)
{
    const size_t blocks = p->opts.blocks ? p->opts.blocks : 1;
    causal_draw d = {any_keys, NULL, blocks * (r->m - 1)};
    if (d.keys >= p->tokens) /* nothing is drawn */
        return calls_of_pattern(r, p->tokens, &p->pattern, NULL, count_call, s, err);
    if (!(d.ctx = pare_alloc(a, d.keys, sizeof(uint32_t)))) return pare_no_memory(err);
    const pare_status st = calls_of_causal_sample(r, p->tokens, &d, count_call, s, err);
    return st ? st : calls_of_causal_sample(r, p->tokens, NULL, count_call, s, err);
}

/* Modes that do not go by tiles: all calls are taken to be full. */
static void count_full_calls(tally *s, const pare_length_plan *p, const call_rule *r)
{
    const uint64_t n = p->tokens, m = r->m, blocks = (n + m - 1) / m;
    uint64_t parts = 1;
    s->calls = blocks;
    if (p->opts.mode == PARE_LENGTH_SAMPLE) {
        const uint64_t all = (n + m - 2) / (m - 1), asked = p->opts.blocks ? p->opts.blocks : 1;
        parts = asked < all ? asked : all;
        s->calls *= parts;
    } else if (p->opts.mode == PARE_LENGTH_PAPER) {
        s->calls = count_paper(n, r->m, &p->pattern);
        parts = paper_parts(n, r->m, &p->pattern);
    }
    s->rows = s->calls * m;
    s->max_len = n < m ? n : m;
    s->queries = n * parts;
    s->pairs = (double)s->calls * (double)m * (double)(s->causal ? m + 1 : 2 * m) / 2;
    for (size_t i = 0; i < n; i++) s->parts[i] = (uint32_t)parts;
}

/* ---- one head -------------------------------------------------------------------------------- */

/* Whether there is a round for the mean keys before the calls themselves. */
static bool has_means(const pare_length_plan *p, const call_rule *r)
{
    return p->opts.reference == PARE_REF_MEAN && !r->plain &&
           (p->opts.mode == PARE_LENGTH_ZEROREF || p->opts.mode == PARE_LENGTH_STRICT);
}

/* Softmax calls: widths as the oracle sees them. */
static void add_softmax(pare_length_cost *c, const tally *s, const pare_length_head *h, double b,
                        const call_rule *r, const pare_oracle_caps *caps, bool logits)
{
    const size_t extra = r->plain ? 0 : 2, logit = logits && r->kind != CALL_TILE;
    const double dk = caps->d_k ? caps->d_k : (double)(h->dk + logit);
    const double dv = caps->d_v ? caps->d_v : (double)(h->dv + extra);
    const double rows = (double)s->rows;
    c->flops += s->pairs * (2 * (dk + dv) + 5) + 2 * s->coded_pairs;
    c->bytes_in += b * (rows * (2 * dk + dv) + 2 * s->coded_rows);
    c->bytes_out += b * rows * dv;
    c->outside_flops += (double)s->queries * (2 * (double)h->dv + 3);
}

static void add_head(pare_length_plan *p, const tally *s, const call_rule *r, size_t at)
{
    pare_length_cost *const c = &p->cost;
    const pare_length_head *const h = &p->heads[at];
    const double b = (double)pare_dtype_size(p->caps.dtype), dk = (double)h->dk, dv = (double)h->dv;
    if (p->opts.mode == PARE_LENGTH_NATIVE) { /* queries, keys, values in; m, l, acc out */
        c->flops += s->pairs * (2 * (dk + dv) + 5);
        c->bytes_in += b * ((double)s->queries * dk + (double)s->keys * (dk + dv));
        c->bytes_out += b * (double)s->queries * (dv + 2);
        c->outside_flops += (double)s->queries * (2 * dv + 3);
    } else {
        add_softmax(c, s, h, b, r, &p->caps, has_means(p, r));
    }
    if (has_means(p, r)) { /* the same calls with the keys as values, and nothing to merge */
        const pare_length_head keys = {h->layer, h->dk, h->dk};
        const double outside = c->outside_flops;
        add_softmax(c, s, &keys, b, r, &p->caps, true);
        c->outside_flops = outside + (double)s->queries * 2 * dk;
        c->instances += s->calls;
        c->computed_pairs += s->pairs;
    }
    if (rule_strict(&p->opts, &p->caps)) {
        /* Selectors that pick queries, keys and values out of a token, and those of copy heads: the
         * same for all calls of a head's widths, whatever N is. */
        const double slot = 2 * (dk + group_width(s->tiles)) + (double)(h->dv + 2);
        const double k = (double)rule_capacity(&p->caps), bits = position_width(p->caps.max_len);
        const double width = k * slot + bits, layers = p->caps.layers ? p->caps.layers : 1;
        const double copies = layers > 1 ? layers * (2 * bits + k * slot) : 0;
        c->weight_bytes = fmax(c->weight_bytes, b * width * (k * slot + copies));
    }
    c->instances += s->calls;
    c->direct_flops += c->pairs * (2 * (dk + dv) + 5);
    c->computed_pairs += s->pairs;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Accumulators, scaled queries, blocks of keys, and the calls under way. */
static double scratch_bytes(const pare_length_plan *p, const tally *s)
{
    double most = 0, here = 0;
    const double b = (double)pare_dtype_size(p->caps.dtype), n = (double)p->tokens;
    for (size_t i = 0; i < p->nheads; i++) {
        const pare_length_head *const h = &p->heads[i];
        if (i && h->layer != p->heads[i - 1].layer) here = 0;
        here += n * ((double)h->dv + 3) * 8 + n * (2 * (double)h->dk + (double)h->dv + 2) * b;
        most = fmax(most, here);
    }
    const double one = (double)s->max_len * b;
    double wide = 0;
    for (size_t i = 0; i < p->nheads; i++)
        wide = fmax(wide, one * (2 * (double)p->heads[i].dk + 2 * (double)p->heads[i].dv + 8));
    const double batch = p->opts.batch_bytes ? (double)p->opts.batch_bytes : MAX_BATCH_BYTES;
    return most + fmin(fmax(wide, batch), wide * (double)p->cost.instances);
}

/* After `pairs` of one head. */
static void count_layers(pare_length_plan *p, const tally *s, const call_rule *r)
{
    pare_length_cost *const c = &p->cost;
    const uint64_t capacity = p->opts.mode == PARE_LENGTH_NATIVE ? 1 : rule_capacity(&p->caps);
    const uint64_t passes = has_means(p, r) ? 2 : 1;
    uint64_t cover = 0; /* pieces of M x M pairs for what calls see of one head; 0: not covered */
    if (p->opts.mode != PARE_LENGTH_SAMPLE && p->opts.mode != PARE_LENGTH_CHUNK) {
        const size_t left = r->leave_remainder ? p->tokens % (r->m - 1) : 0; /* the host's keys */
        const double pairs = c->pairs - (double)p->tokens * (double)left;
        cover = (uint64_t)ceil(pairs / ((double)r->m * r->m));
    }
    for (size_t i = 0; i < p->nheads;) {
        const size_t first = i;
        while (i < p->nheads && p->heads[i].layer == p->heads[first].layer) i++;
        const uint64_t heads = i - first;
        uint64_t rounds = 0, merges = 0;
        if (p->opts.mode == PARE_LENGTH_STRICT && !r->plain)
            merges = count_merge(p->tokens, r->m, c->max_partials, heads, capacity, &rounds);
        if (p->opts.mode == PARE_LENGTH_PAPER)
            merges = heads * count_aggregation(p->tokens, r->m, c->max_partials, &rounds);
        c->merge_calls += merges;
        c->calls += passes * ((heads * s->calls + capacity - 1) / capacity);
        c->rounds += p->tokens ? passes + rounds : 0;
        c->lower += (heads * cover + capacity - 1) / capacity;
        p->layers++;
    }
    c->calls += c->merge_calls;
}

static bool samples_causal(const pare_length_plan *p)
{
    return p->opts.mode == PARE_LENGTH_SAMPLE && p->pattern.kind == PARE_CAUSAL;
}

static pare_status count_costs(pare_length_plan *p, const call_rule *r, pare_arena *a,
                               pare_err *err)
{
    const pare_length_mode mode = p->opts.mode;
    tally s = {.causal = r->kind == CALL_CAUSAL,
               .tile = mode == PARE_LENGTH_NATIVE,
               .fixed = rule_pads(r, &p->caps),
               .m = r->m};
    pare_length_cost *const c = &p->cost;
    for (size_t i = 0; i < p->tokens; i++)
        c->pairs += (double)pare_visible(&p->pattern, p->graph, p->tokens, i).count;
    /* Calls of a head are counted one by one, and their rows: so many take a minute or so. */
    const double m = r->m, most_calls = floor(4e9 / (8 /* steps of a call */ + m));
    double least_calls = 0; /* other modes have closed forms */
    if (mode <= PARE_LENGTH_STRICT) least_calls = c->pairs / (m * m);
    if (samples_causal(p)) least_calls = (double)p->tokens / m * (1.0 + p->opts.blocks);
    if (!(least_calls <= most_calls))
        return pare_fail(err, PARE_ERR_INPUT,
                         "length: a head has at least %.3g calls of %u tokens: a plan has at most "
                         "%.3g of these",
                         least_calls, (unsigned)r->m, most_calls);
    s.parts = pare_alloc(a, p->tokens, sizeof *s.parts);
    pare_status st = s.parts ? PARE_OK : pare_no_memory(err);
    if (!st && (mode <= PARE_LENGTH_STRICT || (r->plain && mode == PARE_LENGTH_SAMPLE)))
        st = calls_of_pattern(r, p->tokens, &p->pattern, p->graph, count_call, &s, err);
    else if (!st && samples_causal(p))
        st = count_causal_sample(&s, p, r, a, err);
    else if (!st)
        count_full_calls(&s, p, r);
    if (st) return st;
    c->max_len = s.max_len;
    for (size_t i = 0; i < p->tokens; i++)
        if (s.parts[i] > c->max_partials) c->max_partials = s.parts[i];
    if (mode == PARE_LENGTH_STRICT && !r->plain) st = rule_merges(r, c->max_partials, err);
    if (st) return st;
    for (size_t i = 0; i < p->nheads; i++) add_head(p, &s, r, i);
    count_layers(p, &s, r);
    count_vectors(p, r, s.tiles);
    c->pairs *= (double)p->nheads;
    c->theorem = count_paper(p->tokens, r->m, &p->pattern) * p->nheads;
    if (mode > PARE_LENGTH_STRICT)
        c->formula = samples_causal(p) ? 0 : c->calls;
    else if (rule_capacity(&p->caps) == 1 && !c->merge_calls)
        c->formula =
            count_formula(r, p->tokens, &p->pattern) * p->nheads * (has_means(p, r) ? 2 : 1);
    c->scratch_bytes = scratch_bytes(p, &s);
    return PARE_OK;
}

pare_status pare_length_plan_make(pare_length_plan *out, pare_arena *a,
                                  const pare_length_shape *shape, const pare_oracle_caps *caps,
                                  const pare_length_opts *opts, pare_err *err)
{
    const size_t count = shape->count, tokens = shape->tokens;
    const pare_pattern *const p = shape->pattern;
    if (tokens > PARE_LENGTH_MOST_TOKENS)
        return pare_fail(err, PARE_ERR_INPUT, "length: %zu tokens: a plan is for at most %d",
                         tokens, PARE_LENGTH_MOST_TOKENS);
    pare_length_head *const own = pare_alloc(a, count ? count : 1, sizeof *own);
    if (!own) return pare_no_memory(err);
    if (count) memcpy(own, shape->heads, count * sizeof *own);
    *out = (pare_length_plan){.tokens = tokens,
                              .nheads = count,
                              .heads = own,
                              .pattern = *p,
                              .graph = p->kind == PARE_GRAPH ? shape->graph : NULL,
                              .caps = *caps};
    if (opts) out->opts = *opts;
    call_rule r;
    pare_oracle_caps narrowed = *caps;
    const pare_status st = resolve_call_rule(&r, &out->opts, &narrowed, tokens, p, err);
    if (st) return st;
    out->caps = narrowed;
    out->opts.length = narrowed.max_len;
    return count_costs(out, &r, a, err);
}

pare_status pare_length_plan_calls(const pare_length_plan *plan, pare_length_call_fn fn, void *ctx,
                                   pare_err *err)
{
    call_rule r;
    pare_oracle_caps caps = plan->caps;
    pare_length_opts o = plan->opts;
    const pare_status st = resolve_call_rule(&r, &o, &caps, plan->tokens, &plan->pattern, err);
    if (st) return st;
    return calls_of_pattern(&r, plan->tokens, &plan->pattern, plan->graph, fn, ctx, err);
}

pare_status pare_length_plan_attend(const pare_length_plan *plan, const pare_oracle *orc,
                                    const pare_length_job *jobs, size_t count,
                                    pare_length_stats *stats, const pare_exec *exec, pare_err *err)
{
    pare_oracle_caps have;
    orc->ops->caps(orc->self, &have);
    const uint32_t need = plan->caps.features & ~(uint32_t)PARE_ORC_STATIC;
    if (have.dtype != plan->caps.dtype)
        return pare_fail(err, PARE_ERR_INPUT, "length: the plan is for %s, the oracle computes %s",
                         pare_dtype_name(plan->caps.dtype), pare_dtype_name(have.dtype));
    if ((have.features & need) != need)
        return pare_fail(err, PARE_ERR_INPUT,
                         "length: the oracle lacks features of the plan's (0x%x, needs 0x%x)",
                         (unsigned)have.features, (unsigned)need);
    pare_length_opts o = plan->opts;
    o.features = plan->caps.features;
    return pare_length_attend(
        orc, &o,
        &(pare_length_layer){
            .jobs = jobs, .count = count, .pattern = &plan->pattern, .graph = plan->graph},
        stats, exec, err);
}
