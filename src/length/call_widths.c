/* How wide the vectors of a plan's calls are: a query or key, a value, and a token that holds all
 * three, as the paper's engine has them (Yu 2025 counts d, its embedding dimension). Beside the
 * numbers of a head a call may need a code that tells groups apart, the logit of the reference, and
 * two columns of values that say what keys and reference weigh. What a fall-back may ask for is
 * counted, so that an engine that is wide enough for the plan is so for its run. */
#include "group_codes.h"
#include "call_counts.h"

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* One kind of call; `token` collects 2 dk + dv for now. */
static void widen(pare_length_cost *c, uint64_t dk, uint64_t dv)
{
    c->d_k = most(c->d_k, dk);
    c->d_v = most(c->d_v, dv);
    c->d_token = most(c->d_token, 2 * dk + dv);
}

/* Calls with a reference. */
static void widen_zeroref(pare_length_plan *p, const call_rule *r, const pare_length_head *h,
                          size_t tiles)
{
    const pare_length_opts *const o = &p->opts;
    const bool fixed = o->no_fallback && o->mode != PARE_LENGTH_SAMPLE;
    const bool logits = r->kind != CALL_TILE && !(fixed && o->reference == PARE_REF_ZERO);
    const bool means =
        !o->no_fallback || o->reference == PARE_REF_AUTO || o->reference == PARE_REF_MEAN;
    const uint64_t dk = h->dk + group_width(tiles) + logits;
    widen(&p->cost, dk, h->dv + 2);
    if (means) widen(&p->cost, dk, h->dk + 2);
}

/* Merges of a strict plan (mode_strict.c): a logit and a code; partial results until the last level. */
static void widen_merges(pare_length_plan *p, const call_rule *r, const pare_length_head *h)
{
    for (uint64_t parts = p->cost.max_partials; parts > 1;) {
        const bool last = parts <= r->m;
        const uint64_t size = last ? parts : r->m - 1;
        widen(&p->cost, 1 + group_width(last ? r->m / size : 1), h->dv + (last ? 0 : 2));
        parts = last ? 1 : (parts + size - 1) / size;
    }
}

/* The paper's own: a dominating token, plain calls, and sums of parts by codes. */
static void widen_paper(pare_length_plan *p, const call_rule *r, const pare_length_head *h)
{
    widen(&p->cost, h->dk + 1, 1);
    widen(&p->cost, h->dk + (p->pattern.kind == PARE_WINDOW && p->pattern.sinks), h->dv);
    for (uint64_t parts = p->cost.max_partials; parts > 1;) {
        const uint64_t size = parts <= r->m ? parts : r->m, code = group_width(r->m / size);
        widen(&p->cost, code ? code : 1, h->dv + 1);
        parts = (parts + size - 1) / size;
    }
}

static void widen_head(pare_length_plan *p, const call_rule *r, const pare_length_head *h,
                       size_t tiles)
{
    switch (p->opts.mode) {
    case PARE_LENGTH_PAPER:
        widen_paper(p, r, h);
        return;
    case PARE_LENGTH_ZEROREF:
    case PARE_LENGTH_STRICT:
    case PARE_LENGTH_SAMPLE:
        if (r->plain) break;
        widen_zeroref(p, r, h, tiles);
        if (p->opts.mode == PARE_LENGTH_STRICT) widen_merges(p, r, h);
        return;
    case PARE_LENGTH_AUTO:
    case PARE_LENGTH_NATIVE:
    case PARE_LENGTH_CHUNK:
        break;
    }
    widen(&p->cost, h->dk, h->dv);
}

uint64_t token_width(uint64_t slot, uint64_t slots, uint32_t rows)
{
    return slots * slot + position_width(rows);
}

/* Tokens of a strict plan, and the heads that copy them from layer to layer (instances.c): all
 * slots in one wide head, those of a pair of equal heads, or a slot each until the last layer. */
static void count_tokens(pare_length_plan *p, const call_rule *r)
{
    pare_length_cost *const c = &p->cost;
    const pare_oracle_caps *const caps = &p->caps;
    const uint64_t pieces = most(1, c->instances + c->merge_calls), room = rule_capacity(caps);
    const uint64_t slots = pieces < room ? pieces : room, slot = c->d_token;
    const uint32_t rows = r->plain ? (uint32_t)p->tokens : r->m;
    c->d_token = token_width(slot, slots, rows);
    if (caps->layers < 2 || caps->features & PARE_ORC_RESIDUAL) return;
    const uint64_t pair = caps->layers < slots ? caps->layers : slots;
    const uint64_t copied = slots <= (caps->heads ? caps->heads : 1) ? 1
                            : caps->features & PARE_ORC_WIDE_HEAD    ? slots
                                                                     : pair;
    c->d_k = most(c->d_k, position_width(rows));
    c->d_v = most(c->d_v, copied * slot);
}

void count_vectors(pare_length_plan *p, const call_rule *r, size_t tiles)
{
    pare_length_cost *const c = &p->cost;
    const pare_oracle_caps *const caps = &p->caps;
    for (size_t i = 0; i < p->nheads; i++) widen_head(p, r, &p->heads[i], tiles);
    if (rule_strict(&p->opts, caps)) {
        count_tokens(p, r);
    } else if (p->opts.mode != PARE_LENGTH_NATIVE) {
        if (caps->d_k) c->d_k = caps->d_k;
        if (caps->d_v) c->d_v = caps->d_v;
        if (caps->d_k || caps->d_v) c->d_token = 2 * c->d_k + c->d_v;
    }
}
