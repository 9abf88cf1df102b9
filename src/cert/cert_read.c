/* Reading a certificate. Strict: whoever edits one must not be able to hide a claim behind a key
 * nobody looks at, so every key is known, every known key is there, and nothing is converted. */
#include "cert_parts.h"

#include <math.h>
#include <string.h>

/* A value in the tree with its path for messages; `st` sticks at the first failure, so that a
 * row of gets needs one test at its end. */
typedef struct reader {
    pare_arena *a;
    pare_err *err;
    pare_status st;
} reader;

typedef struct place {
    const cJSON *v;
    const char *path; /* "" at the top */
} place;

static void end_with(reader *r, pare_status st, place p, const char *why)
{
    if (r->st != PARE_OK) return;
    r->st = pare_fail(r->err, st, "%s: %s", *p.path ? p.path : "the certificate", why);
}

static void refuse(reader *r, place p, const char *why)
{
    end_with(r, PARE_ERR_INPUT, p, why);
}

static const char *keep(reader *r, const char *s)
{
    char *const copy = r->st == PARE_OK ? pare_strdup(r->a, s) : NULL;
    if (!copy && r->st == PARE_OK) r->st = pare_no_memory(r->err);
    return copy;
}

static void *list(reader *r, size_t n, size_t size)
{
    void *const v = r->st == PARE_OK ? pare_alloc(r->a, n ? n : 1, size) : NULL;
    if (!v && r->st == PARE_OK) r->st = pare_no_memory(r->err);
    return v;
}

/* ---- walking ------------------------------------------------------------------------------- */

static place step(reader *r, const cJSON *v, const char *path)
{
    if (!path && r->st == PARE_OK) r->st = pare_no_memory(r->err);
    return (place){v, path ? path : ""};
}

static place member(reader *r, place p, const cJSON *v)
{
    return step(r, v, pare_sprintf(r->a, "%s%s%s", p.path, *p.path ? "." : "", v->string));
}

static place element(reader *r, place p, const cJSON *v, size_t i)
{
    return step(r, v, pare_sprintf(r->a, "%s[%zu]", p.path, i));
}

static place child(reader *r, place p, const char *key)
{
    if (r->st != PARE_OK) return (place){NULL, ""};
    for (const cJSON *c = p.v->child; c; c = c->next)
        if (strcmp(c->string, key) == 0) return member(r, p, c);
    const char *const path = pare_sprintf(r->a, "%s%s%s", p.path, *p.path ? "." : "", key);
    const place at = step(r, NULL, path);
    refuse(r, at, "this key is missing");
    return at;
}

/* An object with no key beyond those `n`. That none is missing is found by the gets. */
static bool is_object(reader *r, place p, const char *const *keys, size_t n)
{
    if (r->st == PARE_OK && !cJSON_IsObject(p.v)) refuse(r, p, "must be an object");
    if (r->st != PARE_OK) return false;
    for (const cJSON *c = p.v->child; c; c = c->next) {
        bool known = false;
        for (size_t i = 0; i < n && !known; i++) known = strcmp(c->string, keys[i]) == 0;
        if (known) continue;
        refuse(r, member(r, p, c), "unknown key");
        return false;
    }
    return true;
}

static size_t array_size(reader *r, place p)
{
    if (r->st == PARE_OK && !cJSON_IsArray(p.v)) refuse(r, p, "must be an array");
    return r->st == PARE_OK ? (size_t)cJSON_GetArraySize(p.v) : 0;
}

/* ---- leaves -------------------------------------------------------------------------------- */

static const char *get_text(reader *r, place p, const char *key)
{
    const place at = child(r, p, key);
    if (r->st == PARE_OK && (!cJSON_IsString(at.v) || !*at.v->valuestring))
        refuse(r, at, "must be a string that is not empty");
    return keep(r, r->st == PARE_OK ? at.v->valuestring : "");
}

static void hash_at(reader *r, place at, char hex[PARE_SHA256_HEX])
{
    if (r->st != PARE_OK) return;
    const char *const s = cJSON_IsString(at.v) ? at.v->valuestring : "";
    if (strlen(s) != PARE_SHA256_HEX - 1 || strspn(s, "0123456789abcdef") != PARE_SHA256_HEX - 1)
        refuse(r, at, "must be 64 hex digits (lower case)");
    else
        memcpy(hex, s, PARE_SHA256_HEX);
}

static void get_hash(reader *r, place p, const char *key, char hex[PARE_SHA256_HEX])
{
    hash_at(r, child(r, p, key), hex);
}

/* A number or "inf" / "-inf"; nan can not be written in JSON. */
static double number_at(reader *r, place at)
{
    if (r->st != PARE_OK) return NAN;
    if (cJSON_IsNumber(at.v) && !isnan(at.v->valuedouble)) return at.v->valuedouble;
    if (cJSON_IsString(at.v) && strcmp(at.v->valuestring, "inf") == 0) return INFINITY;
    if (cJSON_IsString(at.v) && strcmp(at.v->valuestring, "-inf") == 0) return -INFINITY;
    refuse(r, at, "must be a number or \"inf\"");
    return NAN;
}

