/* arch_read.c - the architecture from its JSON text (docs/format.md).
 *
 * Unknown keys are refused: a misspelled key must not become a default. After the first failure the
 * readers below do nothing (base/work.h), and absent objects are left as zeros, which are the
 * defaults. */
#include "base/json.h"
#include "arch.h"
#include "names.h"
#include "base/work.h"
#include <string.h>

typedef enum presence { REQUIRED, OPTIONAL } presence;

static void check_keys(pare_work *w, const cJSON *o, const char *const *keys)
{
    for (const cJSON *c = o->child; c && !w->st; c = c->next) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], c->string) != 0) i++;
        if (!keys[i])
            pare_work_fail(w, PARE_ERR_INPUT, "unknown key \"%s\" in \"%s\"", c->string,
                           o->string ? o->string : "architecture");
    }
}

/* The object parent[key], whose keys are all in `keys`; NULL: it is absent, or something failed. */
static const cJSON *get_object(pare_work *w, const cJSON *parent, const char *key,
                               const char *const *keys, presence p)
{
    const cJSON *o = NULL;
    if (!w->st)
        w->st = (p == OPTIONAL ? pare_json_object_opt : pare_json_object)(&o, parent, key, w->err);
    if (!w->st && o) check_keys(w, o, keys);
    return w->st ? NULL : o;
}

static const cJSON *get_array(pare_work *w, const cJSON *parent, const char *key, presence p)
{
    const cJSON *list = NULL;
    if (!w->st)
        w->st = (p == OPTIONAL ? pare_json_array_opt : pare_json_array)(&list, parent, key, w->err);
    return list;
}

static void get_size(pare_work *w, size_t *out, const cJSON *o, const char *key, presence p)
{
    if (!w->st) w->st = (p == OPTIONAL ? pare_json_size_opt : pare_json_size)(out, o, key, w->err);
}

static void get_number(pare_work *w, double *out, const cJSON *o, const char *key, presence p)
{
    if (!w->st)
        w->st = (p == OPTIONAL ? pare_json_number_opt : pare_json_number)(out, o, key, w->err);
}

static void get_bool(pare_work *w, bool *out, const cJSON *o, const char *key, presence p)
{
    if (!w->st) w->st = (p == OPTIONAL ? pare_json_bool_opt : pare_json_bool)(out, o, key, w->err);
}

/* The index of a word in its table; 0 when an optional key is absent. */
static int get_word(pare_work *w, const cJSON *o, const char *key, const word_table *t, presence p)
{
    const char *text = NULL;
    int index = 0;
    if (!w->st)
        w->st = (p == OPTIONAL ? pare_json_string_opt : pare_json_string)(&text, o, key, w->err);
    if (!w->st && text) w->st = word_find(&index, t, text, w->err);
    return index;
}

static void read_norm(pare_work *w, pare_norm *n, const cJSON *parent, const char *key)
{
    static const char *const keys[] = {"kind", "eps", "divisor", "shift", NULL};
    const cJSON *const o = get_object(w, parent, key, keys, OPTIONAL);
    if (!o) return;
    n->kind = (pare_norm_kind)get_word(w, o, "kind", &norm_words, REQUIRED);
    const bool divides = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    if (n->kind != PARE_NORM_MEAN) get_number(w, &n->eps, o, "eps", REQUIRED);
    if (divides) get_number(w, &n->divisor, o, "divisor", REQUIRED);
    get_number(w, &n->shift, o, "shift", OPTIONAL);
}

