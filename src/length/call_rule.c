/* call_rule.c - which kind of calls an oracle is used for: by what it can do, what the options
 * allow, and what the pattern needs. Partial results, else a bias, else the mask that is needed,
 * else the other one (docs/theory/length.md "Plans"). */
#include "attend_plan.h"
#include "calls.h"
#include <math.h>
#include <string.h>

static const char *const mode_names[PARE_LENGTH_MODES] = {"auto",  "native", "zeroref", "strict",
                                                          "paper", "sample", "chunk"};

const char *pare_length_mode_name(pare_length_mode m)
{
    return mode_names[m];
}

int pare_length_mode_of(const char *name)
{
    for (int i = 0; i < PARE_LENGTH_MODES; i++)
        if (strcmp(name, mode_names[i]) == 0) return i;
    return -1;
}

/* A type whose small weights mean nothing (f16) cannot isolate by them either. */
#define COARSE 0x1p-40

static call_kind kind_of(uint32_t features, const pare_pattern *p)
{
    const bool full = p->kind == PARE_FULL || p->kind == PARE_GRAPH;
    if (features & PARE_ORC_BIAS) return CALL_TILE;
    if (full) return features & PARE_ORC_FULL ? CALL_FULL : CALL_CAUSAL;
    return features & PARE_ORC_CAUSAL ? CALL_CAUSAL : CALL_FULL;
}

static pare_status softmax_rule(call_rule *out, const pare_oracle_caps *caps,
                                const pare_length_opts *o, size_t n, const pare_pattern *p,
                                pare_err *err)
{
    const uint32_t f = caps->features;
    if (!(f & (PARE_ORC_FULL | PARE_ORC_CAUSAL)) || !(f & (PARE_ORC_QKV | PARE_ORC_STRICT)))
        return pare_fail(err, PARE_ERR_INPUT, "length: the oracle has no softmax, full or causal");
    out->reference = true;
    out->kind = kind_of(f, p);
    const bool codes = isfinite(caps->exp_flush) && caps->w_min < COARSE && !caps->d_k;
    out->pack = !o->no_pack && codes;
    const bool causal = p->kind == PARE_CAUSAL || (p->kind == PARE_WINDOW && p->window >= n);
    out->plain =
        n <= out->m && !((f & PARE_ORC_STATIC) && n < caps->max_len) &&
        ((out->kind == CALL_FULL && p->kind == PARE_FULL) || (out->kind == CALL_CAUSAL && causal));
    out->leave_remainder = o->host_remainder && !out->plain && out->kind == CALL_FULL &&
                           p->kind == PARE_FULL && n >= out->m - 1;
    out->one_vector = o->one_vector && !out->plain;
    if (out->one_vector && (p->kind != PARE_FULL || out->kind != CALL_FULL || !codes || out->m < 3))
        return pare_fail(err, PARE_ERR_INPUT,
                         "length: tokens of one vector are for full attention on a full softmax of "
                         "at least 3 tokens that can tell groups apart");
    if (out->one_vector) out->leave_remainder = false;
    if (out->m >= 2 || out->plain) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT,
                     "length: oracle length 1 has no room for the reference (at least 2)");
}

/* What only some modes want. */
static pare_status check_mode(call_rule *r, const pare_length_opts *o, const pare_oracle_caps *caps,
                              const pare_pattern *p, pare_err *err)
{
    const char *const mode = pare_length_mode_name(o->mode);
    if (o->mode <= PARE_LENGTH_STRICT) return PARE_OK;
    const bool full = p->kind == PARE_FULL, sample = o->mode == PARE_LENGTH_SAMPLE;
    if (p->kind == PARE_GRAPH || (p->kind == PARE_WINDOW && o->mode != PARE_LENGTH_PAPER))
        return pare_fail(err, PARE_ERR_INPUT,
                         "length: mode %s does not cover this attention pattern", mode);
    if ((caps->features & PARE_ORC_STATIC) || rule_capacity(caps) > 1)
        return pare_fail(err, PARE_ERR_INPUT,
                         "length: mode %s is for calls of any length, one piece each", mode);
    if (caps->features & PARE_ORC_BIAS) /* not needed, and not used */
        r->kind = kind_of(caps->features & ~(uint32_t)PARE_ORC_BIAS, p);
    if (o->mode == PARE_LENGTH_PAPER) {
        r->plain = false;
        if (r->m < 3)
            return pare_fail(err, PARE_ERR_INPUT, "length: mode paper needs M >= 3, not %u",
                             (unsigned)r->m);
        if (p->kind == PARE_WINDOW && (p->window + 1 >= r->m || p->sinks + 1 >= r->m))
            return pare_fail(err, PARE_ERR_INPUT,
                             "length: mode paper needs M >= %zu for this window, not %u",
                             (p->window > p->sinks ? p->window : p->sinks) + 2, (unsigned)r->m);
    }
    if (sample && !full) return PARE_OK; /* staircases are made of either */
    if (r->kind == (full ? CALL_FULL : CALL_CAUSAL)) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "length: mode %s needs a %s softmax here", mode,
                     full ? "full" : "causal");
}

