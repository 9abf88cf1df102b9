/* architecture.c - the architecture of a model in one canonical form, and its hash.
 *
 * Two models with the same tensors are the same function only if their settings are the same, too:
 * norms and their eps, activations, patterns, scales. Those come from many places (config.json, the
 * metadata of a file, a header); the canonical form is made of the model as it was loaded, so that
 * it does not matter which. It is the architecture object of pare's model file without `name` and
 * `version`, as one line of JSON in which
 *
 *   - keys are sorted byte by byte, and
 *   - `stem` is called `embedding`, `top` `head`, `attn` `attention` and `act` `activation`: the
 *     words of the field, whatever the model file says in its next version.
 *
 * Numbers have the fewest digits (at most 17) that give the same double again. */
#include "base/json.h"
#include "model_facts.h"
#include "arch.h"
#include <stdlib.h>
#include <string.h>

static const char *canonical_key(const char *key)
{
    static const char *const words[][2] = {
        {"stem", "embedding"}, {"top", "head"}, {"attn", "attention"}, {"act", "activation"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i][0]) == 0) return words[i][1];
    return key;
}

static int by_canonical_key(const void *a, const void *b)
{
    return strcmp(canonical_key((*(cJSON *const *)a)->string),
                  canonical_key((*(cJSON *const *)b)->string));
}

/* Sorted copies of objects, in place of `from`; false: memory is out. */
static bool copy_sorted(cJSON *to, const char *key, const cJSON *from, bool root)
{
    if (!cJSON_IsObject(from) && !cJSON_IsArray(from)) {
        cJSON *const leaf = cJSON_Duplicate(from, true);
        const bool ok =
            leaf && (key ? cJSON_AddItemToObject(to, key, leaf) : cJSON_AddItemToArray(to, leaf));
        if (!ok) cJSON_Delete(leaf);
        return ok;
    }
    const size_t n = (size_t)cJSON_GetArraySize(from);
    const bool object = cJSON_IsObject(from);
    cJSON *const o = root     ? to
                     : object ? pare_json_add_object(to, key)
                              : pare_json_add_array(to, key);
    const cJSON **const child = malloc((n ? n : 1) * sizeof *child);
    bool ok = o && child;
    size_t i = 0;
    for (const cJSON *c = from->child; ok && c; c = c->next) child[i++] = c;
    if (ok && object) qsort((void *)child, n, sizeof *child, by_canonical_key);
    for (i = 0; ok && i < n; i++) {
        const char *const name = object ? child[i]->string : NULL;
        if (root && (strcmp(name, "name") == 0 || strcmp(name, "version") == 0)) continue;
        ok = copy_sorted(o, name ? canonical_key(name) : NULL, child[i], false);
    }
    free((void *)child);
    return ok;
}

pare_status pare_architecture_text(char **out, pare_arena *a, const pare_model *m, pare_err *err)
{
    char *text = NULL;
    cJSON *tree = NULL, *const sorted = cJSON_CreateObject();
    pare_status st = sorted ? arch_write(&text, a, m, err) : pare_no_memory(err);
    if (!st) st = pare_json_parse(&tree, text, strlen(text), err);
    if (!st && !copy_sorted(sorted, NULL, tree, true)) st = pare_no_memory(err);
    if (!st) st = pare_json_print(out, NULL, a, sorted, 0, err);
    cJSON_Delete(tree);
    cJSON_Delete(sorted);
    return st;
}

pare_status pare_architecture_sha256(char hex[PARE_SHA256_HEX], const pare_model *m, pare_err *err)
{
    char *text = NULL;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? pare_architecture_text(&text, a, m, err) : pare_no_memory(err);
    if (!st) st = pare_sha256_of(hex, text, strlen(text), err);
    pare_arena_free(a);
    return st;
}
