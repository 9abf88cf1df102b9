/* pretokenize.c - the pre-tokenizers of tokenizer.json (pretokenize.h).
 *
 * Most are one operation: find the matches of a pattern or of a class of characters, and say what
 * becomes of them. `put_part` takes matches and what lies between them in order, and `behavior`
 * decides which of them are joined. */
#include "pretokenize.h"
#include "base/list.h"
#include "base/support.h"
#include "unicode.h"
#include "unicode_scripts.h"
#include <string.h>

typedef enum split_behavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS
} split_behavior;

typedef enum char_set { SET_SPACE, SET_PUNCTUATION, SET_NUMBER, SET_ONE } char_set;
typedef enum pretokenizer_kind { CUT_PATTERN, CUT_CHARS, BYTE_LEVEL, METASPACE } pretokenizer_kind;
typedef enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } prepend_scheme;

struct pare_pretokenizer {
    pretokenizer_kind kind;
    split_behavior behavior;
    bool invert;
    pare_regex *pattern; /* CUT_PATTERN; BYTE_LEVEL: or NULL */
    char_set set;        /* CUT_CHARS */
    uint32_t one;        /* SET_ONE */
    bool prefix;         /* BYTE_LEVEL: a blank before what does not begin with one */
    pare_piece blank;    /* METASPACE */
    prepend_scheme prepend;
    bool split;
};

