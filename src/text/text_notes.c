/* text_notes.c - what a user should know about a text: bytes that are not UTF-8, words that are
 * dropped. */
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
static size_t lower_case(char *buf, size_t capacity, const char *word, size_t bytes)
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

void pare_text_note_words(pare_text_notes *n, const pare_tokenizer *t, const char *text,
                          size_t bytes)
{
    static const pare_piece nothing = {"", 0};
    char lower[1024];
    size_t from = 0;
    if (t->kind != PARE_TOK_WORDS) return;
    for (size_t at = 0, len = 1; at <= bytes; at += len) {
        const uint32_t c = at < bytes ? pare_utf8_next(text + at, bytes - at, &len) : ' ';
        if (c == PARE_NO_CHAR || pare_char_kind(c) != PARE_CHAR_SPACE) continue;
        const char *const word = text + from;
        const size_t word_bytes = at - from;
        from = at + len;
        if (word_bytes == 0) continue;
        n->words++;
        const size_t lower_bytes = lower_case(lower, sizeof lower, word, word_bytes);
        if (lower_bytes &&
            pare_text_map_find(&t->by_text, (pare_piece){lower, lower_bytes}, nothing) >= 0)
            continue;
        if (n->unknown++ > 0) continue;
        size_t shown = 0;
        for (size_t step; shown < word_bytes; shown += step) { /* whole characters */
            (void)pare_utf8_next(word + shown, word_bytes - shown, &step);
            if (shown + step > sizeof n->first_unknown - 1) break;
        }
        memcpy(n->first_unknown, word, shown);
        n->first_unknown[shown] = '\0';
    }
}
