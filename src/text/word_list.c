/* word_list.c - a list of words: the id is the number of the line. Text is lower-cased and split
 * on white space, words that are not in the list are dropped, and the rest stands between [CLS]
 * and [SEP]. */
#include "base/support.h"
#include "tokenizer.h"
#include "unicode.h"
#include <string.h>

static const pare_piece NOTHING = {"", 0};

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
    pare_piece line, rest = {vocab, bytes};
    for (; pare_next_line(&line, &rest); t->size++) {
        if (line.n > 2 && memcmp(line.s, "##", 2) == 0)
            return pare_fail(err, PARE_ERR_INPUT,
                             "line %zu, \"%.*s\", is a part of a word: this is BERT's vocab.txt "
                             "(WordPiece), not a word list; give the folder that it is in",
                             t->size + 1, line.n < 40 ? (int)line.n : 40, line.s);
        for (size_t i = 0, len; i < line.n; i += len) {
            const uint32_t c = pare_utf8_next(line.s + i, line.n - i, &len);
            if (c == PARE_NO_CHAR || c < 32 || c == ' ')
                return pare_fail(err, PARE_ERR_INPUT,
                                 "word list line %zu: not one word (byte %zu is 0x%02x)",
                                 t->size + 1, i + 1, (unsigned)(uint8_t)line.s[i]);
        }
        t->piece[t->size] = line;
        /* An empty line is an id that no text has. */
        const int64_t twin = line.n ? pare_text_map_put(&t->by_text, t->size) : -1;
        if (twin >= 0)
            return pare_fail(err, PARE_ERR_INPUT, "word list line %zu: repeats line %zu",
                             t->size + 1, (size_t)twin + 1);
    }
    t->begin = pare_text_map_find(&t->by_text, (pare_piece){"[CLS]", 5}, NOTHING);
    t->end = pare_text_map_find(&t->by_text, (pare_piece){"[SEP]", 5}, NOTHING);
    return PARE_OK;
}

pare_status pare_words_encode(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                              const char *text, size_t bytes, pare_err *err)
{
    size_t capacity, word = 0;
    /* Lower case may be longer (U+023A: two bytes become three), never twice as long. */
    if (!pare_mul(&capacity, bytes, 2) || !pare_add(&capacity, capacity, 4))
        return pare_no_memory(err);
    char *buf = pare_alloc(scratch, capacity, 1);
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
