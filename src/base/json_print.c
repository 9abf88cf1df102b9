/* json_print.c - JSON written: building a tree, and its text. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_WHOLE 0x1p53

/* ---- building -------------------------------------------------------------------------- */

static cJSON *append(cJSON *to, const char *key, cJSON *item)
{
    PARE_ASSERT(key ? cJSON_IsObject(to) : cJSON_IsArray(to));
    if (!item) return NULL;
    if (key ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item)) return item;
    cJSON_Delete(item);
    return NULL;
}

bool pare_json_add_number(cJSON *to, const char *key, double v)
{
    PARE_ASSERT(!isnan(v)); /* neither a bound nor a measurement is ever nan */
    if (isinf(v)) return pare_json_add_string(to, key, v > 0 ? "inf" : "-inf");
    return append(to, key, cJSON_CreateNumber(v)) != NULL;
}

bool pare_json_add_size(cJSON *to, const char *key, size_t v)
{
    PARE_ASSERT((double)v <= LARGEST_WHOLE);
    return append(to, key, cJSON_CreateNumber((double)v)) != NULL;
}

bool pare_json_add_u64(cJSON *to, const char *key, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, v);
    return pare_json_add_string(to, key, text);
}

bool pare_json_add_bool(cJSON *to, const char *key, bool v)
{
    return append(to, key, cJSON_CreateBool(v)) != NULL;
}

bool pare_json_add_null(cJSON *to, const char *key)
{
    return append(to, key, cJSON_CreateNull()) != NULL;
}

bool pare_json_add_string(cJSON *to, const char *key, const char *v)
{
    return append(to, key, cJSON_CreateString(v)) != NULL;
}

cJSON *pare_json_add_object(cJSON *to, const char *key)
{
    return append(to, key, cJSON_CreateObject());
}

cJSON *pare_json_add_array(cJSON *to, const char *key)
{
    return append(to, key, cJSON_CreateArray());
}

/* ---- text ------------------------------------------------------------------------------ */

/* Runs twice over the tree: first to == NULL and only counts, then writes. */
typedef struct sink {
    char *to;
    size_t used;
    int indent;
    bool nan;
} sink;

static void put(sink *s, const char *text, size_t n)
{
    if (s->to) memcpy(s->to + s->used, text, n);
    s->used += n;
}

static void put_text(sink *s, const char *text)
{
    put(s, text, strlen(text));
}

static void put_line_break(sink *s, int depth)
{
    if (s->indent == 0) return;
    put(s, "\n", 1);
    for (int i = 0; i < s->indent * depth; i++) put(s, " ", 1);
}

static void put_string(sink *s, const char *text)
{
    put(s, "\"", 1);
    for (const char *p = text; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        char code[8] = {(char)c};
        if (c == '\n' || c == '\t')
            snprintf(code, sizeof code, "\\%c", c == '\n' ? 'n' : 't');
        else if (c < 0x20)
            snprintf(code, sizeof code, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            snprintf(code, sizeof code, "\\%c", c);
        put_text(s, code);
    }
    put(s, "\"", 1);
}

/* With as few digits as give the same double again. */
static void put_number(sink *s, double v)
{
    char text[64], *to = text;
    if (isnan(v)) s->nan = true;
    if (isinf(v)) put_string(s, v > 0 ? "inf" : "-inf");
    if (!isfinite(v)) return;
    if (floor(v) == v && fabs(v) <= LARGEST_WHOLE) {
        snprintf(text, sizeof text, "%.0f", v);
    } else {
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, v);
            if (strtod(text, NULL) == v) break;
        }
    }
    /* printf writes the decimal point of the locale: all that is no part of a number in the C
     * locale becomes one '.'. */
    for (const char *from = text; *from; from++) {
        if (strchr("0123456789+-eE", *from))
            *to++ = *from;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    put(s, text, (size_t)(to - text));
}

static void put_value(sink *s, const cJSON *v, int depth)
{
    if (cJSON_IsObject(v) || cJSON_IsArray(v)) {
        const bool object = cJSON_IsObject(v);
        put(s, object ? "{" : "[", 1);
        for (const cJSON *c = v->child; c; c = c->next) {
            put_line_break(s, depth + 1);
            if (object) {
                put_string(s, c->string);
                put_text(s, ": ");
            }
            put_value(s, c, depth + 1);
            if (c->next) put_text(s, s->indent ? "," : ", ");
        }
        if (v->child) put_line_break(s, depth);
        put(s, object ? "}" : "]", 1);
    } else if (cJSON_IsString(v)) {
        put_string(s, v->valuestring);
    } else if (cJSON_IsNumber(v)) {
        put_number(s, v->valuedouble);
    } else {
        put_text(s, cJSON_IsTrue(v) ? "true" : cJSON_IsFalse(v) ? "false" : "null");
    }
}

pare_status pare_json_print(char **out, size_t *bytes, pare_arena *a, const cJSON *root, int indent,
                            pare_err *err)
{
    sink s = {.indent = indent};
    put_value(&s, root, 0);
    if (s.nan) return pare_fail(err, PARE_ERR_NONFINITE, "a nan cannot be written as JSON");
    char *text = pare_alloc(a, s.used + 1, 1);
    if (!text) return pare_no_memory(err);
    s.to = text;
    s.used = 0;
    put_value(&s, root, 0);
    *out = text;
    if (bytes) *bytes = s.used;
    return PARE_OK;
}

pare_status pare_json_write(const cJSON *root, const char *path, bool overwrite, pare_err *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pare_out *out = NULL;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? pare_json_print(&text, &bytes, a, root, 2, err) : pare_no_memory(err);
    if (!st) st = pare_out_open(&out, path, overwrite, err);
    if (!st) st = pare_out_write(out, text, bytes, err);
    if (!st) st = pare_out_write(out, "\n", 1, err);
    if (!st)
        st = pare_out_commit(out, err);
    else
        pare_out_abort(out);
    pare_arena_free(a);
    return st;
}
