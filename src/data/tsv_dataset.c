/* Sentences with labels: a header line, then sentence, tab, label. */
#include "base/support.h"
#include "dataset.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char HEADER[] = "sentence\tlabel";

typedef struct tsv_reader {
    pare_gather *gather;
    const pare_tokenizer *tokenizer;
    size_t skipped, line;
} tsv_reader;

/* The label after the tab at s: digits to the end of the line. */
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

static pare_status add_sentence(tsv_reader *r, const char *s, size_t bytes, int64_t label,
                                pare_err *err)
{
    pare_gather *g = r->gather;
    int64_t *ids, *target = pare_alloc(g->arena, 1, sizeof *target);
    size_t n;
    if (!target) return pare_no_memory(err);
    *target = label;
    const pare_status st = pare_encode(&ids, &n, g->arena, r->tokenizer, s, bytes, err);
    if (st) return st;
    pare_text_note_words(&g->notes, r->tokenizer, s, bytes);
    if (n == 0 || (g->model->context && n > g->model->context)) {
        r->skipped++;
        return PARE_OK;
    }
    return pare_gather_add(g, (pare_input){.batch = 1, .tokens = n, .ids = ids}, target, err);
}

static pare_status read_line(tsv_reader *r, const char *s, size_t n, pare_err *err)
{
    if (r->line == 1) {
        if (n == sizeof HEADER - 1 && memcmp(s, HEADER, n) == 0) return PARE_OK;
        return pare_fail(err, PARE_ERR_INPUT, "line 1: expected the header sentence<TAB>label");
    }
    const char *tab = memchr(s, '\t', n);
    const size_t sentence = tab ? (size_t)(tab - s) : n;
    int64_t label;
    if (!tab || !parse_label(&label, tab + 1, n - sentence - 1))
        return pare_fail(err, PARE_ERR_INPUT,
                         "line %zu: expected a sentence, one tab and a label 0, 1, ...", r->line);
    const pare_status st = add_sentence(r, s, sentence, label, err);
    if (st && err) pare_fail(err, st, "line %zu: %s", r->line, err->msg);
    return st;
}

static pare_status read_lines(tsv_reader *r, const char *text, size_t bytes, pare_err *err)
{
    while (bytes && strchr("\r\n", text[bytes - 1])) bytes--; /* empty lines at the end */
    for (size_t at = 0, n; at < bytes; at += n + 1) {
        const char *end = memchr(text + at, '\n', bytes - at);
        n = end ? (size_t)(end - (text + at)) : bytes - at;
        const size_t trimmed = n && text[at + n - 1] == '\r' ? n - 1 : n;
        r->line++;
        const pare_status st = read_line(r, text + at, trimmed, err);
        if (st) return st;
    }
    if (r->line == 0) return pare_fail(err, PARE_ERR_INPUT, "the file is empty");
    if (r->gather->n == 0)
        return pare_fail(err, PARE_ERR_INPUT, "no sentence can be used (%zu skipped)", r->skipped);
    return PARE_OK;
}

static pare_status check_model(const pare_model *m, pare_err *err)
{
    if (!m->stem.ids)
        return pare_fail(err, PARE_ERR_INPUT,
                         "sentences need a model of tokens; this one takes "
                         "vectors of width %zu",
                         m->stem.width);
    if (m->top.pool == PARE_POOL_NONE)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a label per sentence needs a model that pools; this one has an output "
                         "per token");
    return PARE_OK;
}

pare_status pare_tsv_gather(pare_gather *g, size_t *skipped, const char *path, pare_err *err)
{
    const pare_model *m = g->model;
    pare_status st = check_model(m, err);
    if (st) return st;
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    pare_tokenizer *t = NULL;
    pare_blob *b = NULL;
    char *text;
    size_t bytes;
    st = pare_tokenizer_new(&t, scratch, m->tokenizer, m->vocab, m->vocab_bytes, err);
    if (st == PARE_OK) st = pare_files_read(g->files, &b, path, err);
    if (st == PARE_OK) st = pare_text_read_blob(&text, &bytes, scratch, b, err);
    pare_blob_release(b);
    if (st == PARE_OK) {
        tsv_reader r = {g, t, 0, 0};
        pare_text_note_utf8(&g->notes, text, bytes);
        st = read_lines(&r, text, bytes, err);
        *skipped = r.skipped;
    }
    pare_arena_free(scratch);
    return st;
}
