/* text_documents.h - the documents of a text file: from its bytes to one text each.
 *
 * .txt     lines that are <|endoftext|> separate documents. Without one: where every line is a text of
 *          its own (`lines`) so it is, else blank lines separate them, else the file is one document.
 * .csv     RFC 4180: a row each; quotes, "" for a quote within them, line ends within them, \r\n.
 * .tsv     a row each; nothing is quoted.
 * .jsonl   a line each: an object, one of whose strings is the text.
 *
 * Which column is the text: the one of that name, or of that number (.csv and .tsv, from 1). Where
 * nothing is asked for: `text`, or else `sentence`, or else the only column but for `label`. The
 * first row names the columns where the text is asked for by its name, or where one of them is `text`,
 * `sentence` or `label`; otherwise it is a text like the others. `label` holds whole numbers. */
#ifndef PARE_DATA_TEXT_DOCUMENTS_H
#define PARE_DATA_TEXT_DOCUMENTS_H
#include <pare/base.h>

/* A space, or one of \t \n \v \f \r. */
static inline bool pare_is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

typedef enum pare_text_format {
    PARE_FORMAT_TXT,
    PARE_FORMAT_CSV,
    PARE_FORMAT_TSV,
    PARE_FORMAT_JSONL
} pare_text_format;

typedef struct pare_document {
    const char *text;
    size_t bytes, line; /* line: of the file, where it begins, from 1 */
    int64_t label;      /* -1: none */
} pare_document;

typedef struct pare_documents {
    size_t n, capacity;
    pare_document *list;
    const char *separated; /* what separates them, in words; NULL: the file is one */
    const char *between;   /* .txt: the text that does */
    bool labels;           /* each has one */
} pare_documents;

typedef struct pare_document_opts {
    pare_text_format format;
    bool lines;      /* .txt: every line is a text, unless lines <|endoftext|> separate them; ... */
    bool whole;      /* ... blank lines separate nothing, and ... */
    bool not_marked; /* ... neither do lines <|endoftext|> */
    const char *column; /* NULL: as above */
} pare_document_opts;

/* Documents in the order of the file, none of them empty but for rows of .csv, .tsv and .jsonl. Texts lie in
 * the arena or in `text`, which is changed. PARE_ERR_INPUT names the line. */
PARE_MUST_USE pare_status pare_documents_read(pare_documents *out, pare_arena *a, char *text,
                                              size_t bytes, const pare_document_opts *o,
                                              pare_err *err);
#endif
