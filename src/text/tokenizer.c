/* tokenizer.c - chooses the tokenizer: by the model's word, or by the content of a file. */
#include "base/support.h"
#include "tokenizer.h"
#include <string.h>

static pare_status read_bytes(pare_tokenizer *t, pare_arena *a, const char *vocab, size_t bytes,
                              pare_err *err)
{
    (void)vocab;
    (void)bytes;
    t->size = 256;
    t->piece = pare_alloc(a, t->size, sizeof *t->piece);
    if (!t->piece) return pare_no_memory(err);
    for (size_t b = 0; b < 256; b++) t->piece[b] = (pare_piece){&t->byte[b], 1};
    return PARE_OK;
}

static pare_status encode_bytes(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                                const char *text, size_t bytes, pare_err *err)
{
    (void)scratch;
    (void)t;
    (void)err;
    for (size_t i = 0; i < bytes; i++) out->v[out->n++] = (uint8_t)text[i];
    return PARE_OK;
}

static pare_status read_json(pare_tokenizer *t, pare_arena *a, const char *vocab, size_t bytes,
                             pare_err *err)
{
    t->json = pare_alloc(a, 1, sizeof *t->json);
    if (!t->json) return pare_no_memory(err);
    const pare_status st = pare_json_tokenizer_read(t->json, a, vocab, bytes, err);
    t->size = t->json->size;
    t->notes = t->json->notes;
    return st;
}

static pare_status encode_json(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                               const char *text, size_t bytes, pare_err *err)
{
    pare_id_list ids = {.arena = scratch};
    const pare_status st =
        pare_json_tokenizer_encode(&ids, scratch, t->json, (pare_piece){text, bytes}, err);
    *out = (pare_ids){ids.v, ids.n};
    return st;
}

static const struct {
    bool from_file;
    pare_status (*read)(pare_tokenizer *, pare_arena *, const char *, size_t, pare_err *);
    pare_status (*encode)(pare_ids *, pare_arena *, const pare_tokenizer *, const char *, size_t,
                          pare_err *);
} kinds[] = {[PARE_TOK_GPT2] = {true, pare_bpe_read, pare_bpe_encode},
             [PARE_TOK_LLAMA2C] = {true, pare_llama2c_read, pare_llama2c_encode},
             [PARE_TOK_WORDS] = {true, pare_words_read, pare_words_encode},
             [PARE_TOK_BYTES] = {false, read_bytes, encode_bytes},
             [PARE_TOK_JSON] = {true, read_json, encode_json}};

pare_status pare_tokenizer_new(pare_tokenizer **out, pare_arena *a, pare_tokenizer_kind kind,
                               const uint8_t *vocab, size_t bytes, pare_err *err)
{
    *out = NULL;
    pare_tokenizer *t = pare_alloc(a, 1, sizeof *t);
    if (!t) return pare_no_memory(err);
    if ((size_t)kind >= sizeof kinds / sizeof *kinds || !kinds[kind].read)
        return pare_fail(
            err, PARE_ERR_INPUT,
            "the model has no tokenizer: import it again with a vocabulary, or give ids");
    t->kind = kind;
    t->begin = t->end = -1;
    for (size_t b = 0; b < 256; b++) t->byte[b] = (char)b;
    if (kinds[kind].from_file && (!vocab || bytes == 0))
        return pare_fail(err, PARE_ERR_INPUT, "the vocabulary is empty");
    const pare_status st = kinds[kind].read(t, a, (const char *)vocab, bytes, err);
    if (st == PARE_OK) *out = t;
    return st;
}

/* Reads the file to the end as one kind; whether that kind would do. */
static pare_status try_kind(pare_tokenizer_kind kind, const uint8_t *vocab, size_t bytes,
                            pare_err *err)
{
    pare_arena *const scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    pare_tokenizer *t = NULL;
    const pare_status st = pare_tokenizer_new(&t, scratch, kind, vocab, bytes, err);
    pare_arena_free(scratch);
    return st;
}

