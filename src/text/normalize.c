/* normalize.c - the normalizers of tokenizer.json (normalize.h).
 *
 * Each one reads a text and writes the next. Bytes that are not UTF-8 go through unchanged. */
#include "normalize.h"
#include "base/list.h"
#include "unicode.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef enum normalizer_kind {
    NORMALIZE_UNICODE, /* NFC, NFD, NFKC, NFKD */
    NORMALIZE_LOWERCASE,
    NORMALIZE_STRIP_ACCENTS,
    NORMALIZE_STRIP,
    NORMALIZE_REPLACE,
    NORMALIZE_PREPEND,
    NORMALIZE_BERT,
    NORMALIZE_NMT,
    NORMALIZE_CHARSMAP,
    NORMALIZE_BYTE_LEVEL
} normalizer_kind;

struct pare_normalizer {
    normalizer_kind kind;
    utf8proc_option_t form;                    /* UNICODE */
    bool left, right;                          /* STRIP */
    bool clean, chinese, strip_accents, lower; /* BERT */
    pare_regex *pattern;                       /* REPLACE */
    pare_piece content;                        /* REPLACE, PREPEND */
    pare_charsmap map;                         /* CHARSMAP */
};

/* ---- reading --------------------------------------------------------------------------------- */

pare_status pare_piece_read(pare_piece *out, pare_arena *a, const cJSON *in, const char *key,
                            const char *fallback, pare_err *err)
{
    const char *s = fallback;
    const pare_status st =
        fallback ? pare_json_string_opt(&s, in, key, err) : pare_json_string(&s, in, key, err);
    if (st) return st;
    *out = (pare_piece){pare_strdup(a, s), strlen(s)};
    return out->s ? PARE_OK : pare_no_memory(err);
}

pare_status pare_pattern_read(pare_regex **out, pare_arena *a, const cJSON *in, const char *key,
                              pare_err *err)
{
    const cJSON *pattern;
    const char *s;
    pare_status st = pare_json_object(&pattern, in, key, err);
    if (st) return st;
    const bool literal = pare_json_has(pattern, "String");
    st = pare_json_string(&s, pattern, literal ? "String" : "Regex", err);
    return st ? st : pare_regex_new(out, a, s, strlen(s), literal, err);
}

pare_status pare_each_entry(const cJSON *json, const char *list, pare_entry_fn *fn, void *self,
                            pare_err *err)
{
    const char *type;
    const cJSON *entries, *entry;
    if (!json || cJSON_IsNull(json)) return PARE_OK;
    pare_status st = pare_json_string(&type, json, "type", err);
    if (st) return st;
    if (strcmp(type, "Sequence") != 0) return fn(self, type, json, err);
    st = pare_json_array(&entries, json, list, err);
    if (st) return st;
    cJSON_ArrayForEach(entry, entries)
    {
        st = pare_each_entry(entry, list, fn, self, err);
        if (st) return st;
    }
    return PARE_OK;
}

typedef struct reader {
    pare_normalizers *out;
    pare_arena *arena;
} reader;

static pare_status read_bert(pare_normalizer *n, const cJSON *entry, pare_err *err)
{
    n->kind = NORMALIZE_BERT;
    n->clean = n->chinese = n->lower = true;
    pare_status st = pare_json_bool_opt(&n->clean, entry, "clean_text", err);
    if (!st) st = pare_json_bool_opt(&n->chinese, entry, "handle_chinese_chars", err);
    if (!st) st = pare_json_bool_opt(&n->lower, entry, "lowercase", err);
    n->strip_accents = n->lower;
    return st ? st : pare_json_bool_opt(&n->strip_accents, entry, "strip_accents", err);
}

