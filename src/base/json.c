/* json.c - JSON read: parse, then typed access. */
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_WHOLE 0x1p53 /* beyond, doubles skip whole numbers */

/* ---- parse ----------------------------------------------------------------------------- */

/* A member of an object and its place there. */
typedef struct member {
    cJSON *v;
    size_t at;
} member;

static int compare_members(const void *a, const void *b)
{
    const member *const x = a, *const y = b;
    const int order = strcmp(x->v->string, y->v->string);
    return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* Sorted rather than pair by pair: the header of a model has thousands of keys. With `twins`: of equal
 * keys the last one stays, and the others are counted there. */
static pare_status check_keys_unique(cJSON *obj, size_t *twins, pare_err *err)
{
    size_t n = 0;
    for (const cJSON *c = obj->child; c; c = c->next) n++;
    if (n < 2) return PARE_OK;
    member *const keys = calloc(n, sizeof *keys);
    if (!keys) return pare_no_memory(err);
    n = 0;
    for (cJSON *c = obj->child; c; c = c->next, n++) keys[n] = (member){c, n};
    qsort(keys, n, sizeof *keys, compare_members);
    pare_status st = PARE_OK;
    for (size_t i = 1; i < n && st == PARE_OK; i++) {
        if (strcmp(keys[i - 1].v->string, keys[i].v->string) != 0) continue;
        if (!twins) {
            st = pare_fail(err, PARE_ERR_INPUT, "key \"%.200s\" is given twice", keys[i].v->string);
            continue;
        }
        cJSON_Delete(cJSON_DetachItemViaPointer(obj, keys[i - 1].v));
        keys[i - 1].v = keys[i].v; /* the deleted one is not looked at again */
        ++*twins;
    }
    free(keys);
    return st;
}

/* Where a key may be given more than once: in objects of this name, or in the value itself (""). */
typedef struct repeats {
    const char *name;
    size_t twins;
} repeats;

static pare_status check_tree(cJSON *v, repeats *allowed, pare_err *err)
{
    if (cJSON_IsNumber(v) && !isfinite(v->valuedouble))
        return pare_fail(err, PARE_ERR_INPUT, "%s%.200s%s is too large for a double",
                         v->string ? "the number of key \"" : "a number",
                         v->string ? v->string : "", v->string ? "\"" : "");
    const bool may = allowed && strcmp(v->string ? v->string : "", allowed->name) == 0;
    pare_status st =
        cJSON_IsObject(v) ? check_keys_unique(v, may ? &allowed->twins : NULL, err) : PARE_OK;
    for (cJSON *c = v->child; c && st == PARE_OK; c = c->next) st = check_tree(c, allowed, err);
    return st;
}

static pare_status parse(cJSON **out, const char *text, size_t bytes, repeats *allowed,
                         pare_err *err)
{
    *out = NULL;
    pare_status st = pare_json_check(text, bytes, err);
    if (st != PARE_OK) return st;
    /* The grammar is right, so that only memory can fail here. Debian's cJSON asks localeconv()
     * for the decimal point before it calls strtod: "1.5" is 1.5 in every locale. */
    cJSON *tree = cJSON_ParseWithLength(text, bytes);
    if (!tree) return pare_no_memory(err);
    st = check_tree(tree, allowed, err);
    if (st == PARE_OK)
        *out = tree;
    else
        cJSON_Delete(tree);
    return st;
}

pare_status pare_json_parse(cJSON **out, const char *text, size_t bytes, pare_err *err)
{
    return parse(out, text, bytes, NULL, err);
}

pare_status pare_json_parse_vocab(cJSON **out, size_t *twins, const char *text, size_t bytes,
                                  const char *name, pare_err *err)
{
    repeats allowed = {name, 0};
    const pare_status st = parse(out, text, bytes, &allowed, err);
    *twins = allowed.twins;
    return st;
}

pare_status pare_json_read_blob(cJSON **out, const pare_blob *b, pare_err *err)
{
    const pare_status st = pare_json_parse(out, (const char *)b->data, b->bytes, err);
    if (st != PARE_OK) pare_err_prefix(err, b->path);
    return st;
}

pare_status pare_json_read(cJSON **out, const char *path, pare_err *err)
{
    *out = NULL;
    pare_blob *b;
    pare_status st = pare_blob_open(&b, path, err);
    if (st != PARE_OK) return st;
    st = pare_json_read_blob(out, b, err);
    pare_blob_release(b);
    return st;
}

/* ---- typed access ---------------------------------------------------------------------- */

static const cJSON *find(const cJSON *obj, const char *key)
{
    return cJSON_IsObject(obj) ? cJSON_GetObjectItemCaseSensitive(obj, key) : NULL;
}

bool pare_json_has(const cJSON *obj, const char *key)
{
    const cJSON *v = find(obj, key);
    return v && !cJSON_IsNull(v);
}

static pare_status wrong_value(const cJSON *obj, const char *key, const char *what, pare_err *err)
{
    const char *in = obj && obj->string ? obj->string : NULL;
    return pare_fail(err, PARE_ERR_INPUT, "key \"%.100s%s%.200s\" %s%s", in ? in : "",
                     in ? "." : "", key, find(obj, key) ? "must be " : "is missing; it must be ",
                     what);
}

pare_status pare_json_number(double *out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble))
        return wrong_value(obj, key, "a number", err);
    *out = v->valuedouble;
    return PARE_OK;
}

