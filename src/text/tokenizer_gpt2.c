/* GPT-2's byte-pair encoding from vocab.bpe alone.
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

typedef struct bpe_reader {
    pare_tokenizer *t;
    byte_order order;
    char *pool; /* bytes of the merged tokens, never more than the file has */
    size_t line;
} bpe_reader;

/* Enters the merge of one line. A part must be a byte or come from an earlier line: this is what
 * makes "smallest id first" the order of the file. */
static pare_status read_merge(bpe_reader *r, const char *s, size_t bytes, pare_err *err)
{
    pare_tokenizer *t = r->t;
    const char *blank = memchr(s, ' ', bytes);
    const size_t first = blank ? (size_t)(blank - s) : bytes;
    size_t left_n, right_n;
    if (!blank || !unmap(r->pool, &left_n, &r->order, s, first) ||
        !unmap(r->pool + left_n, &right_n, &r->order, blank + 1, bytes - first - 1))
        return pare_fail(err, PARE_ERR_INPUT,
                         "vocab.bpe line %zu: not two pieces with a blank between", r->line);
    const pare_piece none = {"", 0}, a = {r->pool, left_n}, b = {r->pool + left_n, right_n};
    const int64_t left = pare_text_map_find(&t->by_text, a, none);
    const int64_t right = pare_text_map_find(&t->by_text, b, none);
    if (left < 0 || right < 0)
        return pare_fail(err, PARE_ERR_INPUT,
                         "vocab.bpe line %zu: its %s piece is made by no earlier line", r->line,
                         left < 0 ? "first" : "second");
    t->piece[t->size] = (pare_piece){r->pool, left_n + right_n};
    if (pare_text_map_put(&t->by_text, t->size) >= 0)
        return pare_fail(err, PARE_ERR_INPUT, "vocab.bpe line %zu: repeats an earlier token",
                         r->line);
    pare_pair_map_put(&t->merges, (int32_t)left, (int32_t)right, (int32_t)t->size);
    t->size++;
    r->pool += left_n + right_n;
    return PARE_OK;
}

static size_t line_length(const char *s, size_t bytes)
{
    const char *end = memchr(s, '\n', bytes);
    return end ? (size_t)(end - s) : bytes;
}

static pare_status read_lines(bpe_reader *r, const char *vocab, size_t bytes, pare_err *err)
{
    for (size_t at = 0, n; at < bytes; at += n + 1) {
        n = line_length(vocab + at, bytes - at);
        const size_t text = n && vocab[at + n - 1] == '\r' ? n - 1 : n;
        r->line++;
        if (r->line == 1 && text >= 8 && memcmp(vocab + at, "#version", 8) == 0) continue;
        const pare_status st = read_merge(r, vocab + at, text, err);
        if (st) return st;
    }
    return PARE_OK;
}

pare_status pare_bpe_read(pare_tokenizer *t, pare_arena *a, const char *vocab, size_t bytes,
                          pare_err *err)
{
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++) lines += vocab[i] == '\n';
    if (lines > INT32_MAX - 300)
        return pare_fail(err, PARE_ERR_INPUT, "vocab.bpe has too many lines: %zu", lines);
    const size_t room = lines + 257;
    bpe_reader r = {t, make_byte_order(), pare_alloc(a, bytes + 1, 1), 0};
    t->piece = pare_alloc(a, room, sizeof *t->piece);
    t->by_text = pare_text_map_new(a, t->piece, room);
    t->merges = pare_pair_map_new(a, room);
    if (!r.pool || !t->piece || !t->by_text.slot || !t->merges.key) return pare_no_memory(err);
    for (size_t b = 0; b < 256; b++) t->piece[r.order.id_of[b]] = (pare_piece){&t->byte[b], 1};
    for (t->size = 0; t->size < 256; t->size++) {
        const int64_t twin = pare_text_map_put(&t->by_text, t->size);
        PARE_ASSERT(twin < 0);
    }
    const pare_status st = read_lines(&r, vocab, bytes, err);
    if (st) return st;
    if (t->size == 256) return pare_fail(err, PARE_ERR_INPUT, "vocab.bpe holds no merges");
    t->piece[t->size++] = (pare_piece){END_OF_TEXT, END_BYTES};
    return PARE_OK;
}

static int32_t pair_of(const void *self, int32_t left, int32_t right, double *key)
{
    const int32_t id = pare_pair_map_find(self, left, right);
    *key = -(double)id;
    return id;
}

static pare_status encode_plain(pare_ids *out, pare_merger *m, const byte_order *o,
                                const char *text, size_t bytes, pare_err *err)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        n = pare_bpe_cut(text + at, bytes - at);
        for (size_t i = 0; i < n; i++) out->v[out->n + i] = o->id_of[(uint8_t)text[at + i]];
        size_t ids = n;
        const pare_status st = pare_merge(m, out->v + out->n, &ids, err);
        if (st) return st;
        out->n += ids;
    }
    return PARE_OK;
}

pare_status pare_bpe_encode(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                            const char *text, size_t bytes, pare_err *err)
{
    const byte_order o = make_byte_order();
    pare_merger m = {.pair = pair_of, .self = &t->merges, .arena = scratch};
    for (size_t at = 0; at < bytes;) {
        const char *mark = memmem(text + at, bytes - at, END_OF_TEXT, END_BYTES);
        const size_t plain = mark ? (size_t)(mark - (text + at)) : bytes - at;
        const pare_status st = encode_plain(out, &m, &o, text + at, plain, err);
        if (st) return st;
        if (mark) out->v[out->n++] = (int32_t)t->size - 1;
        at += plain + (mark ? END_BYTES : 0);
    }
    return PARE_OK;
}
