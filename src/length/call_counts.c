/* call_counts.c - closed forms of the number of calls, which a plan's own count must equal, and the
 * widths of their vectors. */
#include "call_counts.h"
#include "group_codes.h"

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* A rectangle is two staircases, but for one query or one key. */
static uint64_t stairs_of_rect(uint64_t nq, uint64_t nk)
{
    return !nq || !nk ? 0 : nq > 1 && nk > 1 ? 2 : 1;
}

/* Window r with s sinks in front, calls of m keys, none packed; 0 where sinks are not fused. */
static uint64_t window_on_causal(uint64_t n, uint64_t m, uint64_t r, uint64_t s)
{
    const bool fuse = s > 0 && s <= (m - 1) / 2;
    if (s && !fuse) return 0;
    const uint64_t w = r < m - s ? r : m - s, t = ceil_div(n, w);
    uint64_t calls = t;
    if (w >= 2 && t > r / w) calls += t - r / w;
    for (uint64_t b = 0; b < n; b += w) {
        const uint64_t nq = n - b < w ? n - b : w, middle = b < r - w ? b : r - w;
        calls += middle / m * stairs_of_rect(nq, m) + stairs_of_rect(nq, middle % m);
        if (s && b + 1 < r + s && b + nq > r) calls++; /* sinks by themselves */
    }
    return calls;
}

uint64_t count_formula(const call_rule *r, size_t n, const pare_pattern *p)
{
    if (!n) return 0;
    if (r->plain) return 1;
    const uint64_t m = r->m - (r->reference ? 1 : 0), k = ceil_div(n, r->m), t = ceil_div(n, m);
    const bool causal = p->kind == PARE_CAUSAL || (p->kind == PARE_WINDOW && p->window >= n);
    if (r->one_vector) {
        const uint64_t blocks = ceil_div(n, (r->m - 1) / 2);
        return blocks * (blocks - 1) / 2 + ceil_div(blocks, 2);
    }
    if (r->kind == CALL_TILE && !r->reference)
        return p->kind == PARE_FULL ? k * k : causal ? k * (k + 1) / 2 : 0;
    if (r->kind == CALL_TILE) return p->kind == PARE_FULL ? k * t : causal ? t * (t + 1) / 2 : 0;
    if (r->kind == CALL_FULL)
        return p->kind != PARE_FULL ? 0 : r->leave_remainder ? k * (n / m) : k * t;
    if (r->m < 3) return 0;
    if (causal) { /* packed or not: no two of its tiles fit together */
        const uint64_t last = n - (t - 1) * m;
        return t + (t - 1) * (t - 2) / 2 * stairs_of_rect(m, m) + (t - 1) * stairs_of_rect(last, m);
    }
    if (r->pack) return 0;
    if (p->kind == PARE_FULL) {
        const uint64_t whole = n / m, rest = n % m;
        return whole * whole * stairs_of_rect(m, m) + whole * stairs_of_rect(m, rest) +
               whole * stairs_of_rect(rest, m) + stairs_of_rect(rest, rest);
    }
    return p->kind == PARE_WINDOW ? window_on_causal(n, m, p->window, p->sinks) : 0;
}

uint64_t count_paper(size_t n, uint32_t m, const pare_pattern *p)
{
    if (m < 3 || !n) return 0;
    if (p->kind == PARE_FULL || p->kind == PARE_CAUSAL) {
        const uint64_t t = ceil_div(n, (m - 1) / 2);
        return t * (t + 1);
    }
    if (p->kind != PARE_WINDOW || p->window + 1 >= m) return 0;
    const uint64_t keys = m - 1, step = m - p->window;
    const uint64_t chunks = n > keys ? 1 + ceil_div(n - keys, step) : 1;
    const uint64_t last = n - (chunks - 1) * step;
    uint64_t calls = 4 * chunks - (last <= p->window ? 2 : 0);
    if (p->sinks && n > p->window) {
        if (p->sinks + 1 >= m) return 0;
        calls += 2 * ceil_div(n - p->window, m - 1 - p->sinks);
    }
    return calls;
}

/* Up to m results of a row are merged at once; more of them first become fewer, m - 1 to a call
 * that also holds a reference. */
uint64_t count_merge(size_t n, uint32_t m, uint64_t parts, uint64_t heads, uint64_t capacity,
                     uint64_t *rounds)
{
    uint64_t calls = 0;
    if (parts < 2 || m < 2 || (parts > m && m < 3)) return 0;
    for (; parts > m; (*rounds)++) {
        const uint64_t groups = ceil_div(parts, m - 1);
        calls += ceil_div(heads * n * groups, capacity);
        parts = groups;
    }
    ++*rounds;
    return calls + ceil_div(heads * ceil_div(n, m / parts), capacity);
}

size_t paper_parts(size_t n, uint32_t m, const pare_pattern *p)
{
    if (p->kind == PARE_WINDOW) return n <= p->window ? 1 : p->sinks ? 3 : 2;
    return (size_t)ceil_div(n, (m - 1) / 2);
}