static pare_status read_one(void *self, const char *type, const cJSON *entry, pare_err *err)
{
    static const struct {
        const char *type;
        normalizer_kind kind;
        int form;
    } plain[] = {
        {"NFC", NORMALIZE_UNICODE, UTF8PROC_COMPOSE},
        {"NFD", NORMALIZE_UNICODE, UTF8PROC_DECOMPOSE},
        {"NFKC", NORMALIZE_UNICODE, UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
        {"NFKD", NORMALIZE_UNICODE, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
        {"Lowercase", NORMALIZE_LOWERCASE, 0},
        {"StripAccents", NORMALIZE_STRIP_ACCENTS, 0},
        {"Nmt", NORMALIZE_NMT, 0},
        {"ByteLevel", NORMALIZE_BYTE_LEVEL, 0},
    };
    const reader *const r = self;
    pare_normalizers *const list = r->out;
    pare_normalizer *const grown =
        list_grow(r->arena, list->v, list->n, &list->capacity, sizeof *list->v);
    if (!grown) return pare_no_memory(err);
    list->v = grown;
    pare_normalizer *const n = &list->v[list->n++];
    *n = (pare_normalizer){0};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(type, plain[i].type) == 0) {
            n->kind = plain[i].kind;
            n->form = (utf8proc_option_t)plain[i].form;
            return PARE_OK;
        }
    pare_status st = PARE_OK;
    if (strcmp(type, "BertNormalizer") == 0) return read_bert(n, entry, err);
    if (strcmp(type, "Strip") == 0) {
        n->kind = NORMALIZE_STRIP;
        n->left = n->right = true;
        st = pare_json_bool_opt(&n->left, entry, "strip_left", err);
        return st ? st : pare_json_bool_opt(&n->right, entry, "strip_right", err);
    }
    if (strcmp(type, "Prepend") == 0) {
        n->kind = NORMALIZE_PREPEND;
        return pare_piece_read(&n->content, r->arena, entry, "prepend", NULL, err);
    }
    if (strcmp(type, "Replace") == 0) {
        n->kind = NORMALIZE_REPLACE;
        st = pare_piece_read(&n->content, r->arena, entry, "content", NULL, err);
        return st ? st : pare_pattern_read(&n->pattern, r->arena, entry, "pattern", err);
    }
    if (strcmp(type, "Precompiled") == 0) {
        const char *base64 = NULL;
        n->kind = NORMALIZE_CHARSMAP;
        st = pare_json_string_opt(&base64, entry, "precompiled_charsmap", err);
        if (st) return st;
        if (!base64) list->n--;
        return base64 ? pare_charsmap_read(&n->map, r->arena, base64, err) : PARE_OK;
    }
    return pare_fail(err, PARE_ERR_INPUT, "normalizer \"%.60s\" is not one that pare reads", type);
}

pare_status pare_normalizers_read(pare_normalizers *out, pare_arena *a, const cJSON *json,
                                  pare_err *err)
{
    reader r = {out, a};
    return pare_each_entry(json, "normalizers", read_one, &r, err);
}

/* ---- the forms of Unicode -------------------------------------------------------------------- */

/* A character that no form changes and that begins anew: composed with nothing before it. All but
 * NFC would change some below U+0300. */
static bool is_inert(uint32_t c, utf8proc_option_t form)
{
    if (c < 0x80 || (c >= 0x3400 && c <= 0x9FFF)) return true;
    return c < 0x300 && form == UTF8PROC_COMPOSE;
}

/* utf8proc on s[0 .. n), which is UTF-8. */
static void put_form(pare_buffer *out, utf8proc_option_t form, const char *s, size_t n)
{
    utf8proc_uint8_t *made = NULL;
    const utf8proc_ssize_t bytes = utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n,
                                                &made, (utf8proc_option_t)(form | UTF8PROC_STABLE));
    if (bytes >= 0)
        pare_buffer_put(out, (const char *)made, (size_t)bytes);
    else
        out->failed = true; /* memory: the text is valid */
    free(made);
}

static void put_normal_form(pare_buffer *out, utf8proc_option_t form, const char *s, size_t n)
{
    size_t done = 0, last = 0; /* copied; where the last character begins */
    if (n == 0) return;        /* s may be NULL */
    for (size_t at = 0, len; at < n;) {
        if (is_inert(pare_utf8_next(s + at, n - at, &len), form)) {
            last = at;
            at += len;
            continue;
        }
        /* From the character before, with which this one may combine, to the next inert one. */
        const size_t from = last < done ? at : last;
        size_t end = at;
        for (len = 0; end < n; end += len) {
            const uint32_t c = pare_utf8_next(s + end, n - end, &len);
            if (c == PARE_NO_CHAR || pare_char_is_formless(c)) break;
            if (is_inert(c, form) && end > at) {
                len = 0;
                break;
            }
        }
        pare_buffer_put(out, s + done, from - done);
        put_form(out, form, s + from, end - from);
        if (end < n) pare_buffer_put(out, s + end, len); /* it has no form */
        done = at = last = end < n ? end + len : n;
    }
    pare_buffer_put(out, s + done, n - done);
}

/* ---- the others ------------------------------------------------------------------------------ */

static void put_lower(pare_buffer *out, uint32_t c)
{
    if (c == 0x130)
        pare_buffer_put(out, "i\xCC\x87", 3);
    else
        pare_buffer_put_char(out, pare_char_lower(c));
}

static bool is_chinese(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static bool is_dropped_by_bert(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r') return false;
    return c == 0xFFFD || pare_char_is_control(c);
}

static void put_bert(pare_buffer *out, const pare_normalizer *n, pare_piece text, pare_arena *a)
{
    pare_buffer clean = {.arena = a};
    for (size_t at = 0, len; at < text.n; at += len) {
        const uint32_t c = pare_utf8_next(text.s + at, text.n - at, &len);
        if (c == PARE_NO_CHAR) {
            pare_buffer_put(&clean, text.s + at, 1);
            continue;
        }
        if (n->clean && is_dropped_by_bert(c)) continue;
        const bool apart = n->chinese && c >= 0x3400 && is_chinese(c);
        if (apart) pare_buffer_put(&clean, " ", 1);
        if (n->clean && pare_char_is_space(c))
            pare_buffer_put(&clean, " ", 1);
        else
            pare_buffer_put(&clean, text.s + at, len);
        if (apart) pare_buffer_put(&clean, " ", 1);
    }
    if (n->strip_accents) {
        pare_buffer apart = {.arena = a};
        put_normal_form(&apart, UTF8PROC_DECOMPOSE, clean.s, clean.n);
        out->failed = out->failed || clean.failed;
        clean = apart;
    }
    out->failed = out->failed || clean.failed;
    for (size_t at = 0, len; at < clean.n; at += len) {
        const uint32_t c = pare_utf8_next(clean.s + at, clean.n - at, &len);
        if (n->strip_accents && pare_char_is_accent(c)) continue;
        if (n->lower && c != PARE_NO_CHAR)
            put_lower(out, c);
        else
            pare_buffer_put(out, clean.s + at, len);
    }
}

/* What sentencepiece's rules for translation drop (0), and what they make a blank (1). */
static int nmt_class(uint32_t c)
{
    if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
        c == 0x9F)
        return 0;
    if (c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
        c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD)
        return 1;
    return 2;
}