enum { LONGEST_FIXED = 65535 };
static const char GPT2_PATTERN[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/* Word characters as Rust's regex has them, which this one is written for. */
#define RUST_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}"
static const char WHITESPACE_PATTERN[] = "[" RUST_WORD "]+|[^" RUST_WORD "\\s]+";

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reader {
    pare_pretokenizers *out;
    pare_arena *arena;
} reader;

static pare_status read_behavior(split_behavior *out, const cJSON *entry, const char *fallback,
                                 pare_err *err)
{
    static const char *const words[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const char *word = fallback;
    const pare_status st = fallback ? pare_json_string_opt(&word, entry, "behavior", err)
                                    : pare_json_string(&word, entry, "behavior", err);
    if (st) return st;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *out = (split_behavior)i;
            return PARE_OK;
        }
    return pare_fail(err, PARE_ERR_INPUT, "behavior \"%.60s\" is not one that pare reads", word);
}

static pare_status read_byte_level(pare_pretokenizer *p, pare_arena *a, const cJSON *entry,
                                   pare_err *err)
{
    bool regex = true;
    p->kind = BYTE_LEVEL;
    p->behavior = SPLIT_ISOLATED;
    p->prefix = true;
    pare_status st = pare_json_bool_opt(&p->prefix, entry, "add_prefix_space", err);
    if (!st) st = pare_json_bool_opt(&regex, entry, "use_regex", err);
    if (!st && regex)
        st = pare_regex_new(&p->pattern, a, GPT2_PATTERN, sizeof GPT2_PATTERN - 1, false, err);
    return st;
}

/* Older files have add_prefix_space in the place of prepend_scheme. */
static pare_status read_metaspace(pare_pretokenizer *p, pare_arena *a, const cJSON *entry,
                                  pare_err *err)
{
    const char *scheme = NULL;
    bool prefix = true;
    size_t len;
    p->kind = METASPACE;
    p->split = true;
    pare_status st = pare_piece_read(&p->blank, a, entry, "replacement", NULL, err);
    if (!st) st = pare_json_string_opt(&scheme, entry, "prepend_scheme", err);
    if (!st) st = pare_json_bool_opt(&prefix, entry, "add_prefix_space", err);
    if (!st) st = pare_json_bool_opt(&p->split, entry, "split", err);
    if (st) return st;
    if (p->blank.n == 0 || pare_utf8_next(p->blank.s, p->blank.n, &len) == PARE_NO_CHAR ||
        len != p->blank.n)
        return pare_fail(err, PARE_ERR_INPUT, "Metaspace: the replacement is not one character");
    p->prepend = prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (!scheme) return PARE_OK;
    if (strcmp(scheme, "always") == 0)
        p->prepend = PREPEND_ALWAYS;
    else if (strcmp(scheme, "first") == 0)
        p->prepend = PREPEND_FIRST;
    else if (strcmp(scheme, "never") == 0)
        p->prepend = PREPEND_NEVER;
    else
        return pare_fail(err, PARE_ERR_INPUT, "prepend_scheme \"%.60s\" is not one that pare reads",
                         scheme);
    return PARE_OK;
}

static pare_pretokenizer *add(const reader *r)
{
    pare_pretokenizers *const list = r->out;
    pare_pretokenizer *const grown =
        list_grow(r->arena, list->v, list->n, &list->capacity, sizeof *list->v);
    if (!grown) return NULL;
    list->v = grown;
    list->v[list->n] = (pare_pretokenizer){.kind = CUT_CHARS};
    return &list->v[list->n++];
}

static pare_status read_one(void *self, const char *type, const cJSON *entry, pare_err *err)
{
    const reader *const r = self;
    pare_pretokenizer *p = add(r);
    if (!p) return pare_no_memory(err);
    if (strcmp(type, "ByteLevel") == 0) return read_byte_level(p, r->arena, entry, err);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(p, r->arena, entry, err);
    if (strcmp(type, "Split") == 0) {
        p->kind = CUT_PATTERN;
        pare_status st = read_behavior(&p->behavior, entry, NULL, err);
        if (!st) st = pare_json_bool_opt(&p->invert, entry, "invert", err);
        return st ? st : pare_pattern_read(&p->pattern, r->arena, entry, "pattern", err);
    }
    if (strcmp(type, "Whitespace") == 0) {
        p->kind = CUT_PATTERN;
        p->invert = true;
        return pare_regex_new(&p->pattern, r->arena, WHITESPACE_PATTERN,
                              sizeof WHITESPACE_PATTERN - 1, false, err);
    }
    if (strcmp(type, "UnicodeScripts") == 0) {
        p->kind = CUT_PATTERN;
        p->invert = true;
        return pare_scripts_pattern(&p->pattern, r->arena, err);
    }
    if (strcmp(type, "WhitespaceSplit") == 0 || strcmp(type, "BertPreTokenizer") == 0) {
        p->set = SET_SPACE;
        if (type[0] == 'W') return PARE_OK;
        p = add(r);
        if (!p) return pare_no_memory(err);
        p->set = SET_PUNCTUATION;
        p->behavior = SPLIT_ISOLATED;
        return PARE_OK;
    }
    if (strcmp(type, "Punctuation") == 0) {
        p->set = SET_PUNCTUATION;
        return read_behavior(&p->behavior, entry, "Isolated", err);
    }
    if (strcmp(type, "Digits") == 0) {
        bool each = false;
        const pare_status st = pare_json_bool_opt(&each, entry, "individual_digits", err);
        p->set = SET_NUMBER;
        p->behavior = each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
        return st;
    }
    if (strcmp(type, "FixedLength") == 0) {
        size_t length = 5;
        const pare_status st = pare_json_size_opt(&length, entry, "length", err);
        if (st) return st;
        if (length == 0 || length > LONGEST_FIXED)
            return pare_fail(err, PARE_ERR_INPUT, "FixedLength: a length of %zu", length);
        const char *const any = pare_sprintf(r->arena, "(?s:.){1,%zu}", length);
        p->kind = CUT_PATTERN;
        p->behavior = SPLIT_ISOLATED;
        return any ? pare_regex_new(&p->pattern, r->arena, any, strlen(any), false, err)
                   : pare_no_memory(err);
    }
    if (strcmp(type, "CharDelimiterSplit") == 0) {
        pare_piece c;
        size_t len;
        const pare_status st = pare_piece_read(&c, r->arena, entry, "delimiter", NULL, err);
        if (st) return st;
        p->set = SET_ONE;
        p->one = c.n ? pare_utf8_next(c.s, c.n, &len) : PARE_NO_CHAR;
        return p->one != PARE_NO_CHAR
                   ? PARE_OK
                   : pare_fail(err, PARE_ERR_INPUT, "CharDelimiterSplit: no delimiter");
    }
    return pare_fail(err, PARE_ERR_INPUT, "pre-tokenizer \"%.60s\" is not one that pare reads",
                     type);
}

pare_status pare_pretokenizers_read(pare_pretokenizers *out, pare_arena *a, const cJSON *json,
                                    pare_err *err)
{
    reader r = {out, a};
    return pare_each_entry(json, "pretokenizers", read_one, &r, err);
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* Parts of one text, in order, as they become words. */
typedef struct cutter {
    pare_spans *out;
    pare_span text;
    split_behavior behavior;
    size_t begin, end;  /* of the word that may still grow */
    bool open, matched; /* there is one; what came last was a match */
} cutter;

static void put_word(cutter *c)
{
    if (c->open)
        pare_spans_put(c->out, (pare_span){c->text.s + c->begin, c->end - c->begin,
                                           c->text.first && c->begin == 0});
    c->open = false;
}

/* The next part of the text. A word is held back until it is known that nothing joins it. */
static void put_part(cutter *c, size_t begin, size_t end, bool match)
{
    bool join = false;
    switch (c->behavior) {
    case SPLIT_REMOVED:
    case SPLIT_ISOLATED:
        break;
    case SPLIT_MERGED_WITH_PREVIOUS:
        join = match && !c->matched;
        break;
    case SPLIT_MERGED_WITH_NEXT: /* a match joins what follows, unless that is a match */
        join = c->matched && !match;
        break;
    case SPLIT_CONTIGUOUS:
        join = match == c->matched;
        break;
    }
    if (!(join && c->open)) {
        put_word(c);
        c->begin = begin;
        c->open = !(match && c->behavior == SPLIT_REMOVED);
    }
    c->end = end;
    c->matched = match;
}

static pare_status cut_by_pattern(cutter *c, const pare_pretokenizer *p, pare_regex_run *run,
                                  pare_err *err)
{
    const pare_span t = c->text;
    size_t at = 0, from = 0, begin, end;
    while (from < t.n) {
        const pare_status st = pare_regex_find(run, p->pattern, t.s, t.n, from, &begin, &end, err);
        if (st) return st;
        if (begin > at) put_part(c, at, begin, p->invert);
        if (end > begin) put_part(c, begin, end, !p->invert);
        at = end > at ? end : at;
        from = end > begin ? end : end + 1; /* an empty match */
        if (begin == t.n) break;
    }
    if (at < t.n) put_part(c, at, t.n, p->invert);
    put_word(c);
    return PARE_OK;
}

static bool in_set(const pare_pretokenizer *p, uint32_t c)
{
    switch (p->set) {
    case SET_SPACE:
        return pare_char_is_space(c);
    case SET_PUNCTUATION:
        return pare_char_is_punctuation(c);
    case SET_NUMBER:
        return pare_char_kind(c) == PARE_CHAR_NUMBER;
    case SET_ONE:
        return c == p->one;
    }
    return false;
}

static void cut_by_chars(cutter *c, const pare_pretokenizer *p)
{
    const pare_span t = c->text;
    size_t plain = 0, len;
    for (size_t at = 0; at < t.n; at += len) {
        if (!in_set(p, pare_utf8_next(t.s + at, t.n - at, &len))) continue;
        if (at > plain) put_part(c, plain, at, false);
        put_part(c, at, at + len, true);
        plain = at + len;
    }
    if (t.n > plain) put_part(c, plain, t.n, false);
    put_word(c);
}

/* Each byte becomes a character; before that, GPT-2's words. */
static pare_status cut_byte_level(pare_spans *out, const pare_pretokenizer *p, pare_spans in,
                                  pare_regex_run *run, pare_err *err)
{
    size_t total = 0;
    for (size_t i = 0; i < in.n; i++) {
        if (p->prefix && in.v[i].s[0] != ' ') {
            pare_buffer with = {.arena = out->arena};
            pare_buffer_put(&with, " ", 1);
            pare_buffer_put(&with, in.v[i].s, in.v[i].n);
            if (with.failed) return pare_no_memory(err);
            in.v[i].s = with.s;
            in.v[i].n = with.n;
        }
        total += in.v[i].n;
    }
    if (p->pattern) {
        pare_spans words = {.arena = out->arena};
        for (size_t i = 0; i < in.n; i++) {
            cutter c = {&words, in.v[i], p->behavior, 0, 0, false, false};
            const pare_status st = cut_by_pattern(&c, p, run, err);
            if (st) return st;
        }
        in = words;
    }
    char *to = pare_alloc(out->arena, total, 2); /* at most two bytes for one */
    if (!to || in.failed) return pare_no_memory(err);
    for (size_t w = 0; w < in.n; w++) {
        const pare_span *const word = &in.v[w];
        char *const begin = to;
        for (size_t i = 0; i < word->n; i++)
            to += pare_utf8_put(to, pare_byte_char((uint8_t)word->s[i]));
        pare_spans_put(out, (pare_span){begin, (size_t)(to - begin), word->first});
    }
    return PARE_OK;
}

static pare_status cut_metaspace(pare_spans *out, const pare_pretokenizer *p, pare_span t,
                                 pare_err *err)
{
    pare_buffer b = {.arena = out->arena};
    const pare_piece blank = p->blank;
    const bool begins = t.s[0] == ' ' || (t.n >= blank.n && memcmp(t.s, blank.s, blank.n) == 0);
    if (!begins && (p->prepend == PREPEND_ALWAYS || (p->prepend == PREPEND_FIRST && t.first)))
        pare_buffer_put(&b, blank.s, blank.n);
    for (size_t at = 0, n; at < t.n; at += n) {
        const char *const next = memchr(t.s + at, ' ', t.n - at);
        n = next ? (size_t)(next - t.s) - at : t.n - at;
        pare_buffer_put(&b, t.s + at, n);
        if (!next) break;
        pare_buffer_put(&b, blank.s, blank.n);
        n++;
    }
    if (b.failed) return pare_no_memory(err);
    if (!p->split) {
        pare_spans_put(out, (pare_span){b.s, b.n, t.first});
        return PARE_OK;
    }
    cutter c = {out, {b.s, b.n, t.first}, SPLIT_MERGED_WITH_NEXT, 0, 0, false, false};
    size_t plain = 0;
    for (size_t at = 0; at < b.n;) {
        const char *const next = memmem(b.s + at, b.n - at, blank.s, blank.n);
        if (!next) break;
        at = (size_t)(next - b.s);
        if (at > plain) put_part(&c, plain, at, false);
        put_part(&c, at, at + blank.n, true);
        plain = at += blank.n;
    }
    if (b.n > plain) put_part(&c, plain, b.n, false);
    put_word(&c);
    return PARE_OK;
}

pare_status pare_pretokenize(pare_spans *words, const pare_pretokenizers *list, pare_span text,
                             pare_regex_run *run, pare_err *err)
{
    pare_spans now = {.arena = words->arena};
    pare_spans_put(&now, text);
    for (size_t k = 0; k < list->n && !now.failed; k++) {
        const pare_pretokenizer *const p = &list->v[k];
        pare_spans next = {.arena = words->arena};
        pare_status st = PARE_OK;
        if (p->kind == BYTE_LEVEL) st = cut_byte_level(&next, p, now, run, err);
        for (size_t i = 0; i < now.n && !st && p->kind != BYTE_LEVEL; i++) {
            cutter c = {&next, now.v[i], p->behavior, 0, 0, false, false};
            if (p->kind == CUT_PATTERN)
                st = cut_by_pattern(&c, p, run, err);
            else if (p->kind == CUT_CHARS)
                cut_by_chars(&c, p);
            else
                st = cut_metaspace(&next, p, now.v[i], err);
        }
        if (st) return st;
        now = next;
    }
    if (now.failed) return pare_no_memory(err);
    if (words->n == 0)
        *words = now;
    else
        for (size_t i = 0; i < now.n; i++) pare_spans_put(words, now.v[i]);
    return words->failed ? pare_no_memory(err) : PARE_OK;
}
