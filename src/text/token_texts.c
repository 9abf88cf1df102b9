/* token_texts.c - what each id prints, by the decoders of tokenizer.json (tokenizer_json.h).
 *
 * Decoders work on a list of tokens. All that pare reads treat a token by itself, but for three
 * things: the first token may lose blanks (Metaspace, Strip behind Fuse), a blank may be put before
 * all but the first (WordPiece), or behind a token that ends a word, if another follows
 * (BPEDecoder). So two texts for each id will do: as the first, and behind others. Bytes of
 * ByteFallback are printed as they are, one by one. */
#include "base/list.h"
#include "tokenizer_json.h"
#include "unicode.h"
#include <string.h>

typedef enum decoder_kind {
    DECODE_BYTE_LEVEL,
    DECODE_WORDPIECE,
    DECODE_METASPACE,
    DECODE_REPLACE,
    DECODE_BYTE_FALLBACK,
    DECODE_STRIP,
    DECODE_STRIP_FUSED, /* the first token alone */
    DECODE_BPE,
    DECODE_CTC
} decoder_kind;

typedef struct decoder {
    decoder_kind kind;
    bool cleanup, prepends; /* WORDPIECE; METASPACE */
    pare_piece mark;        /* prefix, replacement, content, suffix or delimiter of words */
    pare_piece pad;         /* CTC: prints nothing */
    pare_regex *pattern;    /* REPLACE */
    size_t start, stop;     /* STRIP */
} decoder;

typedef struct decoders {
    decoder *v;
    size_t n, capacity;
    bool fused;
    pare_arena *arena;
} decoders;

static pare_status read_strip(decoder *d, const decoders *list, const cJSON *entry, pare_err *err)
{
    d->kind = list->fused ? DECODE_STRIP_FUSED : DECODE_STRIP;
    pare_status st = pare_piece_read(&d->mark, list->arena, entry, "content", " ", err);
    if (!st) st = pare_json_size_opt(&d->start, entry, "start", err);
    if (!st) st = pare_json_size_opt(&d->stop, entry, "stop", err);
    if (!st && list->fused && d->stop)
        st = pare_fail(err, PARE_ERR_INPUT,
                       "decoder \"Strip\" at the end of a text is not one that pare reads");
    return st;
}

static pare_status read_metaspace(decoder *d, pare_arena *a, const cJSON *entry, pare_err *err)
{
    const char *scheme = NULL;
    bool prefix = true;
    d->kind = DECODE_METASPACE;
    pare_status st = pare_piece_read(&d->mark, a, entry, "replacement", NULL, err);
    if (!st) st = pare_json_string_opt(&scheme, entry, "prepend_scheme", err);
    if (!st) st = pare_json_bool_opt(&prefix, entry, "add_prefix_space", err);
    d->prepends = scheme ? strcmp(scheme, "never") != 0 : prefix;
    return st;
}

static pare_status read_one(void *self, const char *type, const cJSON *entry, pare_err *err)
{
    decoders *const list = self;
    if (strcmp(type, "Fuse") == 0) {
        list->fused = true;
        return PARE_OK;
    }
    decoder *const grown =
        list_grow(list->arena, list->v, list->n, &list->capacity, sizeof *list->v);
    if (!grown) return pare_no_memory(err);
    list->v = grown;
    decoder *const d = &list->v[list->n++];
    *d = (decoder){0};
    if (strcmp(type, "Strip") == 0) return read_strip(d, list, entry, err);
    if (list->fused)
        return pare_fail(err, PARE_ERR_INPUT,
                         "decoder \"%.60s\" behind \"Fuse\" is not one that pare reads", type);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(d, list->arena, entry, err);
    pare_status st = PARE_OK;
    if (strcmp(type, "ByteLevel") == 0) {
        d->kind = DECODE_BYTE_LEVEL;
    } else if (strcmp(type, "ByteFallback") == 0) {
        d->kind = DECODE_BYTE_FALLBACK;
    } else if (strcmp(type, "WordPiece") == 0) {
        d->kind = DECODE_WORDPIECE;
        d->cleanup = true;
        st = pare_piece_read(&d->mark, list->arena, entry, "prefix", "##", err);
        if (!st) st = pare_json_bool_opt(&d->cleanup, entry, "cleanup", err);
    } else if (strcmp(type, "BPEDecoder") == 0) {
        d->kind = DECODE_BPE;
        st = pare_piece_read(&d->mark, list->arena, entry, "suffix", "</w>", err);
    } else if (strcmp(type, "CTC") == 0) {
        d->kind = DECODE_CTC;
        d->cleanup = true;
        st = pare_piece_read(&d->pad, list->arena, entry, "pad_token", "<pad>", err);
        if (!st)
            st = pare_piece_read(&d->mark, list->arena, entry, "word_delimiter_token", "|", err);
        if (!st) st = pare_json_bool_opt(&d->cleanup, entry, "cleanup", err);
    } else if (strcmp(type, "Replace") == 0) {
        d->kind = DECODE_REPLACE;
        st = pare_piece_read(&d->mark, list->arena, entry, "content", NULL, err);
        if (!st) st = pare_pattern_read(&d->pattern, list->arena, entry, "pattern", err);
    } else {
        st = pare_fail(err, PARE_ERR_INPUT, "decoder \"%.60s\" is not one that pare reads", type);
    }
    return st;
}

