#include "unicode.h"

static bool is_tail(const char *s, size_t i, size_t n)
{
    return i < n && ((uint8_t)s[i] & 0xC0) == 0x80;
}

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
        if (!is_tail(s, i, n)) return PARE_NO_CHAR;
        c = c << 6 | ((uint8_t)s[i] & 0x3Fu);
    }
    if (c < smallest[len] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return PARE_NO_CHAR;
    *length = len;
    return c;
}

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

pare_char_class pare_char_kind(uint32_t c)
{
    size_t lo = 0, hi = pare_char_range_count;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const pare_char_range *r = &pare_char_ranges[mid];
        if (c < r->first)
            hi = mid;
        else if (c > r->last)
            lo = mid + 1;
        else
            return (pare_char_class)r->kind;
    }
    return PARE_CHAR_OTHER;
}

uint32_t pare_char_lower(uint32_t c)
{
    size_t lo = 0, hi = pare_lower_range_count;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const pare_lower_range *r = &pare_lower_ranges[mid];
        if (c < r->first)
            hi = mid;
        else if (c > r->last)
            lo = mid + 1;
        else
            return (c - r->first) % r->step == 0 ? (uint32_t)((int64_t)c + r->delta) : c;
    }
    return c;
}
