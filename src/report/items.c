/* The files of a report, read and recognised (items.h). */
#include "items.h"

#include <math.h>
#include <string.h>

double item_number(const cJSON *obj, const char *key)
{
    double v = NAN;
    pare_err ignored;
    return pare_json_bound_opt(&v, obj, key, &ignored) ? NAN : v;
}

const char *item_string(const cJSON *obj, const char *key)
{
    const char *s = NULL;
    pare_err ignored;
    return pare_json_string_opt(&s, obj, key, &ignored) ? NULL : s;
}

const cJSON *item_at(const cJSON *obj, const char *key)
{
    return obj && pare_json_has(obj, key) ? cJSON_GetObjectItemCaseSensitive(obj, key) : NULL;
}

/* out/m.safetensors.cert.json has out/m.safetensors.run.json beside it; a chain has none. */
static pare_status run_file(item *it, pare_arena *a, pare_err *err)
{
    static const char tail[] = ".cert.json";
    const size_t n = strlen(it->path), t = sizeof tail - 1;
    if (n <= t || strcmp(it->path + n - t, tail) != 0) return PARE_OK;
    const char *path = pare_sprintf(a, "%.*s.run.json", (int)(n - t), it->path);
    if (!path) return pare_no_memory(err);
    return pare_file_exists(path) ? pare_json_read(&it->json, path, err) : PARE_OK;
}

static pare_status read_json(item *it, pare_arena *a, pare_err *err)
{
    cJSON *root = NULL;
    pare_status st = pare_json_read(&root, it->path, err);
    if (st) return st;
    const char *command = item_string(root, "command");
    if (item_string(root, "reduction")) {
        cJSON_Delete(root);
        it->kind = ITEM_CUT;
        st = pare_cert_read(&it->cert, a, it->path, err);
        if (!st) return run_file(it, a, err);
        return st;
    }
    it->json = root;
    if (item_at(root, "probe"))
        it->kind = ITEM_PROBE;
    else if (item_at(root, "repro") || item_at(root, "tables"))
        it->kind = ITEM_REPRO;
    else if (item_at(root, "pare_length"))
        it->kind = ITEM_LENGTH;
    else if (item_at(root, "pare_plan"))
        it->kind = ITEM_PLAN;
    else
        return pare_fail(err, PARE_ERR_INPUT,
                         "%s: is no certificate, no plan of pare length, and no probe or repro "
                         "written with --json%s%s",
                         it->path, command ? ", but of pare " : "", command ? command : "");
    return PARE_OK;
}

static pare_status read_one(item *it, pare_arena *a, pare_err *err)
{
    char *text = NULL;
    size_t n = 0;
    const size_t length = strlen(it->path);
    if (length < 4 || strcmp(it->path + length - 4, ".csv") != 0) return read_json(it, a, err);
    const pare_status st = pare_text_read(&text, &n, a, it->path, err);
    if (st) return st;
    if (strncmp(text, "# pare train log 1\n", 19) != 0)
        return pare_fail(err, PARE_ERR_INPUT, "%s: is no log of pare train", it->path);
    it->kind = ITEM_LOG;
    it->log = text;
    return PARE_OK;
}

/* A bound is vacuous when it is larger than what it speaks about: a probe of the same model knows
 * how large that is. */
static void know_outputs(items *all)
{
    for (size_t i = 0; i < all->n; i++) {
        item *it = &all->v[i];
        for (size_t k = 0; it->cert && k < all->n; k++) {
            const cJSON *probe = all->v[k].kind == ITEM_PROBE ? all->v[k].json : NULL;
            const char *hash = item_string(item_at(probe, "input"), "sha256");
            if (hash && strcmp(hash, it->cert->input.sha256) == 0)
                it->largest = item_number(item_at(probe, "probe"), "largest_output");
        }
    }
}

pare_status items_read(items *out, pare_arena *a, const char *const *files, size_t n, pare_err *err)
{
    *out = (items){.v = pare_alloc(a, n, sizeof *out->v)};
    if (!out->v) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        item *it = &out->v[i];
        *it = (item){.path = files[i], .holds = PARE_UNKNOWN, .largest = NAN};
        snprintf(it->id, sizeof it->id, "box%zu", i + 1);
        out->n = i + 1;
        const pare_status st = read_one(it, a, err);
        if (st) return st;
    }
    know_outputs(out);
    return PARE_OK;
}

void items_free(items *all)
{
    for (size_t i = 0; i < all->n; i++) cJSON_Delete(all->v[i].json);
    all->n = 0;
}
