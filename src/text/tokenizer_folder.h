/* tokenizer_folder.h - the files that a folder's tokenizer may be in, made into one tokenizer.json.
 * Private to src/text. */
#ifndef PARE_TEXT_TOKENIZER_FOLDER_H
#define PARE_TEXT_TOKENIZER_FOLDER_H
#include "base/json.h"
#include "text_buffer.h"

/* What the files beside a vocabulary say; NULL: not there. */
typedef struct pare_tokenizer_config {
    const cJSON *config;  /* tokenizer_config.json */
    const cJSON *special; /* special_tokens_map.json */
    const cJSON *added;   /* added_tokens.json: ids by their tokens */
    const char *class;    /* tokenizer_class, or by the model_type of config.json */
} pare_tokenizer_config;

/* Each makes the tree of a tokenizer.json, which the caller deletes; on failure *out is NULL.
 * PARE_ERR_INPUT says what is wrong with a file. */
PARE_MUST_USE pare_status pare_json_of_wordpiece(cJSON **out, pare_arena *a, pare_piece vocab_txt,
                                                 const pare_tokenizer_config *c, const char **notes,
                                                 pare_err *err);
PARE_MUST_USE pare_status pare_json_of_bpe(cJSON **out, pare_arena *a, pare_piece vocab_json,
                                           pare_piece merges_txt, const pare_tokenizer_config *c,
                                           const char **notes, pare_err *err);
PARE_MUST_USE pare_status pare_json_of_sentencepiece(cJSON **out, pare_arena *a, pare_piece model,
                                                     const pare_tokenizer_config *c, pare_err *err);

/* A special token ("cls_token") of tokenizer_config.json or special_tokens_map.json: its text, which
 * may stand in an object; `fallback` where there is none. */
const char *pare_special_token(const pare_tokenizer_config *c, const char *key,
                               const char *fallback);
/* Adds "added_tokens": those of added_tokens_decoder, or without it those of added_tokens.json, then the
 * special ones that `ids` has (an object from token to id). `defaults`: what a class calls its special tokens where the files are silent. */
enum { PARE_SPECIAL_TOKENS = 7 }; /* bos, eos, unk, sep, cls, pad, mask */
PARE_MUST_USE pare_status pare_add_tokens(cJSON *root, const pare_tokenizer_config *c,
                                          const char *const defaults[PARE_SPECIAL_TOKENS],
                                          const cJSON *ids, pare_err *err);
/* Adds the post-processor that puts these before and behind a text; NULL: nothing. */
PARE_MUST_USE pare_status pare_add_template(cJSON *root, const cJSON *ids, const char *before,
                                            const char *after, pare_err *err);
#endif
