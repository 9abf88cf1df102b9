/* sample.c - samples the next token: softmax in f64, and one uniform number.
 *
 * Sorted by probability, likeliest first, the tokens divide [0, mass) into intervals as long as
 * their weights. Top-p keeps the tokens up to the point top_p mass, and the choice is the token at
 * the point u of the mass that was kept. Neither needs the tokens sorted: a quickselect on the sum
 * of weights finds the token at a point in O(n) steps on average. Weights are integers, so that
 * their sums are exact and no order of summation can move a token. */
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

/* Moves what is likelier than the choice at `pivot` to the front of [from, to), and that choice
 * behind them; returns where it is then, and adds the weights before it. */
static size_t partition(pare_sampler *s, size_t from, size_t to, size_t pivot, uint64_t *sum)
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
static size_t select_likeliest(pare_sampler *s, size_t n, size_t most, uint64_t *mass)
{
    size_t from = 0, to = n;
    uint64_t sum = 0; /* of [0, from), which are kept */
    uint32_t any = 0; /* pivots are pseudo-random: no order of the weights makes all of them bad */
    while (from < to && from < most && sum < *mass) {
        any = any * 1664525u + 1013904223u;
        const size_t pivot = from + (size_t)((uint64_t)any * (to - from) >> 32);
        uint64_t more = sum;
        const size_t at = partition(s, from, to, pivot, &more);
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
static uint64_t fraction_of(double fraction, uint64_t sum)
{
    const double p = ceil(fraction * (double)sum);
    return p < 1 ? 1 : p < (double)sum ? (uint64_t)p : sum;
}

pare_status pare_sample(int64_t *id, pare_sampler *s, const float *logits, pare_err *err)
{
    const double u = pare_rng_uniform(&s->rng);
    size_t best = 0; /* the first of the largest */
    bool nan = isnan(logits[0]);
    for (size_t j = 1; j < s->classes; j++) {
        nan = nan || isnan(logits[j]);
        if (logits[j] > logits[best]) best = j;
    }
    *id = -1;
    if (nan || !isfinite(logits[best]))
        return pare_fail(err, PARE_ERR_NONFINITE,
                         "the model's output is not finite: no token can be chosen");
    *id = (int64_t)best;
    if (s->o.temperature == 0) return PARE_OK;

    /* weight = exp((logit - largest) / temperature) as an integer, in units so small that the sum
     * of all just fits. */
    const double largest = (double)logits[best];
    int bits = 0;
    while ((uint64_t)s->classes >> bits) bits++;
    const double unit = ldexp(1, 63 - bits);
    uint64_t mass = 0;
    for (size_t j = 0; j < s->classes; j++) {
        const double w = exp(((double)logits[j] - largest) / s->o.temperature);
        mass += s->weight[j] = (uint64_t)(w * unit);
    }

    /* Weights below `least` are together less than 1 - top_p of the sum (half of it, for rounding):
     * all others reach top_p without them. */
    const uint64_t least = (uint64_t)((1 - s->o.top_p) * (double)mass / (2 * (double)s->classes));
    size_t n = 0;
    for (size_t j = 0; j < s->classes; j++) {
        s->choice[n] = (uint32_t)j;
        n += s->weight[j] >= least;
    }
    if (s->o.top_p < 1 || s->o.top_k) {
        mass = fraction_of(s->o.top_p, mass);
        n = select_likeliest(s, n, s->o.top_k ? s->o.top_k : n, &mass);
    }
    mass = fraction_of(u, mass);
    n = select_likeliest(s, n, n, &mass);
    *id = s->choice[n - 1];
    return PARE_OK;
}

bool pare_is_end_of_text(const pare_tokenizer *t, int64_t id)
{
    switch (t->kind) {
    case PARE_TOK_GPT2:
        return id >= 0 && (uint64_t)id + 1 == t->size;
    case PARE_TOK_LLAMA2C:
        return id == 1 || id == 2;
    case PARE_TOK_WORDS:
        return id >= 0 && id == t->end;
    case PARE_TOK_JSON:
        return id >= 0 && (uint64_t)id < t->size && t->json->ends[id];
    case PARE_TOK_BYTES:
    case PARE_TOK_NONE:
        break;
    }
    return false;
}
