/* text_documents.c - from the bytes of a text file to its documents (text_documents.h). */
#include "base/json.h"
#include "base/list.h"
#include "base/support.h"
#include "text_documents.h"
#include <ctype.h>
#include <string.h>

#define NONE SIZE_MAX

static const char end_of_text[] = "<|endoftext|>";

static pare_status add_document(pare_documents *d, pare_arena *a, pare_document one, pare_err *err)
{
    d->list = list_grow(a, d->list, d->n, &d->capacity, sizeof *d->list);
    if (!d->list) return pare_no_memory(err);
    d->list[d->n++] = one;
    return PARE_OK;
}

/* ---- .txt ------------------------------------------------------------------------------------ */

typedef struct line {
    const char *text; /* without its end */
    size_t bytes, number;
} line;

/* The line at *at; *at moves behind its end (\n or \r\n). */
static line take_line(const char **at, const char *end, size_t number)
{
    const char *const from = *at, *const newline = memchr(from, '\n', (size_t)(end - from));
    const char *to = newline ? newline : end;
    *at = newline ? newline + 1 : end;
    if (to > from && to[-1] == '\r') to--;
    return (line){from, (size_t)(to - from), number};
}

static bool is_blank_line(const line *l)
{
    for (size_t i = 0; i < l->bytes; i++)
        if (!pare_is_white(l->text[i])) return false;
    return true;
}

static bool is_end_of_text(const line *l)
{
    return l->bytes == sizeof end_of_text - 1 && memcmp(l->text, end_of_text, l->bytes) == 0;
}

typedef enum separator { BY_NOTHING, BY_LINE, BY_BLANK_LINE, BY_END_OF_TEXT } separator;

/* Blank lines before the first text and behind the last one separate nothing. */
static separator find_separator(const char *text, size_t bytes, const pare_document_opts *o)
{
    separator found = o->lines ? BY_LINE : BY_NOTHING;
    bool begun = false, blank = false;
    for (const char *at = text; at < text + bytes;) {
        const line l = take_line(&at, text + bytes, 0);
        if (is_end_of_text(&l) && !o->not_marked) return BY_END_OF_TEXT;
        if (is_blank_line(&l)) {
            blank = begun;
        } else {
            if (blank && !o->lines && !o->whole) found = BY_BLANK_LINE;
            begun = true;
        }
    }
    return found;
}

/* Documents between separators, without the white space around them. */
static pare_status read_txt(pare_documents *out, pare_arena *a, const char *text, size_t bytes,
                            const pare_document_opts *o, pare_err *err)
{
    static const char *const words[] = {NULL, "line by line", "separated by blank lines",
                                        "separated by <|endoftext|>"};
    const separator by = find_separator(text, bytes, o);
    static const char *const separators[] = {"", "\n", "\n\n", "\n<|endoftext|>\n"};
    out->separated = words[by];
    out->between = separators[by];
    if (by == BY_NOTHING)
        return bytes ? add_document(out, a, (pare_document){text, bytes, 1, -1}, err) : PARE_OK;
    const char *const end = text + bytes;
    line first = {text, 0, 1}; /* of the document */
    size_t number = 1;
    for (const char *at = text; at < end; number++) {
        const line l = take_line(&at, end, number);
        const bool between = by == BY_LINE         ? true
                             : by == BY_BLANK_LINE ? is_blank_line(&l)
                                                   : is_end_of_text(&l);
        if (!between && at < end) continue;
        const char *from = first.text, *to = between && by != BY_LINE ? l.text : l.text + l.bytes;
        size_t begins = first.number;
        for (; from < to && pare_is_white(*from); from++) begins += *from == '\n';
        while (from < to && pare_is_white(to[-1])) to--;
        first = (line){at, 0, number + 1};
        if (from == to) continue;
        const pare_status st =
            add_document(out, a, (pare_document){from, (size_t)(to - from), begins, -1}, err);
        if (st) return st;
    }
    return PARE_OK;
}

/* ---- .csv and .tsv: rows --------------------------------------------------------------------- */

