/* tokenizer_gpt2.c - GPT-2's byte-pair encoding from vocab.bpe alone.
 *
 * A line "a b" of the file says that a and b merge; bytes are written as printable characters.
 * Ids: the 256 bytes in the order of those characters, one per line, then <|endoftext|>. So an
 * id is also a rank: of two possible merges the one with the smaller result comes first. */
#include "tokenizer.h"
#include "bpe_merge.h"
#include "unicode.h"
#include <string.h>

static const char END_OF_TEXT[] = "<|endoftext|>";
#define END_BYTES (sizeof END_OF_TEXT - 1)

/* The bytes that are printed as themselves; all others become U+0100, U+0101, ... */
static bool is_printed(unsigned b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

/* id_of[byte], and byte_of[character] for characters below U+0144 (-1: stands for no byte). */
typedef struct byte_order {
    int32_t id_of[256];
    int16_t byte_of[0x144];
} byte_order;

static byte_order make_byte_order(void)
{
    byte_order o;
    for (size_t c = 0; c < 0x144; c++) o.byte_of[c] = -1;
    int32_t id = 0;
    for (unsigned b = 0; b < 256; b++)
        if (is_printed(b)) {
            o.id_of[b] = id++;
            o.byte_of[b] = (int16_t)b;
        }
    unsigned c = 0x100;
    for (unsigned b = 0; b < 256; b++)
        if (!is_printed(b)) {
            o.id_of[b] = id++;
            o.byte_of[c++] = (int16_t)b;
        }
    return o;
}

/* The bytes that a piece of a line stands for; false when a character stands for none. */
static bool unmap(char *out, size_t *n, const byte_order *o, const char *s, size_t bytes)
{
    *n = 0;
    for (size_t i = 0, len; i < bytes; i += len) {
        const uint32_t c = pare_utf8_next(s + i, bytes - i, &len);
        if (c >= 0x144 || o->byte_of[c] < 0) return false;
        out[(*n)++] = (char)o->byte_of[c];
    }
    return *n > 0;
}

pare_status pare_bpe_read(pare_tokenizer *t, pare_arena *a, const char *vocab, size_t bytes,
                          pare_err *err)
{
    static const pare_piece nothing = {"", 0};
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++) lines += vocab[i] == '\n';
    if (lines > INT32_MAX - 300)
        return pare_fail(err, PARE_ERR_INPUT, "vocab.bpe has too many lines: %zu", lines);
    const size_t capacity = lines + 257;
    const byte_order order = make_byte_order();
    char *pool = pare_alloc(a, bytes + 1, 1); /* the merged tokens: no more than the file has */
    t->piece = pare_alloc(a, capacity, sizeof *t->piece);
    t->by_text = pare_text_map_new(a, t->piece, capacity);
    t->merges = pare_pair_map_new(a, capacity);
    if (!pool || !t->piece || !t->by_text.slot || !t->merges.key) return pare_no_memory(err);
    for (size_t b = 0; b < 256; b++) t->piece[order.id_of[b]] = (pare_piece){&t->byte[b], 1};
    for (t->size = 0; t->size < 256; t->size++) {
        const int64_t twin = pare_text_map_put(&t->by_text, t->size);
        PARE_ASSERT(twin < 0);
    }

    /* Every line is a merge. A part must be a byte or come from an earlier line: this is what makes
     * "smallest id first" the order of the file. */
    pare_piece line, rest = {vocab, bytes};
    for (size_t number = 1; pare_next_line(&line, &rest); number++) {
        if (number == 1 && line.n >= 8 && memcmp(line.s, "#version", 8) == 0) continue;
        const char *blank = memchr(line.s, ' ', line.n);
        const size_t first = blank ? (size_t)(blank - line.s) : line.n;
        size_t left_n, right_n;
        if (!blank || !unmap(pool, &left_n, &order, line.s, first) ||
            !unmap(pool + left_n, &right_n, &order, blank + 1, line.n - first - 1))
            return pare_fail(err, PARE_ERR_INPUT,
                             "vocab.bpe line %zu: not two pieces with a blank between", number);
        const int64_t left = pare_text_map_find(&t->by_text, (pare_piece){pool, left_n}, nothing);
        const int64_t right =
            pare_text_map_find(&t->by_text, (pare_piece){pool + left_n, right_n}, nothing);
        if (left < 0 || right < 0)
            return pare_fail(err, PARE_ERR_INPUT,
                             "vocab.bpe line %zu: its %s piece is made by no earlier line", number,
                             left < 0 ? "first" : "second");
        t->piece[t->size] = (pare_piece){pool, left_n + right_n};
        if (pare_text_map_put(&t->by_text, t->size) >= 0)
            return pare_fail(err, PARE_ERR_INPUT, "vocab.bpe line %zu: repeats an earlier token",
                             number);
        pare_pair_map_put(&t->merges, (int32_t)left, (int32_t)right, (int32_t)t->size);
        t->size++;
        pool += left_n + right_n;
    }
    if (t->size == 256) return pare_fail(err, PARE_ERR_INPUT, "vocab.bpe holds no merges");
    t->piece[t->size++] = (pare_piece){END_OF_TEXT, END_BYTES};
    return PARE_OK;
}

/* ---- where text is cut before it is merged --------------------------------------------------- */

/* Bytes of the longest run of one class from `at`; *last: where its last character begins. */
static size_t class_run(const char *text, size_t bytes, size_t at, pare_char_class kind,
                        size_t *last)
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

/* The first match of
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Every byte falls into some piece, also bytes that are not UTF-8 (they count as "other"). */
size_t pare_bpe_cut(const char *text, size_t bytes)
{
    static const char *const contractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; text[0] == '\'' && i < sizeof contractions / sizeof *contractions; i++) {
        const size_t n = strlen(contractions[i]);
        if (n <= bytes && memcmp(text, contractions[i], n) == 0) return n;
    }
    const size_t blank = text[0] == ' ' && bytes > 1;
    size_t length, last;
    const pare_char_class kind =
        pare_char_kind(pare_utf8_next(text + blank, bytes - blank, &length));
    if (kind != PARE_CHAR_SPACE) return blank + class_run(text, bytes, blank, kind, &last);
    /* White space leaves its last character to what follows it, when more than that is there. */
    const size_t run = class_run(text, bytes, 0, PARE_CHAR_SPACE, &last);
    return run == bytes || last == 0 ? run : last;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static int32_t pair_of(const void *self, int32_t left, int32_t right, double *key)
{
    const int32_t id = pare_pair_map_find(self, left, right);
    *key = -(double)id;
    return id;
}

pare_status pare_bpe_encode(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                            const char *text, size_t bytes, pare_err *err)
{
    const byte_order o = make_byte_order();
    pare_merger m = {.pair = pair_of, .self = &t->merges, .arena = scratch};
    const char *const end = text + bytes;
    while (text < end) {
        const char *const mark = memmem(text, (size_t)(end - text), END_OF_TEXT, END_BYTES);
        const char *const plain_end = mark ? mark : end;
        for (size_t n; text < plain_end; text += n) {
            n = pare_bpe_cut(text, (size_t)(plain_end - text));
            for (size_t i = 0; i < n; i++) out->v[out->n + i] = o.id_of[(uint8_t)text[i]];
            size_t ids = n;
            const pare_status st = pare_merge(&m, out->v + out->n, &ids, err);
            if (st) return st;
            out->n += ids;
        }
        if (mark) {
            out->v[out->n++] = (int32_t)t->size - 1;
            text += END_BYTES;
        }
    }
    return PARE_OK;
}