static void put_each_char(pare_buffer *out, normalizer_kind kind, pare_piece text)
{
    for (size_t at = 0, len; at < text.n; at += len) {
        const uint32_t c = pare_utf8_next(text.s + at, text.n - at, &len);
        if (c == PARE_NO_CHAR) {
            pare_buffer_put(out, text.s + at, 1);
        } else if (kind == NORMALIZE_LOWERCASE) {
            put_lower(out, c);
        } else if (kind == NORMALIZE_STRIP_ACCENTS) {
            if (!pare_char_is_mark(c)) pare_buffer_put(out, text.s + at, len);
        } else {
            const int class = nmt_class(c);
            if (class == 1) pare_buffer_put(out, " ", 1);
            if (class == 2) pare_buffer_put(out, text.s + at, len);
        }
    }
}

static pare_piece strip(pare_piece t, bool left, bool right)
{
    size_t len;
    while (left && t.n && pare_char_is_space(pare_utf8_next(t.s, t.n, &len))) {
        t.s += len;
        t.n -= len;
    }
    while (right && t.n) {
        size_t at = t.n - 1;
        while (at > 0 && t.n - at < 4 && ((uint8_t)t.s[at] & 0xC0) == 0x80) at--;
        if (!pare_char_is_space(pare_utf8_next(t.s + at, t.n - at, &len)) || at + len != t.n) break;
        t.n = at;
    }
    return t;
}

static pare_status replace(pare_buffer *out, const pare_normalizer *n, pare_piece text,
                           pare_regex_run *run, pare_err *err)
{
    size_t at = 0, from = 0, begin, end;
    while (from <= text.n) {
        const pare_status st =
            pare_regex_find(run, n->pattern, text.s, text.n, from, &begin, &end, err);
        if (st) return st;
        if (begin == text.n && end == text.n) break;
        pare_buffer_put(out, text.s + at, begin - at);
        pare_buffer_put(out, n->content.s, n->content.n);
        at = end;
        from = end > begin ? end : end + 1; /* an empty match */
    }
    pare_buffer_put(out, text.s + at, text.n - at);
    return PARE_OK;
}

uint32_t pare_byte_char(uint8_t b)
{
    if ((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174) return b;
    if (b <= 32) return 0x100u + b; /* the others, in their order, from U+0100 on */
    return b == 173 ? 0x143u : 0x100u + 33u + (b - 127u);
}

int pare_char_byte(uint32_t c)
{
    if (c < 0x100) return pare_byte_char((uint8_t)c) == c ? (int)c : -1;
    if (c <= 0x120) return (int)(c - 0x100);
    if (c < 0x143) return (int)(c - 0x121 + 127);
    return c == 0x143 ? 173 : -1;
}

void pare_put_byte_chars(pare_buffer *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) pare_buffer_put_char(out, pare_byte_char((uint8_t)s[i]));
}

pare_status pare_normalize(pare_piece *text, const pare_normalizers *list, pare_arena *a,
                           pare_regex_run *run, pare_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const pare_normalizer *const n = &list->v[i];
        pare_buffer out = {.arena = a};
        pare_status st = PARE_OK;
        switch (n->kind) {
        case NORMALIZE_UNICODE:
            put_normal_form(&out, n->form, text->s, text->n);
            break;
        case NORMALIZE_LOWERCASE:
        case NORMALIZE_STRIP_ACCENTS:
        case NORMALIZE_NMT:
            put_each_char(&out, n->kind, *text);
            break;
        case NORMALIZE_STRIP:
            *text = strip(*text, n->left, n->right);
            continue;
        case NORMALIZE_REPLACE:
            st = replace(&out, n, *text, run, err);
            break;
        case NORMALIZE_PREPEND:
            if (text->n) pare_buffer_put(&out, n->content.s, n->content.n);
            pare_buffer_put(&out, text->s, text->n);
            break;
        case NORMALIZE_BERT:
            put_bert(&out, n, *text, a);
            break;
        case NORMALIZE_CHARSMAP:
            pare_charsmap_apply(&out, &n->map, text->s, text->n);
            break;
        case NORMALIZE_BYTE_LEVEL:
            pare_put_byte_chars(&out, text->s, text->n);
            break;
        }
        if (st) return st;
        if (out.failed) return pare_no_memory(err);
        *text = (pare_piece){out.s ? out.s : "", out.n};
    }
    return PARE_OK;
}
