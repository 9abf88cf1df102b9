/* A .txt through the model's tokenizer. For llama2.c's tokenizer a line <|endoftext|> ends a
 * story: each is stripped of white space at both ends and begins with begin-of-text, as those
 * models were trained. GPT-2's tokenizer reads <|endoftext|> as a token: the file is one text. */
#include "base/support.h"
#include "dataset.h"
#include <string.h>

static const char MARK[] = "<|endoftext|>";
#define MARK_BYTES (sizeof MARK - 1)

/* Bytes of the line at s, without its end; *whole with it. */
static size_t line_at(const char *s, size_t bytes, size_t *whole)
{
    const char *end = memchr(s, '\n', bytes);
    size_t n = end ? (size_t)(end - s) : bytes;
    *whole = end ? n + 1 : n;
    if (n && s[n - 1] == '\r') n--;
    return n;
}

/* Bytes up to the next line that is the mark; *whole with that line. */
static size_t story_at(const char *s, size_t bytes, size_t *whole)
{
    for (size_t at = 0, line; at < bytes; at += line) {
        const size_t n = line_at(s + at, bytes - at, &line);
        if (n == MARK_BYTES && memcmp(s + at, MARK, n) == 0) {
            *whole = at + line;
            return at;
        }
    }
    *whole = bytes;
    return bytes;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static pare_status add_text(pare_gather *g, const pare_tokenizer *t, const char *s, size_t bytes,
                            size_t window, pare_err *err)
{
    int64_t *ids;
    size_t n;
    const pare_status st = pare_encode(&ids, &n, g->arena, t, s, bytes, err);
    return st ? st : pare_gather_windows(g, ids, n, window, err);
}

static pare_status add_stories(pare_gather *g, const pare_tokenizer *t, const char *s, size_t bytes,
                               size_t window, pare_err *err)
{
    for (size_t at = 0, whole; at < bytes; at += whole) {
        size_t from = at, to = at + story_at(s + at, bytes - at, &whole);
        while (from < to && is_blank(s[from])) from++;
        while (from < to && is_blank(s[to - 1])) to--;
        const pare_status st =
            from < to ? add_text(g, t, s + from, to - from, window, err) : PARE_OK;
        if (st) return st;
    }
    return PARE_OK;
}

static pare_status read_text(pare_gather *g, pare_arena *scratch, const char *path, size_t window,
                             pare_err *err)
{
    const pare_model *m = g->model;
    pare_tokenizer *t = NULL;
    pare_blob *b = NULL;
    char *text;
    size_t bytes;
    pare_status st = pare_window_of(&window, m, window, err);
    if (st == PARE_OK)
        st = pare_tokenizer_new(&t, scratch, m->tokenizer, m->vocab, m->vocab_bytes, err);
    if (st == PARE_OK) st = pare_files_read(g->files, &b, path, err);
    if (st == PARE_OK) st = pare_text_read_blob(&text, &bytes, scratch, b, err);
    pare_blob_release(b);
    if (st) return st;
    pare_text_note_utf8(&g->notes, text, bytes);
    pare_text_note_words(&g->notes, t, text, bytes);
    st = m->tokenizer == PARE_TOK_LLAMA2C ? add_stories(g, t, text, bytes, window, err)
                                          : add_text(g, t, text, bytes, window, err);
    if (st == PARE_OK && g->n == 0)
        return pare_fail(err, PARE_ERR_INPUT, "fewer than two tokens of text");
    return st;
}

pare_status pare_text_gather(pare_gather *g, const char *path, size_t window, pare_err *err)
{
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    const pare_status st = read_text(g, scratch, path, window, err);
    pare_arena_free(scratch);
    return st;
}
