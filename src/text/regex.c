/* regex.c - the patterns of tokenizers, run by PCRE2 (regex.h).
 *
 * A pattern of a stranger may need exponential time. Each match is allowed FEW_STEPS; one that needs
 * more is tried again with MANY_STEPS, as often as a budget lets it, which grows with the text. So
 * the time of a call is bounded by a multiple of the text's length. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.h"
#include "base/support.h"
#include "text_buffer.h"
#include <pcre2.h>
#include <string.h>

enum { FEW_STEPS = 5000, MANY_STEPS = 1000000, HEAP_KIBIBYTES = 16384, LONGEST_PATTERN = 65536 };
enum { FIRST_RETRIES = 40, BYTES_PER_RETRY = 8192 };

struct pare_regex {
    pcre2_code *code;
    bool jit;
};

struct pare_regex_run {
    pcre2_match_data *data;
    pcre2_match_context *few, *many;
    pcre2_jit_stack *stack;
    size_t retries; /* so far */
};

/* Word characters as Oniguruma has them, inside a class. */
#define WORD_CLASS "\\p{L}\\p{M}\\p{N}\\p{Pc}"

/* The pattern as PCRE2 reads it. */
static pare_status translate(pare_buffer *out, const char *p, size_t n, pare_err *err)
{
    bool in_class = false;
    for (size_t i = 0; i < n; i++) {
        const char *with = NULL;
        if (p[i] == '\\' && i + 1 < n) {
            const char c = p[i + 1];
            if (c == 's') with = "\\p{White_Space}";
            if (c == 'S') with = "\\P{White_Space}";
            if (c == 'w') with = in_class ? WORD_CLASS : "[" WORD_CLASS "]";
            if (c == 'W' && !in_class) with = "[^" WORD_CLASS "]";
            if (c == 'h' || c == 'H' || c == 'C' || (c == 'W' && in_class))
                return pare_fail(err, PARE_ERR_INPUT,
                                 "the pattern has \\%c%s at byte %zu, which pare does not read", c,
                                 in_class ? " in a class" : "", i);
            if (with)
                pare_buffer_put(out, with, strlen(with));
            else
                pare_buffer_put(out, p + i, 2);
            i++;
            continue;
        }
        if (in_class && (p[i] == '[' || (p[i] == '&' && i + 1 < n && p[i + 1] == '&')) &&
            !(p[i] == '[' && i + 1 < n && p[i + 1] == ':'))
            return pare_fail(err, PARE_ERR_INPUT,
                             "the pattern has %s in a class at byte %zu, which pare does not read",
                             p[i] == '[' ? "[" : "&&", i);
        pare_buffer_put(out, p + i, 1);
        if (in_class && p[i] == '[') { /* [:name:] */
            const char *const close = memmem(p + i, n - i, ":]", 2);
            if (!close) return pare_fail(err, PARE_ERR_INPUT, "the pattern has [: without :]");
            pare_buffer_put(out, p + i + 1, (size_t)(close + 1 - (p + i)));
            i = (size_t)(close + 1 - p);
        } else if (!in_class && p[i] == '[') {
            in_class = true; /* a bracket that comes first stands for itself */
            if (i + 1 < n && p[i + 1] == '^') pare_buffer_put(out, p + ++i, 1);
            if (i + 1 < n && p[i + 1] == ']') pare_buffer_put(out, p + ++i, 1);
        } else if (in_class && p[i] == ']') {
            in_class = false;
        }
    }
    return out->failed ? pare_no_memory(err) : PARE_OK;
}

static void free_code(void *self)
{
    pare_regex *const r = self;
    pcre2_code_free(r->code);
}

