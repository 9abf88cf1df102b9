/* tokenizer_llama2c.c - llama2.c's tokenizer.bin: int32 longest token, then per token float score,
 * int32 length, bytes, all little-endian; how many tokens there are, only the end of the file
 * tells.
 *
 * Encoding: begin-of-text, a blank, then characters; what the vocabulary lacks becomes its bytes
 * (ids 3 .. 258); then the pair whose merge has the best score goes first. Of entries with equal text
 * the last counts: those in front are the bytes, as the models were trained. */
#include "tokenizer.h"
#include "base/support.h"
#include "bpe_merge.h"
#include <math.h>
#include <string.h>

enum { BEGIN = 1, END = 2, FIRST_BYTE = 3, SPECIAL = FIRST_BYTE + 256 };
static const pare_piece NOTHING = {"", 0};

/* Goes through the file; with t->piece set, stores the tokens as well. */
static pare_status scan_tokens(pare_tokenizer *t, const char *vocab, size_t bytes, pare_err *err)
{
    int32_t longest;
    if (bytes < 4) return pare_fail(err, PARE_ERR_INPUT, "tokenizer.bin has only %zu bytes", bytes);
    memcpy(&longest, vocab, 4);
    t->size = 0;
    for (size_t at = 4; at < bytes; t->size++) {
        float score = 0;
        int32_t length = -1;
        if (bytes - at >= 8) {
            memcpy(&score, vocab + at, 4);
            memcpy(&length, vocab + at + 4, 4);
        }
        if (length < 0 || length > longest || bytes - at - 8 < (size_t)length)
            return pare_fail(err, PARE_ERR_INPUT,
                             "tokenizer.bin: token %zu at byte %zu of %zu is cut off or garbled",
                             t->size, at, bytes);
        if (!isfinite(score))
            return pare_fail(err, PARE_ERR_INPUT, "tokenizer.bin: the score of token %zu is %g",
                             t->size, (double)score);
        if (t->piece) {
            t->piece[t->size] = (pare_piece){vocab + at + 8, (size_t)length};
            t->score[t->size] = score;
        }
        at += 8 + (size_t)length;
    }
    return PARE_OK;
}

pare_status pare_llama2c_read(pare_tokenizer *t, pare_arena *a, const char *vocab, size_t bytes,
                              pare_err *err)
{
    pare_status st = scan_tokens(t, vocab, bytes, err);
    if (st) return st;
    if (t->size < SPECIAL || t->size > INT32_MAX)
        return pare_fail(err, PARE_ERR_INPUT,
                         "tokenizer.bin holds %zu tokens; %d are needed for the bytes alone",
                         t->size, SPECIAL);
    t->piece = pare_alloc(a, t->size, sizeof *t->piece);
    t->score = pare_alloc(a, t->size, sizeof *t->score);
    if (!t->piece || !t->score) return pare_no_memory(err);
    st = scan_tokens(t, vocab, bytes, err);
    if (st) return st;
    t->by_text = pare_text_map_new(a, t->piece, t->size);
    if (!t->by_text.slot) return pare_no_memory(err);
    size_t twins = 0;
    for (size_t id = 0; id < t->size; id++) {
        if (t->piece[id].n == 0) continue;
        if (pare_text_map_find(&t->by_text, t->piece[id], NOTHING) >= 0) twins++;
        pare_text_map_set(&t->by_text, id);
    }
    if (!twins) return PARE_OK;
    const char *const line = pare_sprintf(
        a, "tokenizer.bin has %zu entries twice; of equal ones the last counts", twins);
    return line ? pare_add_note(&t->notes, a, line, err) : pare_no_memory(err);
}

static int32_t pair_of(const void *self, int32_t left, int32_t right, double *key)
{
    const pare_tokenizer *t = self;
    const int64_t id = pare_text_map_find(&t->by_text, t->piece[left], t->piece[right]);
    if (id >= 0) *key = (double)t->score[id];
    return (int32_t)id;
}

static void put_character(pare_ids *out, const pare_tokenizer *t, const char *s, size_t n)
{
    const int64_t id = pare_text_map_find(&t->by_text, (pare_piece){s, n}, NOTHING);
    if (id >= 0) {
        out->v[out->n++] = (int32_t)id;
        return;
    }
    for (size_t i = 0; i < n; i++) out->v[out->n++] = (uint8_t)s[i] + FIRST_BYTE;
}

pare_status pare_llama2c_encode(pare_ids *out, pare_arena *scratch, const pare_tokenizer *t,
                                const char *text, size_t bytes, pare_err *err)
{
    pare_merger m = {.pair = pair_of, .self = t, .arena = scratch};
    out->v[out->n++] = BEGIN;
    if (bytes == 0) return PARE_OK;
    put_character(out, t, " ", 1);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = 1; /* a character: a byte and at most three that continue it */
        while (at + n < bytes && n < 4 && ((uint8_t)text[at + n] & 0xC0) == 0x80) n++;
        put_character(out, t, text + at, n);
    }
    size_t n = out->n - 1; /* begin-of-text merges with nothing */
    const pare_status st = pare_merge(&m, out->v + 1, &n, err);
    out->n = n + 1;
    return st;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

pare_piece pare_llama2c_decode(const pare_tokenizer *t, int64_t previous, int64_t id)
{
    pare_piece p = t->piece[id];
    if (id == BEGIN || id == END) return NOTHING; /* control tokens, not text */
    if (previous == BEGIN && p.n && p.s[0] == ' ') return (pare_piece){p.s + 1, p.n - 1};
    if (p.n == 6 && memcmp(p.s, "<0x", 3) == 0 && p.s[5] == '>') {
        const int high = hex_digit(p.s[3]), low = hex_digit(p.s[4]);
        if (high >= 0 && low >= 0) p = (pare_piece){&t->byte[16 * high + low], 1};
    }
    return p;
}
