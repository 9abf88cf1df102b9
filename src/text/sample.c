/* Sampling: softmax in f64, and one uniform number that falls on a token.
 *
 * Laid side by side, likeliest first, tokens fill a line by their weights. Both questions of
 * sampling ask who stands at a point of it: at top_p of its length the cut ends, and at u of what
 * is left stands the choice. Neither needs the line in order: the likelier half of some tokens,
 * weighed, tells in which half the point lies, and so on (n steps in all, on the average). Weights
 * are whole numbers, so that their sums are exact and no order of summing can move a token. */
#include "tokenizer.h"
#include "text_internal.h"
#include <math.h>
#include <string.h>

pare_status pare_sampler_new(pare_sampler *out, pare_arena *a, size_t classes,
                             const pare_sample_opts *o, uint64_t seed, uint64_t stream,
                             pare_err *err)
{
    if (!(o->temperature >= 0 && isfinite(o->temperature)))
        return pare_fail(err, PARE_ERR_USAGE, "temperature %g is not a number from 0 on",
                         o->temperature);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return pare_fail(err, PARE_ERR_USAGE, "top-p %g is not above 0 and at most 1", o->top_p);
    PARE_ASSERT(classes > 0 && classes <= UINT32_MAX);
    *out = (pare_sampler){.o = *o, .rng = pare_rng_at(seed, stream), .classes = classes};
    out->weight = pare_alloc(a, classes, sizeof *out->weight);
    out->choice = pare_alloc(a, classes, sizeof *out->choice);
    return out->weight && out->choice ? PARE_OK : pare_no_memory(err);
}

/* The first of the largest. */
static pare_status likeliest(size_t *best, const float *logits, size_t n, pare_err *err)
{
    *best = 0;
    bool nan = isnan(logits[0]);
    for (size_t j = 1; j < n; j++) {
        nan = nan || isnan(logits[j]);
        if (logits[j] > logits[*best]) *best = j;
    }
    if (nan || !isfinite(logits[*best]))
        return pare_fail(err, PARE_ERR_NONFINITE,
                         "the model's output is not finite: no token can be chosen");
    return PARE_OK;
}

/* weight = exp((logit - largest) / temperature) as a whole number in units so small that the sum of
 * all just fits; returns the sum. */
static uint64_t soften(pare_sampler *s, const float *logits, double largest)
{
    int bits = 0;
    while ((uint64_t)s->classes >> bits) bits++;
    const double unit = ldexp(1, 63 - bits);
    uint64_t sum = 0;
    for (size_t j = 0; j < s->classes; j++) {
        const double w = exp(((double)logits[j] - largest) / s->o.temperature);
        sum += s->weight[j] = (uint64_t)(w * unit);
    }
    return sum;
}

/* Weights below this are together less than 1 - top_p of the sum, so that all others reach top_p
 * without them: they need not be looked at. (Half of it, for rounding.) */
static uint64_t least_weight(const pare_sampler *s, uint64_t sum)
{
    return (uint64_t)((1 - s->o.top_p) * (double)sum / (2 * (double)s->classes));
}

static size_t gather(pare_sampler *s, uint64_t least)
{
    size_t n = 0;
    for (size_t j = 0; j < s->classes; j++) {
        s->choice[n] = (uint32_t)j;
        n += s->weight[j] >= least;
    }
    return n;
}

/* Moves what is likelier than the choice at `pivot` to the front of [from, to), and that choice
 * behind them; returns where it is then, and adds the weights before it. */
static size_t divide(pare_sampler *s, size_t from, size_t to, size_t pivot, uint64_t *sum)
{
    uint32_t *const c = s->choice;
    const uint32_t p = c[pivot];
    const uint64_t weight = s->weight[p];
    size_t at = from;
    c[pivot] = c[to - 1];
    for (size_t i = from; i + 1 < to; i++) {
        const uint32_t id = c[i];
        const uint64_t w = s->weight[id];
        const bool likelier = (w > weight) | ((w == weight) & (id < p));
        c[i] = c[at];
        c[at] = id;
        at += likelier;
        *sum += likelier ? w : 0;
    }
    c[to - 1] = c[at];
    c[at] = p;
    return at;
}

/* The fewest likeliest of the first n choices that weigh `mass`, or `most` of them, come first;
 * returns how many, the last of which is the least likely, and sets *mass to what they weigh. */
static size_t reach(pare_sampler *s, size_t n, size_t most, uint64_t *mass)
{
    size_t from = 0, to = n;
    uint64_t sum = 0; /* of [0, from), which is taken */
    uint32_t any = 0; /* no sorted or otherwise arranged weights can make all pivots bad ones */
    while (from < to && from < most && sum < *mass) {
        any = any * 1664525u + 1013904223u;
        const size_t pivot = from + (size_t)((uint64_t)any * (to - from) >> 32);
        uint64_t more = sum;
        const size_t at = divide(s, from, to, pivot, &more);
        if (more >= *mass || at >= most) {
            to = at;
        } else {
            from = at + 1;
            sum = more + s->weight[s->choice[at]];
        }
    }
    *mass = sum;
    return from;
}

/* Rounded up, and at least 1: the likeliest is always reached. */
static uint64_t part(double fraction, uint64_t sum)
{
    const double p = ceil(fraction * (double)sum);
    return p < 1 ? 1 : p < (double)sum ? (uint64_t)p : sum;
}

pare_status pare_sample(int64_t *id, pare_sampler *s, const float *logits, pare_err *err)
{
    size_t best;
    const double u = pare_rng_uniform(&s->rng);
    const pare_status st = likeliest(&best, logits, s->classes, err);
    *id = -1;
    if (st) return st;
    *id = (int64_t)best;
    if (s->o.temperature == 0) return PARE_OK;
    uint64_t mass = soften(s, logits, (double)logits[best]);
    size_t n = gather(s, least_weight(s, mass));
    if (s->o.top_p < 1 || s->o.top_k) {
        mass = part(s->o.top_p, mass);
        n = reach(s, n, s->o.top_k ? s->o.top_k : n, &mass);
    }
    mass = part(u, mass);
    n = reach(s, n, n, &mass);
    *id = s->choice[n - 1];
    return PARE_OK;
}

bool pare_ends_text(const pare_tokenizer *t, int64_t id)
{
    switch (t->kind) {
    case PARE_TOK_GPT2:
        return id >= 0 && (uint64_t)id + 1 == t->size;
    case PARE_TOK_LLAMA2C:
        return id == 1 || id == 2;
    case PARE_TOK_WORDS:
        return id >= 0 && id == t->end;
    case PARE_TOK_BYTES:
    case PARE_TOK_NONE:
        break;
    }
    return false;
}