pare_status pare_regex_new(pare_regex **out, pare_arena *a, const char *pattern, size_t bytes,
                           bool literal, pare_err *err)
{
    pare_buffer text = {.arena = a};
    pare_regex *const r = pare_alloc(a, 1, sizeof *r);
    if (!r || !pare_arena_on_free(a, free_code, r)) return pare_no_memory(err);
    if (bytes > LONGEST_PATTERN)
        return pare_fail(err, PARE_ERR_INPUT, "a pattern of %zu bytes is too long", bytes);
    if (literal) {
        pare_buffer_put(&text, pattern, bytes);
        if (text.failed) return pare_no_memory(err);
    } else {
        const pare_status st = translate(&text, pattern, bytes, err);
        if (st) return st;
    }
    const uint32_t options = literal ? PCRE2_LITERAL | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF
                                     : PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                           PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    int code = 0;
    PCRE2_SIZE at = 0;
    r->code = pcre2_compile((PCRE2_SPTR)(text.s ? text.s : ""), text.n, options, &code, &at, NULL);
    if (!r->code) {
        char why[160] = "";
        if (code == PCRE2_ERROR_NOMEMORY || code == 121) return pare_no_memory(err);
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return pare_fail(err, PARE_ERR_INPUT, "the pattern \"%.60s\" cannot be read: %s (byte %zu)",
                         text.s ? text.s : "", why, (size_t)at);
    }
    r->jit = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
    *out = r;
    return PARE_OK;
}

static void free_run(void *self)
{
    pare_regex_run *const run = self;
    pcre2_match_data_free(run->data);
    pcre2_match_context_free(run->few);
    pcre2_match_context_free(run->many);
    pcre2_jit_stack_free(run->stack);
}

pare_status pare_regex_run_new(pare_regex_run **out, pare_arena *a, pare_err *err)
{
    pare_regex_run *const run = pare_alloc(a, 1, sizeof *run);
    if (!run || !pare_arena_on_free(a, free_run, run)) return pare_no_memory(err);
    run->data = pcre2_match_data_create(1, NULL);
    run->few = pcre2_match_context_create(NULL);
    run->many = pcre2_match_context_create(NULL);
    if (!run->data || !run->few || !run->many) return pare_no_memory(err);
    pcre2_set_match_limit(run->few, FEW_STEPS);
    pcre2_set_match_limit(run->many, MANY_STEPS);
    pcre2_set_heap_limit(run->few, HEAP_KIBIBYTES);
    pcre2_set_heap_limit(run->many, HEAP_KIBIBYTES);
    *out = run;
    return PARE_OK;
}

/* PCRE2's own check of UTF-8 goes over the whole text at every call; compiled code does without. */
static int match(const pare_regex_run *run, const pare_regex *r, const char *text, size_t bytes,
                 size_t from, pcre2_match_context *limits)
{
    const PCRE2_SPTR s = (PCRE2_SPTR)(text ? text : "");
    return r->jit ? pcre2_jit_match(r->code, s, bytes, from, 0, run->data, limits)
                  : pcre2_match(r->code, s, bytes, from, 0, run->data, limits);
}

pare_status pare_regex_find(pare_regex_run *run, const pare_regex *r, const char *text,
                            size_t bytes, size_t from, size_t *begin, size_t *end, pare_err *err)
{
    int found = match(run, r, text, bytes, from, run->few);
    if ((found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_JIT_STACKLIMIT) &&
        run->retries++ < FIRST_RETRIES + bytes / BYTES_PER_RETRY) {
        if (!run->stack) run->stack = pcre2_jit_stack_create(32 * 1024, 1024 * 1024, NULL);
        if (!run->stack) return pare_no_memory(err);
        pcre2_jit_stack_assign(run->many, NULL, run->stack);
        found = match(run, r, text, bytes, from, run->many);
    }
    *begin = *end = bytes;
    if (found == PCRE2_ERROR_NOMATCH) return PARE_OK;
    if (found == PCRE2_ERROR_NOMEMORY) return pare_no_memory(err);
    if (found < 0)
        return pare_fail(err, PARE_ERR_INPUT,
                         "the tokenizer's pattern takes too long on this text (byte %zu)", from);
    const PCRE2_SIZE *const v = pcre2_get_ovector_pointer(run->data);
    /* \K may put the begin behind the end, or before `from`. */
    *begin = v[0] < from ? from : v[0];
    *end = v[1] < *begin ? *begin : v[1];
    return PARE_OK;
}
