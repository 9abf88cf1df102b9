/* cert_read.c - reading a certificate. Strict: whoever edits one must not be able to hide a claim
 * behind a key nobody looks at, so every key is known, every known key is there, and nothing is
 * converted. */
#include "prove.h"
#include "cert_internal.h"

#include <math.h>
#include <string.h>

enum { MOST_CLAIMS = 10000 };

/* A value in the tree with its path for messages. The first failure stays in r->st, so that a row
 * of gets needs one test at its end. */
typedef struct place {
    const cJSON *v;
    const char *path; /* "" at the top */
} place;

static void end_with(pare_work *r, pare_status st, place p, const char *why)
{
    pare_work_fail(r, st, "%s: %s", *p.path ? p.path : "the certificate", why);
}

static void refuse(pare_work *r, place p, const char *why)
{
    end_with(r, PARE_ERR_INPUT, p, why);
}

static const char *copy_text(pare_work *r, const char *s)
{
    char *const copy = r->st == PARE_OK ? pare_strdup(r->arena, s) : NULL;
    if (!copy && r->st == PARE_OK) r->st = pare_no_memory(r->err);
    return copy;
}

/* ---- walking ------------------------------------------------------------------------------- */

static place place_of(pare_work *r, const cJSON *v, const char *path)
{
    if (!path && r->st == PARE_OK) r->st = pare_no_memory(r->err);
    return (place){v, path ? path : ""};
}

static place member(pare_work *r, place p, const cJSON *v)
{
    return place_of(r, v, pare_sprintf(r->arena, "%s%s%s", p.path, *p.path ? "." : "", v->string));
}

static place element(pare_work *r, place p, const cJSON *v, size_t i)
{
    return place_of(r, v, pare_sprintf(r->arena, "%s[%zu]", p.path, i));
}

static place child(pare_work *r, place p, const char *key)
{
    if (r->st != PARE_OK) return (place){NULL, ""};
    for (const cJSON *c = p.v->child; c; c = c->next)
        if (strcmp(c->string, key) == 0) return member(r, p, c);
    const char *const path = pare_sprintf(r->arena, "%s%s%s", p.path, *p.path ? "." : "", key);
    const place at = place_of(r, NULL, path);
    refuse(r, at, "this key is missing");
    return at;
}

/* An object with no key beyond those `n`. That none is missing is found by the gets. */
static bool is_object(pare_work *r, place p, const char *const *keys, size_t n)
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

static size_t array_size(pare_work *r, place p)
{
    if (r->st == PARE_OK && !cJSON_IsArray(p.v)) refuse(r, p, "must be an array");
    return r->st == PARE_OK ? (size_t)cJSON_GetArraySize(p.v) : 0;
}

/* ---- leaves -------------------------------------------------------------------------------- */

static const char *get_text(pare_work *r, place p, const char *key)
{
    const place at = child(r, p, key);
    if (r->st == PARE_OK && (!cJSON_IsString(at.v) || !*at.v->valuestring))
        refuse(r, at, "must be a string that is not empty");
    return copy_text(r, r->st == PARE_OK ? at.v->valuestring : "");
}

static void hash_at(pare_work *r, place at, char hex[PARE_SHA256_HEX])
{
    if (r->st != PARE_OK) return;
    const char *const s = cJSON_IsString(at.v) ? at.v->valuestring : "";
    if (strlen(s) != PARE_SHA256_HEX - 1 || strspn(s, "0123456789abcdef") != PARE_SHA256_HEX - 1)
        refuse(r, at, "must be 64 hex digits (lower case)");
    else
        memcpy(hex, s, PARE_SHA256_HEX);
}

static void get_hash(pare_work *r, place p, const char *key, char hex[PARE_SHA256_HEX])
{
    hash_at(r, child(r, p, key), hex);
}

/* A number or "inf" / "-inf"; nan can not be written in JSON. */
static double number_at(pare_work *r, place at)
{
    if (r->st != PARE_OK) return NAN;
    if (cJSON_IsNumber(at.v) && !isnan(at.v->valuedouble)) return at.v->valuedouble;
    if (cJSON_IsString(at.v) && strcmp(at.v->valuestring, "inf") == 0) return INFINITY;
    if (cJSON_IsString(at.v) && strcmp(at.v->valuestring, "-inf") == 0) return -INFINITY;
    refuse(r, at, "must be a number or \"inf\"");
    return NAN;
}

