/* utf8.h - reading UTF-8, and which characters must not be shown as they are. */
#ifndef PARE_BASE_UTF8_H
#define PARE_BASE_UTF8_H
#include <pare/base.h>

#define PARE_NO_CHAR UINT32_MAX
/* The code point at s (n > 0 bytes are there) and its length. A byte that begins no valid UTF-8
 * (overlong forms and surrogates are not) is PARE_NO_CHAR of length 1, so that any bytes can be
 * cut and put together again. */
uint32_t pare_utf8_next(const char *s, size_t n, size_t *length);
/* Control characters (line ends and tabs too), marks that make a line read in another order, and
 * separators of lines and paragraphs: U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069,
 * U+FEFF. */
bool pare_char_is_hidden(uint32_t c);
#endif
