/* unicode.c - writing UTF-8, and the classes and lower case of characters (unicode.h). */
#include "unicode.h"
#include <utf8proc.h>

size_t pare_utf8_put(char out[4], uint32_t c)
{
    PARE_ASSERT(c <= 0x10FFFF);
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00 >> len) | c); /* as many leading ones as there are bytes */
    return len;
}

bool pare_char_is_space(uint32_t c)
{
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool pare_char_is_punctuation(uint32_t c)
{
    if (c < 0x80) return c > ' ' && c < 0x7F && pare_char_kind(c) == PARE_CHAR_OTHER;
    if (c == PARE_NO_CHAR) return false;
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

pare_char_class pare_char_kind(uint32_t c)
{
    if (c == PARE_NO_CHAR) return PARE_CHAR_OTHER;
    if (pare_char_is_space(c)) return PARE_CHAR_SPACE;
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    if (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) return PARE_CHAR_LETTER;
    if (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) return PARE_CHAR_NUMBER;
    return PARE_CHAR_OTHER;
}

uint32_t pare_char_lower(uint32_t c)
{
    if (c == PARE_NO_CHAR || c == 0x130) return c; /* U+0130 becomes two */
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}
