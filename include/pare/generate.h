/* pare/generate.h - continue many prompts with one language model.
 *
 * Up to PARE_GENERATE_BATCH sequences are decoded side by side, the others begin as soon as one of
 * those is complete. What is generated for a prompt depends neither on the other prompts nor on how
 * many are decoded at once (pare/decode.h). */
#ifndef PARE_GENERATE_H
#define PARE_GENERATE_H
#include <pare/decode.h>
#include <pare/forward.h>
#include <pare/text.h>

enum { PARE_GENERATE_BATCH = 24 };

typedef enum pare_generate_end {
    PARE_END_NONE,   /* not complete */
    PARE_END_TOKENS, /* as many tokens as asked for */
    PARE_END_TEXT,   /* the model has ended the text */
    PARE_END_CONTEXT /* the context is full */
} pare_generate_end;

/* What became of one prompt. */
typedef struct pare_generated {
    int64_t *ids; /* n of them, in the arena; without the prompt and without an end of text */
    size_t n;
    pare_generate_end end;
} pare_generated;

/* What is called as it happens; each may be NULL. Prompts are named by their number. */
typedef struct pare_generate_events {
    void *self;
    void (*begin)(void *self, size_t prompt); /* it is read now; they begin in their order */
    void (*token)(void *self, size_t prompt, int64_t id);
    void (*end)(void *self, size_t prompt, pare_generate_end why);
    bool (*round)(void *self); /* once before each step of all sequences; false: stop here */
} pare_generate_events;

typedef struct pare_generate_opts {
    size_t tokens; /* to generate for each prompt, at most */
    pare_sample_opts sample;
    uint64_t seed; /* of every prompt: each draws from the start of the stream */
    pare_generate_events events;
} pare_generate_opts;

typedef struct pare_generate_stats {
    size_t prompt_tokens, tokens;   /* read, generated */
    double prompt_seconds, seconds; /* spent on each */
} pare_generate_stats;

/* Why the model cannot generate text; NULL when it can. */
const char *pare_generate_refuses(const pare_model *m);
/* Continues n prompts, each at least one token and within the context. out[i]: of prompt i, also
 * what was generated before an error. `tok` says which token ends a text. */
PARE_MUST_USE pare_status pare_generate(pare_generated *out, pare_generate_stats *stats,
                                        pare_arena *a, const pare_model *m,
                                        const pare_tokenizer *tok, const pare_input *prompts,
                                        size_t n, const pare_generate_opts *o,
                                        const pare_exec *exec, pare_err *err);
#endif
