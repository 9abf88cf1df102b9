/* tokenizer_json.h - a tokenizer as tokenizer.json describes it: added tokens, normalizers,
 * pre-tokenizers, a subword model, what is put around a text, and how ids become text again.
 * Private to src/text. */
#ifndef PARE_TEXT_TOKENIZER_JSON_H
#define PARE_TEXT_TOKENIZER_JSON_H
#include "pretokenize.h"
#include "subword.h"

/* ---- tokens that are found in the text before anything else (added_tokens.c) ------------------ */

typedef struct pare_added_token {
    pare_piece content; /* as it is looked for */
    int32_t id;
    bool special, single_word, left_strip, right_strip, normalized;
} pare_added_token;

typedef struct pare_added_tokens {
    pare_added_token *v; /* sorted by content */
    size_t n;
    size_t begins[257]; /* those whose content begins with byte b: begins[b] .. begins[b + 1] - 1 */
} pare_added_tokens;

/* Sorts and indexes the tokens. */
void pare_added_tokens_index(pare_added_tokens *t);
/* The first token at or after `from`: the longest of those that begin there. False: none. Its
 * white space, where it strips some, is inside [*begin, *end). */
bool pare_added_tokens_find(const pare_added_tokens *t, pare_piece text, size_t from, size_t *begin,
                            size_t *end, int32_t *id);

/* ---- how ids become text (token_texts.c) ------------------------------------------------------ */

typedef struct pare_json_tokenizer {
    pare_added_tokens plain, normalized; /* found before and after normalizing */
    pare_normalizers normalizers;
    pare_pretokenizers pretokenizers;
    pare_subword model;
    pare_id_list before, after; /* ids around every text */
    size_t size;                /* of all ids */
    pare_piece *name;           /* by id, as the file has it; s == NULL: none */
    bool *special;              /* by id */
    bool *ends;                 /* by id: ends a text */
    pare_piece *text, *first;   /* by id: printed behind others, and as the first */
    bool blank_before; /* texts begin with a blank that only those print that follow a word's end */
    bool *word_ends;   /* by id */
    const char *notes; /* lines for the user; NULL: none */
    bool merges_repeats; /* a token that comes again at once is not printed again */
} pare_json_tokenizer;

PARE_MUST_USE pare_status pare_json_tokenizer_read(pare_json_tokenizer *t, pare_arena *a,
                                                   const char *json, size_t bytes, pare_err *err);
PARE_MUST_USE pare_status pare_json_tokenizer_encode(pare_id_list *out, pare_arena *scratch,
                                                     const pare_json_tokenizer *t, pare_piece text,
                                                     pare_err *err);
pare_piece pare_json_tokenizer_decode(const pare_json_tokenizer *t, int64_t previous, int64_t id);

/* Fills text and first, by the value of "decoder". */
PARE_MUST_USE pare_status pare_token_texts_read(pare_json_tokenizer *t, pare_arena *a,
                                                const cJSON *decoder, pare_err *err);
#endif