static void read_attention(pare_work *w, pare_attn *a, const cJSON *block)
{
    static const char *const keys[] = {"kind", "in",      "out",      "heads", "tolerance",
                                       "skip", "in_norm", "out_norm", NULL};
    static const char *const head_keys[] = {"dk", "dv",    "q",    "k",      "v",
                                            "o",  "scale", "freq", "planes", NULL};
    const cJSON *const o = get_object(w, block, "attention", keys, OPTIONAL);
    if (!o) return;
    a->kind = (pare_attn_kind)get_word(w, o, "kind", &attn_words, REQUIRED);
    a->skip.kind = (pare_skip_kind)get_word(w, o, "skip", &skip_words, REQUIRED);
    get_size(w, &a->din, o, "in", REQUIRED);
    get_size(w, &a->dout, o, "out", REQUIRED);
    get_number(w, &a->tolerance, o, "tolerance", OPTIONAL);
    const cJSON *const list = get_array(w, o, "heads", OPTIONAL);
    if (list) a->heads = pare_work_alloc(w, (size_t)cJSON_GetArraySize(list), sizeof *a->heads);
    for (const cJSON *e = list ? list->child : NULL; e && !w->st; e = e->next) {
        pare_head *const h = &a->heads[a->nheads++];
        if (!cJSON_IsObject(e)) {
            pare_work_fail(w, PARE_ERR_INPUT, "a head is not an object");
            return;
        }
        check_keys(w, e, head_keys);
        get_size(w, &h->dk, e, "dk", REQUIRED);
        get_size(w, &h->dv, e, "dv", REQUIRED);
        get_size(w, &h->q, e, "q", REQUIRED);
        get_size(w, &h->k, e, "k", REQUIRED);
        get_size(w, &h->v, e, "v", REQUIRED);
        get_size(w, &h->o, e, "o", REQUIRED);
        get_number(w, &h->scale, e, "scale", REQUIRED);
        get_size(w, &h->freq, e, "freq", OPTIONAL);
        get_size(w, &h->planes, e, "planes", OPTIONAL);
    }
    read_norm(w, &a->in_norm, o, "in_norm");
    read_norm(w, &a->out_norm, o, "out_norm");
}

static void read_ffn(pare_work *w, pare_ffn *f, const cJSON *block)
{
    static const char *const keys[] = {"kind", "in",      "out",      "layers", "activation",
                                       "skip", "in_norm", "out_norm", NULL};
    const cJSON *const o = get_object(w, block, "ffn", keys, OPTIONAL);
    if (!o) return;
    f->kind = (pare_ffn_kind)get_word(w, o, "kind", &ffn_words, REQUIRED);
    f->skip.kind = (pare_skip_kind)get_word(w, o, "skip", &skip_words, REQUIRED);
    f->act = (pare_act)get_word(w, o, "activation", &act_words, OPTIONAL);
    get_size(w, &f->din, o, "in", REQUIRED);
    get_size(w, &f->dout, o, "out", REQUIRED);
    get_size(w, &f->nlayers, o, "layers", REQUIRED);
    read_norm(w, &f->in_norm, o, "in_norm");
    read_norm(w, &f->out_norm, o, "out_norm");
    if (f->nlayers > 1000) pare_work_fail(w, PARE_ERR_INPUT, "an ffn of %zu layers", f->nlayers);
    f->layers = pare_work_alloc(w, f->nlayers, sizeof *f->layers);
}

static void read_blocks(pare_work *w, pare_model *m, const cJSON *root)
{
    static const char *const keys[] = {"attention", "ffn", NULL};
    const cJSON *const list = get_array(w, root, "blocks", REQUIRED);
    if (!list) return;
    m->blocks = pare_work_alloc(w, (size_t)cJSON_GetArraySize(list), sizeof *m->blocks);
    for (const cJSON *o = list->child; o && !w->st; o = o->next) {
        pare_block *const b = &m->blocks[m->nblocks++];
        if (!cJSON_IsObject(o)) {
            pare_work_fail(w, PARE_ERR_INPUT, "a block is not an object");
            return;
        }
        check_keys(w, o, keys);
        read_attention(w, &b->attn, o);
        read_ffn(w, &b->ffn, o);
    }
}

static void read_embedding(pare_work *w, pare_embedding *s, const cJSON *root)
{
    static const char *const keys[] = {"ids", "width", "vocab", "positions", "norm", NULL};
    static const char *const position_keys[] = {"kind", "base", "interleaved", "after_map", NULL};
    const cJSON *const o = get_object(w, root, "embedding", keys, REQUIRED);
    get_bool(w, &s->ids, o, "ids", REQUIRED);
    get_size(w, &s->width, o, "width", REQUIRED);
    get_size(w, &s->vocab, o, "vocab", OPTIONAL);
    const cJSON *const pos = get_object(w, o, "positions", position_keys, OPTIONAL);
    if (pos) {
        s->pos.kind = (pare_position_kind)get_word(w, pos, "kind", &position_words, REQUIRED);
        get_number(w, &s->pos.base, pos, "base", OPTIONAL);
        get_bool(w, &s->pos.after_map, pos, "after_map", OPTIONAL);
        if (s->pos.kind == PARE_POS_ROTARY)
            get_bool(w, &s->pos.interleaved, pos, "interleaved", REQUIRED);
    }
    read_norm(w, &s->norm, o, "norm");
}

