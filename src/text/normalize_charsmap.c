/* normalize_charsmap.c - SentencePiece's precompiled map of characters (normalize.h).
 *
 * The file: u32 bytes of the trie, the trie (a double array of u32 units), then the texts that are
 * put in place, each ended by a zero. A key of the trie is the UTF-8 of what is replaced; its value
 * is where the text begins. */
#include "normalize.h"
#include "unicode.h"
#include <string.h>
#include <utf8proc.h>

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *const at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

pare_status pare_charsmap_read(pare_charsmap *out, pare_arena *a, const char *base64, pare_err *err)
{
    const size_t chars = strcspn(base64, "=");
    uint8_t *const bytes = pare_alloc(a, chars / 4 * 3 + 4, 1);
    size_t n = 0;
    if (!bytes) return pare_no_memory(err);
    for (size_t i = 0, bits = 0, held = 0; i < chars; i++) {
        const int digit = base64_digit(base64[i]);
        if (digit < 0)
            return pare_fail(err, PARE_ERR_INPUT,
                             "precompiled_charsmap is not base64 (character %zu)", i);
        held = (held << 6 | (size_t)digit) & 0xFFFF;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        bytes[n++] = (uint8_t)(held >> bits);
    }
    uint32_t trie = 0;
    *out = (pare_charsmap){0};
    if (n == 0) return PARE_OK;
    if (n >= 4) memcpy(&trie, bytes, 4);
    if (n < 4 || trie % 4 || trie > n - 4)
        return pare_fail(err, PARE_ERR_INPUT,
                         "precompiled_charsmap: a trie of %u bytes in %zu bytes", trie, n);
    uint32_t *const units = pare_alloc(a, trie / 4 + 1, 4);
    if (!units) return pare_no_memory(err);
    memcpy(units, bytes + 4, trie);
    *out = (pare_charsmap){units, trie / 4, (const char *)bytes + 4 + trie, n - 4 - trie};
    return PARE_OK;
}

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* What the shortest key at the begin of s becomes; false when there is none. */
static bool find(pare_piece *out, const pare_charsmap *m, const char *s, size_t n)
{
    size_t at = m->units ? offset_of(m->trie[0]) : 0;
    for (size_t i = 0; i < n && at < m->units; i++) {
        const uint8_t c = (uint8_t)s[i];
        at ^= c;
        if (c == 0 || at >= m->units) return false;
        const uint32_t unit = m->trie[at];
        if ((unit & (1u << 31 | 0xFF)) != c) return false;
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= m->units) return false;
        const size_t value = m->trie[at] & ~(1u << 31);
        if (value >= m->bytes) return false;
        *out = (pare_piece){m->text + value, strnlen(m->text + value, m->bytes - value)};
        return true;
    }
    return false;
}

/* Bytes of the first grapheme. */
static size_t grapheme(const char *s, size_t n)
{
    size_t len, at;
    utf8proc_int32_t state = 0;
    uint32_t before = pare_utf8_next(s, n, &len);
    for (at = len; at < n && before != PARE_NO_CHAR; at += len) {
        const uint32_t c = pare_utf8_next(s + at, n - at, &len);
        if (c == PARE_NO_CHAR ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)c, &state))
            break;
        before = c;
    }
    return at;
}

void pare_charsmap_apply(pare_buffer *out, const pare_charsmap *m, const char *s, size_t n)
{
    pare_piece with;
    for (size_t at = 0, whole; at < n; at += whole) {
        whole = grapheme(s + at, n - at);
        if (whole < 6 && find(&with, m, s + at, whole)) {
            pare_buffer_put(out, with.s, with.n);
            continue;
        }
        for (size_t i = at, len; i < at + whole; i += len) {
            (void)pare_utf8_next(s + i, at + whole - i, &len);
            if (find(&with, m, s + i, len))
                pare_buffer_put(out, with.s, with.n);
            else
                pare_buffer_put(out, s + i, len);
        }
    }
}