static double get_bound(reader *r, place p, const char *key)
{
    const place at = child(r, p, key);
    const double v = number_at(r, at);
    /* It can be read, and no file could make it true. */
    if (!(v >= 0)) end_with(r, PARE_ERR_VERIFY, at, "must not be negative");
    return v;
}

/* null: does not apply, a nan in memory. */
static double get_maybe(reader *r, place p, const char *key)
{
    const place at = child(r, p, key);
    return r->st == PARE_OK && !cJSON_IsNull(at.v) ? number_at(r, at) : NAN;
}

static size_t get_size(reader *r, place p, const char *key, size_t least)
{
    const place at = child(r, p, key);
    if (r->st != PARE_OK) return 0;
    const double v = cJSON_IsNumber(at.v) ? at.v->valuedouble : -1;
    if (v >= (double)least && v <= 0x1p53 && v == floor(v)) return (size_t)v;
    refuse(r, at, least ? "must be a whole number above 0" : "must be a whole number");
    return 0;
}

static uint64_t get_seed(reader *r, place p, const char *key)
{
    uint64_t v = 0;
    const place at = child(r, p, key);
    if (r->st == PARE_OK && pare_json_u64(&v, p.v, key, NULL) != PARE_OK)
        refuse(r, at, "must be a 64-bit whole number as a string of decimal digits");
    return v;
}

static pare_truth get_truth(reader *r, place p, const char *key)
{
    const place at = child(r, p, key);
    if (r->st == PARE_OK && !cJSON_IsBool(at.v) && !cJSON_IsNull(at.v))
        refuse(r, at, "must be true, false or null");
    if (r->st != PARE_OK || cJSON_IsNull(at.v)) return PARE_UNKNOWN;
    return cJSON_IsTrue(at.v) ? PARE_TRUE : PARE_FALSE;
}

/* ---- pieces -------------------------------------------------------------------------------- */

#define KEYS(...)                                                                                  \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void read_file(reader *r, place p, pare_file_ref *out)
{
    if (!is_object(r, p, KEYS("path", "sha256", "tensors"))) return;
    out->path = get_text(r, p, "path");
    get_hash(r, p, "sha256", out->sha256);
    const place t = child(r, p, "tensors");
    if (r->st == PARE_OK && !cJSON_IsObject(t.v)) refuse(r, t, "must be an object");
    if (r->st != PARE_OK) return;
    const size_t n = (size_t)cJSON_GetArraySize(t.v);
    out->tensors = list(r, n, sizeof *out->tensors);
    for (const cJSON *c = t.v->child; c && r->st == PARE_OK; c = c->next) {
        pare_tensor_hash *const h = &out->tensors[out->ntensors++];
        h->name = keep(r, c->string);
        hash_at(r, member(r, t, c), h->sha256);
    }
}

static void read_data(reader *r, place p, pare_data_ref *out)
{
    if (r->st == PARE_OK && !cJSON_IsObject(p.v)) refuse(r, p, "must be an object");
    out->kind = get_text(r, p, "kind");
    if (r->st != PARE_OK) return;
    const bool random = strcmp(out->kind, "random") == 0, part = strcmp(out->kind, "part") == 0;
    if (!random && !part && strcmp(out->kind, "file") != 0) {
        refuse(r, child(r, p, "kind"), "must be \"random\", \"file\" or \"part\"");
        return;
    }
    if (random) {
        is_object(r, p, KEYS("kind", "count", "tokens", "inputs_sha256", "seal"));
        out->tokens = get_size(r, p, "tokens", 1);
    } else {
        if (part)
            is_object(r, p,
                      KEYS("kind", "path", "sha256", "split", "first", "count", "tokens",
                           "inputs_sha256", "seal"));
        else
            is_object(r, p,
                      KEYS("kind", "path", "sha256", "split", "count", "inputs_sha256", "seal"));
        if (part) out->first = get_size(r, p, "first", 0);
        if (part) out->tokens = get_size(r, p, "tokens", 0);
        out->path = get_text(r, p, "path");
        get_hash(r, p, "sha256", out->sha256);
        out->split = get_size(r, p, "split", 0);
    }
    out->count = get_size(r, p, "count", 1);
    get_hash(r, p, "inputs_sha256", out->inputs_sha256);
    get_hash(r, p, "seal", out->seal);
}