static double get_bound(pare_work *r, place p, const char *key)
{
    const place at = child(r, p, key);
    const double v = number_at(r, at);
    /* It can be read, and no file could make it true. */
    if (!(v >= 0)) end_with(r, PARE_ERR_VERIFY, at, "must not be negative");
    return v;
}

static size_t get_size(pare_work *r, place p, const char *key, size_t least)
{
    const place at = child(r, p, key);
    if (r->st != PARE_OK) return 0;
    const double v = cJSON_IsNumber(at.v) ? at.v->valuedouble : -1;
    if (v >= (double)least && v <= 0x1p53 && v == floor(v)) return (size_t)v;
    refuse(r, at, least ? "must be a whole number above 0" : "must be a whole number");
    return 0;
}

static uint64_t get_seed(pare_work *r, place p, const char *key)
{
    uint64_t v = 0;
    const place at = child(r, p, key);
    if (r->st == PARE_OK && pare_json_u64(&v, p.v, key, NULL) != PARE_OK)
        refuse(r, at, "must be a 64-bit whole number as a string of decimal digits");
    if (r->st == PARE_OK && at.v->valuestring[0] == '0' && at.v->valuestring[1])
        refuse(r, at, "must not begin with 0");
    return v;
}

static pare_truth get_truth(pare_work *r, place p, const char *key)
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

static pare_named_hash *named_hashes(pare_work *r, place p, size_t *n)
{
    if (r->st == PARE_OK && !cJSON_IsObject(p.v)) refuse(r, p, "must be an object");
    pare_named_hash *const out =
        pare_work_alloc(r, r->st == PARE_OK ? (size_t)cJSON_GetArraySize(p.v) : 0, sizeof *out);
    *n = 0;
    for (const cJSON *c = out ? p.v->child : NULL; c && r->st == PARE_OK; c = c->next) {
        pare_named_hash *const h = &out[(*n)++];
        h->name = copy_text(r, c->string);
        hash_at(r, member(r, p, c), h->sha256);
    }
    return out;
}

/* What the importer was told: a way of pooling, by its name. */
static void read_told(pare_work *r, place p, pare_load_opts *out)
{
    if (!is_object(r, p, KEYS("pool", "normalize"))) return;
    const char *const pool = get_text(r, p, "pool");
    out->normalize = get_truth(r, p, "normalize") == PARE_TRUE;
    size_t i = 0;
    while (r->st == PARE_OK && pare_pool_names[i] && strcmp(pool, pare_pool_names[i]) != 0) i++;
    if (r->st == PARE_OK && !pare_pool_names[i])
        refuse(r, child(r, p, "pool"), "must be a way of pooling");
    else
        out->pool = (pare_pool)i;
}

static void read_file(pare_work *r, place p, pare_file_ref *out)
{
    if (!is_object(r, p, KEYS("path", "sha256", "files", "architecture", "tensors", "read_as")))
        return;
    out->path = get_text(r, p, "path");
    get_hash(r, p, "sha256", out->sha256);
    out->files = named_hashes(r, child(r, p, "files"), &out->nfiles);
    get_hash(r, p, "architecture", out->architecture);
    out->tensors = named_hashes(r, child(r, p, "tensors"), &out->ntensors);
    if (r->st == PARE_OK && pare_json_has(p.v, "read_as"))
        read_told(r, child(r, p, "read_as"), &out->read_as);
}

static void read_hashes(pare_work *r, place p, pare_input_hashes *out)
{
    if (!is_object(r, p, KEYS("tokens", "inputs"))) return;
    out->tokens = get_size(r, p, "tokens", 0);
    const place all = child(r, p, "inputs");
    const size_t n = array_size(r, all);
    out->sha256 = pare_work_alloc(r, n, sizeof *out->sha256);
    for (const cJSON *v = n ? all.v->child : NULL; v && r->st == PARE_OK; v = v->next) {
        const place at = element(r, all, v, out->n);
        hash_at(r, at, out->sha256[out->n]);
        /* Sorted, so that there is one way to write a set. */
        if (out->n > 0 && r->st == PARE_OK &&
            strcmp(out->sha256[out->n - 1], out->sha256[out->n]) > 0)
            refuse(r, at, "must not be below the one before it");
        out->n++;
    }
}

