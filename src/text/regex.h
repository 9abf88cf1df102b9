/* regex.h - the patterns of tokenizers, run by PCRE2. Private to src/text.
 *
 * Tokenizers are written for Oniguruma's syntax. What it reads otherwise than PCRE2 is rewritten
 * (\s, \w) or refused by name (\h, && and [ in a class). */
#ifndef PARE_TEXT_REGEX_H
#define PARE_TEXT_REGEX_H
#include <pare/base.h>

typedef struct pare_regex pare_regex; /* compiled; used by several threads at once */
/* In the arena. `literal`: the pattern is a text to be found as it is. PARE_ERR_INPUT says what is
 * wrong with the pattern, and where. */
PARE_MUST_USE pare_status pare_regex_new(pare_regex **out, pare_arena *a, const char *pattern,
                                         size_t bytes, bool literal, pare_err *err);

/* What one call of the tokenizer needs to match; freed with the arena. */
typedef struct pare_regex_run pare_regex_run;
PARE_MUST_USE pare_status pare_regex_run_new(pare_regex_run **out, pare_arena *a, pare_err *err);

/* The first match at or after `from`: *begin = bytes when there is none. Bytes that are not UTF-8
 * match nothing. PARE_ERR_INPUT when the pattern takes too long: steps are limited for each match
 * and for all matches of a run together. */
PARE_MUST_USE pare_status pare_regex_find(pare_regex_run *run, const pare_regex *r,
                                          const char *text, size_t bytes, size_t from,
                                          size_t *begin, size_t *end, pare_err *err);
#endif
