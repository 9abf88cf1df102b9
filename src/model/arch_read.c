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

static void read_heads(pare_work *w, pare_attn *a, const cJSON *attn)
{
    static const char *const keys[] = {"dk", "dv",    "q",    "k",      "v",
                                       "o",  "scale", "freq", "planes", NULL};
    const cJSON *const list = get_array(w, attn, "heads", OPTIONAL);
    if (!list) return;
    a->heads = pare_work_alloc(w, (size_t)cJSON_GetArraySize(list), sizeof *a->heads);
    for (const cJSON *o = list->child; o && !w->st; o = o->next) {
        pare_head *const h = &a->heads[a->nheads++];
        if (!cJSON_IsObject(o)) {
            pare_work_fail(w, PARE_ERR_INPUT, "a head is not an object");
            return;
        }
        check_keys(w, o, keys);
        get_size(w, &h->dk, o, "dk", REQUIRED);
        get_size(w, &h->dv, o, "dv", REQUIRED);
        get_size(w, &h->q, o, "q", REQUIRED);
        get_size(w, &h->k, o, "k", REQUIRED);
        get_size(w, &h->v, o, "v", REQUIRED);
        get_size(w, &h->o, o, "o", REQUIRED);
        get_number(w, &h->scale, o, "scale", REQUIRED);
        get_size(w, &h->freq, o, "freq", OPTIONAL);
        get_size(w, &h->planes, o, "planes", OPTIONAL);
    }
}

static void read_attention(pare_work *w, pare_attn *a, const cJSON *block)
{
    static const char *const keys[] = {"kind", "in",      "out",      "heads", "tolerance",
                                       "skip", "in_norm", "out_norm", NULL};
    const cJSON *const o = get_object(w, block, "attn", keys, OPTIONAL);
    if (!o) return;
    a->kind = (pare_attn_kind)get_word(w, o, "kind", &attn_words, REQUIRED);
    a->skip.kind = (pare_skip_kind)get_word(w, o, "skip", &skip_words, REQUIRED);
    get_size(w, &a->din, o, "in", REQUIRED);
    get_size(w, &a->dout, o, "out", REQUIRED);
    get_number(w, &a->tolerance, o, "tolerance", OPTIONAL);
    read_heads(w, a, o);
    read_norm(w, &a->in_norm, o, "in_norm");
    read_norm(w, &a->out_norm, o, "out_norm");
}

static void read_ffn(pare_work *w, pare_ffn *f, const cJSON *block)
{
    static const char *const keys[] = {"kind", "in",      "out",      "layers", "act",
                                       "skip", "in_norm", "out_norm", NULL};
    const cJSON *const o = get_object(w, block, "ffn", keys, OPTIONAL);
    if (!o) return;
    f->kind = (pare_ffn_kind)get_word(w, o, "kind", &ffn_words, REQUIRED);
    f->skip.kind = (pare_skip_kind)get_word(w, o, "skip", &skip_words, REQUIRED);
    f->act = (pare_act)get_word(w, o, "act", &act_words, OPTIONAL);
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
    static const char *const keys[] = {"attn", "ffn", NULL};
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

static void read_embedding(pare_work *w, pare_stem *s, const cJSON *root)
{
    static const char *const keys[] = {"ids", "width", "vocab", "positions", "norm", NULL};
    static const char *const position_keys[] = {"kind", "base", "interleaved", "after_map", NULL};
    const cJSON *const o = get_object(w, root, "stem", keys, REQUIRED);
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

static void read_pattern(pare_work *w, pare_pattern *p, const cJSON *root)
{
    static const char *const keys[] = {"kind", "window", "sinks", "self_loops", "expander", NULL};
    static const char *const expander_keys[] = {"degree", "seed", NULL};
    const cJSON *const o = get_object(w, root, "pattern", keys, REQUIRED);
    p->kind = (pare_pattern_kind)get_word(w, o, "kind", &pattern_words, REQUIRED);
    get_size(w, &p->window, o, "window", OPTIONAL);
    get_size(w, &p->sinks, o, "sinks", OPTIONAL);
    get_bool(w, &p->self_loops, o, "self_loops", OPTIONAL);
    const cJSON *const e = get_object(w, o, "expander", expander_keys, OPTIONAL);
    if (!e) return;
    get_size(w, &p->expander_degree, e, "degree", REQUIRED);
    if (!w->st) w->st = pare_json_u64(&p->expander_seed, e, "seed", w->err);
}

static void read_head(pare_work *w, pare_top *t, const cJSON *root)
{
    static const char *const keys[] = {"norm", "pool", "act", "tied", NULL};
    const cJSON *const o = get_object(w, root, "top", keys, REQUIRED);
    t->pool = (pare_pool)get_word(w, o, "pool", &pool_words, OPTIONAL);
    t->act = (pare_act)get_word(w, o, "act", &act_words, OPTIONAL);
    get_bool(w, &t->tied, o, "tied", OPTIONAL);
    read_norm(w, &t->norm, o, "norm");
}

static void read_model(pare_work *w, pare_model *m, const cJSON *root)
{
    static const char *const keys[] = {"version", "name", "context",   "stem", "pattern",
                                       "blocks",  "top",  "tokenizer", NULL};
    const char *name = "";
    size_t version = 0;
    if (!cJSON_IsObject(root)) {
        pare_work_fail(w, PARE_ERR_INPUT, "not an object");
        return;
    }
    check_keys(w, root, keys);
    get_size(w, &version, root, "version", REQUIRED);
    if (version != ARCH_VERSION)
        pare_work_fail(w, PARE_ERR_INPUT, "version %zu; this program reads version %d", version,
                       ARCH_VERSION);
    if (!w->st) w->st = pare_json_string_opt(&name, root, "name", w->err);
    get_size(w, &m->context, root, "context", OPTIONAL);
    m->tokenizer = (pare_tokenizer_kind)get_word(w, root, "tokenizer", &tokenizer_words, OPTIONAL);
    read_embedding(w, &m->stem, root);
    read_pattern(w, &m->pattern, root);
    read_blocks(w, m, root);
    if (w->st) return;
    m->name = pare_strdup(m->arena, name);
    if (!m->name) w->st = pare_no_memory(w->err);
    read_head(w, &m->top, root);
}

pare_status arch_read(pare_model *m, const char *text, pare_err *err)
{
    cJSON *root = NULL;
    pare_work w = {.arena = m->arena, .err = err};
    w.st = pare_json_parse(&root, text, strlen(text), err);
    if (!w.st) read_model(&w, m, root);
    if (w.st) pare_err_prefix(err, "architecture");
    cJSON_Delete(root);
    return w.st;
}