typedef struct field {
    char *text;
    size_t bytes;
} field;

typedef struct table {
    char *at, *end;
    size_t line; /* of what is at `at` */
    bool quotes; /* .csv */
    char separator;
    field *row; /* the row that was read last: n fields, its first line */
    size_t n, capacity, row_line;
} table;

/* Behind the opening quote; in place: "" becomes a quote. */
static pare_status read_quoted(table *t, field *f, pare_err *err)
{
    const size_t begins = t->line;
    char *to = ++t->at;
    f->text = to;
    for (; t->at < t->end; t->at++) {
        if (*t->at == '"' && !(t->end - t->at > 1 && t->at[1] == '"')) break;
        t->at += *t->at == '"';
        t->line += *t->at == '\n';
        *to++ = *t->at;
    }
    if (t->at == t->end)
        return pare_fail(err, PARE_ERR_INPUT, "line %zu: a quote is not closed", begins);
    f->bytes = (size_t)(to - f->text);
    t->at++;
    const size_t left = (size_t)(t->end - t->at);
    const bool ends = left == 0 || *t->at == t->separator || *t->at == '\n' ||
                      (*t->at == '\r' && (left == 1 || t->at[1] == '\n'));
    return ends ? PARE_OK
                : pare_fail(err, PARE_ERR_INPUT,
                            "line %zu: text behind a closing quote (a quote within quotes is "
                            "written \"\")",
                            t->line);
}

static pare_status read_plain(table *t, field *f, pare_err *err)
{
    f->text = t->at;
    while (t->at < t->end && *t->at != t->separator && *t->at != '\n') {
        if (t->quotes && *t->at == '"')
            return pare_fail(err, PARE_ERR_INPUT,
                             "line %zu: a quote in a field that does not begin with one (write "
                             "\"...\" around it, and \"\" for the quote)",
                             t->line);
        t->at++;
    }
    f->bytes = (size_t)(t->at - f->text);
    if (f->bytes && f->text[f->bytes - 1] == '\r' && (t->at == t->end || *t->at == '\n'))
        f->bytes--;
    return PARE_OK;
}

/* At the end of the table *more is false. */
static pare_status next_row(table *t, bool *more, pare_arena *a, pare_err *err)
{
    *more = t->at < t->end;
    t->n = 0;
    t->row_line = t->line;
    for (bool last = !*more; !last;) {
        field f = {0};
        const pare_status st = t->quotes && t->at < t->end && *t->at == '"'
                                   ? read_quoted(t, &f, err)
                                   : read_plain(t, &f, err);
        if (st) return st;
        t->row = list_grow(a, t->row, t->n, &t->capacity, sizeof *t->row);
        if (!t->row) return pare_no_memory(err);
        t->row[t->n++] = f;
        last = t->at == t->end || *t->at != t->separator;
        if (!last) {
            t->at++;
        } else if (t->at < t->end) {
            if (*t->at == '\r') t->at++;
            if (t->at < t->end) t->at++; /* \n */
            t->line++;
        }
    }
    return PARE_OK;
}

/* ---- which column ---------------------------------------------------------------------------- */

typedef struct columns {
    size_t text, label; /* NONE: there is no label */
    bool named;         /* the first row names them */
} columns;

static bool is_field(const field *f, const char *name)
{
    return f->bytes == strlen(name) && memcmp(f->text, name, f->bytes) == 0;
}

static size_t find_field(const field *row, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (is_field(&row[i], name)) return i;
    return NONE;
}