static void read_heldout(pare_work *r, place p, pare_data_ref *out)
{
    const place word = child(r, p, "writers_word");
    if (!is_object(r, word, KEYS("fitted", "candidates"))) return;
    read_hashes(r, child(r, word, "fitted"), &out->fitted);
    out->candidates = get_size(r, word, "candidates", 1);
    read_hashes(r, child(r, p, "heldout"), &out->heldout);
}

/* The numbers of the inputs of a part, ascending: none is there twice. */
static void read_numbers(pare_work *r, place p, pare_data_ref *out)
{
    const place all = child(r, p, "numbers");
    const size_t n = array_size(r, all);
    size_t *const numbers = pare_work_alloc(r, n, sizeof *numbers), at = 0;
    if (r->st == PARE_OK && n != out->count) refuse(r, all, "must have `count` numbers");
    for (const cJSON *v = n ? all.v->child : NULL; v && r->st == PARE_OK; v = v->next, at++) {
        const double x = cJSON_IsNumber(v) ? v->valuedouble : -1;
        if (!(x >= 0 && x <= 0x1p53 && x == floor(x)) || (at > 0 && x <= (double)numbers[at - 1]))
            refuse(r, element(r, all, v, at), "must be a whole number above the one before it");
        else
            numbers[at] = (size_t)x;
    }
    out->numbers = numbers;
}

static void read_data(pare_work *r, place p, pare_data_ref *out)
{
    if (r->st == PARE_OK && !cJSON_IsObject(p.v)) refuse(r, p, "must be an object");
    out->kind = get_text(r, p, "kind");
    if (r->st != PARE_OK) return;
    const bool random = strcmp(out->kind, "random") == 0, part = strcmp(out->kind, "part") == 0;
    if (!random && !part && strcmp(out->kind, "file") != 0) {
        refuse(r, child(r, p, "kind"), "must be \"random\", \"file\" or \"part\"");
        return;
    }
    if (random)
        is_object(r, p, KEYS("kind", "count", "tokens", "inputs_sha256"));
    else if (part)
        is_object(r, p,
                  KEYS("kind", "path", "sha256", "split", "column",
                       pare_json_has(p.v, "numbers") ? "numbers" : "first", "count", "tokens",
                       "inputs_sha256", "writers_word", "heldout"));
    else
        is_object(r, p,
                  KEYS("kind", "path", "sha256", "split", "column", "count", "inputs_sha256",
                       "writers_word", "heldout"));
    if (part || random) out->tokens = get_size(r, p, "tokens", random);
    if (!random) {
        out->path = get_text(r, p, "path");
        get_hash(r, p, "sha256", out->sha256);
        out->split = get_size(r, p, "split", 0);
        if (r->st == PARE_OK && pare_json_has(p.v, "column"))
            out->column = get_text(r, p, "column");
    }
    out->count = get_size(r, p, "count", 1);
    if (part && pare_json_has(p.v, "numbers"))
        read_numbers(r, p, out);
    else if (part)
        out->first = get_size(r, p, "first", 0);
    get_hash(r, p, "inputs_sha256", out->inputs_sha256);
    if (r->st == PARE_OK && (pare_json_has(p.v, "writers_word") || pare_json_has(p.v, "heldout")))
        read_heldout(r, p, out);
}

/* ---- claims -------------------------------------------------------------------------------- */

/* What the kind says and the file repeats for people must be what the kind says. */
static void same_words(pare_work *r, place p, const char *key, const char *words)
{
    const char *const said = get_text(r, p, key);
    if (r->st != PARE_OK || (words && strcmp(said, words) == 0)) return;
    end_with(r, PARE_ERR_VERIFY, child(r, p, key), "is not what the kind and its parameters say");
}

static pare_kind read_kind(pare_work *r, place p, pare_section section)
{
    const char *const name = get_text(r, p, "kind");
    for (size_t k = 0; r->st == PARE_OK && k < PARE_KINDS; k++)
        if (pare_kinds[k].section == section && strcmp(pare_kinds[k].name, name) == 0)
            return (pare_kind)k;
    if (r->st == PARE_OK)
        refuse(r, child(r, p, "kind"), "this program knows no such kind in this list");
    return 0;
}

