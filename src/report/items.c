/* items.c - reads the files of a report and finds out what they are (items.h). */
#include "cert/prove.h"
#include <pare/plan.h>
#include "items.h"

#include <math.h>
#include <string.h>

/* ---- looking things up ----------------------------------------------------------------------- */

/* Names the file in the message of a failure. */
static bool keep_status(page *p, pare_status st)
{
    if (st && p->file) pare_err_prefix(p->w.err, p->file);
    if (st) p->w.st = st;
    return !st;
}

double item_number(page *p, const cJSON *obj, const char *key)
{
    double v = NAN;
    if (!p->w.st) keep_status(p, pare_json_bound_opt(&v, obj, key, p->w.err));
    return v;
}

const char *item_string(page *p, const cJSON *obj, const char *key)
{
    const char *s = NULL;
    if (!p->w.st) keep_status(p, pare_json_string_opt(&s, obj, key, p->w.err));
    return s;
}

pare_truth item_truth(page *p, const cJSON *obj, const char *key)
{
    bool v = false;
    if (p->w.st || !pare_json_has(obj, key)) return PARE_UNKNOWN;
    return keep_status(p, pare_json_bool(&v, obj, key, p->w.err)) && v ? PARE_TRUE : PARE_FALSE;
}

const cJSON *item_object(page *p, const cJSON *obj, const char *key)
{
    const cJSON *o = NULL;
    if (!p->w.st) keep_status(p, pare_json_object_opt(&o, obj, key, p->w.err));
    return o;
}

static const cJSON *list_of(page *p, const cJSON *obj, const char *key,
                            cJSON_bool (*is)(const cJSON *), const char *what)
{
    const cJSON *list = NULL, *at;
    if (p->w.st || !keep_status(p, pare_json_array_opt(&list, obj, key, p->w.err))) return NULL;
    cJSON_ArrayForEach(at, list)
    {
        if (is(at)) continue;
        keep_status(p, pare_fail(p->w.err, PARE_ERR_INPUT, "key \"%.100s\" must be a list of %s",
                                 key, what));
        return NULL;
    }
    return list;
}

const cJSON *item_objects(page *p, const cJSON *obj, const char *key)
{
    return list_of(p, obj, key, cJSON_IsObject, "objects");
}

const cJSON *item_strings(page *p, const cJSON *obj, const char *key)
{
    return list_of(p, obj, key, cJSON_IsString, "strings");
}

/* A number, or none: null or infinite. */
static cJSON_bool is_number_or_none(const cJSON *v)
{
    const char *const word = cJSON_GetStringValue(v);
    return cJSON_IsNumber(v) || cJSON_IsNull(v) ||
           (word && (strcmp(word, "inf") == 0 || strcmp(word, "-inf") == 0));
}

