/* text_internal.h - tokenizers, and choosing the next token of a text. */
#ifndef PARE_TEXT_TEXT_INTERNAL_H
#define PARE_TEXT_TEXT_INTERNAL_H
#include <pare/run.h>

/* ---- the tokenizer of a folder --------------------------------------------------------------- */

/* The bytes of a tokenizer.json in the arena; NULL where the folder has no tokenizer. Read is the first
 * that is there of tokenizer.json, vocab.txt, vocab.json with merges.txt, tokenizer.model; beside the
 * last three tokenizer_config.json and special_tokens_map.json. generation_config.json, or else
 * config.json, says which ids end a text. *notes: lines for the user are added. */
PARE_MUST_USE pare_status pare_folder_tokenizer(const uint8_t **json, size_t *bytes,
                                                const char **notes, pare_arena *a,
                                                pare_files *files, const char *folder,
                                                pare_err *err);

/* ---- choosing the next token ----------------------------------------------------------------- */

/* Does the id end a text? GPT-2's <|endoftext|>, llama2.c's begin- and end-of-text, [SEP]. */
bool pare_is_end_of_text(const pare_tokenizer *t, int64_t id);
#endif
