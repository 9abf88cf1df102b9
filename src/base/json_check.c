/* json_check.c - is a text one JSON value? A recursive descent that builds nothing. */
#include "json.h"
#include "utf8.h"

#include <string.h>

#define NUMBER_MAX 60 /* cJSON copies a number into 64 characters */

typedef struct scan {
    const char *start, *p, *end;
    const char *wrong; /* why it stopped at p; NULL while all is well */
} scan;

static bool stop(scan *s, const char *why)
{
    if (!s->wrong) s->wrong = why;
    return false;
}

static char peek(const scan *s)
{
    return s->p < s->end ? *s->p : '\0';
}

static void blanks(scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool digits(scan *s)
{
    const char *from = s->p;
    while (peek(s) >= '0' && peek(s) <= '9') s->p++;
    return s->p > from || stop(s, "a digit is expected");
}

static bool number(scan *s)
{
    const char *from = s->p;
    if (peek(s) == '-') s->p++;
    if (peek(s) == '0')
        s->p++;
    else if (!digits(s))
        return false;
    if (peek(s) == '.') {
        s->p++;
        if (!digits(s)) return false;
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->p++;
        if (peek(s) == '+' || peek(s) == '-') s->p++;
        if (!digits(s)) return false;
    }
    return s->p - from <= NUMBER_MAX || stop(s, "number with too many digits");
}

static bool hex4(scan *s, unsigned *out)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++, s->p++) {
        const char c = peek(s);
        if (c >= '0' && c <= '9')
            v = v * 16 + (unsigned)(c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            v = v * 16 + (unsigned)((c | 32) - 'a') + 10;
        else
            return stop(s, "four hexadecimal digits are expected");
    }
    *out = v;
    return true;
}

/* After the backslash. */
static bool escape(scan *s)
{
    const char c = peek(s);
    if (!c || !strchr("\"\\/bfnrtu", c)) return stop(s, "unknown escape in a string");
    s->p++;
    if (c != 'u') return true;
    unsigned v, low;
    if (!hex4(s, &v)) return false;
    if (v == 0) return stop(s, "zero character in a string");
    if (v >= 0xDC00 && v <= 0xDFFF) return stop(s, "half of a surrogate pair");
    if (v < 0xD800 || v > 0xDBFF) return true;
    if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
        return stop(s, "half of a surrogate pair");
    s->p += 2;
    if (!hex4(s, &low)) return false;
    return (low >= 0xDC00 && low <= 0xDFFF) || stop(s, "half of a surrogate pair");
}

static bool string(scan *s)
{
    if (peek(s) != '"') return stop(s, "a string in double quotes is expected");
    s->p++;
    while (s->p < s->end && *s->p != '"') {
        const unsigned char c = (unsigned char)*s->p;
        if (c < 0x20) return stop(s, "control character in a string");
        if (c == '\\') {
            s->p++;
            if (!escape(s)) return false;
            continue;
        }
        size_t n;
        if (pare_utf8_next(s->p, (size_t)(s->end - s->p), &n) == PARE_NO_CHAR)
            return stop(s, "invalid UTF-8");
        s->p += n;
    }
    if (s->p == s->end) return stop(s, "string without end");
    s->p++;
    return true;
}

static bool value(scan *s, int depth);

/* An object or an array, by its closing character. */
static bool group(scan *s, char close, int depth)
{
    if (depth >= PARE_JSON_MAX_DEPTH) return stop(s, "nested too deeply");
    s->p++;
    blanks(s);
    if (peek(s) == close) {
        s->p++;
        return true;
    }
    for (;;) {
        blanks(s);
        if (close == '}') {
            if (!string(s)) return false;
            blanks(s);
            if (peek(s) != ':') return stop(s, "':' is expected");
            s->p++;
        }
        if (!value(s, depth + 1)) return false;
        const char c = peek(s);
        if (c != ',' && c != close)
            return stop(s, close == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
        s->p++;
        if (c == close) return true;
    }
}

static bool value(scan *s, int depth)
{
    blanks(s);
    const char c = peek(s);
    bool ok = true;
    if (c == '{' || c == '[') {
        ok = group(s, c == '{' ? '}' : ']', depth);
    } else if (c == '"') {
        ok = string(s);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        ok = number(s);
    } else {
        const char *const word = c == 't' ? "true" : c == 'f' ? "false" : "null";
        const size_t n = strlen(word);
        if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
            return stop(s, "a value is expected");
        s->p += n;
    }
    if (ok) blanks(s);
    return ok;
}

pare_status pare_json_check(const char *text, size_t bytes, pare_err *err)
{
    scan s = {.start = text, .p = text, .end = text + bytes};
    if (value(&s, 0) && s.p == s.end) return PARE_OK;
    if (!s.wrong) stop(&s, "text after the end of the value");
    size_t line = 1, column = 1;
    for (const char *p = s.start; p < s.p; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return pare_fail(err, PARE_ERR_INPUT, "line %zu, column %zu: %s%s", line, column, s.wrong,
                     s.p == s.end ? " (the text ends here)" : "");
}