uint64_t count_aggregation(size_t n, uint32_t m, uint64_t parts, uint64_t *rounds)
{
    uint64_t calls = 0;
    for (; parts > 1; ++*rounds) {
        const uint64_t size = parts <= m ? parts : m, groups = ceil_div(parts, size);
        calls += ceil_div(n * groups, m / size);
        parts = groups;
    }
    return calls;
}

/* ---- widths of vectors -----------------------------------------------------------------------
 *
 * A query or key, a value, and a token that holds all three, as the paper's engine has them (Yu
 * 2025 counts d, its embedding dimension). Beside the numbers of a head a call may need a code that
 * keeps groups apart, the logit of the reference, and two indicator columns. What a fall-back may
 * need is counted, so that an engine that is wide enough for the plan is so for its run. */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* One kind of call; d_token collects 2 dk + dv for now. */
static void widen_vectors(pare_length_cost *c, uint64_t dk, uint64_t dv)
{
    c->d_k = max_u64(c->d_k, dk);
    c->d_v = max_u64(c->d_v, dv);
    c->d_token = max_u64(c->d_token, 2 * dk + dv);
}

static void widen_head(pare_length_plan *p, const call_rule *r, const pare_length_head *h,
                       size_t tiles)
{
    const pare_length_opts *const o = &p->opts;
    pare_length_cost *const c = &p->cost;
    /* a dominating token, plain calls, sums of parts by codes */
    if (o->mode == PARE_LENGTH_PAPER) {
        widen_vectors(c, h->dk + 1, 1);
        widen_vectors(c, h->dk + (p->pattern.kind == PARE_WINDOW && p->pattern.sinks), h->dv);
        for (uint64_t parts = c->max_partials; parts > 1;) {
            const uint64_t size = parts <= r->m ? parts : r->m, code = group_width(r->m / size);
            widen_vectors(c, code ? code : 1, h->dv + 1);
            parts = ceil_div(parts, size);
        }
        return;
    }
    if (r->plain || o->mode == PARE_LENGTH_NATIVE || o->mode == PARE_LENGTH_CHUNK) {
        widen_vectors(c, h->dk, h->dv);
        return;
    }
    /* calls with a reference */
    const bool fixed = o->no_fallback && o->mode != PARE_LENGTH_SAMPLE;
    const bool logits = r->kind != CALL_TILE && !(fixed && o->reference == PARE_REF_ZERO);
    const bool means =
        !o->no_fallback || o->reference == PARE_REF_AUTO || o->reference == PARE_REF_MEAN;
    const uint64_t dk = h->dk + group_width(tiles) + logits;
    widen_vectors(c, dk, h->dv + 2);
    if (means) widen_vectors(c, dk, h->dk + 2);
    if (o->mode != PARE_LENGTH_STRICT) return;
    /* merges (mode_strict.c): a logit and a code; partial results until the last level */
    for (uint64_t parts = c->max_partials; parts > 1;) {
        const bool last = parts <= r->m;
        const uint64_t size = last ? parts : r->m - 1;
        widen_vectors(c, 1 + group_width(last ? r->m / size : 1), h->dv + (last ? 0 : 2));
        parts = last ? 1 : ceil_div(parts, size);
    }
}

uint64_t token_width(uint64_t slot, uint64_t slots, uint32_t rows)
{
    return slots * slot + position_width(rows);
}

void count_vectors(pare_length_plan *p, const call_rule *r, size_t tiles)
{
    pare_length_cost *const c = &p->cost;
    const pare_oracle_caps *const caps = &p->caps;
    for (size_t i = 0; i < p->nheads; i++) widen_head(p, r, &p->heads[i], tiles);
    if (!rule_strict(&p->opts, caps)) {
        if (p->opts.mode == PARE_LENGTH_NATIVE) return;
        if (caps->d_k) c->d_k = caps->d_k;
        if (caps->d_v) c->d_v = caps->d_v;
        if (caps->d_k || caps->d_v) c->d_token = 2 * c->d_k + c->d_v;
        return;
    }
    /* Tokens of a strict plan, and the heads that copy them from layer to layer (instances.c): all
     * slots in one wide head, those of a pair of equal heads, or a slot each until the last
     * layer. */
    const uint64_t pieces = max_u64(1, c->instances + c->merge_calls);
    const uint64_t capacity = rule_capacity(caps), slot = c->d_token;
    const uint64_t slots = pieces < capacity ? pieces : capacity;
    const uint32_t rows = r->plain ? (uint32_t)p->tokens : r->m;
    c->d_token = token_width(slot, slots, rows);
    if (caps->layers < 2 || caps->features & PARE_ORC_RESIDUAL) return;
    const uint64_t pair = caps->layers < slots ? caps->layers : slots;
    const uint64_t copied = slots <= (caps->heads ? caps->heads : 1) ? 1
                            : caps->features & PARE_ORC_WIDE_HEAD    ? slots
                                                                     : pair;
    c->d_k = max_u64(c->d_k, position_width(rows));
    c->d_v = max_u64(c->d_v, copied * slot);
}
