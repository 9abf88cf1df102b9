/* text_internal.h - tokenizers, and choosing the next token of a text. */
#ifndef PARE_TEXT_TEXT_INTERNAL_H
#define PARE_TEXT_TEXT_INTERNAL_H
#include <pare/run.h>

/* ---- choosing the next token ----------------------------------------------------------------- */

/* Does the id end a text? GPT-2's <|endoftext|>, llama2.c's begin- and end-of-text, [SEP]. */
bool pare_ends_text(const pare_tokenizer *t, int64_t id);
#endif