pare_status pare_json_bound(double *out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    if (cJSON_IsString(v) && strcmp(v->valuestring, "inf") == 0)
        *out = INFINITY;
    else if (cJSON_IsString(v) && strcmp(v->valuestring, "-inf") == 0)
        *out = -INFINITY;
    else if (cJSON_IsNumber(v) && !isnan(v->valuedouble))
        *out = v->valuedouble;
    else
        return wrong_value(obj, key, "a number or \"inf\"", err);
    return PARE_OK;
}

pare_status pare_json_size(size_t *out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= LARGEST_WHOLE) ||
        floor(v->valuedouble) != v->valuedouble)
        return wrong_value(obj, key, "a whole number from 0 to 2^53", err);
    *out = (size_t)v->valuedouble;
    return PARE_OK;
}

pare_status pare_json_u64(uint64_t *out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    const char *s = cJSON_IsString(v) ? v->valuestring : "";
    uint64_t n = 0;
    bool ok = *s != '\0';
    for (; *s && ok; s++)
        ok = *s >= '0' && *s <= '9' && !__builtin_mul_overflow(n, (uint64_t)10, &n) &&
             !__builtin_add_overflow(n, (uint64_t)(*s - '0'), &n);
    if (!ok) return wrong_value(obj, key, "a string of digits below 2^64", err);
    *out = n;
    return PARE_OK;
}

pare_status pare_json_bool(bool *out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    if (!cJSON_IsBool(v)) return wrong_value(obj, key, "true or false", err);
    *out = cJSON_IsTrue(v);
    return PARE_OK;
}

pare_status pare_json_string(const char **out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    if (!cJSON_IsString(v)) return wrong_value(obj, key, "a string", err);
    *out = v->valuestring;
    return PARE_OK;
}

pare_status pare_json_object(const cJSON **out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    if (!cJSON_IsObject(v)) return wrong_value(obj, key, "an object", err);
    *out = v;
    return PARE_OK;
}

pare_status pare_json_array(const cJSON **out, const cJSON *obj, const char *key, pare_err *err)
{
    const cJSON *v = find(obj, key);
    if (!cJSON_IsArray(v)) return wrong_value(obj, key, "an array", err);
    *out = v;
    return PARE_OK;
}

/* ---- optional keys --------------------------------------------------------------------- */

pare_status pare_json_number_opt(double *out, const cJSON *obj, const char *key, pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_number(out, obj, key, err) : PARE_OK;
}

pare_status pare_json_bound_opt(double *out, const cJSON *obj, const char *key, pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_bound(out, obj, key, err) : PARE_OK;
}

pare_status pare_json_size_opt(size_t *out, const cJSON *obj, const char *key, pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_size(out, obj, key, err) : PARE_OK;
}

pare_status pare_json_u64_opt(uint64_t *out, const cJSON *obj, const char *key, pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_u64(out, obj, key, err) : PARE_OK;
}

pare_status pare_json_bool_opt(bool *out, const cJSON *obj, const char *key, pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_bool(out, obj, key, err) : PARE_OK;
}

pare_status pare_json_string_opt(const char **out, const cJSON *obj, const char *key, pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_string(out, obj, key, err) : PARE_OK;
}

pare_status pare_json_object_opt(const cJSON **out, const cJSON *obj, const char *key,
                                 pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_object(out, obj, key, err) : PARE_OK;
}

pare_status pare_json_array_opt(const cJSON **out, const cJSON *obj, const char *key, pare_err *err)
{
    return pare_json_has(obj, key) ? pare_json_array(out, obj, key, err) : PARE_OK;
}
