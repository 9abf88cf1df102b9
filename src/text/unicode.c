/* unicode.c - writing UTF-8, and the classes and lower case of characters (unicode.h). */
#include "unicode.h"
#include <stdlib.h>

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

/* Ranges of both tables begin with their first and last code point. */
static int compare_to_range(const void *code_point, const void *range)
{
    const uint32_t c = *(const uint32_t *)code_point, *const r = range;
    return c < r[0] ? -1 : c > r[1];
}

pare_char_class pare_char_kind(uint32_t c)
{
    const pare_char_range *const r = bsearch(&c, pare_char_ranges, pare_char_range_count,
                                             sizeof *pare_char_ranges, compare_to_range);
    return r ? (pare_char_class)r->kind : PARE_CHAR_OTHER;
}

uint32_t pare_char_lower(uint32_t c)
{
    const pare_lower_range *const r = bsearch(&c, pare_lower_ranges, pare_lower_range_count,
                                              sizeof *pare_lower_ranges, compare_to_range);
    return r && (c - r->first) % r->step == 0 ? (uint32_t)((int64_t)c + r->delta) : c;
}
