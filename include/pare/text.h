/* pare/text.h - tokenizers, and choosing the next token of a text. */
#ifndef PARE_TEXT_H
#define PARE_TEXT_H
#include <pare/model.h>

/* ---- tokenizers ------------------------------------------------------------------------- */

typedef struct pare_tokenizer pare_tokenizer;
/* From the bytes of the vocabulary file (borrowed: they must outlive the tokenizer). */
PARE_MUST_USE pare_status pare_tokenizer_new(pare_tokenizer **out, pare_arena *a,
                                             pare_tokenizer_kind kind, const uint8_t *vocab,
                                             size_t bytes, pare_err *err);
/* What kind of vocabulary a file is, by its content; PARE_ERR_INPUT when it is none. */
PARE_MUST_USE pare_status pare_vocab_detect(pare_tokenizer_kind *kind, const uint8_t *vocab,
                                            size_t bytes, pare_err *err);
size_t pare_tokenizer_size(const pare_tokenizer *t); /* number of ids */
/* Text to ids, in the arena. GPT-2: the byte-pair merges. llama2.c: begin-of-text first, a blank
 * before, greedy merges by score, bytes as the fall-back. Words: lower-cased, split on blanks,
 * unknown words dropped, between [CLS] and [SEP] where the list has them. */
PARE_MUST_USE pare_status pare_encode(int64_t **ids, size_t *n, pare_arena *a,
                                      const pare_tokenizer *t, const char *text, size_t bytes,
                                      pare_err *err);
/* The bytes of one id as it is printed after `previous` (-1: first): llama2.c drops the blank
 * after begin-of-text, and its begin- and end-of-text print nothing. Borrowed, not ended by a zero.
 * Words are given without the blank between them. An id out of range has no bytes. */
const char *pare_decode(const pare_tokenizer *t, int64_t previous, int64_t id, size_t *bytes);

/* What is odd about a text: bytes that are not UTF-8 (every tokenizer takes them one by one), and
 * words that a word list lacks (its tokenizer drops them). */
typedef struct pare_text_notes {
    size_t invalid;                    /* bytes that are not UTF-8 */
    size_t invalid_line, invalid_byte; /* of the first: its line, from 1; its place, from 0 */
    size_t words, unknown;             /* words looked up; those that the list lacks */
    char first_unknown[64];            /* as it stands in the text, cut where it is longer */
} pare_text_notes;
/* Both add to *n, which begins all zero. The second does something for word lists alone. */
void pare_text_note_utf8(pare_text_notes *n, const char *text, size_t bytes);
void pare_text_note_words(pare_text_notes *n, const pare_tokenizer *t, const char *text,
                          size_t bytes);

/* ---- choosing the next token ------------------------------------------------------------- */

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
