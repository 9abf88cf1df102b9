/* pare/run.h - running a model: one forward pass (an f64 reference and a fast f32 engine), decoding
 * token by token, tokenizers, and generating text. */
#ifndef PARE_RUN_H
#define PARE_RUN_H
#include <pare/model.h>

/* ---- one forward pass ------------------------------------------------------------------------ */

/* Running a model: the f64 reference and the f32 engine, and a trace. */

/* One input: a sequence, a batch of equal length, or a graph (batch 1, tokens = nodes). */
typedef struct pare_input {
    size_t batch, tokens, width; /* width: of x */
    const int64_t *ids;          /* batch x tokens, or NULL */
    const double *x;             /* batch x tokens x width, or NULL */
    const pare_graph *graph;     /* the data's own edges; NULL unless the pattern is a graph */
    /* What the data say each output row should be (-1: not counted), or NULL. No part of the input:
     * nothing is computed from it and it is not hashed. */
    const int64_t *target;
    bool continues; /* the text of the input before it goes on here; also no part of the input */
} pare_input;

/* Ids in range, length within the context, widths equal, everything finite. */
PARE_MUST_USE pare_status pare_input_check(const pare_model *m, const pare_input *in,
                                           pare_err *err);
/* Rows of the output: batch x tokens, or batch when the head pools. Columns: pare_model_outputs. */
size_t pare_output_rows(const pare_model *m, const pare_input *in);

/* What the trace shows: the input and the output of every sublayer, rows = batch x tokens. */
typedef enum pare_tap {
    PARE_TAP_EMBEDDING, /* what block 0 receives */
    PARE_TAP_ATTN_IN,   /* the stream before the attention sublayer of `block` */
    PARE_TAP_ATTN_OUT,  /* after it */
    PARE_TAP_FFN_IN,
    PARE_TAP_FFN_OUT,
    PARE_TAP_HEAD /* after the head's norm */
} pare_tap;

typedef struct pare_trace {
    /* v: rows x cols f64 or f32 by dtype, valid during the call only. */
    void (*fn)(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v, size_t rows,
               size_t cols);
    void *self;
    /* May be NULL, as may fn. What became of one head of one sequence whose attention is of kind
     * POLY, in f32; one call at a time, in any order. */
    void (*poly)(void *self, size_t block, size_t head, const pare_poly_report *report);
} pare_trace;

/* out: rows x columns, row-major, given by the caller. trace and exec may be NULL. */
PARE_MUST_USE pare_status pare_forward_f64(double *out, const pare_model *m, const pare_input *in,
                                           const pare_trace *trace, const pare_exec *exec,
                                           pare_err *err);
PARE_MUST_USE pare_status pare_forward_f32(float *out, const pare_model *m, const pare_input *in,
                                           const pare_trace *trace, const pare_exec *exec,
                                           pare_err *err);

/* One head of one sequence; arrays of the pass's type, rows `ld` numbers apart. */
typedef struct pare_attend_job {
    size_t n, dk, dv;
    const void *q, *k, *v; /* n x dk, n x dk, n x dv */
    size_t ldq, ldk, ldv;
    double scale; /* of the scores */
    void *y;      /* n x dv */
    size_t ldy;
} pare_attend_job;
/* A set of inputs: what certificates speak about. */
typedef struct pare_inputs {
    size_t n;
    pare_input *in; /* n */
} pare_inputs;

/* All inputs of a set, of different lengths too, in one pass: type t is PARE_F32 or PARE_F64, out has
 * their outputs one after the other. Sequences lie side by side without padding; attention and
 * pooling stay within each, everything else is row by row. So what comes out of an input does not
 * depend on the others: in f32 on CPUs with AVX-512 to the last bit, elsewhere up to the rounding of
 * the BLAS. Graphs come one by one. */
PARE_MUST_USE pare_status pare_forward_set(void *out, pare_dtype t, const pare_model *m,
                                           const pare_inputs *set, const pare_exec *exec,
                                           pare_err *err);

/* What a cut is fitted to, and other inputs, held out, that it is measured on. */
typedef struct pare_input_split {
    const pare_inputs *fit, *heldout;
} pare_input_split;

/* `n` seeded random inputs that suit the model, of `tokens` tokens (0: min(context, 64)): uniform
 * ids, or standard normal vectors; for a graph pattern a ring of `tokens` nodes with both
 * neighbors. In the arena. */
PARE_MUST_USE pare_status pare_inputs_random(pare_inputs *out, pare_arena *a, const pare_model *m,
                                             size_t n, size_t tokens, uint64_t seed, pare_err *err);

