/* Which tokenizer: by the model's word, or by the look of a file. */
#include "base/support.h"
#include "tokenizer.h"
#include <string.h>

static pare_status read_bytes(pare_tokenizer *t, pare_arena *a, pare_err *err)
{
    t->size = 256;
    t->piece = pare_alloc(a, t->size, sizeof *t->piece);
    if (!t->piece) return pare_no_memory(err);
    for (size_t b = 0; b < 256; b++) t->piece[b] = (pare_piece){&t->byte[b], 1};
    return PARE_OK;
}

static pare_status read_vocab(pare_tokenizer *t, pare_arena *a, const char *vocab, size_t bytes,
                              pare_err *err)
{
    switch (t->kind) {
    case PARE_TOK_GPT2:
        return pare_bpe_read(t, a, vocab, bytes, err);
    case PARE_TOK_LLAMA2C:
        return pare_llama2c_read(t, a, vocab, bytes, err);
    case PARE_TOK_WORDS:
        return pare_words_read(t, a, vocab, bytes, err);
    case PARE_TOK_BYTES:
        return read_bytes(t, a, err);
    case PARE_TOK_NONE:
        break;
    }
    return pare_fail(err, PARE_ERR_INPUT,
                     "the model has no tokenizer: import it again with --vocab, or give ids");
}

pare_status pare_tokenizer_new(pare_tokenizer **out, pare_arena *a, pare_tokenizer_kind kind,
                               const uint8_t *vocab, size_t bytes, pare_err *err)
{
    *out = NULL;
    pare_tokenizer *t = pare_alloc(a, 1, sizeof *t);
    if (!t) return pare_no_memory(err);
    t->kind = kind;
    t->begin = t->end = -1;
    for (size_t b = 0; b < 256; b++) t->byte[b] = (char)b;
    const bool needs_file =
        kind == PARE_TOK_GPT2 || kind == PARE_TOK_LLAMA2C || kind == PARE_TOK_WORDS;
    if (needs_file && (!vocab || bytes == 0))
        return pare_fail(err, PARE_ERR_INPUT, "the vocabulary is empty");
    const pare_status st = read_vocab(t, a, (const char *)vocab, bytes, err);
    if (st == PARE_OK) *out = t;
    return st;
}

/* True when the bytes read as that kind; the reason why not stays in err. */
static pare_status try_kind(pare_tokenizer_kind kind, const uint8_t *vocab, size_t bytes,
                            pare_err *err)
{
    pare_arena *scratch = pare_arena_new();
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
    *kind = PARE_TOK_NONE;
    /* A file that says what it is gets the message of that kind. */
    if (bytes >= 8 && memcmp(vocab, "#version", 8) == 0) {
        const pare_status st = try_kind(PARE_TOK_GPT2, vocab, bytes, err);
        if (st == PARE_OK) *kind = PARE_TOK_GPT2;
        return st;
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const pare_status st = try_kind(order[i], vocab, bytes, err);
        if (st == PARE_OK) *kind = order[i];
        if (st != PARE_ERR_INPUT) return st;
    }
    return pare_fail(err, PARE_ERR_INPUT,
                     "not a vocabulary: neither GPT-2's vocab.bpe (lines of two pieces) nor "
                     "llama2.c's tokenizer.bin nor a list of one word a line");
}

size_t pare_tokenizer_size(const pare_tokenizer *t)
{
    return t->size;
}

static pare_status encode_into(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                               const char *text, size_t bytes, pare_err *err)
{
    switch (t->kind) {
    case PARE_TOK_GPT2:
        return pare_bpe_encode(out, scratch, t, text, bytes, err);
    case PARE_TOK_LLAMA2C:
        return pare_llama2c_encode(out, scratch, t, text, bytes, err);
    case PARE_TOK_WORDS:
        return pare_words_encode(out, scratch, t, text, bytes, err);
    case PARE_TOK_BYTES:
    case PARE_TOK_NONE:
        break;
    }
    for (size_t i = 0; i < bytes; i++) out->v[out->n++] = (uint8_t)text[i];
    return PARE_OK;
}

static pare_status encode_in(pare_arena *scratch, int64_t **ids, size_t *n, pare_arena *a,
                             const pare_tokenizer *t, const char *text, size_t bytes, pare_err *err)
{
    size_t room;
    if (!pare_add(&room, bytes, 3)) return pare_no_memory(err);
    pare_ids buf = {pare_alloc(scratch, room, sizeof(int32_t)), 0};
    if (!buf.v) return pare_no_memory(err);
    const pare_status st = encode_into(&buf, scratch, t, text, bytes, err);
    if (st) return st;
    PARE_ASSERT(buf.n <= room);
    int64_t *v = pare_alloc(a, buf.n ? buf.n : 1, sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t i = 0; i < buf.n; i++) v[i] = buf.v[i];
    *ids = v;
    *n = buf.n;
    return PARE_OK;
}

pare_status pare_encode(int64_t **ids, size_t *n, pare_arena *a, const pare_tokenizer *t,
                        const char *text, size_t bytes, pare_err *err)
{
    *ids = NULL;
    *n = 0;
    pare_arena *scratch = pare_arena_new(); /* the worst case is far larger than the result */
    if (!scratch) return pare_no_memory(err);
    const pare_status st = encode_in(scratch, ids, n, a, t, text, bytes, err);
    pare_arena_free(scratch);
    return st;
}

const char *pare_decode(const pare_tokenizer *t, int64_t previous, int64_t id, size_t *bytes)
{
    *bytes = 0;
    if (id < 0 || (uint64_t)id >= t->size) return "";
    const pare_piece p =
        t->kind == PARE_TOK_LLAMA2C ? pare_llama2c_decode(t, previous, id) : t->piece[id];
    *bytes = p.n;
    return p.s;
}
