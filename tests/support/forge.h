/* forge.h - change every field of a certificate, one at a time, and see which changes still verify.
 *
 * Where the file says a thing twice (kind and parameters again as a sentence, the data again as the
 * words of the domain) the forger changes both. What survives must be on the list of forge_class: a
 * weaker claim, a claim that is left out, the order of a list, a figure within its tolerance, the
 * name of a file that is known by its bytes, or the writer's word. */
#ifndef FORGE_H
#define FORGE_H
#include "cert/prove.h"
#include <pare_test.h>
#include <stdarg.h>

typedef enum forge_way {
    FORGE_HALF, /* numbers */
    FORGE_TENTH_OFF,
    FORGE_LITTLE_LESS,
    FORGE_LITTLE_MORE,
    FORGE_TWICE_AS_LARGE,
    FORGE_ZERO,
    FORGE_MINUS_ONE,
    FORGE_INF,
    FORGE_ONE_LESS,
    FORGE_ONE_MORE,
    FORGE_FIRST_LETTER, /* strings, hashes too */
    FORGE_LAST_LETTER,
    FORGE_LONGER,
    FORGE_EMPTY,        /* lists and objects too */
    FORGE_OTHER_TEXT,   /* that of the next one of the same key */
    FORGE_OTHER_TEXT_2, /* ... of the one after it */
    FORGE_NUMBER,       /* anything but a number: 0.125 */
    FORGE_FLIP,         /* true <-> false, null -> true */
    FORGE_NULL,
    FORGE_REMOVE,
    FORGE_RENAME_KEY,
    FORGE_ADD_KEY,
    FORGE_ADD_HASH,
    FORGE_REPEAT,     /* an element of a list */
    FORGE_LAST_FIRST, /* of a list */
    FORGE_KINDS,      /* + k: kind k of the same section */
    FORGE_WAYS = FORGE_KINDS + PARE_KINDS
} forge_way;

typedef enum forge_class {
    FORGE_WEAKER,    /* a larger upper bound, a smaller lower bound or probability */
    FORGE_LEFT_OUT,  /* a theorem, evidence, or what a paper prints */
    FORGE_ORDER,     /* of a list */
    FORGE_TOLERANCE, /* a figure within what its kind allows */
    FORGE_SAME,      /* the same inputs in other words: a limit of tokens that none of them reaches,
                        a split where nothing is claimed about labels */
    FORGE_NAME,      /* of a single file, which is known by its bytes */
    FORGE_WORD,      /* the writer's: seed where the inputs come from a file, fitted inputs */
    FORGE_CLASSES,
    FORGE_BROKEN = FORGE_CLASSES /* none of these: verify is wrong */
} forge_class;
static const char *const forge_class_names[] = {
    "weaker", "left out", "order", "tolerance", "same inputs", "file name", "writer's word"};

typedef struct forge {
    char *text;
    size_t bytes;
    const char *path; /* of the certificate */
    const pare_verify_opts *opts;
    pare_arena *a;
    pare_cert *cert, *again; /* as written, and as proven again */
    cJSON *tree;             /* unchanged */
    size_t tried, refused, broken, survived[FORGE_CLASSES];
    size_t step; /* every so many changes are tried */
    size_t seen;
    bool print; /* every survivor */
} forge;

/* ---- places ------------------------------------------------------------------------------------
 */

typedef struct forge_place {
    cJSON *root, *parent, *at;
    double now; /* after the change; nan: no number */
    char path[400];
} forge_place;

/* Node number *left in preorder. */
static inline bool forge_find(forge_place *p, cJSON *v, cJSON *parent, const char *path,
                              size_t *left)
{
    if ((*left)-- == 0) {
        p->parent = parent;
        p->at = v;
        snprintf(p->path, sizeof p->path, "%s", path);
        return true;
    }
    size_t i = 0;
    for (cJSON *c = v->child; c; c = c->next, i++) {
        char below[400];
        if (cJSON_IsArray(v))
            snprintf(below, sizeof below, "%.380s[%zu]", path, i);
        else
            snprintf(below, sizeof below, "%.200s%s%.180s", path, *path ? "." : "", c->string);
        if (forge_find(p, c, v, below, left)) return true;
    }
    return false;
}