size_t item_numbers(double **out, page *p, const cJSON *obj, const char *key)
{
    const cJSON *const list = list_of(p, obj, key, is_number_or_none, "numbers"), *at;
    size_t n = 0;
    *out = page_alloc(p, list ? (size_t)cJSON_GetArraySize(list) : 0, sizeof **out);
    if (!*out) return 0;
    cJSON_ArrayForEach(at, list)
    {
        (*out)[n++] = cJSON_IsNumber(at) ? at->valuedouble : NAN;
    }
    return n;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* out/m.safetensors.cert.json has out/m.safetensors.run.json beside it. Its figures are used only
 * if it is about the models of the certificate. */
static pare_status read_run_file(item *it, page *p)
{
    static const char tail[] = ".cert.json";
    const struct {
        const char *key, *sha256;
    } model[] = {{"input", it->cert->input.sha256}, {"output", it->cert->output.sha256}};
    const size_t n = strlen(it->path), t = sizeof tail - 1;
    if (n <= t || strcmp(it->path + n - t, tail) != 0) return PARE_OK;
    const char *path = pare_sprintf(p->w.arena, "%.*s.run.json", (int)(n - t), it->path);
    if (!path) return pare_no_memory(p->w.err);
    it->from = path;
    if (!pare_file_exists(path)) return PARE_OK;
    const pare_status st = pare_json_read(&it->json, path, p->w.err);
    if (st) return st;
    p->file = path;
    for (size_t i = 0; i < 2 && !it->run_refused; i++) {
        const char *const sha256 = item_string(p, item_object(p, it->json, model[i].key), "sha256");
        if (p->w.st) return p->w.st;
        if (!sha256 || strcmp(sha256, model[i].sha256) != 0)
            it->run_refused = page_format(
                p,
                "The sizes, times and metrics in %s are not shown: its %s model (sha256 %.12s) is "
                "not that of the certificate (%.12s).",
                path, model[i].key, sha256 ? sha256 : "not given", model[i].sha256);
    }
    if (it->run_refused) {
        cJSON_Delete(it->json);
        it->json = NULL;
    }
    it->largest = item_number(p, it->json, "largest_output");
    return p->w.st;
}

static pare_status read_json(item *it, page *p)
{
    pare_err *const err = p->w.err;
    const char *command = NULL;
    cJSON *root = NULL;
    pare_err ignored;
    pare_status st = pare_json_read(&root, it->path, err);
    if (st == PARE_ERR_INPUT && strstr(err->msg, "line 1, column 1:")) {
        /* Not JSON at all. A user who names a model means the certificate beside it. */
        const char *const beside = page_format(p, "%s.cert.json", it->path);
        if (p->w.st) return p->w.st;
        if (pare_file_exists(beside))
            return pare_fail(err, PARE_ERR_INPUT, "%s is not a certificate; give %s", it->path,
                             beside);
        return pare_fail(err, PARE_ERR_INPUT,
                         "%s is not JSON; give a certificate (OUT.cert.json), a plan, or what "
                         "pare probe --json printed",
                         it->path);
    }
    if (st) return st;
    if (pare_json_has(root, "reduction")) {
        it->kind = ITEM_CUT;
        st = pare_cert_parse(&it->cert, p->w.arena, root, it->path, err);
        if (!st) st = read_run_file(it, p);
        cJSON_Delete(root);
        return st;
    }
    it->json = root;
    it->from = it->path;
    if (pare_json_has(root, "probe"))
        it->kind = ITEM_PROBE;
    else if (pare_json_has(root, "repro") || pare_json_has(root, "tables"))
        it->kind = ITEM_REPRO;
    else if (pare_json_has(root, "pare_length"))
        it->kind = ITEM_LENGTH;
    else if (pare_json_has(root, "pare_plan"))
        it->kind = ITEM_PLAN;
    else {
        if (pare_json_string_opt(&command, root, "command", &ignored)) command = NULL;
        st = pare_fail(err, PARE_ERR_INPUT,
                       "%s: is no certificate, no plan of pare length, and no probe or repro "
                       "written with --json%s%s",
                       it->path, command ? ", but of pare " : "", command ? command : "");
    }
    return st;
}

static pare_status read_log(item *it, page *p)
{
    char *text = NULL;
    size_t n = 0;
    const pare_status st = pare_text_read(&text, &n, p->w.arena, it->path, p->w.err);
    if (st) return st;
    if (strncmp(text, "# pare train log 1\n", 19) != 0)
        return pare_fail(p->w.err, PARE_ERR_INPUT, "%s: is no log of pare train", it->path);
    it->kind = ITEM_LOG;
    it->log = text;
    return PARE_OK;
}

pare_status items_read(items *out, page *p, const char *const *files, size_t n)
{
    pare_arena *const a = p->w.arena;
    pare_err *const err = p->w.err;
    *out = (items){.v = pare_alloc(a, n, sizeof *out->v)};
    if (!out->v) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        item *it = &out->v[i];
        *it = (item){.path = files[i], .holds = PARE_UNKNOWN, .largest = NAN};
        snprintf(it->id, sizeof it->id, "box%zu", i + 1);
        it->number = i + 1;
        out->n = i + 1;
        const size_t length = strlen(it->path);
        const bool csv = length >= 4 && strcmp(it->path + length - 4, ".csv") == 0;
        const pare_status st = csv ? read_log(it, p) : read_json(it, p);
        if (st) return st;
    }
    /* A bound is vacuous when it is larger than the largest output, which a probe of the same model
     * reports. */
    for (size_t k = 0; k < out->n; k++) {
        const cJSON *const probe = out->v[k].kind == ITEM_PROBE ? out->v[k].json : NULL;
        p->file = out->v[k].path;
        const char *const hash = item_string(p, item_object(p, probe, "input"), "sha256");
        const double largest = item_number(p, item_object(p, probe, "probe"), "largest_output");
        for (size_t i = 0; hash && i < out->n; i++)
            if (isfinite(largest) && out->v[i].cert &&
                strcmp(hash, out->v[i].cert->input.sha256) == 0)
                out->v[i].largest = largest;
    }
    return p->w.st;
}

void items_free(items *all)
{
    for (size_t i = 0; i < all->n; i++) cJSON_Delete(all->v[i].json);
    all->n = 0;
}