pare_status resolve_call_rule(call_rule *out, pare_length_opts *o, pare_oracle_caps *caps, size_t n,
                              const pare_pattern *p, pare_err *err)
{
    PARE_ASSERT(caps->dtype == PARE_F32 || caps->dtype == PARE_F64);
    if (o->length > caps->max_len)
        return pare_fail(err, PARE_ERR_INPUT, "length: calls of %u tokens, the oracle takes %u",
                         (unsigned)o->length, (unsigned)caps->max_len);
    if (o->features) { /* features that change no call cannot be forbidden */
        caps->features &= o->features | PARE_ORC_SPLIT | PARE_ORC_WHOLE | PARE_ORC_ADD;
        caps->features |= o->features & PARE_ORC_STATIC;
    }
    if (o->length) caps->max_len = o->length;
    if (caps->max_len < 1) return pare_fail(err, PARE_ERR_INPUT, "length: an oracle of length 0");
    if (p->kind == PARE_WINDOW && !p->window)
        return pare_fail(err, PARE_ERR_INPUT, "length: a window of 0 keys");
    /* So many rows that their sums and queries (192 KiB of a head of 64) stay in a cache of a core
     * beside the block of keys, and that a block is not fetched too often. */
    *out = (call_rule){.m = caps->max_len, .group_rows = 256};
    const bool partial = caps->features & PARE_ORC_PARTIAL;
    if (o->mode == PARE_LENGTH_AUTO) o->mode = partial ? PARE_LENGTH_NATIVE : PARE_LENGTH_ZEROREF;
    if (o->one_vector && o->mode != PARE_LENGTH_ZEROREF && o->mode != PARE_LENGTH_STRICT)
        return pare_fail(err, PARE_ERR_INPUT, "length: tokens of one vector: not in mode %s",
                         pare_length_mode_name(o->mode));
    if (o->mode == PARE_LENGTH_NATIVE) {
        out->kind = CALL_TILE;
        if (partial) return PARE_OK;
        return pare_fail(err, PARE_ERR_INPUT,
                         "mode native needs an engine that returns partial softmax sums: name only "
                         "its number of "
                         "tokens, or choose mode zeroref");
    }
    if (o->mode == PARE_LENGTH_STRICT) {
        caps->features &= ~(uint32_t)PARE_ORC_QKV;
        if (!(caps->features & PARE_ORC_STRICT))
            return pare_fail(err, PARE_ERR_INPUT,
                             "length: strict plans need an oracle of tokens and weights");
    }
    const pare_status fits = softmax_rule(out, caps, o, n, p, err);
    return fits ? fits : check_mode(out, o, caps, p, err);
}

uint64_t rule_capacity(const pare_oracle_caps *caps)
{
    const uint64_t l = caps->layers ? caps->layers : 1, h = caps->heads ? caps->heads : 1;
    if (!(caps->features & PARE_ORC_STRICT) || (caps->features & PARE_ORC_QKV)) return 1;
    if (l == 1) return h;
    if (caps->features & PARE_ORC_RESIDUAL) return h * l;
    const uint64_t lasting = caps->features & PARE_ORC_WIDE_HEAD ? (h - 1) * l : h / 2 * l;
    return lasting > h ? lasting : h;
}

bool rule_strict(const pare_length_opts *o, const pare_oracle_caps *caps)
{
    return o->mode == PARE_LENGTH_STRICT ||
           (o->mode != PARE_LENGTH_NATIVE && !(caps->features & PARE_ORC_QKV));
}

bool rule_pads(const call_rule *r, const pare_oracle_caps *caps)
{
    return (caps->features & PARE_ORC_STATIC) || (!r->plain && rule_capacity(caps) > 1);
}

pare_status rule_merges(const call_rule *r, size_t parts, pare_err *err)
{
    if (parts <= r->m || r->m >= 3) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT,
                     "length: oracle length %u is too short to merge %zu partial results (at least "
                     "3)",
                     (unsigned)r->m, parts);
}
