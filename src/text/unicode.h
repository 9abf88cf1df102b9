/* unicode.h - just enough Unicode to cut text as the tokenizers do, from utf8proc. Private to
 * src/text. */
#ifndef PARE_TEXT_UNICODE_H
#define PARE_TEXT_UNICODE_H
#include "base/utf8.h"

typedef enum pare_char_class {
    PARE_CHAR_OTHER,
    PARE_CHAR_LETTER, /* categories L* */
    PARE_CHAR_NUMBER, /* categories N* */
    PARE_CHAR_SPACE   /* property White_Space */
} pare_char_class;

/* Writes 1 to 4 bytes; returns how many. c must be a code point. */
size_t pare_utf8_put(char out[4], uint32_t c);
pare_char_class pare_char_kind(uint32_t c); /* PARE_NO_CHAR is OTHER */
bool pare_char_is_space(uint32_t c);        /* property White_Space */
/* By the tables of Unicode 8 that Hugging Face's tokenizers have: P* and all of ASCII's marks; Cc, Cf,
 * Co; Mn. By those of Unicode 9: Mn, Mc, Me; marks and characters with other forms that came later
 * and so have none. Not PARE_NO_CHAR: none of them. */
bool pare_char_is_punctuation(uint32_t c);
bool pare_char_is_control(uint32_t c);
bool pare_char_is_accent(uint32_t c);
bool pare_char_is_mark(uint32_t c);
bool pare_char_is_formless(uint32_t c);
uint32_t pare_char_lower(uint32_t c); /* itself where the lower case is not one code point */
#endif
