/* json.h - a strict border around cJSON: what gets in is checked, what goes out is stable.
 *
 * A tree is a plain cJSON, freed with cJSON_Delete. Keys are compared exactly (cJSON's own
 * cJSON_GetObjectItem ignores case: do not use it). The functions here do not depend on the
 * locale: numbers always have a point. */
#ifndef PARE_BASE_JSON_H
#define PARE_BASE_JSON_H
#include <pare/base.h>

#include <cjson/cJSON.h>

#define PARE_JSON_MAX_DEPTH 64

/* ---- reading --------------------------------------------------------------------------- */

/* The whole range must be one JSON value (white space around it is fine). Refused with line and
 * column: bad grammar, anything after the value, nesting beyond PARE_JSON_MAX_DEPTH, invalid
 * UTF-8, a zero character in a string, a number too large for a double, a key given twice.
 * Caller frees *out with cJSON_Delete; on failure *out is NULL. */
PARE_MUST_USE pare_status pare_json_parse(cJSON **out, const char *text, size_t bytes,
                                          pare_err *err);
/* A vocabulary may give a key twice: in objects called `name` (""; the value itself) the last one
 * counts, as for the families' own readers, and *twins is the number of those that do not. */
PARE_MUST_USE pare_status pare_json_parse_vocab(cJSON **out, size_t *twins, const char *text,
                                                size_t bytes, const char *name, pare_err *err);
/* The same for a file; messages start with its path. */
PARE_MUST_USE pare_status pare_json_read(cJSON **out, const char *path, pare_err *err);
PARE_MUST_USE pare_status pare_json_read_blob(cJSON **out, const pare_blob *b, pare_err *err);

/* Getters: PARE_ERR_INPUT naming the key (and the object it was looked for in, when that one has
 * a name) if the key is missing or of another type; *out is then untouched. `obj` may be NULL or
 * not an object: that is the same error. What they hand out is borrowed from the tree. */
PARE_MUST_USE pare_status pare_json_number(double *out, const cJSON *obj, const char *key,
                                           pare_err *err);
/* A number, or one of the strings "inf" and "-inf". */
PARE_MUST_USE pare_status pare_json_bound(double *out, const cJSON *obj, const char *key,
                                          pare_err *err);
/* A whole number from 0 to 2^53. */
PARE_MUST_USE pare_status pare_json_size(size_t *out, const cJSON *obj, const char *key,
                                         pare_err *err);
/* A string of decimal digits: how 64-bit seeds travel. */
PARE_MUST_USE pare_status pare_json_u64(uint64_t *out, const cJSON *obj, const char *key,
                                        pare_err *err);
/* A value of that type. */
PARE_MUST_USE pare_status pare_json_bool(bool *out, const cJSON *obj, const char *key,
                                         pare_err *err);
PARE_MUST_USE pare_status pare_json_string(const char **out, const cJSON *obj, const char *key,
                                           pare_err *err);
PARE_MUST_USE pare_status pare_json_object(const cJSON **out, const cJSON *obj, const char *key,
                                           pare_err *err);
PARE_MUST_USE pare_status pare_json_array(const cJSON **out, const cJSON *obj, const char *key,
                                          pare_err *err);

/* The same, but a key that is missing or null leaves *out as it was (the default the caller put
 * there) and is PARE_OK. A key of the wrong type is still an error. */
PARE_MUST_USE pare_status pare_json_number_opt(double *out, const cJSON *obj, const char *key,
                                               pare_err *err);
PARE_MUST_USE pare_status pare_json_bound_opt(double *out, const cJSON *obj, const char *key,
                                              pare_err *err);
PARE_MUST_USE pare_status pare_json_size_opt(size_t *out, const cJSON *obj, const char *key,
                                             pare_err *err);
PARE_MUST_USE pare_status pare_json_u64_opt(uint64_t *out, const cJSON *obj, const char *key,
                                            pare_err *err);
PARE_MUST_USE pare_status pare_json_bool_opt(bool *out, const cJSON *obj, const char *key,
                                             pare_err *err);
PARE_MUST_USE pare_status pare_json_string_opt(const char **out, const cJSON *obj, const char *key,
                                               pare_err *err);
PARE_MUST_USE pare_status pare_json_object_opt(const cJSON **out, const cJSON *obj, const char *key,
                                               pare_err *err);
PARE_MUST_USE pare_status pare_json_array_opt(const cJSON **out, const cJSON *obj, const char *key,
                                              pare_err *err);
/* The key is there and is not null. */
bool pare_json_has(const cJSON *obj, const char *key);

/* ---- writing --------------------------------------------------------------------------- */

/* Each appends key and value to an object and is false only when memory is out, so that calls
 * chain with &&. A key must be added once. For arrays use key = NULL. */
PARE_MUST_USE bool pare_json_add_number(cJSON *to, const char *key, double v); /* inf: "inf" */
PARE_MUST_USE bool pare_json_add_size(cJSON *to, const char *key, size_t v);   /* <= 2^53 */
PARE_MUST_USE bool pare_json_add_u64(cJSON *to, const char *key, uint64_t v);  /* as a string */
PARE_MUST_USE bool pare_json_add_bool(cJSON *to, const char *key, bool v);
PARE_MUST_USE bool pare_json_add_null(cJSON *to, const char *key);
PARE_MUST_USE bool pare_json_add_string(cJSON *to, const char *key, const char *v);
PARE_MUST_USE cJSON *pare_json_add_object(cJSON *to, const char *key); /* NULL: memory is out */
PARE_MUST_USE cJSON *pare_json_add_array(cJSON *to, const char *key);
/* Adds the values that follow to an object: `fields` has a word "key:kind" for each of them.
 *   s  const char *; NULL: null     z  size_t or uint64_t, at most 2^53     b  bool
 *   u  uint64_t, as a string        Z  size_t; SIZE_MAX: null
 *   g  double, not nan              n  double; nan: null                    N  nan: left out
 *   f  double; null unless it is finite
 * False: memory was out, or there is no object. */
PARE_MUST_USE bool pare_json_add_values(cJSON *to, const char *fields, ...);
/* The same as a new object below `key` of `to`; key NULL: a new entry of a list. */
PARE_MUST_USE bool pare_json_add_record(cJSON *to, const char *key, const char *fields, ...);

/* The tree as text in the arena, ended by a zero that *bytes does not count (bytes may be NULL):
 * keys in the order they were added, the fewest digits (at most 17) that give the same double
 * back, whole numbers up to 2^53 without exponent, an infinite number as the string "inf" or
 * "-inf". indent = 0: one line; else that many spaces per level. No line end after the last
 * character. A nan in the tree is PARE_ERR_NONFINITE. */
PARE_MUST_USE pare_status pare_json_print(char **out, size_t *bytes, pare_arena *a,
                                          const cJSON *root, int indent, pare_err *err);

/* The tree as a file: indented by 2, with a line end behind it. */
PARE_MUST_USE pare_status pare_json_write(const cJSON *root, const char *path, bool overwrite,
                                          pare_err *err);

/* Strict JSON, or PARE_ERR_INPUT with line and column. cJSON alone lets pass what is none (1. 01
 * -.5, control characters), cuts long numbers, and does not say where it stopped. */
PARE_MUST_USE pare_status pare_json_check(const char *text, size_t bytes, pare_err *err);
#endif