/* ---- one token ------------------------------------------------------------------------------- */

static bool begins(pare_piece t, pare_piece with)
{
    return with.n && t.n >= with.n && memcmp(t.s, with.s, with.n) == 0;
}

static bool ends(pare_piece t, pare_piece with)
{
    return with.n && t.n >= with.n && memcmp(t.s + t.n - with.n, with.s, with.n) == 0;
}

/* `from` in t replaced by `to`, everywhere. */
static pare_piece replaced(pare_arena *a, pare_piece t, pare_piece from, pare_piece to)
{
    pare_buffer b = {.arena = a};
    if (from.n == 0 || !memmem(t.s, t.n, from.s, from.n)) return t;
    while (t.n) {
        const char *const next = memmem(t.s, t.n, from.s, from.n);
        const size_t n = next ? (size_t)(next - t.s) : t.n;
        pare_buffer_put(&b, t.s, n);
        if (next) pare_buffer_put(&b, to.s, to.n);
        t.s += next ? n + from.n : n;
        t.n -= next ? n + from.n : n;
    }
    return (pare_piece){b.failed ? NULL : b.s ? b.s : "", b.n};
}

static pare_piece bytes_of(pare_arena *a, pare_piece t)
{
    char *const out = pare_alloc(a, t.n + 1, 1);
    size_t n = 0;
    for (size_t at = 0, len; out && at < t.n; at += len) {
        const int b = pare_char_byte(pare_utf8_next(t.s + at, t.n - at, &len));
        if (b < 0) return t; /* no text of the byte level: printed as it is */
        out[n++] = (char)b;
    }
    return (pare_piece){out, n};
}

/* <0x0A> is the byte 10. */
static pare_piece byte_named(pare_arena *a, pare_piece t)
{
    unsigned b;
    char digits[3] = "";
    if (t.n != 6 || memcmp(t.s, "<0x", 3) != 0 || t.s[5] != '>') return t;
    memcpy(digits, t.s + 3, 2);
    if (strspn(digits, "0123456789ABCDEFabcdef") != 2 || sscanf(digits, "%2x", &b) != 1) return t;
    char *const out = pare_alloc(a, 1, 1);
    if (out) *out = (char)b;
    return (pare_piece){out, 1};
}

/* English as it is written, for what the tokens of BERT take apart. */
static pare_piece clean_up(pare_arena *a, pare_piece t)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && t.s; i++)
        t = replaced(a, t, (pare_piece){pairs[i][0], strlen(pairs[i][0])},
                     (pare_piece){pairs[i][1], strlen(pairs[i][1])});
    return t;
}

static pare_piece strip_marks(pare_piece t, const decoder *d)
{
    for (size_t i = 0; i < d->start && begins(t, d->mark); i++) {
        t.s += d->mark.n;
        t.n -= d->mark.n;
    }
    for (size_t i = 0; i < d->stop && ends(t, d->mark); i++) t.n -= d->mark.n;
    return t;
}

static pare_status replace_pattern(pare_piece *t, const decoder *d, pare_arena *a,
                                   pare_regex_run *run, pare_err *err)
{
    pare_buffer b = {.arena = a};
    size_t at = 0, from = 0, begin, end;
    while (from < t->n) {
        const pare_status st =
            pare_regex_find(run, d->pattern, t->s, t->n, from, &begin, &end, err);
        if (st) return st;
        if (begin >= t->n) break;
        pare_buffer_put(&b, t->s + at, begin - at);
        pare_buffer_put(&b, d->mark.s, d->mark.n);
        at = end;
        from = end > begin ? end : end + 1;
    }
    if (at == 0 && b.n == 0) return PARE_OK; /* no match */
    pare_buffer_put(&b, t->s + at, t->n - at);
    *t = (pare_piece){b.failed ? NULL : b.s ? b.s : "", b.n};
    return PARE_OK;
}