/* `why` and the columns: 1 "id", 2 "text", ... */
static pare_status list_columns(const field *row, size_t n, const char *why, pare_err *err)
{
    enum { MOST = 12, LETTERS = 24 };
    char list[MOST * (LETTERS + 40)] = "";
    size_t at = 0;
    for (size_t i = 0; i < n && i < MOST; i++) {
        char name[LETTERS + 1];
        size_t k = 0;
        for (; k < LETTERS && k < row[i].bytes; k++)
            name[k] = iscntrl((unsigned char)row[i].text[k]) ? ' ' : row[i].text[k];
        while (k < row[i].bytes && k > 0 && ((unsigned char)row[i].text[k] & 0xC0) == 0x80) k--;
        name[k] = '\0';
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%zu \"%s%s\"", i ? ", " : "", i + 1,
                               name, k < row[i].bytes ? "..." : "");
    }
    return pare_fail(err, PARE_ERR_INPUT, "%s: %s%s; name one of them with column", why, list,
                     n > MOST ? ", ..." : "");
}

/* A column by its number, from 1; 0: not a number. */
static size_t column_number(const char *s)
{
    size_t v = 0;
    for (; *s; s++) {
        if (!isdigit((unsigned char)*s) || v > (size_t)1 << 32) return 0;
        v = 10 * v + (size_t)(*s - '0');
    }
    return v;
}

static pare_status choose_columns(columns *out, const table *t, const char *column, pare_err *err)
{
    const field *const row = t->row;
    const size_t n = t->n, number = column ? column_number(column) : 0;
    const size_t label = find_field(row, n, "label"), text = find_field(row, n, "text"),
                 sentence = find_field(row, n, "sentence");
    *out = (columns){NONE, label, label != NONE || text != NONE || sentence != NONE};
    if (number) {
        out->text = number - 1;
        if (number > n) return list_columns(row, n, "there is no such column", err);
    } else if (column) {
        out->text = find_field(row, n, column);
        out->named = true;
        if (out->text == NONE) return list_columns(row, n, "no column has that name", err);
    } else if (text != NONE || sentence != NONE) {
        out->text = text != NONE ? text : sentence;
    } else if (n - (label != NONE) == 1) {
        out->text = label == 0 ? 1 : 0;
    } else {
        return list_columns(row, n, "which column is the text? The first row has", err);
    }
    if (out->text == label) out->label = NONE;
    return PARE_OK;
}

/* Digits alone. */
static bool parse_label(int64_t *out, const field *f)
{
    int64_t v = 0;
    for (size_t i = 0; i < f->bytes; i++) {
        if (!isdigit((unsigned char)f->text[i]) || v > INT32_MAX) return false;
        v = 10 * v + (f->text[i] - '0');
    }
    *out = v;
    return f->bytes > 0;
}

static pare_status read_table(pare_documents *out, pare_arena *a, char *text, size_t bytes,
                              const pare_document_opts *o, pare_err *err)
{
    while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r')) bytes--;
    const bool csv = o->format == PARE_FORMAT_CSV;
    table t = {
        .at = text, .end = text + bytes, .line = 1, .quotes = csv, .separator = csv ? ',' : '\t'};
    columns c = {0};
    bool more;
    pare_status st = next_row(&t, &more, a, err);
    if (st || !more) return st;
    const size_t n = t.n;
    st = choose_columns(&c, &t, o->column, err);
    out->labels = c.label != NONE;
    out->separated = "a row each";
    if (!st && c.named) st = next_row(&t, &more, a, err);
    for (; !st && more; st = st ? st : next_row(&t, &more, a, err)) {
        pare_document d = {.line = t.row_line, .label = -1};
        if (t.n != n)
            return pare_fail(err, PARE_ERR_INPUT, "line %zu: %zu field%s; the first row has %zu",
                             t.row_line, t.n, t.n == 1 ? "" : "s", n);
        if (out->labels && !parse_label(&d.label, &t.row[c.label]))
            return pare_fail(err, PARE_ERR_INPUT, "line %zu: the label is not a number 0, 1, ...",
                             t.row_line);
        d.text = t.row[c.text].text;
        d.bytes = t.row[c.text].bytes;
        st = add_document(out, a, d, err);
    }
    return st;
}

/* ---- .jsonl ---------------------------------------------------------------------------------- */

