/* unicode.h - just enough Unicode to cut text as the tokenizers do. Private to src/text. */
#ifndef PARE_TEXT_UNICODE_H
#define PARE_TEXT_UNICODE_H
#include "base/utf8.h"

typedef enum pare_char_class {
    PARE_CHAR_OTHER,
    PARE_CHAR_LETTER, /* categories L* */
    PARE_CHAR_NUMBER, /* categories N* */
    PARE_CHAR_SPACE   /* property White_Space */
} pare_char_class;

/* The generated tables, ascending and disjoint. */
typedef struct pare_char_range {
    uint32_t first, last;
    uint8_t kind; /* a pare_char_class */
} pare_char_range;
extern const pare_char_range pare_char_ranges[];
extern const size_t pare_char_range_count;
typedef struct pare_lower_range { /* first, first + step, ..., last become themselves + delta */
    uint32_t first, last, step;
    int32_t delta;
} pare_lower_range;
extern const pare_lower_range pare_lower_ranges[];
extern const size_t pare_lower_range_count;

/* Writes 1 to 4 bytes; returns how many. c must be a code point. */
size_t pare_utf8_put(char out[4], uint32_t c);
pare_char_class pare_char_kind(uint32_t c); /* PARE_NO_CHAR is OTHER */
uint32_t pare_char_lower(uint32_t c);       /* itself where the lower case is not one code point */
#endif
