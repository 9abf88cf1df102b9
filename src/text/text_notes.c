/* What a user should be told about a text: bytes that are not UTF-8, words that are dropped. */
#include "tokenizer.h"
#include "unicode.h"
#include <string.h>

void pare_text_note_utf8(pare_text_notes *n, const char *text, size_t bytes)
{
    for (size_t at = 0, len, line = 1; at < bytes; at += len) {
        line += text[at] == '\n';
        if (pare_utf8_next(text + at, bytes - at, &len) != PARE_NO_CHAR) continue;
        if (n->invalid++ > 0) continue;
        n->invalid_line = line;
        n->invalid_byte = at;
    }
}

/* The word lower-cased as the encoder does it; 0 where it is longer than any word of a list can
 * sensibly be (the encoder then looks for it in vain, too). */
static size_t lower(char *buf, size_t capacity, const char *word, size_t bytes)
{
    size_t n = 0;
    for (size_t at = 0, len; at < bytes; at += len) {
        const uint32_t c = pare_utf8_next(word + at, bytes - at, &len);
        if (n + 4 > capacity) return 0;
        if (c == PARE_NO_CHAR)
            buf[n++] = word[at];
        else
            n += pare_utf8_put(buf + n, pare_char_lower(c));
    }
    return n;
}

static void note_word(pare_text_notes *n, const pare_tokenizer *t, const char *word, size_t bytes)
{
    static const pare_piece nothing = {"", 0};
    char buf[1024];
    const size_t len = lower(buf, sizeof buf, word, bytes);
    n->words++;
    if (len && pare_text_map_find(&t->by_text, (pare_piece){buf, len}, nothing) >= 0) return;
    if (n->unknown++ > 0) return;
    const size_t most = sizeof n->first_unknown - 1;
    size_t keep = 0;
    for (size_t step; keep < bytes; keep += step) { /* whole characters */
        (void)pare_utf8_next(word + keep, bytes - keep, &step);
        if (keep + step > most) break;
    }
    memcpy(n->first_unknown, word, keep);
    n->first_unknown[keep] = '\0';
}

void pare_text_note_words(pare_text_notes *n, const pare_tokenizer *t, const char *text,
                          size_t bytes)
{
    if (t->kind != PARE_TOK_WORDS) return;
    size_t from = 0;
    for (size_t at = 0, len = 1; at <= bytes; at += len) {
        const uint32_t c = at < bytes ? pare_utf8_next(text + at, bytes - at, &len) : ' ';
        if (c == PARE_NO_CHAR || pare_char_kind(c) != PARE_CHAR_SPACE) continue;
        if (at > from) note_word(n, t, text + from, at - from);
        from = at + len;
    }
}