/* Keys of version 1, by the names that version 2 gives them. */
static void rename_keys(pare_work *w, cJSON *o)
{
    static const char *const words[][2] = {
        {"stem", "embedding"}, {"top", "head"}, {"attn", "attention"}, {"act", "activation"}};
    for (size_t i = 0; i < sizeof words / sizeof *words && cJSON_IsObject(o) && !w->st; i++) {
        if (pare_json_has(o, words[i][1]))
            pare_work_fail(w, PARE_ERR_INPUT, "key \"%s\" in version 1, which calls it \"%s\"",
                           words[i][1], words[i][0]);
        cJSON *const item = cJSON_DetachItemFromObjectCaseSensitive(o, words[i][0]);
        if (!item || cJSON_AddItemToObject(o, words[i][1], item)) continue;
        cJSON_Delete(item);
        w->st = pare_no_memory(w->err);
    }
    for (cJSON *c = o->child; c && !w->st; c = c->next) rename_keys(w, c);
}

static void read_model(pare_work *w, pare_model *m, size_t *version, cJSON *root)
{
    static const char *const keys[] = {"version", "name", "context",   "embedding", "pattern",
                                       "blocks",  "head", "tokenizer", NULL};
    static const char *const pattern_keys[] = {"kind",       "window",   "sinks",
                                               "self_loops", "expander", NULL};
    static const char *const expander_keys[] = {"degree", "seed", NULL};
    static const char *const head_keys[] = {"norm", "pool",      "activation",
                                            "tied", "normalize", NULL};
    const char *name = "";
    *version = 0;
    if (!cJSON_IsObject(root)) {
        pare_work_fail(w, PARE_ERR_INPUT, "not an object");
        return;
    }
    get_size(w, version, root, "version", REQUIRED);
    if (*version != 1 && *version != ARCH_VERSION)
        pare_work_fail(w, PARE_ERR_INPUT, "version %zu; this program reads versions 1 and %d",
                       *version, ARCH_VERSION);
    if (*version == 1) rename_keys(w, root);
    if (!w->st) check_keys(w, root, keys);
    if (!w->st) w->st = pare_json_string_opt(&name, root, "name", w->err);
    get_size(w, &m->context, root, "context", OPTIONAL);
    m->tokenizer = (pare_tokenizer_kind)get_word(w, root, "tokenizer", &tokenizer_words, OPTIONAL);
    read_embedding(w, &m->embedding, root);

    pare_pattern *const p = &m->pattern;
    const cJSON *const pattern = get_object(w, root, "pattern", pattern_keys, REQUIRED);
    p->kind = (pare_pattern_kind)get_word(w, pattern, "kind", &pattern_words, REQUIRED);
    get_size(w, &p->window, pattern, "window", OPTIONAL);
    get_size(w, &p->sinks, pattern, "sinks", OPTIONAL);
    get_bool(w, &p->self_loops, pattern, "self_loops", OPTIONAL);
    const cJSON *const expander = get_object(w, pattern, "expander", expander_keys, OPTIONAL);
    if (expander) get_size(w, &p->expander_degree, expander, "degree", REQUIRED);
    if (expander && !w->st) w->st = pare_json_u64(&p->expander_seed, expander, "seed", w->err);

    read_blocks(w, m, root);
    if (w->st) return;
    m->name = pare_strdup(m->arena, name);
    if (!m->name) w->st = pare_no_memory(w->err);
    pare_output_head *const head = &m->head;
    const cJSON *const out = get_object(w, root, "head", head_keys, REQUIRED);
    head->pool = (pare_pool)get_word(w, out, "pool", &pool_words, OPTIONAL);
    head->act = (pare_act)get_word(w, out, "activation", &act_words, OPTIONAL);
    get_bool(w, &head->tied, out, "tied", OPTIONAL);
    get_bool(w, &head->normalize, out, "normalize", OPTIONAL);
    read_norm(w, &head->norm, out, "norm");
}

pare_status arch_read(pare_model *m, size_t *version, const char *text, pare_err *err)
{
    cJSON *root = NULL;
    pare_work w = {.arena = m->arena, .err = err};
    w.st = pare_json_parse(&root, text, strlen(text), err);
    if (!w.st) read_model(&w, m, version, root);
    if (w.st) pare_err_prefix(err, "architecture");
    cJSON_Delete(root);
    return w.st;
}
