/* cert_tamper.h - changes every leaf, key and list of a certificate, one at a time, and looks at
 * the verdict each time. */
#ifndef CERT_TAMPER_H
#define CERT_TAMPER_H
#include "cert_toy.h"

typedef enum tamper {
    TAMPER_LESS,     /* number: smaller */
    TAMPER_MORE,     /* number: larger */
    TAMPER_INF,      /* number: "inf" */
    TAMPER_NUMBER,   /* anything but a number: 0.125 */
    TAMPER_TAIL,     /* string: one character more */
    TAMPER_LAST,     /* string: its last character another */
    TAMPER_FLIP,     /* true <-> false, null -> true */
    TAMPER_NULL,     /* anything but null: null */
    TAMPER_REMOVE,   /* the key or element is gone */
    TAMPER_ADD,      /* object: a key more; list: an element more */
    TAMPER_ADD_HASH, /* object: a key more, whose value is a hash */
    TAMPER_TWICE,    /* list: its first element twice */
    TAMPER_SWAP,     /* list: its first element moved to the end */
    TAMPER_KINDS
} tamper;

static const cJSON *tamper_root; /* of the tree in which a node was found last */

static inline bool tamper_is_bound(const cJSON *v)
{
    return v->string && (strcmp(v->string, "proven") == 0 || strcmp(v->string, "bound") == 0);
}

/* The node number *left in preorder; its parent too. */
static inline cJSON *tamper_find(cJSON *v, cJSON *parent, cJSON **found_parent, size_t *left)
{
    if (!parent) tamper_root = v;
    if ((*left)-- == 0) {
        *found_parent = parent;
        return v;
    }
    for (cJSON *c = v->child; c; c = c->next) {
        cJSON *const f = tamper_find(c, v, found_parent, left);
        if (f) return f;
    }
    return NULL;
}

/* ---- changes after which a certificate is still true ------------------------------------------
 */

static inline bool tamper_is(const cJSON *v, const char *key)
{
    return v && v->string && strcmp(v->string, key) == 0;
}

static inline bool tamper_has(const cJSON *object, const char *key, const char *value)
{
    const cJSON *const v = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(v) && strcmp(v->valuestring, value) == 0;
}

/* The kinds whose figure can not be above 1. */
static inline bool tamper_has_ceiling(const cJSON *claim)
{
    for (size_t k = 0; k < PARE_KINDS; k++)
        if (tamper_has(claim, "kind", pare_kinds[k].name)) return pare_kinds[k].ceiling > 0;
    return false;
}

/* A larger upper bound, a smaller lower bound or probability: less is said. */
static inline bool tamper_weakens(const cJSON *parent, const cJSON *v, tamper how)
{
    const bool more = how == TAMPER_MORE || how == TAMPER_INF;
    if (tamper_is(v, "probability")) return how == TAMPER_LESS;
    if (tamper_is(v, "value") && tamper_has(parent, "kind", "engine.distance")) return true;
    if (!tamper_is_bound(v)) return false;
    if (tamper_has(parent, "side", "lower")) return how == TAMPER_LESS;
    return more && !(how == TAMPER_INF && tamper_has_ceiling(parent));
}

/* A claim that nobody must make is left out, or claims change places. */
static inline bool tamper_rearranges(const cJSON *parent, const cJSON *v, tamper how)
{
    static const char *const lists[] = {"theorems", "evidence", "paper", "hypotheses",
                                        "observations"};
    for (size_t i = 0; i < 5; i++) {
        if (how == TAMPER_REMOVE && i < 3 && tamper_is(parent, lists[i]) && !v->string) return true;
        if (how == TAMPER_SWAP && tamper_is(v, lists[i])) return true;
    }
    return false;
}

/* The writer's word: the seed where nothing was drawn from it, and which inputs were fitted to. */
static inline bool tamper_is_word(const cJSON *parent, const cJSON *v, tamper how)
{
    const cJSON *const data = cJSON_GetObjectItemCaseSensitive(tamper_root, "data");
    const cJSON *const word = cJSON_GetObjectItemCaseSensitive(data, "writers_word");
    const cJSON *const fitted = cJSON_GetObjectItemCaseSensitive(word, "fitted");
    if (parent && parent == cJSON_GetObjectItemCaseSensitive(fitted, "inputs"))
        return how == TAMPER_LAST || how == TAMPER_REMOVE;
    return tamper_is(v, "seed") && !tamper_has(data, "kind", "random") &&
           (how == TAMPER_LAST || how == TAMPER_TAIL);
}

static inline bool tamper_is_harmless(const cJSON *parent, const cJSON *v, tamper how)
{
    const bool figure = how == TAMPER_LESS || how == TAMPER_MORE || how == TAMPER_INF;
    return (figure && tamper_weakens(parent, v, how)) || tamper_rearranges(parent, v, how) ||
           tamper_is_word(parent, v, how);
}

/* ---- changes ----------------------------------------------------------------------------------
 */

