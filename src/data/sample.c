/* Sampling: softmax in f64, cut to the likeliest by a heap, and one uniform number.
 *
 * A heap gives the likeliest one after the other and costs n + k log n for k of them: the cut by
 * mass needs no sorting of all. */
#include "tokenizer.h"
#include <pare/sample.h>
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

/* weight = exp((logit - largest) / temperature); returns their sum. */
static double soften(pare_sampler *s, const float *logits, double largest)
{
    double sum = 0;
    for (size_t j = 0; j < s->classes; j++)
        sum += s->weight[j] = exp(((double)logits[j] - largest) / s->o.temperature);
    return sum;
}

/* ---- a heap of the choices, likeliest on top ------------------------------------------------ */

static bool likelier(const pare_sampler *s, uint32_t a, uint32_t b)
{
    const double x = s->weight[a], y = s->weight[b];
    return x > y || (x == y && a < b);
}

static void sink(pare_sampler *s, size_t at, size_t n)
{
    uint32_t *const c = s->choice;
    const uint32_t moved = c[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && likelier(s, c[child + 1], c[child])) child++;
        if (!likelier(s, c[child], moved)) break;
        c[at] = c[child];
    }
    c[at] = moved;
}

/* Weights below this are together less than 1 - top_p of the sum, so that all others reach top_p
 * without them: they need not enter the heap. (Half of it, for rounding.) */
static double least_weight(const pare_sampler *s, double sum)
{
    return (1 - s->o.top_p) * sum / (2 * (double)s->classes);
}

/* Moves the likeliest to the end of the first *n choices, in their order from the end on, until
 * they reach top_p of the sum or are top_k; returns how many, and sets the sum to theirs. */
static size_t cut(pare_sampler *s, size_t *n, double *sum)
{
    const double least = least_weight(s, *sum), mass = s->o.top_p * *sum;
    const size_t most = s->o.top_k ? s->o.top_k : s->classes;
    size_t left = 0;
    for (size_t j = 0; j < s->classes; j++)
        if (s->weight[j] >= least) s->choice[left++] = (uint32_t)j;
    *n = left;
    *sum = 0;
    for (size_t j = left / 2; j-- > 0;) sink(s, j, left);
    while (left > 0 && *n - left < most && (left == *n || *sum < mass)) {
        const uint32_t best = s->choice[0];
        s->choice[0] = s->choice[--left];
        sink(s, 0, left);
        s->choice[left] = best;
        *sum += s->weight[best];
    }
    return *n - left;
}

/* ---- the choice -------------------------------------------------------------------------------
 */

/* The first one whose partial sum is above u; rounding may leave none: then the last. They stand
 * before `end`, backwards; NULL: all ids. */
static uint32_t walk(const pare_sampler *s, size_t n, const uint32_t *end, double u)
{
    double sum = 0;
    uint32_t id = 0;
    for (size_t j = 0; j < n; j++) {
        const uint32_t next = end ? *--end : (uint32_t)j;
        if (!(s->weight[next] > 0)) continue;
        id = next;
        sum += s->weight[id];
        if (u < sum) break;
    }
    return id;
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
    double sum = soften(s, logits, (double)logits[best]);
    const bool all = s->o.top_p == 1 && (s->o.top_k == 0 || s->o.top_k >= s->classes);
    size_t heap = 0;
    const size_t n = all ? s->classes : cut(s, &heap, &sum);
    *id = walk(s, n, all ? NULL : s->choice + heap, u * sum);
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
