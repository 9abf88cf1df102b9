/* utf8.c - reading UTF-8 (utf8.h). */
#include "utf8.h"

uint32_t pare_utf8_next(const char *s, size_t n, size_t *length)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint32_t b = (uint8_t)s[0];
    *length = 1;
    if (b < 0x80) return b;
    const size_t len = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : 2;
    if (b < 0xC2 || b > 0xF4) return PARE_NO_CHAR;
    uint32_t c = b & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (i >= n || ((uint8_t)s[i] & 0xC0) != 0x80) return PARE_NO_CHAR;
        c = c << 6 | ((uint8_t)s[i] & 0x3Fu);
    }
    if (c < smallest[len] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return PARE_NO_CHAR;
    *length = len;
    return c;
}

bool pare_char_is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}