/* The token after all decoders, behind others or as the first. */
static pare_status decode_one(pare_piece *t, bool first, bool *word_ends, const decoders *list,
                              pare_arena *a, pare_regex_run *run, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; i < list->n && t->s && !st; i++) {
        const decoder *const d = &list->v[i];
        switch (d->kind) {
        case DECODE_BYTE_LEVEL:
            *t = bytes_of(a, *t);
            break;
        case DECODE_WORDPIECE:
            if (!first && begins(*t, d->mark)) {
                *t = (pare_piece){t->s + d->mark.n, t->n - d->mark.n};
            } else if (!first) {
                pare_buffer b = {.arena = a};
                pare_buffer_put(&b, " ", 1);
                pare_buffer_put(&b, t->s, t->n);
                *t = (pare_piece){b.failed ? NULL : b.s, b.n};
            }
            if (d->cleanup && t->s) *t = clean_up(a, *t);
            break;
        case DECODE_METASPACE:
            *t = replaced(a, *t, d->mark, (pare_piece){" ", first && d->prepends ? 0 : 1});
            break;
        case DECODE_REPLACE:
            st = replace_pattern(t, d, a, run, err);
            break;
        case DECODE_BYTE_FALLBACK:
            *t = byte_named(a, *t);
            break;
        case DECODE_STRIP:
            *t = strip_marks(*t, d);
            break;
        case DECODE_STRIP_FUSED:
            if (first) *t = strip_marks(*t, d);
            break;
        case DECODE_CTC:
            *t = replaced(a, *t, d->pad, (pare_piece){"", 0});
            if (d->cleanup && t->s) *t = clean_up(a, *t);
            if (d->cleanup && t->s) *t = replaced(a, *t, d->mark, (pare_piece){" ", 1});
            break;
        case DECODE_BPE:
            *word_ends = ends(*t, d->mark);
            *t = replaced(a, *t, d->mark, (pare_piece){"", 0});
            break;
        }
    }
    if (!st && !t->s) st = pare_no_memory(err);
    return st;
}

pare_status pare_token_texts_read(pare_json_tokenizer *t, pare_arena *a, const cJSON *json,
                                  pare_err *err)
{
    decoders list = {.arena = a};
    pare_regex_run *run = NULL;
    const bool none = !json || cJSON_IsNull(json); /* tokens are printed with blanks between */
    bool by_place = false;
    pare_status st = pare_each_entry(json, "decoders", read_one, &list, err);
    if (!st) st = pare_regex_run_new(&run, a, err);
    if (st) return st;
    t->blank_before = none;
    for (size_t i = 0; i < list.n; i++) {
        const decoder_kind k = list.v[i].kind;
        t->blank_before = t->blank_before || k == DECODE_BPE;
        t->merges_repeats = t->merges_repeats || k == DECODE_CTC;
        by_place =
            by_place || k == DECODE_WORDPIECE || k == DECODE_METASPACE || k == DECODE_STRIP_FUSED;
    }
    t->text = pare_alloc(a, t->size, sizeof *t->text);
    t->first = pare_alloc(a, t->size, sizeof *t->first);
    t->word_ends = pare_alloc(a, t->size, sizeof *t->word_ends);
    if (!t->text || !t->first || !t->word_ends) return pare_no_memory(err);
    for (size_t id = 0; id < t->size && !st; id++) {
        const pare_piece name =
            t->name[id].s && !t->special[id] ? t->name[id] : (pare_piece){"", 0};
        t->text[id] = t->first[id] = name;
        t->word_ends[id] = none || name.n == 0; /* words end before special tokens */
        if (name.n == 0) continue;
        st = decode_one(&t->text[id], false, &t->word_ends[id], &list, a, run, err);
        if (!st && by_place)
            st = decode_one(&t->first[id], true, &t->word_ends[id], &list, a, run, err);
        else
            t->first[id] = t->text[id];
        if (st || !t->blank_before) continue;
        const char *const with = pare_sprintf(a, " %.*s", (int)t->text[id].n, t->text[id].s);
        if (!with) return pare_no_memory(err);
        t->text[id] = (pare_piece){with, t->text[id].n + 1};
    }
    return st;
}
