/* A list of words: the id is the number of the line. Text is lower-cased and split on white space,
 * words that are not in the list are dropped, and the rest stands between [CLS] and [SEP]. */
#include "base/support.h"
#include "tokenizer.h"
#include "unicode.h"
#include <string.h>

static const pare_piece NOTHING = {"", 0};

static pare_status check_line(const char *s, size_t n, size_t line, pare_err *err)
{
    for (size_t i = 0, len; i < n; i += len) {
        const uint32_t c = pare_utf8_next(s + i, n - i, &len);
        if (c == PARE_NO_CHAR || c < 32 || c == ' ')
            return pare_fail(err, PARE_ERR_INPUT,
                             "word list line %zu: not one word (byte %zu is 0x%02x)", line, i + 1,
                             (unsigned)(uint8_t)s[i]);
    }
    return PARE_OK;
}

static pare_status add_word(pare_tokenizer *t, const char *s, size_t n, pare_err *err)
{
    if (n && s[n - 1] == '\r') n--;
    const pare_status st = check_line(s, n, t->size + 1, err);
    if (st) return st;
    t->piece[t->size] = (pare_piece){s, n};
    /* An empty line is an id that no text has. */
    const int64_t twin = n ? pare_text_map_put(&t->by_text, t->size) : -1;
    if (twin >= 0)
        return pare_fail(err, PARE_ERR_INPUT, "word list line %zu: repeats line %zu", t->size + 1,
                         (size_t)twin + 1);
    t->size++;
    return PARE_OK;
}

pare_status pare_words_read(pare_tokenizer *t, pare_arena *a, const char *vocab, size_t bytes,
                            pare_err *err)
{
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++) lines += vocab[i] == '\n';
    if (lines > INT32_MAX)
        return pare_fail(err, PARE_ERR_INPUT, "word list has too many lines: %zu", lines);
    t->piece = pare_alloc(a, lines, sizeof *t->piece);
    if (!t->piece) return pare_no_memory(err);
    t->by_text = pare_text_map_new(a, t->piece, lines);
    if (!t->by_text.slot) return pare_no_memory(err);
    for (size_t at = 0, n; at < bytes; at += n + 1) {
        const char *end = memchr(vocab + at, '\n', bytes - at);
        n = end ? (size_t)(end - (vocab + at)) : bytes - at;
        const pare_status st = add_word(t, vocab + at, n, err);
        if (st) return st;
    }
    t->begin = pare_text_map_find(&t->by_text, (pare_piece){"[CLS]", 5}, NOTHING);
    t->end = pare_text_map_find(&t->by_text, (pare_piece){"[SEP]", 5}, NOTHING);
    return PARE_OK;
}

pare_status pare_words_encode(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                              const char *text, size_t bytes, pare_err *err)
{
    size_t room, word = 0;
    /* Lower case may be longer (U+023A: two bytes become three), never twice as long. */
    if (!pare_mul(&room, bytes, 2) || !pare_add(&room, room, 4)) return pare_no_memory(err);
    char *buf = pare_alloc(scratch, room, 1);
    if (!buf) return pare_no_memory(err);
    if (t->begin >= 0) out->v[out->n++] = (int32_t)t->begin;
    for (size_t at = 0, len = 1; at <= bytes; at += len) {
        const uint32_t c = at < bytes ? pare_utf8_next(text + at, bytes - at, &len) : ' ';
        if (c == PARE_NO_CHAR) {
            buf[word++] = text[at];
        } else if (pare_char_kind(c) != PARE_CHAR_SPACE) {
            word += pare_utf8_put(buf + word, pare_char_lower(c));
        } else {
            const int64_t id =
                word ? pare_text_map_find(&t->by_text, (pare_piece){buf, word}, NOTHING) : -1;
            if (id >= 0) out->v[out->n++] = (int32_t)id;
            word = 0;
        }
    }
    if (t->end >= 0) out->v[out->n++] = (int32_t)t->end;
    return PARE_OK;
}