static const char *choose_key(const cJSON *object, const char *column, pare_err *err)
{
    field names[64];
    size_t n = 0;
    bool more = false;
    for (const cJSON *v = object->child; v; v = v->next) {
        if (!cJSON_IsString(v)) continue;
        more = n == sizeof names / sizeof *names;
        if (more) break;
        names[n++] = (field){v->string, strlen(v->string)};
    }
    const char *const usual[] = {column, "text", "sentence"};
    for (size_t i = column ? 0 : 1; i < (column ? 1 : 3); i++) {
        const cJSON *v = object->child;
        while (v && !(cJSON_IsString(v) && strcmp(v->string, usual[i]) == 0)) v = v->next;
        if (v) return v->string;
    }
    if (!column && n == 1 && !more) return names[0].text;
    const pare_status st =
        n == 0 ? pare_fail(err, PARE_ERR_INPUT, "the first object has no string")
               : list_columns(names, n,
                              column ? "no string of the first object has that name"
                                     : "which string is the text? The first object has",
                              err);
    (void)st; /* the caller returns err's */
    return NULL;
}

static pare_status read_object(pare_document *d, bool *labels, const char **key, pare_arena *a,
                               const cJSON *object, const char *column, pare_err *err)
{
    const bool first = !*key;
    const char *text;
    size_t label = 0;
    if (!cJSON_IsObject(object))
        return pare_fail(err, PARE_ERR_INPUT, "line %zu: not an object", d->line);
    if (first) {
        const char *const chosen = choose_key(object, column, err);
        if (!chosen) return PARE_ERR_INPUT;
        *key = pare_strdup(a, chosen);
        if (!*key) return pare_no_memory(err);
        const cJSON *v = object->child;
        while (v && strcmp(v->string, "label") != 0) v = v->next;
        *labels = cJSON_IsNumber(v);
    }
    pare_status st = pare_json_string(&text, object, *key, err);
    if (!st && *labels) st = pare_json_size(&label, object, "label", err);
    if (!st && label > INT32_MAX) st = pare_fail(err, PARE_ERR_INPUT, "label: is too large");
    if (st) {
        char where[32];
        snprintf(where, sizeof where, "line %zu", d->line);
        pare_err_prefix(err, where);
        return st;
    }
    d->label = *labels ? (int64_t)label : -1;
    d->bytes = strlen(text);
    d->text = pare_strdup(a, text);
    return d->text ? PARE_OK : pare_no_memory(err);
}

static pare_status read_jsonl(pare_documents *out, pare_arena *a, const char *text, size_t bytes,
                              const char *column, pare_err *err)
{
    const char *key = NULL;
    pare_status st = PARE_OK;
    size_t number = 1;
    out->separated = "a line each";
    for (const char *at = text; !st && at < text + bytes; number++) {
        const line l = take_line(&at, text + bytes, number);
        pare_document d = {.line = number};
        pare_err why = {0};
        cJSON *object = NULL;
        if (is_blank_line(&l)) continue;
        st = pare_json_parse(&object, l.text, l.bytes, &why);
        if (st == PARE_ERR_MEMORY)
            st = pare_no_memory(err);
        else if (st) { /* the parser counts the lines of what it was given */
            const char *const colon = strncmp(why.msg, "line 1, ", 8) == 0 ? why.msg + 8 : why.msg;
            st = pare_fail(err, st, "line %zu, %s", number, colon);
        } else {
            st = read_object(&d, &out->labels, &key, a, object, column, err);
        }
        cJSON_Delete(object);
        if (!st) st = add_document(out, a, d, err);
    }
    return st;
}

pare_status pare_documents_read(pare_documents *out, pare_arena *a, char *text, size_t bytes,
                                const pare_document_opts *o, pare_err *err)
{
    *out = (pare_documents){0};
    switch (o->format) {
    case PARE_FORMAT_TXT:
        return read_txt(out, a, text, bytes, o, err);
    case PARE_FORMAT_JSONL:
        return read_jsonl(out, a, text, bytes, o->column, err);
    case PARE_FORMAT_CSV:
    case PARE_FORMAT_TSV:
        return read_table(out, a, text, bytes, o, err);
    }
    return PARE_OK;
}