static void read_parameters(pare_work *r, place p, pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    const char *keys[PARE_PARAMETERS + 1];
    size_t n = 0;
    for (; n < PARE_PARAMETERS && row->parameters[n]; n++) keys[n] = row->parameters[n];
    const size_t numbers = n;
    if (row->text) keys[n++] = row->text;
    if (!is_object(r, p, keys, n)) return;
    for (size_t i = 0; i < numbers; i++) {
        const place at = child(r, p, keys[i]);
        c->p[i] = number_at(r, at);
        if (r->st == PARE_OK && !isfinite(c->p[i])) refuse(r, at, "must be a finite number");
    }
    if (row->text) c->text = get_text(r, p, row->text);
}

static double value_of(pare_work *r, place p, const char *key, bool there)
{
    const place at = child(r, p, key);
    if (there) return number_at(r, at);
    if (r->st == PARE_OK && !cJSON_IsNull(at.v)) refuse(r, at, "must be null for this kind");
    return 0;
}

static void read_theorem(pare_work *r, place p, pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    same_words(r, p, "side", row->lower ? "lower" : "upper");
    c->value = get_bound(r, p, "bound");
    if (r->st == PARE_OK && row->ceiling > 0 && c->value > row->ceiling)
        refuse(r, child(r, p, "bound"), "is larger than this figure can be");
    same_words(r, p, "norm", row->norm);
    c->domain = get_text(r, p, "domain");
    c->probability = 1;
    if (!pare_kind_is_drawn(c->kind)) return;
    const place at = child(r, p, "probability");
    c->probability = number_at(r, at);
    if (r->st == PARE_OK && !(c->probability > 0 && c->probability < 1))
        refuse(r, at, "must be above 0 and below 1");
}

static bool has_keys(pare_work *r, place p, pare_section section, bool drawn)
{
    static const char *const keys[PARE_SECTIONS][9] = {
        [PARE_HYPOTHESIS] = {"kind", "parameters", "holds", "value", "limit", "sentence"},
        [PARE_THEOREM] = {"kind", "parameters", "side", "bound", "norm", "domain", "sentence",
                          "probability"}, /* of drawn ones */
        [PARE_OBSERVATION] = {"kind", "parameters", "value", "tolerance", "sentence"},
        [PARE_EVIDENCE] = {"kind", "parameters", "value", "limit", "sentence"},
        [PARE_PAPER] = {"kind", "parameters", "value", "sound", "sentence"}};
    size_t n = 0;
    while (keys[section][n]) n++;
    return is_object(r, p, keys[section], section == PARE_THEOREM && !drawn ? n - 1 : n);
}

static void read_claim(pare_work *r, place p, pare_section section, pare_claim *c)
{
    c->kind = read_kind(r, p, section);
    if (r->st != PARE_OK || !has_keys(r, p, section, pare_kind_is_drawn(c->kind))) return;
    const pare_kind_row *const row = &pare_kinds[c->kind];
    read_parameters(r, child(r, p, "parameters"), c);
    if (section == PARE_HYPOTHESIS) c->holds = get_truth(r, p, "holds");
    if (section == PARE_THEOREM)
        read_theorem(r, p, c);
    else
        c->value = value_of(r, p, "value", row->has_value);
    if (section == PARE_HYPOTHESIS || section == PARE_EVIDENCE)
        c->limit = value_of(r, p, "limit", row->has_limit);
    if (section == PARE_OBSERVATION && number_at(r, child(r, p, "tolerance")) != row->tolerance)
        end_with(r, PARE_ERR_VERIFY, child(r, p, "tolerance"), "is not that of the kind");
    if (section == PARE_PAPER && get_truth(r, p, "sound") != PARE_FALSE)
        end_with(r, PARE_ERR_VERIFY, child(r, p, "sound"), "no printed formula here is sound");
    if (r->st == PARE_OK) same_words(r, p, "sentence", pare_claim_sentence(r->arena, c));
}