static inline void tamper_replace(cJSON *parent, cJSON *v, cJSON *by)
{
    assert_non_null(by);
    if (v->string) {
        char *const key = strdup(v->string);
        by->string = key; /* cJSON frees it with the tree; strdup is its own malloc */
    }
    assert_true(cJSON_ReplaceItemViaPointer(parent, v, by));
}

static inline double tamper_number(const cJSON *v, bool more)
{
    const double x = v->valuedouble;
    if (!tamper_is_bound(v) && x == floor(x) && fabs(x) < 1e9) return more ? x + 1 : x - 1;
    return more ? x + 0.5 * fabs(x) : x - 0.125 * fabs(x);
}

static inline bool tamper_list(cJSON *v, tamper how)
{
    if (how == TAMPER_ADD && cJSON_IsObject(v)) return cJSON_AddNumberToObject(v, "more", 1);
    if (how == TAMPER_ADD_HASH && cJSON_IsObject(v)) {
        char hex[PARE_SHA256_HEX];
        toy_hash(hex, '0');
        return cJSON_AddStringToObject(v, "more", hex);
    }
    if (!cJSON_IsArray(v)) return false;
    if (how == TAMPER_ADD) return cJSON_AddItemToArray(v, cJSON_CreateNull());
    if (how == TAMPER_TWICE && v->child)
        return cJSON_AddItemToArray(v, cJSON_Duplicate(v->child, true));
    if (how == TAMPER_SWAP && v->child && v->child->next)
        return cJSON_AddItemToArray(v, cJSON_DetachItemFromArray(v, 0));
    return false;
}

/* False: this kind of change does not apply here. *harmless: the claim stays true. */
static inline bool tamper_one(cJSON *parent, cJSON *v, tamper how, bool *harmless)
{
    const bool number = cJSON_IsNumber(v), text = cJSON_IsString(v);
    *harmless = tamper_is_harmless(parent, v, how);
    switch (how) {
    case TAMPER_LESS:
    case TAMPER_MORE:
        if (!number) return false;
        tamper_replace(parent, v, cJSON_CreateNumber(tamper_number(v, how == TAMPER_MORE)));
        return true;
    case TAMPER_INF:
        if (!number) return false;
        tamper_replace(parent, v, cJSON_CreateString("inf"));
        return true;
    case TAMPER_NUMBER:
        if (number || !parent) return false;
        tamper_replace(parent, v, cJSON_CreateNumber(0.125));
        return true;
    case TAMPER_TAIL:
    case TAMPER_LAST:
        if (!text) return false;
        char word[800];
        snprintf(word, sizeof word, "%s%s", v->valuestring, how == TAMPER_TAIL ? "0" : "");
        if (how == TAMPER_LAST) {
            char *const last = &word[strlen(word) - 1];
            *last = *last == '0' ? '1' : '0';
        }
        tamper_replace(parent, v, cJSON_CreateString(word));
        return true;
    case TAMPER_FLIP:
        if (!cJSON_IsBool(v) && !cJSON_IsNull(v)) return false;
        tamper_replace(parent, v, cJSON_CreateBool(!cJSON_IsTrue(v)));
        return true;
    case TAMPER_NULL:
        if (cJSON_IsNull(v) || !parent) return false;
        tamper_replace(parent, v, cJSON_CreateNull());
        return true;
    case TAMPER_REMOVE:
        if (!parent) return false;
        cJSON_Delete(cJSON_DetachItemViaPointer(parent, v));
        return true;
    default:
        return tamper_list(v, how);
    }
}

/* Every change of `name`'s certificate, written to `copy` beside it and verified. */
static inline size_t tamper_all(toy *t, const char *name, const char *copy)
{
    const char *const text = toy_text(t, name);
    size_t tried = 0;
    for (size_t node = 0, more = 1; more; node++) {
        more = 0;
        for (int how = 0; how < TAMPER_KINDS; how++) {
            const pare_mark m = pare_arena_mark(t->a);
            cJSON *root = NULL, *parent = NULL;
            size_t left = node, bytes = 0;
            char *out = NULL;
            char key[160];
            bool harmless;
            assert_ok(pare_json_parse(&root, text, strlen(text), &t->err), &t->err);
            cJSON *const v = tamper_find(root, NULL, &parent, &left);
            if (v) more = 1;
            snprintf(key, sizeof key, "%s in %s", v && v->string ? v->string : "",
                     parent && parent->string ? parent->string : "");
            if (v && tamper_one(parent, v, (tamper)how, &harmless)) {
                assert_ok(pare_json_print(&out, &bytes, t->a, root, 2, &t->err), &t->err);
                assert_string_not_equal(out, text);
                test_write_file(toy_path(t, copy), out, bytes);
                const int code = pare_exit_code(toy_verify(t, copy));
                if (harmless ? code != 0 : code != 2 && code != 4)
                    fail_msg("node %zu (%s), change %d: exit %d (%s)", node, key, how, code,
                             t->err.msg);
                tried++;
            }
            cJSON_Delete(root);
            pare_arena_reset(t->a, m);
        }
    }
    return tried;
}
#endif
