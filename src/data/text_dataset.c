/* text_dataset.c - data sets of text: .txt and .tsv, through the model's tokenizer. */
#include "base/support.h"
#include "dataset.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The model's tokenizer and the text of the file, both in r->scratch. */
static pare_status open_text(pare_data_reader *r, const char *path, pare_tokenizer **t, char **text,
                             size_t *bytes)
{
    const pare_model *m = r->model;
    pare_blob *b = NULL;
    pare_status st =
        pare_tokenizer_new(t, r->scratch, m->tokenizer, m->vocab, m->vocab_bytes, r->err);
    if (st == PARE_OK) st = pare_files_read(r->files, &b, path, r->err);
    if (st == PARE_OK) st = pare_text_read_blob(text, bytes, r->scratch, b, r->err);
    pare_blob_release(b);
    if (st == PARE_OK) pare_text_note_utf8(&r->out->notes, *text, *bytes);
    return st;
}

static pare_status add_text(pare_data_reader *r, const pare_tokenizer *t, const char *s,
                            size_t bytes)
{
    int64_t *ids;
    size_t n;
    const pare_status st = pare_encode(&ids, &n, r->arena, t, s, bytes, r->err);
    return st ? st : pare_data_add_windows(r, ids, n);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* For llama2.c's tokenizer a line <|endoftext|> ends a story: each is stripped of white space at
 * both ends and begins with begin-of-text, as those models were trained. */
static pare_status add_stories(pare_data_reader *r, const pare_tokenizer *t, const char *s,
                               size_t bytes)
{
    static const char separator[] = "<|endoftext|>";
    size_t story = 0; /* where the current one begins */
    for (size_t line = 0, next; line < bytes; line = next) {
        const char *const newline = memchr(s + line, '\n', bytes - line);
        size_t end = newline ? (size_t)(newline - s) : bytes;
        next = newline ? end + 1 : end;
        if (end > line && s[end - 1] == '\r') end--;
        const bool separates =
            end - line == sizeof separator - 1 && memcmp(s + line, separator, end - line) == 0;
        if (!separates && next < bytes) continue;
        size_t from = story, to = separates ? line : bytes;
        while (from < to && is_blank(s[from])) from++;
        while (from < to && is_blank(s[to - 1])) to--;
        const pare_status st = from < to ? add_text(r, t, s + from, to - from) : PARE_OK;
        if (st) return st;
        story = next;
    }
    return PARE_OK;
}

/* GPT-2's tokenizer reads <|endoftext|> as a token: the file is one text. */
pare_status pare_data_read_txt(pare_data_reader *r, const char *path)
{
    pare_tokenizer *t = NULL;
    char *text;
    size_t bytes;
    pare_status st = pare_data_window(r);
    if (st == PARE_OK) st = open_text(r, path, &t, &text, &bytes);
    if (st) return st;
    pare_text_note_words(&r->out->notes, t, text, bytes);
    st = r->model->tokenizer == PARE_TOK_LLAMA2C ? add_stories(r, t, text, bytes)
                                                 : add_text(r, t, text, bytes);
    if (st == PARE_OK && r->n == 0)
        return pare_fail(r->err, PARE_ERR_INPUT, "fewer than two tokens of text");
    return st;
}

/* ---- .tsv: a header line, then sentence, tab, label ------------------------------------------ */

/* Digits to the end of the line. */
static bool parse_label(int64_t *out, const char *s, size_t n)
{
    char digits[20];
    if (n == 0 || n >= sizeof digits) return false;
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i])) return false;
    memcpy(digits, s, n);
    digits[n] = '\0';
    errno = 0;
    *out = strtoll(digits, NULL, 10);
    return errno == 0;
}

static pare_status add_sentence(pare_data_reader *r, const pare_tokenizer *t, const char *s,
                                size_t bytes, int64_t label)
{
    int64_t *ids, *target = pare_alloc(r->arena, 1, sizeof *target);
    size_t n;
    if (!target) return pare_no_memory(r->err);
    *target = label;
    const pare_status st = pare_encode(&ids, &n, r->arena, t, s, bytes, r->err);
    if (st) return st;
    pare_text_note_words(&r->out->notes, t, s, bytes);
    if (n == 0 || (r->model->context && n > r->model->context)) {
        r->out->skipped++;
        return PARE_OK;
    }
    return pare_data_add(r, (pare_input){.batch = 1, .tokens = n, .ids = ids}, target);
}

pare_status pare_data_read_tsv(pare_data_reader *r, const char *path)
{
    static const char header[] = "sentence\tlabel";
    const pare_model *m = r->model;
    pare_err *const err = r->err;
    pare_tokenizer *t = NULL;
    char *text;
    size_t bytes, number = 0;
    if (!m->embedding.ids)
        return pare_fail(err, PARE_ERR_INPUT,
                         "sentences need a model of tokens; this one takes "
                         "vectors of width %zu",
                         m->embedding.width);
    if (m->head.pool == PARE_POOL_NONE)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a label per sentence needs a model that pools; this one has an output "
                         "per token");
    pare_status st = open_text(r, path, &t, &text, &bytes);
    if (st) return st;
    while (bytes && strchr("\r\n", text[bytes - 1])) bytes--; /* empty lines at the end */
    if (bytes == 0) return pare_fail(err, PARE_ERR_INPUT, "the file is empty");
    for (const char *line = text, *next; line < text + bytes; line = next) {
        const char *const newline = memchr(line, '\n', (size_t)(text + bytes - line));
        const char *end = newline ? newline : text + bytes;
        next = end + 1;
        if (end > line && end[-1] == '\r') end--;
        const size_t n = (size_t)(end - line);
        if (++number == 1) {
            if (n == sizeof header - 1 && memcmp(line, header, n) == 0) continue;
            return pare_fail(err, PARE_ERR_INPUT, "line 1: expected the header sentence<TAB>label");
        }
        const char *const tab = memchr(line, '\t', n);
        int64_t label;
        if (!tab || !parse_label(&label, tab + 1, (size_t)(end - tab - 1)))
            return pare_fail(err, PARE_ERR_INPUT,
                             "line %zu: expected a sentence, one tab and a label 0, 1, ...",
                             number);
        st = add_sentence(r, t, line, (size_t)(tab - line), label);
        if (st && err) pare_fail(err, st, "line %zu: %s", number, err->msg);
        if (st) return st;
    }
    if (r->n == 0)
        return pare_fail(err, PARE_ERR_INPUT, "no sentence can be used (%zu skipped)",
                         r->out->skipped);
    return PARE_OK;
}