pare_status pare_vocab_detect(pare_tokenizer_kind *kind, const uint8_t *vocab, size_t bytes,
                              pare_err *err)
{
    static const pare_tokenizer_kind order[] = {PARE_TOK_LLAMA2C, PARE_TOK_GPT2, PARE_TOK_WORDS};
    size_t blank = 0;
    while (blank < bytes && memchr(" \t\r\n", vocab[blank], 4)) blank++;
    *kind = PARE_TOK_NONE;
    /* A file that says what it is gets the message of that kind. */
    pare_tokenizer_kind sure = PARE_TOK_NONE;
    if (bytes >= 8 && memcmp(vocab, "#version", 8) == 0) sure = PARE_TOK_GPT2;
    if (blank < bytes && vocab[blank] == '{') sure = PARE_TOK_JSON;
    if (sure != PARE_TOK_NONE) {
        const pare_status st = try_kind(sure, vocab, bytes, err);
        if (st == PARE_OK) *kind = sure;
        if (sure == PARE_TOK_GPT2 || st != PARE_ERR_INPUT) return st;
        /* A list of words may begin with a brace. */
        pare_err ignored;
        if (bytes > 1 && vocab[blank + 1 < bytes ? blank + 1 : blank] != '\n') return st;
        if (try_kind(PARE_TOK_WORDS, vocab, bytes, &ignored) != PARE_OK) return st;
        *kind = PARE_TOK_WORDS;
        return PARE_OK;
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const pare_status st = try_kind(order[i], vocab, bytes, err);
        if (st == PARE_OK) *kind = order[i];
        if (st != PARE_ERR_INPUT) return st;
    }
    if (memmem(vocab, bytes, "\n##", 3)) return try_kind(PARE_TOK_WORDS, vocab, bytes, err);
    return pare_fail(
        err, PARE_ERR_INPUT,
        "not a vocabulary: neither a tokenizer.json nor GPT-2's vocab.bpe (lines of two "
        "pieces) nor llama2.c's tokenizer.bin nor a list of one word a line");
}

bool pare_next_line(pare_piece *line, pare_piece *rest)
{
    if (rest->n == 0) return false;
    const char *const newline = memchr(rest->s, '\n', rest->n);
    const size_t length = newline ? (size_t)(newline - rest->s) : rest->n;
    const size_t taken = newline ? length + 1 : length;
    *line = (pare_piece){rest->s, length};
    if (length && line->s[length - 1] == '\r') line->n--;
    *rest = (pare_piece){rest->s + taken, rest->n - taken};
    return true;
}

size_t pare_tokenizer_size(const pare_tokenizer *t)
{
    return t->size;
}

const char *pare_tokenizer_notes(const pare_tokenizer *t)
{
    return t->notes;
}

pare_status pare_encode(int64_t **ids, size_t *n, pare_arena *a, const pare_tokenizer *t,
                        const char *text, size_t bytes, pare_err *err)
{
    *ids = NULL;
    *n = 0;
    size_t capacity;
    if (!pare_add(&capacity, bytes, 3)) return pare_no_memory(err);
    pare_arena *scratch = pare_arena_new(); /* the worst case is far larger than the result */
    if (!scratch) return pare_no_memory(err);
    const bool grows = t->kind == PARE_TOK_JSON; /* into a list of its own */
    pare_ids buf = {pare_alloc(scratch, grows ? 1 : capacity, sizeof(int32_t)), 0};
    pare_status st =
        buf.v ? kinds[t->kind].encode(&buf, scratch, t, text, bytes, err) : pare_no_memory(err);
    if (st == PARE_OK) {
        PARE_ASSERT(grows || buf.n <= capacity);
        int64_t *v = pare_alloc(a, buf.n ? buf.n : 1, sizeof *v);
        if (!v) st = pare_no_memory(err);
        for (size_t i = 0; v && i < buf.n; i++) v[i] = buf.v[i];
        *ids = v;
        *n = v ? buf.n : 0;
    }
    pare_arena_free(scratch);
    return st;
}

const char *pare_decode(const pare_tokenizer *t, int64_t previous, int64_t id, size_t *bytes)
{
    *bytes = 0;
    if (id < 0 || (uint64_t)id >= t->size) return "";
    const pare_piece p = t->kind == PARE_TOK_LLAMA2C ? pare_llama2c_decode(t, previous, id)
                         : t->kind == PARE_TOK_JSON
                             ? pare_json_tokenizer_decode(t->json, previous, id)
                             : t->piece[id];
    *bytes = p.n;
    return p.s;
}
