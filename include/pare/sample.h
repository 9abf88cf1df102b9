/* pare/sample.h - choosing the next token. */
#ifndef PARE_SAMPLE_H
#define PARE_SAMPLE_H
#include <pare/data.h>

typedef struct pare_sample_opts {
    double temperature; /* >= 0; 0: always the likeliest, of equals the one with the lower id */
    double top_p;       /* (0, 1]: the fewest likeliest tokens whose probabilities reach it */
    size_t top_k;       /* at most so many of the likeliest; 0: no limit */
} pare_sample_opts;

#define PARE_SAMPLE_DEFAULT                                                                        \
    {                                                                                              \
        .temperature = 0.8, .top_p = 0.9                                                           \
    }

/* Probabilities are softmax(logits / temperature) in f64, in whole units of about 2^-63 times the
 * number of classes; likelier means: of equals the lower id. Each choice takes one number of the
 * Philox stream (seed, stream), whatever the options: the chosen token is the one at that fraction
 * of the kept ones' mass, likeliest first. */
typedef struct pare_sampler {
    pare_sample_opts o;
    pare_rng rng;
    size_t classes;
    uint64_t *weight; /* classes */
    uint32_t *choice; /* classes */
} pare_sampler;

/* In the arena. PARE_ERR_USAGE: an option out of range. */
PARE_MUST_USE pare_status pare_sampler_new(pare_sampler *out, pare_arena *a, size_t classes,
                                           const pare_sample_opts *o, uint64_t seed,
                                           uint64_t stream, pare_err *err);
/* PARE_ERR_NONFINITE when a logit is nan or the largest is infinite. */
PARE_MUST_USE pare_status pare_sample(int64_t *id, pare_sampler *s, const float *logits,
                                      pare_err *err);
/* Does the id end a text? GPT-2's <|endoftext|>, llama2.c's begin- and end-of-text, [SEP]. */
bool pare_ends_text(const pare_tokenizer *t, int64_t id);
#endif