/* ---- token by token -------------------------------------------------------------------------- */

/* One token after the other: a language model that remembers what it has read.
 *
 *     pare_decoder_new(&d, model, 0, &exec, &err);
 *     pare_decoder_prefill(d, ids, n, &logits, &err);    the prompt
 *     pare_decoder_step(d, id, &logits, &err);        what was chosen, again and again
 *
 * The logits are those of pare_forward_f32 on all tokens so far, in its last row, up to f32
 * rounding. Their bits depend neither on the threads nor on how the tokens were cut into calls. */

typedef struct pare_decoder pare_decoder;

/* Copies the weights into the layout they are read in (f32) with a cache for max_tokens (0: the
 * context, or 1024 where there is none). PARE_ERR_INPUT names what cannot be decoded: vectors in
 * the place of ids, patterns that see the future or a graph, pooled outputs. The model must outlive
 * the decoder, which is freed with pare_decoder_free. */
PARE_MUST_USE pare_status pare_decoder_new(pare_decoder **out, const pare_model *m,
                                           size_t max_tokens, const pare_exec *exec, pare_err *err);
void pare_decoder_free(pare_decoder *d); /* accepts NULL */

/* Reads n more tokens; *logits (pare_model_outputs of them, until the next call) follow the last.
 * PARE_ERR_INPUT, and nothing is read: no token, an id out of range, or more than the cache
 * holds. Nothing is allocated. */
PARE_MUST_USE pare_status pare_decoder_prefill(pare_decoder *d, const int64_t *ids, size_t n,
                                               const float **logits, pare_err *err);
/* The same for one token. */
PARE_MUST_USE pare_status pare_decoder_step(pare_decoder *d, int64_t id, const float **logits,
                                            pare_err *err);

void pare_decoder_reset(pare_decoder *d); /* forgets all tokens */

/* ---- tokenizers ------------------------------------------------------------------------------ */

typedef struct pare_tokenizer pare_tokenizer;
/* In the arena, from the bytes of the vocabulary file (borrowed: they must outlive it). */
PARE_MUST_USE pare_status pare_tokenizer_new(pare_tokenizer **out, pare_arena *a,
                                             pare_tokenizer_kind kind, const uint8_t *vocab,
                                             size_t bytes, pare_err *err);
/* What kind of vocabulary a file is, by its content; PARE_ERR_INPUT when it is none. */
PARE_MUST_USE pare_status pare_vocab_detect(pare_tokenizer_kind *kind, const uint8_t *vocab,
                                            size_t bytes, pare_err *err);
typedef struct pare_vocab {
    pare_tokenizer_kind kind;
    const uint8_t *data; /* what pare_tokenizer_new takes */
    size_t bytes;
    const char *notes; /* what was decided in reading, a line each; NULL: nothing */
} pare_vocab;
/* The vocabulary of a file, or of a folder as Hugging Face lays it out, in the arena: the first that is
 * there of tokenizer.json, vocab.txt, vocab.json with merges.txt, tokenizer.model. */
PARE_MUST_USE pare_status pare_vocab_read(pare_vocab *out, pare_arena *a, const char *path,
                                          pare_err *err);
size_t pare_tokenizer_size(const pare_tokenizer *t); /* number of ids */
/* What a user should know about the vocabulary, a line each: what it asks for and pare leaves out,
 * entries that are there twice. NULL: nothing. */
const char *pare_tokenizer_notes(const pare_tokenizer *t);
/* Text to ids, in the arena. GPT-2: the byte-pair merges. llama2.c: begin-of-text first, a blank
 * before, greedy merges by score, bytes as the fall-back. Words: lower-cased, split on blanks,
 * unknown words dropped, between [CLS] and [SEP] where the list has them. tokenizer.json: as the file
 * says, with what it puts around a text; texts are neither cut nor filled up. */
PARE_MUST_USE pare_status pare_encode(int64_t **ids, size_t *n, pare_arena *a,
                                      const pare_tokenizer *t, const char *text, size_t bytes,
                                      pare_err *err);
/* The bytes of one id as it is printed after `previous` (-1: first): llama2.c drops the blank
 * after begin-of-text, and its begin- and end-of-text print nothing, nor do special tokens of
 * tokenizer.json. Borrowed, not ended by a zero.
 * Words are given without the blank between them. An id out of range has no bytes. */
const char *pare_decode(const pare_tokenizer *t, int64_t previous, int64_t id, size_t *bytes);

