/* Where GPT-2 cuts text before it merges: the first match of
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * Every byte falls into some piece, also bytes that are not UTF-8 (they count as "other"). */
#include "tokenizer.h"
#include "unicode.h"
#include <string.h>

static size_t contraction(const char *text, size_t bytes)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    if (text[0] != '\'') return 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t n = strlen(endings[i]);
        if (n <= bytes && memcmp(text, endings[i], n) == 0) return n;
    }
    return 0;
}

/* Bytes of the longest run of one class from `at`; *last: where its last character begins. */
static size_t run_of(const char *text, size_t bytes, size_t at, pare_char_class kind, size_t *last)
{
    const size_t from = at;
    *last = at;
    while (at < bytes) {
        size_t n;
        if (pare_char_kind(pare_utf8_next(text + at, bytes - at, &n)) != kind) break;
        *last = at;
        at += n;
    }
    return at - from;
}

size_t pare_bpe_cut(const char *text, size_t bytes)
{
    const size_t short_form = contraction(text, bytes);
    if (short_form) return short_form;
    const size_t blank = text[0] == ' ' && bytes > 1;
    size_t length, last;
    const pare_char_class kind =
        pare_char_kind(pare_utf8_next(text + blank, bytes - blank, &length));
    if (kind != PARE_CHAR_SPACE) return blank + run_of(text, bytes, blank, kind, &last);
    /* White space leaves its last character to what follows it, when more than that is there. */
    const size_t run = run_of(text, bytes, 0, PARE_CHAR_SPACE, &last);
    return run == bytes || last == 0 ? run : last;
}