static void read_hypotheses(reader *r, place p, pare_cert *c)
{
    const size_t n = array_size(r, p);
    c->hypotheses = list(r, n, sizeof *c->hypotheses);
    for (const cJSON *v = n ? p.v->child : NULL; v && r->st == PARE_OK; v = v->next) {
        pare_hypothesis *const h = &c->hypotheses[c->nhypotheses];
        const place at = element(r, p, v, c->nhypotheses++);
        if (!is_object(r, at, KEYS("name", "holds", "value", "limit"))) return;
        h->name = get_text(r, at, "name");
        h->holds = get_truth(r, at, "holds");
        h->value = get_maybe(r, at, "value");
        h->limit = get_maybe(r, at, "limit");
    }
}

static void read_statements(reader *r, place p, pare_cert *c)
{
    const size_t n = array_size(r, p);
    c->statements = list(r, n, sizeof *c->statements);
    for (const cJSON *v = n ? p.v->child : NULL; v && r->st == PARE_OK; v = v->next) {
        pare_statement *const s = &c->statements[c->nstatements];
        const place at = element(r, p, v, c->nstatements++);
        if (!is_object(r, at, KEYS("name", "norm", "domain", "probability", "bound"))) return;
        s->name = get_text(r, at, "name");
        s->norm = get_text(r, at, "norm");
        s->domain = get_text(r, at, "domain");
        s->probability = number_at(r, child(r, at, "probability"));
        if (!(s->probability > 0 && s->probability <= 1))
            refuse(r, child(r, at, "probability"), "must be above 0 and at most 1");
        s->bound = get_bound(r, at, "bound");
    }
}

static void read_paper(reader *r, place p, pare_cert *c)
{
    if (r->st == PARE_OK && !cJSON_IsObject(p.v)) refuse(r, p, "must be an object");
    const size_t n = r->st == PARE_OK ? (size_t)cJSON_GetArraySize(p.v) : 0;
    c->paper = list(r, n, sizeof *c->paper);
    for (const cJSON *v = n ? p.v->child : NULL; v && r->st == PARE_OK; v = v->next) {
        pare_named *const x = &c->paper[c->npaper++];
        x->name = keep(r, v->string);
        x->value = number_at(r, member(r, p, v));
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static pare_cert *read_cert(reader *r, place p, bool link);

/* Links are never chains themselves: composing gives their links instead. */
static void read_chain(reader *r, place p, pare_cert *c, bool link)
{
    const place reduction = child(r, p, "reduction"), chain = child(r, p, "chain");
    const size_t n = array_size(r, chain);
    if (r->st != PARE_OK) return;
    const bool composed = strcmp(c->reduction, CERT_CHAIN) == 0;
    if (composed && link)
        refuse(r, reduction, "a link must not be a chain itself");
    else if (composed != (n > 0))
        refuse(r, chain, "has links exactly when the reduction is chain");
    c->chain = list(r, n, sizeof *c->chain);
    for (const cJSON *v = n ? chain.v->child : NULL; v && r->st == PARE_OK; v = v->next) {
        c->chain[c->nchain] = read_cert(r, element(r, chain, v, c->nchain), true);
        c->nchain++;
    }
}

static pare_cert *read_cert(reader *r, place p, bool link)
{
    pare_cert *const c = list(r, 1, sizeof *c);
    if (!c || !is_object(r, p,
                         KEYS("pare", "reduction", "seed", "input", "output", "data", "norm",
                              "domain", "apriori", "proven", "measured", "rounding", "hypotheses",
                              "statements", "paper_not_sound", "chain")))
        return c;
    if (get_size(r, p, "pare", 0) != PARE_CERT_SCHEMA)
        refuse(r, child(r, p, "pare"), "this program reads schema version 1 only");
    c->reduction = get_text(r, p, "reduction");
    c->seed = get_seed(r, p, "seed");
    read_file(r, child(r, p, "input"), &c->input);
    read_file(r, child(r, p, "output"), &c->output);
    read_data(r, child(r, p, "data"), &c->data);
    c->norm = get_text(r, p, "norm");
    c->domain = get_text(r, p, "domain");
    c->apriori = get_bound(r, p, "apriori");
    c->proven = get_bound(r, p, "proven");
    c->measured = get_bound(r, p, "measured");
    c->rounding = get_bound(r, p, "rounding");
    read_hypotheses(r, child(r, p, "hypotheses"), c);
    read_statements(r, child(r, p, "statements"), c);
    read_paper(r, child(r, p, "paper_not_sound"), c);
    read_chain(r, p, c, link);
    return c;
}

pare_status pare_cert_read(pare_cert **out, pare_arena *a, const char *path, pare_err *err)
{
    cJSON *root = NULL;
    *out = NULL;
    const pare_status st = pare_json_read(&root, path, err);
    if (st != PARE_OK) return st;
    reader r = {a, err, PARE_OK};
    pare_cert *const c = read_cert(&r, (place){root, ""}, false);
    cJSON_Delete(root);
    if (r.st == PARE_OK)
        *out = c;
    else
        pare_err_prefix(err, path);
    return r.st;
}