/* What is odd about a text: bytes that are not UTF-8 (every tokenizer takes them one by one), and
 * words that a word list lacks (its tokenizer drops them). */
typedef struct pare_text_notes {
    size_t invalid;                    /* bytes that are not UTF-8 */
    size_t invalid_line, invalid_byte; /* of the first: its line, from 1; its place, from 0 */
    size_t words, unknown;             /* words looked up; those that the list lacks */
    char first_unknown[64];            /* as it stands in the text, cut where it is longer */
    size_t longer, longest, most;      /* so many texts were longer than `most` tokens and cut to
                                          them; tokens of the longest */
} pare_text_notes;
/* Both add to *n, which begins all zero. The second does something for word lists alone. */
void pare_text_note_utf8(pare_text_notes *n, const char *text, size_t bytes);
void pare_text_note_words(pare_text_notes *n, const pare_tokenizer *t, const char *text,
                          size_t bytes);

/* ---- choosing the next token ----------------------------------------------------------------- */

typedef struct pare_sample_opts {
    double temperature; /* >= 0; 0: always the likeliest, of equals the one with the lower id */
    double top_p;       /* (0, 1]: the fewest likeliest tokens whose probabilities reach it */
    size_t top_k;       /* at most so many of the likeliest; 0: no limit */
} pare_sample_opts;

#define PARE_SAMPLE_OPTS_DEFAULT                                                                   \
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

/* ---- generating text ------------------------------------------------------------------------- */

/* Continue many prompts with one language model.
 *
 * Up to PARE_GENERATE_BATCH sequences are decoded side by side, the others begin as soon as one of
 * those is complete. What is generated for a prompt depends neither on the other prompts nor on how
 * many are decoded at once. */

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
    const pare_tokenizer *tokenizer; /* says which token ends a text */
    size_t tokens;                   /* to generate for each prompt, at most */
    pare_sample_opts sample;
    uint64_t seed; /* of every prompt: each draws from the start of the stream, ... */
    bool streams;  /* ... or prompt i from that of stream i */
    pare_generate_events events;
} pare_generate_opts;
#define PARE_GENERATE_OPTS_DEFAULT                                                                 \
    {                                                                                              \
        .tokens = 256, .sample = PARE_SAMPLE_OPTS_DEFAULT                                          \
    }

typedef struct pare_generate_stats {
    size_t prompt_tokens, tokens;   /* read, generated */
    double prompt_seconds, seconds; /* spent on each */
} pare_generate_stats;

/* What became of all prompts; in the arena. It grows as the text does: events may read it. */
typedef struct pare_generation {
    size_t n;
    pare_generated *each; /* n, by the numbers of the prompts */
    pare_generate_stats stats;
} pare_generation;

/* Why the model cannot generate text; NULL when it can. */
const char *pare_generate_refuses(const pare_model *m);
/* Continues the prompts, each at least one token and within the context. After an error *out has
 * what was generated before it. */
PARE_MUST_USE pare_status pare_generate(pare_generation *out, pare_arena *a, const pare_model *m,
                                        const pare_inputs *prompts, const pare_generate_opts *o,
                                        const pare_exec *exec, pare_err *err);

/* ---- attention of a training run -------------------------------------------------------------- */

/* One head of one sequence in the backward pass. */
typedef struct pare_attend_grad {
    pare_attend_job job; /* of the forward pass, with its y */
    const void *lse;     /* n: log of the sum of e^score of each row, as the forward pass left it */
    const void *dy;      /* n x dv: d loss / d y */
    size_t lddy;
    void *dq, *dk, *dv; /* n x dk, n x dk, n x dv: written, not added to */
    size_t lddq, lddk, lddv;
} pare_attend_grad;
/* Who computes softmax attention in the place of the tape, in both passes: for engines that take
 * fewer tokens than a sequence has. Called from the thread of the tape. */
typedef struct pare_attention_provider {
    const char *id; /* part of a checkpoint's fingerprint: "oracle 16" */
    /* All heads of all sequences of a layer; lse[i]: n numbers of type t, written for jobs[i]. */
    pare_status (*forward)(void *self, pare_dtype t, const pare_attend_job *jobs, void *const *lse,
                           size_t count, const pare_pattern *p, pare_err *err);
    /* One of these jobs. */
    pare_status (*backward)(void *self, pare_dtype t, const pare_attend_grad *g,
                            const pare_pattern *p, pare_err *err);
    void *self;
} pare_attention_provider;
#endif
