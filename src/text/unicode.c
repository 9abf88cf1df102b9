/* unicode.c - writing UTF-8, and the classes and lower case of characters (unicode.h).
 *
 * Hugging Face's tokenizers know categories by tables of Unicode 8 and normal forms by those of
 * Unicode 9, whatever has come since; models were trained on what they made of texts. */
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

typedef struct char_range {
    uint32_t first, last;
} char_range;

/* clang-format off */
/* Younger than Unicode 8: punctuation, marks and controls. Others may be inside of a range. */
static const char_range after_8[] = {
    {0x61D, 0x61D}, {0x7FD, 0x7FD}, {0x890, 0x8E2}, {0x9FD, 0x9FE}, {0xA76, 0xA76},
    {0xAFA, 0xAFF}, {0xB55, 0xB55}, {0xC04, 0xC3C}, {0xC77, 0xC77}, {0xC84, 0xC84},
    {0xD00, 0xD00}, {0xD3B, 0xD3C}, {0xD81, 0xD81}, {0xEBA, 0xEBA}, {0x180F, 0x180F},
    {0x1ABF, 0x1ACE}, {0x1B7D, 0x1B7E}, {0x1DF6, 0x1DFB}, {0x2E43, 0x2E5D}, {0xA82C, 0xA82C},
    {0xA8C5, 0xA8C5}, {0xA8FF, 0xA8FF}, {0x10D24, 0x10F89}, {0x11070, 0x11074},
    {0x110C2, 0x110CD}, {0x111CF, 0x111CF}, {0x1123E, 0x1123E}, {0x1133B, 0x1133B},
    {0x11438, 0x1145E}, {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11FFF},
    {0x12FF1, 0x13438}, {0x16E97, 0x16F4F}, {0x16FE2, 0x16FE4}, {0x1CF00, 0x1CF46},
    {0x1E000, 0x1E2EF}, {0x1E944, 0x1E95F}};

/* Younger than Unicode 9: marks, and what normal forms change. */
static const char_range after_9[] = {
    {0x7FD, 0x7FD}, {0x898, 0x8D3}, {0x9FE, 0x9FE}, {0xAFA, 0xAFF}, {0xB55, 0xB55},
    {0xC04, 0xC3C}, {0xD00, 0xD00}, {0xD3B, 0xD3C}, {0xD81, 0xD81}, {0xEBA, 0xEBA},
    {0x1715, 0x1715}, {0x180F, 0x180F}, {0x1ABF, 0x1ACE}, {0x1CF7, 0x1CF7}, {0x1DF6, 0x1DFA},
    {0x32FF, 0x32FF}, {0xA7F2, 0xA7F4}, {0xA82C, 0xA82C}, {0xA8FF, 0xA8FF}, {0xAB69, 0xAB69},
    {0x10781, 0x107BA}, {0x10D24, 0x10F85}, {0x11070, 0x11074}, {0x110C2, 0x110C2},
    {0x11145, 0x11146}, {0x111CE, 0x111CF}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x1182C, 0x11A99}, {0x11D31, 0x11EF6}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87},
    {0x16FE4, 0x16FF1}, {0x1CF00, 0x1CF46}, {0x1E130, 0x1E2EF}, {0x1F16C, 0x1F16C},
    {0x1FBF0, 0x1FBF9}};
/* clang-format on */

static bool is_in(const char_range *r, size_t n, uint32_t c)
{
    size_t from = 0;
    while (from < n) {
        const size_t middle = from + (n - from) / 2;
        if (r[middle].last < c)
            from = middle + 1;
        else if (r[middle].first > c)
            n = middle;
        else
            return true;
    }
    return false;
}

bool pare_char_is_formless(uint32_t c)
{
    return c >= after_9[0].first && is_in(after_9, sizeof after_9 / sizeof *after_9, c);
}

/* Marks, punctuation and controls as in Unicode 8; CN for those that came later. */
static utf8proc_category_t old_category(uint32_t c)
{
    switch (c) { /* was another kind then */
    case 0x166D:
    case 0x111C9:
        return UTF8PROC_CATEGORY_PO;
    case 0x1734:
        return UTF8PROC_CATEGORY_MN;
    case 0xA9BD:
        return UTF8PROC_CATEGORY_MC;
    case 0x1885:
    case 0x1886:
        return UTF8PROC_CATEGORY_LO;
    default:
        return c >= after_8[0].first && is_in(after_8, sizeof after_8 / sizeof *after_8, c)
                   ? UTF8PROC_CATEGORY_CN
                   : utf8proc_category((utf8proc_int32_t)c);
    }
}

bool pare_char_is_punctuation(uint32_t c)
{
    if (c < 0x80) return c > ' ' && c < 0x7F && pare_char_kind(c) == PARE_CHAR_OTHER;
    if (c == PARE_NO_CHAR) return false;
    const utf8proc_category_t k = old_category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool pare_char_is_control(uint32_t c)
{
    if (c < 0x80) return c < ' ' || c == 0x7F;
    const utf8proc_category_t k = old_category(c);
    return k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO;
}

bool pare_char_is_accent(uint32_t c)
{
    return c >= 0x300 && c != PARE_NO_CHAR && old_category(c) == UTF8PROC_CATEGORY_MN;
}

bool pare_char_is_mark(uint32_t c)
{
    if (c < 0x300 || c == PARE_NO_CHAR || c == 0x111C9 || pare_char_is_formless(c)) return false;
    if (c == 0x1CF2 || c == 0x1CF3) return true; /* letters since */
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
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