static void read_section(pare_work *r, place p, pare_section section, pare_cert *c)
{
    const size_t n = array_size(r, p);
    size_t i = 0;
    if (n > MOST_CLAIMS) refuse(r, p, "has more claims than any cut makes");
    for (const cJSON *v = n ? p.v->child : NULL; v && r->st == PARE_OK; v = v->next) {
        pare_claim claim = {0};
        const place at = element(r, p, v, i++);
        if (r->st == PARE_OK && !cJSON_IsObject(at.v)) refuse(r, at, "must be an object");
        if (r->st == PARE_OK) read_claim(r, at, section, &claim);
        for (size_t k = 0; r->st == PARE_OK && k < c->nclaims; k++)
            if (pare_same_claim(&c->claims[k], &claim)) refuse(r, at, "stands there twice");
        if (r->st == PARE_OK) r->st = cert_append(c, r->arena, claim, r->err);
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static pare_cert *read_cert(pare_work *r, place p, bool link);

/* Links are never chains themselves: composing gives their links instead. */
static void read_chain(pare_work *r, place p, pare_cert *c, bool link)
{
    const place reduction = child(r, p, "reduction"), chain = child(r, p, "chain");
    const size_t n = array_size(r, chain);
    if (r->st != PARE_OK) return;
    const bool composed = strcmp(c->reduction, CERT_CHAIN) == 0;
    if (composed && link)
        refuse(r, reduction, "a link must not be a chain itself");
    else if (composed != (n > 0))
        refuse(r, chain, "has links exactly when the reduction is chain");
    c->chain = pare_work_alloc(r, n, sizeof *c->chain);
    for (const cJSON *v = n ? chain.v->child : NULL; v && r->st == PARE_OK; v = v->next) {
        c->chain[c->nchain] = read_cert(r, element(r, chain, v, c->nchain), true);
        c->nchain++;
    }
}

static bool right_schema(pare_work *r, place p)
{
    const place at = r->st == PARE_OK && cJSON_IsObject(p.v) ? child(r, p, "pare") : p;
    if (r->st == PARE_OK && !cJSON_IsObject(p.v)) refuse(r, p, "must be an object");
    const size_t schema = get_size(r, p, "pare", 0);
    if (r->st == PARE_OK && schema == 1)
        refuse(r, at,
               "schema 1 is of pare 0.1 and is no longer believed (docs/format.md says why); make "
               "the certificate again with the same command");
    if (r->st == PARE_OK && schema != PARE_CERT_SCHEMA)
        refuse(r, at, "this program reads schema 2 only");
    return r->st == PARE_OK;
}

static pare_cert *read_cert(pare_work *r, place p, bool link)
{
    pare_cert *const c = pare_work_alloc(r, 1, sizeof *c);
    if (!c || !right_schema(r, p) ||
        !is_object(r, p,
                   KEYS("pare", "reduction", "input", "output", "data", "headline", "hypotheses",
                        "theorems", "observations", "evidence", "paper", "chain")))
        return c;
    const place reduction = child(r, p, "reduction"), headline = child(r, p, "headline");
    if (!is_object(r, reduction, KEYS("name", "seed")) ||
        !is_object(r, headline, KEYS("proven", "measured", "norm", "domain")))
        return c;
    c->reduction = get_text(r, reduction, "name");
    c->seed = get_seed(r, reduction, "seed");
    read_file(r, child(r, p, "input"), &c->input);
    read_file(r, child(r, p, "output"), &c->output);
    read_data(r, child(r, p, "data"), &c->data);
    c->proven = get_bound(r, headline, "proven");
    c->measured = get_bound(r, headline, "measured");
    c->norm = get_text(r, headline, "norm");
    c->domain = get_text(r, headline, "domain");
    for (size_t s = 0; s < PARE_SECTIONS; s++)
        read_section(r, child(r, p, pare_section_keys[s]), (pare_section)s, c);
    read_chain(r, p, c, link);
    return c;
}

pare_status pare_cert_parse(pare_cert **out, pare_arena *a, const cJSON *root, const char *path,
                            pare_err *err)
{
    pare_work r = {.arena = a, .err = err};
    *out = NULL;
    pare_cert *const c = read_cert(&r, (place){root, ""}, false);
    if (r.st == PARE_OK)
        *out = c;
    else
        pare_err_prefix(err, path);
    return r.st;
}

pare_status pare_cert_read(pare_cert **out, pare_arena *a, const char *path, pare_err *err)
{
    cJSON *root = NULL;
    *out = NULL;
    pare_status st = pare_json_read(&root, path, err);
    if (st == PARE_OK) st = pare_cert_parse(out, a, root, path, err);
    cJSON_Delete(root);
    return st;
}