static inline cJSON *forge_get(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* The path within its link; *link: which one, SIZE_MAX for the certificate itself. */
static inline const char *forge_within(const char *path, size_t *link)
{
    int n = 0;
    *link = SIZE_MAX;
    if (sscanf(path, "chain[%zu].%n", link, &n) == 1 && n > 0) return path + n;
    *link = SIZE_MAX;
    return path;
}

static inline cJSON *forge_link_root(cJSON *root, size_t link)
{
    return link == SIZE_MAX ? root : cJSON_GetArrayItem(forge_get(root, "chain"), (int)link);
}

/* "theorems[3].bound": section 1, claim 3, key "bound" ("" for the claim itself). */
static inline bool forge_claim_at(const char *path, size_t *section, size_t *i, const char **key)
{
    static const char *const names[PARE_SECTIONS] = {"hypotheses", "theorems", "observations",
                                                     "evidence", "paper"};
    for (size_t s = 0; s < PARE_SECTIONS; s++) {
        const size_t n = strlen(names[s]);
        int more = 0;
        if (strncmp(path, names[s], n) != 0 || sscanf(path + n, "[%zu]%n", i, &more) != 1) continue;
        *section = s;
        *key = path + n + more + (path[n + (size_t)more] == '.');
        return true;
    }
    return false;
}

/* ---- one change --------------------------------------------------------------------------------
 */

static inline bool forge_replace(forge_place *p, cJSON *by)
{
    assert_non_null(by);
    if (p->at->string) by->string = strdup(p->at->string);
    assert_true(cJSON_ReplaceItemViaPointer(p->parent, p->at, by));
    p->at = by;
    return true;
}

static inline bool forge_number(forge_place *p, forge_way how)
{
    static const double factor[] = {0.5, 0.9, 0.999, 1.001, 2};
    const double x = p->at->valuedouble;
    const bool whole = x == floor(x);
    double y = x;
    if (how <= FORGE_TWICE_AS_LARGE) y = x * factor[how];
    if (how == FORGE_ZERO) y = 0;
    if (how == FORGE_MINUS_ONE) y = -1;
    if (how == FORGE_INF) return forge_replace(p, cJSON_CreateString("inf"));
    if (whole && how == FORGE_ONE_LESS) y = x - 1;
    if (whole && how == FORGE_ONE_MORE) y = x + 1;
    return y != x && forge_replace(p, cJSON_CreateNumber(y));
}

/* All strings of that key, in order; the one after `from` that differs from it, `skip` later. */
static inline const char *forge_other(const cJSON *v, const char *key, const char *from, int *skip)
{
    for (const cJSON *c = v->child; c; c = c->next) {
        if (cJSON_IsString(c) && c->string && strcmp(c->string, key) == 0 &&
            strcmp(c->valuestring, from) != 0 && (*skip)-- == 0)
            return c->valuestring;
        const char *const below = forge_other(c, key, from, skip);
        if (below) return below;
    }
    return NULL;
}

static inline bool forge_text(forge_place *p, forge_way how)
{
    char word[600];
    const char *const s = p->at->valuestring;
    const size_t n = strlen(s);
    snprintf(word, sizeof word, "%.590s", s);
    char *const letter = how == FORGE_FIRST_LETTER ? word : &word[n ? n - 1 : 0];
    int skip = how == FORGE_OTHER_TEXT_2;
    switch (how) {
    case FORGE_FIRST_LETTER:
    case FORGE_LAST_LETTER:
        if (n == 0) return false;
        *letter = *letter == '0' ? '1' : '0';
        break;
    case FORGE_LONGER:
        snprintf(word, sizeof word, "%.590s0", s);
        break;
    case FORGE_EMPTY:
        *word = 0;
        break;
    case FORGE_OTHER_TEXT:
    case FORGE_OTHER_TEXT_2:;
        const char *const other =
            p->at->string ? forge_other(p->root, p->at->string, s, &skip) : NULL;
        if (!other) return false;
        snprintf(word, sizeof word, "%.590s", other);
        break;
    default:
        return false;
    }
    return strcmp(word, s) != 0 && forge_replace(p, cJSON_CreateString(word));
}

static inline bool forge_kind(forge_place *p, forge_way how)
{
    size_t link, section, i;
    const char *key;
    const pare_kind_row *const row = &pare_kinds[how - FORGE_KINDS];
    if (!forge_claim_at(forge_within(p->path, &link), &section, &i, &key)) return false;
    if (strcmp(key, "kind") != 0 || row->section != section) return false;
    return strcmp(p->at->valuestring, row->name) != 0 &&
           forge_replace(p, cJSON_CreateString(row->name));
}

static inline bool forge_container(forge_place *p, forge_way how)
{
    static const char hash[] = "0000000000000000000000000000000000000000000000000000000000000000";
    cJSON *const v = p->at;
    switch (how) {
    case FORGE_ADD_KEY:
        return cJSON_IsObject(v) && cJSON_AddNumberToObject(v, "more", 1);
    case FORGE_ADD_HASH:
        if (cJSON_IsObject(v)) return cJSON_AddStringToObject(v, "more", hash) != NULL;
        return cJSON_IsArray(v) && cJSON_AddItemToArray(v, cJSON_CreateString(hash));
    case FORGE_EMPTY:
        if (!v->child) return false;
        while (v->child) cJSON_Delete(cJSON_DetachItemViaPointer(v, v->child));
        return true;
    case FORGE_LAST_FIRST:
        if (!cJSON_IsArray(v) || !v->child || !v->child->next) return false;
        return cJSON_InsertItemInArray(v, 0,
                                       cJSON_DetachItemFromArray(v, cJSON_GetArraySize(v) - 1));
    default:
        return false;
    }
}

/* False: it does not apply here. */
static inline bool forge_apply(forge_place *p, forge_way how)
{
    cJSON *const v = p->at;
    if (how >= FORGE_KINDS) return cJSON_IsString(v) && forge_kind(p, how);
    if (cJSON_IsNumber(v) && how <= FORGE_ONE_MORE) return forge_number(p, how);
    if (cJSON_IsString(v) && how <= FORGE_OTHER_TEXT_2 && forge_text(p, how)) return true;
    if (!p->parent) return forge_container(p, how);
    switch (how) {
    case FORGE_NUMBER:
        return !cJSON_IsNumber(v) && forge_replace(p, cJSON_CreateNumber(0.125));
    case FORGE_FLIP:
        return (cJSON_IsBool(v) || cJSON_IsNull(v)) &&
               forge_replace(p, cJSON_CreateBool(!cJSON_IsTrue(v)));
    case FORGE_NULL:
        return !cJSON_IsNull(v) && forge_replace(p, cJSON_CreateNull());
    case FORGE_REMOVE:
        cJSON_Delete(cJSON_DetachItemViaPointer(p->parent, v));
        p->at = NULL;
        return true;
    case FORGE_RENAME_KEY:
        if (!v->string) return false;
        char key[300];
        snprintf(key, sizeof key, "%.290s0", v->string);
        cJSON *const copy = cJSON_Duplicate(v, true);
        free(copy->string);
        copy->string = strdup(key);
        return cJSON_ReplaceItemViaPointer(p->parent, v, copy) && (p->at = copy);
    case FORGE_REPEAT:
        return cJSON_IsArray(p->parent) &&
               cJSON_AddItemToArray(p->parent, cJSON_Duplicate(v, true));
    default:
        return forge_container(p, how);
    }
}

/* ---- what the file says twice ------------------------------------------------------------------
 */

static inline void forge_set(cJSON *o, const char *key, cJSON *v)
{
    cJSON *const old = forge_get(o, key);
    if (!old) {
        assert_true(cJSON_AddItemToObject(o, key, v));
        return;
    }
    forge_place p = {.parent = o, .at = old};
    (void)forge_replace(&p, v);
}

/* Parameters by the table: the numbers that are there in their order, 0 for those missing. */
static inline void forge_parameters(cJSON *claim, pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    const cJSON *const old = forge_get(claim, "parameters");
    cJSON *const now = cJSON_CreateObject();
    const cJSON *at = old ? old->child : NULL;
    for (size_t i = 0; i < PARE_PARAMETERS && row->parameters[i]; i++) {
        while (at && !cJSON_IsNumber(at)) at = at->next;
        c->p[i] = at ? at->valuedouble : 0;
        at = at ? at->next : NULL;
        cJSON_AddNumberToObject(now, row->parameters[i], c->p[i]);
    }
    for (at = old ? old->child : NULL; row->text && at && !cJSON_IsString(at);) at = at->next;
    c->text = at && cJSON_IsString(at) && *at->valuestring ? at->valuestring : "one";
    if (row->text) cJSON_AddStringToObject(now, row->text, c->text);
    if (row->text) c->text = forge_get(now, row->text)->valuestring;
    forge_set(claim, "parameters", now);
}

/* A claim whose kind or parameters were changed, made to say so in all its keys. */
static inline bool forge_rewrite_claim(forge *f, cJSON *claim, size_t section)
{
    const cJSON *const kind = forge_get(claim, "kind");
    pare_claim c = {.kind = PARE_KINDS};
    for (int k = 0; cJSON_IsString(kind) && k < PARE_KINDS; k++)
        if (strcmp(pare_kinds[k].name, kind->valuestring) == 0) c.kind = (pare_kind)k;
    if (c.kind == PARE_KINDS || pare_kinds[c.kind].section != section) return false;
    const pare_kind_row *const row = &pare_kinds[c.kind];
    forge_parameters(claim, &c);
    forge_set(claim, "sentence", cJSON_CreateString(pare_claim_sentence(f->a, &c)));
    if (section == PARE_THEOREM) {
        forge_set(claim, "norm", cJSON_CreateString(row->norm));
        forge_set(claim, "side", cJSON_CreateString(row->lower ? "lower" : "upper"));
        if (!pare_kind_is_drawn(c.kind))
            cJSON_DeleteItemFromObjectCaseSensitive(claim, "probability");
        if (pare_kind_is_drawn(c.kind) && !forge_get(claim, "probability"))
            forge_set(claim, "probability", cJSON_CreateNumber(0.5));
    }
    if (section == PARE_OBSERVATION)
        forge_set(claim, "tolerance", cJSON_CreateNumber(row->tolerance));
    static const char *const keys[] = {"value", "limit"};
    for (size_t k = 0; k < 2; k++) {
        const cJSON *const v = forge_get(claim, keys[k]);
        const bool has = k ? row->has_limit : row->has_value;
        if (v && cJSON_IsNull(v) == has)
            forge_set(claim, keys[k], has ? cJSON_CreateNumber(0) : cJSON_CreateNull());
    }
    return true;
}

static inline void forge_swap_words(forge *f, cJSON *v, const char *from, const char *to)
{
    for (cJSON *c = v->child; c; c = c->next) {
        const char *const at = cJSON_IsString(c) && c->string && strcmp(c->string, "domain") == 0
                                   ? strstr(c->valuestring, from)
                                   : NULL;
        if (at) {
            const char *const words = pare_sprintf(f->a, "%.*s%s%s", (int)(at - c->valuestring),
                                                   c->valuestring, to, at + strlen(from));
            forge_place p = {.parent = v, .at = c};
            (void)forge_replace(&p, cJSON_CreateString(words));
            c = p.at;
        }
        forge_swap_words(f, c, from, to);
    }
}

static inline size_t forge_size(const cJSON *o, const char *key)
{
    const cJSON *const v = forge_get(o, key);
    return cJSON_IsNumber(v) && v->valuedouble >= 0 ? (size_t)v->valuedouble : 0;
}

/* The words of the domain follow the data. */
static inline bool forge_rewrite_domain(forge *f, cJSON *root, const pare_cert *was)
{
    const cJSON *const d = forge_get(root, "data");
    const cJSON *const kind = forge_get(d, "kind");
    if (!cJSON_IsString(kind)) return false;
    const pare_data_ref ref = {.kind = kind->valuestring,
                               .path = forge_get(d, "path") ? "x" : NULL,
                               .split = forge_size(d, "split"),
                               .first = forge_size(d, "first"),
                               .count = forge_size(d, "count"),
                               .tokens = forge_size(d, "tokens")};
    const char *const now = pare_domain_text(f->a, &ref), *const old =
                                                              pare_domain_text(f->a, &was->data);
    assert_true(now && old);
    if (strcmp(now, old) == 0) return false;
    forge_swap_words(f, root, old, now);
    return true;
}

/* False: nothing is said twice there. */
static inline bool forge_rewrite(forge *f, forge_place *p)
{
    size_t link, section, i;
    const char *key;
    const char *const path = forge_within(p->path, &link);
    cJSON *const root = forge_link_root(p->root, link);
    const pare_cert *const was = link == SIZE_MAX ? f->cert : f->cert->chain[link];
    if (strncmp(path, "data.", 5) == 0) return forge_rewrite_domain(f, root, was);
    if (!forge_claim_at(path, &section, &i, &key)) return false;
    if (strcmp(key, "kind") != 0 && strncmp(key, "parameters.", 11) != 0) return false;
    static const char *const names[] = {"hypotheses", "theorems", "observations", "evidence",
                                        "paper"};
    cJSON *const claim = cJSON_GetArrayItem(forge_get(root, names[section]), (int)i);
    return claim && forge_rewrite_claim(f, claim, section);
}

/* ---- what may survive --------------------------------------------------------------------------
 */

static inline double forge_double(const cJSON *v)
{
    if (cJSON_IsString(v) && strcmp(v->valuestring, "inf") == 0) return INFINITY;
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

/* The claim of a section by its place there. */
static inline const pare_claim *forge_nth(const pare_cert *c, size_t section, size_t i)
{
    for (size_t k = 0; k < c->nclaims; k++)
        if (pare_kinds[c->claims[k].kind].section == section && i-- == 0) return &c->claims[k];
    return NULL;
}

static inline double forge_slack(const pare_cert *again, const pare_claim *c)
{
    for (size_t k = 0; k < again->nclaims; k++)
        if (pare_same_claim(&again->claims[k], c))
            return isfinite(again->claims[k].slack) ? again->claims[k].slack : 0;
    return 0;
}

static inline forge_class forge_class_of_claim(const pare_cert *cert, const pare_cert *again,
                                               const forge_place *p, forge_way how, size_t section,
                                               size_t i, const char *key)
{
    const pare_claim *const c = forge_nth(cert, section, i);
    assert_non_null(c);
    const pare_kind_row *const row = &pare_kinds[c->kind];
    const double now = p->now;
    if (!*key)
        return how == FORGE_REMOVE && section != PARE_HYPOTHESIS && section != PARE_OBSERVATION
                   ? FORGE_LEFT_OUT
                   : FORGE_BROKEN;
    if (strcmp(key, "bound") == 0)
        return (row->lower ? now < c->value : now > c->value) ? FORGE_WEAKER : FORGE_BROKEN;
    if (strcmp(key, "probability") == 0) return now < c->probability ? FORGE_WEAKER : FORGE_BROKEN;
    if (section == PARE_THEOREM || (strcmp(key, "value") != 0 && strcmp(key, "limit") != 0))
        return FORGE_BROKEN;
    const double was = *key == 'v' ? c->value : c->limit;
    if (row->one_sided && (now > was || 4 * now >= was)) return FORGE_TOLERANCE;
    const double most = 1.0011e-3 * fmax(fabs(now), fabs(was)) + forge_slack(again, c);
    return fabs(now - was) <= most ? FORGE_TOLERANCE : FORGE_BROKEN;
}

static inline forge_class forge_class_of(const forge *f, const forge_place *p, forge_way how)
{
    size_t link, section, i;
    const char *key;
    const char *const path = forge_within(p->path, &link);
    const pare_cert *const c = link == SIZE_MAX ? f->cert : f->cert->chain[link];
    const pare_cert *const again = link == SIZE_MAX ? f->again : f->again->chain[link];
    const double now = p->now;
    if (how == FORGE_LAST_FIRST) return FORGE_ORDER;
    if (strcmp(path, "headline.proven") == 0) return now > c->proven ? FORGE_WEAKER : FORGE_BROKEN;
    if (strcmp(path, "headline.measured") == 0)
        return fabs(now - again->measured) <=
                       fmax(1e-3 * again->measured, 2 * again->measured_radius)
                   ? FORGE_TOLERANCE
                   : FORGE_BROKEN;
    if (strcmp(path, "reduction.seed") == 0 && c->data.path) return FORGE_WORD;
    if (strncmp(path, "data.writers_word.fitted.inputs", 31) == 0) return FORGE_WORD;
    if (strcmp(path, "data.tokens") == 0 && strcmp(c->data.kind, "part") == 0) return FORGE_SAME;
    if (strcmp(path, "data.split") == 0 && !pare_cert_find(c, PARE_AUC_MOST)) return FORGE_SAME;
    if (how == FORGE_RENAME_KEY &&
        ((strncmp(path, "input.files.", 12) == 0 && c->input.nfiles == 1) ||
         (strncmp(path, "output.files.", 13) == 0 && c->output.nfiles == 1)))
        return FORGE_NAME;
    if (how == FORGE_EMPTY && (strcmp(path, "theorems") == 0 || strcmp(path, "evidence") == 0 ||
                               strcmp(path, "paper") == 0))
        return FORGE_LEFT_OUT;
    if (!forge_claim_at(path, &section, &i, &key)) return FORGE_BROKEN;
    return forge_class_of_claim(c, again, p, how, section, i, key);
}

/* ---- all changes -------------------------------------------------------------------------------
 */

/* As pare verify does with the file, from its text on. */
static inline pare_status forge_verify(forge *f, const char *text, size_t bytes, pare_err *err)
{
    cJSON *read = NULL;
    pare_cert *c = NULL, *again = NULL;
    pare_status st = pare_json_parse(&read, text, bytes, err);
    if (!st) st = pare_cert_parse(&c, f->a, read, f->path, err);
    if (!st) st = pare_cert_check(&again, f->a, c, f->path, f->opts, err);
    cJSON_Delete(read);
    return st;
}

/* What certainly does not apply at this place is not tried, to save time. */
static inline bool forge_may_apply(const forge_place *p, forge_way how, bool rewritten)
{
    size_t link, section, i;
    const char *key = "";
    const char *const path = forge_within(p->path, &link);
    const bool claim = forge_claim_at(path, &section, &i, &key);
    const bool kind = claim && strcmp(key, "kind") == 0;
    const bool twice =
        kind || (claim && strncmp(key, "parameters.", 11) == 0) || strncmp(path, "data.", 5) == 0;
    if (rewritten && !twice) return false;
    if (how >= FORGE_KINDS) return kind;
    if (how <= FORGE_ONE_MORE) return cJSON_IsNumber(p->at);
    if (how <= FORGE_OTHER_TEXT_2) return cJSON_IsString(p->at) || how == FORGE_EMPTY;
    return true;
}

static inline void forge_one(forge *f, size_t node, forge_way how, bool rewritten)
{
    const pare_mark mark = pare_arena_mark(f->a);
    pare_err err = {0};
    forge_place p = {0};
    size_t left = node, bytes = 0;
    char *text = NULL;
    assert_ok(pare_json_parse(&p.root, f->text, f->bytes, &err), &err);
    bool changed = forge_find(&p, p.root, NULL, "", &left) && forge_apply(&p, how);
    p.now = changed && p.at ? forge_double(p.at) : NAN;
    const char *const is = changed && p.at ? cJSON_PrintUnformatted(p.at) : NULL;
    if (changed && rewritten) changed = forge_rewrite(f, &p);
    if (changed) assert_ok(pare_json_print(&text, &bytes, f->a, p.root, 0, &err), &err);
    if (changed && !cJSON_Compare(p.root, f->tree, true)) {
        f->tried++;
        const pare_status st = forge_verify(f, text, bytes, &err);
        const int code = pare_exit_code(st);
        if (st && code != 2 && code != 4)
            fail_msg("%s: %s, change %d: exit %d: %s", f->path, p.path, (int)how, code, err.msg);
        const forge_class class = st ? FORGE_BROKEN : forge_class_of(f, &p, how);
        if (st) f->refused++;
        if (!st && class == FORGE_BROKEN) {
            print_message("%s: %s, change %d%s, verifies although it is now %s\n", f->path, p.path,
                          (int)how, rewritten ? " (rewritten)" : "", is ? is : "gone");
            f->broken++;
        }
        if (!st && class < FORGE_CLASSES) f->survived[class]++;
        if (!st && class < FORGE_CLASSES && f->print)
            print_message("  %-13s %s, change %d\n", forge_class_names[class], p.path, (int)how);
    }
    free((void *)(uintptr_t)is);
    cJSON_Delete(p.root);
    pare_arena_reset(f->a, mark);
}

/* Every change of the certificate at `path`, or every step-th. */
static inline void forge_all(forge *f, const char *path, const pare_verify_opts *opts, size_t step,
                             size_t first)
{
    pare_err err = {0};
    *f = (forge){.path = path,
                 .opts = opts,
                 .step = step,
                 .seen = first,
                 .print = f->print,
                 .a = pare_arena_new()};
    assert_non_null(f->a);
    assert_ok(pare_text_read(&f->text, &f->bytes, f->a, path, &err), &err);
    assert_ok(pare_json_parse(&f->tree, f->text, f->bytes, &err), &err);
    assert_ok(pare_cert_read(&f->cert, f->a, path, &err), &err);
    assert_ok(pare_cert_check(&f->again, f->a, f->cert, path, opts, &err), &err);
    forge_place p = {.root = f->tree};
    size_t left = 0;
    for (size_t node = 0; left = node, forge_find(&p, p.root, NULL, "", &left); node++)
        for (int how = 0; how < FORGE_WAYS; how++)
            for (int rewritten = 0; rewritten < 2; rewritten++)
                if (forge_may_apply(&p, (forge_way)how, rewritten) && f->seen++ % f->step == 0)
                    forge_one(f, node, (forge_way)how, rewritten);
    cJSON_Delete(f->tree);
    pare_arena_free(f->a);
}
#endif
