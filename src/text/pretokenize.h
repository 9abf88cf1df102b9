/* pretokenize.h - the pre-tokenizers of tokenizer.json: where text is cut into words before the
 * subword model sees it. Private to src/text. */
#ifndef PARE_TEXT_PRETOKENIZE_H
#define PARE_TEXT_PRETOKENIZE_H
#include "normalize.h"

typedef struct pare_pretokenizer pare_pretokenizer;
typedef struct pare_pretokenizers {
    pare_pretokenizer *v;
    size_t n, capacity;
} pare_pretokenizers;

/* Reads the value of "pre_tokenizer"; nothing for NULL and null. PARE_ERR_INPUT names what is
 * wrong, and a kind that pare does not read. */
PARE_MUST_USE pare_status pare_pretokenizers_read(pare_pretokenizers *out, pare_arena *a,
                                                  const cJSON *json, pare_err *err);
/* The words of a text, in the arena of `words`. */
PARE_MUST_USE pare_status pare_pretokenize(pare_spans *words, const pare_pretokenizers *list,
                                           pare_span text, pare_regex_run *run, pare_err *err);
#endif
