/* JSON to the architecture. Unknown keys are refused: a misspelt one must not become a default. */
#include "arch.h"
#include "names.h"
#include <string.h>

static pare_status only_keys(const cJSON *o, const char *const *keys, pare_err *err)
{
    for (const cJSON *c = o->child; c; c = c->next) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], c->string) != 0) i++;
        if (!keys[i])
            return pare_fail(err, PARE_ERR_INPUT, "unknown key \"%s\" in \"%s\"", c->string,
                             o->string ? o->string : "architecture");
    }
    return PARE_OK;
}

/* A word of a table; a missing key leaves *out alone when `optional`. */
static pare_status word(int *out, const cJSON *o, const char *key, const word_table *t,
                        bool optional, pare_err *err)
{
    const char *text = NULL;
    const pare_status st =
        optional ? pare_json_string_opt(&text, o, key, err) : pare_json_string(&text, o, key, err);
    if (st || !text) return st;
    return word_find(out, t, text, err);
}

static pare_status read_norm(pare_norm *n, const cJSON *parent, const char *key, pare_err *err)
{
    static const char *const keys[] = {"kind", "eps", "divisor", "shift", NULL};
    const cJSON *o = NULL;
    int kind = 0;
    pare_status st = pare_json_object_opt(&o, parent, key, err);
    if (st || !o) return st;
    if ((st = only_keys(o, keys, err)) || (st = word(&kind, o, "kind", &norm_words, false, err)))
        return st;
    n->kind = (pare_norm_kind)kind;
    const bool divides = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    if (n->kind != PARE_NORM_MEAN && (st = pare_json_number(&n->eps, o, "eps", err))) return st;
    if (divides && (st = pare_json_number(&n->divisor, o, "divisor", err))) return st;
    return pare_json_number_opt(&n->shift, o, "shift", err);
}

static pare_status read_head(pare_head *h, const cJSON *o, pare_err *err)
{
    static const char *const keys[] = {"dk", "dv",    "q",    "k",      "v",
                                       "o",  "scale", "freq", "planes", NULL};
    pare_status st;
    if (!cJSON_IsObject(o)) return pare_fail(err, PARE_ERR_INPUT, "a head is not an object");
    if ((st = only_keys(o, keys, err)) || (st = pare_json_size(&h->dk, o, "dk", err)) ||
        (st = pare_json_size(&h->dv, o, "dv", err)) || (st = pare_json_size(&h->q, o, "q", err)) ||
        (st = pare_json_size(&h->k, o, "k", err)) || (st = pare_json_size(&h->v, o, "v", err)) ||
        (st = pare_json_size(&h->o, o, "o", err)) ||
        (st = pare_json_number(&h->scale, o, "scale", err)) ||
        (st = pare_json_size_opt(&h->freq, o, "freq", err)))
        return st;
    return pare_json_size_opt(&h->planes, o, "planes", err);
}

static pare_status read_heads(pare_attn *a, pare_arena *arena, const cJSON *o, pare_err *err)
{
    const cJSON *list = NULL;
    pare_status st = pare_json_array_opt(&list, o, "heads", err);
    if (st || !list) return st;
    const size_t n = (size_t)cJSON_GetArraySize(list);
    a->heads = pare_alloc(arena, n ? n : 1, sizeof *a->heads);
    if (!a->heads) return pare_no_memory(err);
    for (const cJSON *h = list->child; h; h = h->next)
        if ((st = read_head(&a->heads[a->nheads++], h, err))) return st;
    return PARE_OK;
}

static pare_status read_attention(pare_attn *a, pare_arena *arena, const cJSON *block,
                                  pare_err *err)
{
    static const char *const keys[] = {"kind", "in",      "out",      "heads", "tolerance",
                                       "skip", "in_norm", "out_norm", NULL};
    const cJSON *o = NULL;
    int kind = 0, skip = 0;
    pare_status st = pare_json_object_opt(&o, block, "attn", err);
    if (st || !o) return st;
    if ((st = only_keys(o, keys, err)) || (st = word(&kind, o, "kind", &attn_words, false, err)) ||
        (st = word(&skip, o, "skip", &skip_words, false, err)) ||
        (st = pare_json_size(&a->din, o, "in", err)) ||
        (st = pare_json_size(&a->dout, o, "out", err)) ||
        (st = pare_json_number_opt(&a->tolerance, o, "tolerance", err)) ||
        (st = read_heads(a, arena, o, err)) || (st = read_norm(&a->in_norm, o, "in_norm", err)))
        return st;
    a->kind = (pare_attn_kind)kind;
    a->skip.kind = (pare_skip_kind)skip;
    return read_norm(&a->out_norm, o, "out_norm", err);
}

static pare_status read_ffn(pare_ffn *f, pare_arena *arena, const cJSON *block, pare_err *err)
{
    static const char *const keys[] = {"kind", "in",      "out",      "layers", "act",
                                       "skip", "in_norm", "out_norm", NULL};
    const cJSON *o = NULL;
    int kind = 0, skip = 0, act = 0;
    pare_status st = pare_json_object_opt(&o, block, "ffn", err);
    if (st || !o) return st;
    if ((st = only_keys(o, keys, err)) || (st = word(&kind, o, "kind", &ffn_words, false, err)) ||
        (st = word(&skip, o, "skip", &skip_words, false, err)) ||
        (st = word(&act, o, "act", &act_words, true, err)) ||
        (st = pare_json_size(&f->din, o, "in", err)) ||
        (st = pare_json_size(&f->dout, o, "out", err)) ||
        (st = pare_json_size(&f->nlayers, o, "layers", err)) ||
        (st = read_norm(&f->in_norm, o, "in_norm", err)) ||
        (st = read_norm(&f->out_norm, o, "out_norm", err)))
        return st;
    f->kind = (pare_ffn_kind)kind;
    f->skip.kind = (pare_skip_kind)skip;
    f->act = (pare_act)act;
    if (f->nlayers > 1000)
        return pare_fail(err, PARE_ERR_INPUT, "an ffn of %zu layers", f->nlayers);
    f->layers = pare_alloc(arena, f->nlayers ? f->nlayers : 1, sizeof *f->layers);
    return f->layers ? PARE_OK : pare_no_memory(err);
}

static pare_status read_blocks(pare_model *m, const cJSON *root, pare_err *err)
{
    static const char *const keys[] = {"attn", "ffn", NULL};
    const cJSON *list = NULL;
    pare_status st = pare_json_array(&list, root, "blocks", err);
    if (st) return st;
    const size_t n = (size_t)cJSON_GetArraySize(list);
    m->blocks = pare_alloc(m->arena, n ? n : 1, sizeof *m->blocks);
    if (!m->blocks) return pare_no_memory(err);
    for (const cJSON *o = list->child; o; o = o->next) {
        pare_block *const b = &m->blocks[m->nblocks++];
        if (!cJSON_IsObject(o)) return pare_fail(err, PARE_ERR_INPUT, "a block is not an object");
        if ((st = only_keys(o, keys, err)) || (st = read_attention(&b->attn, m->arena, o, err)) ||
            (st = read_ffn(&b->ffn, m->arena, o, err)))
            return st;
    }
    return PARE_OK;
}

static pare_status read_positions(pare_positions *p, const cJSON *stem, pare_err *err)
{
    static const char *const keys[] = {"kind", "base", "interleaved", "after_map", NULL};
    const cJSON *o = NULL;
    int kind = 0;
    pare_status st = pare_json_object_opt(&o, stem, "positions", err);
    if (st || !o) return st;
    if ((st = only_keys(o, keys, err)) ||
        (st = word(&kind, o, "kind", &position_words, false, err)) ||
        (st = pare_json_number_opt(&p->base, o, "base", err)) ||
        (st = pare_json_bool_opt(&p->after_map, o, "after_map", err)))
        return st;
    p->kind = (pare_position_kind)kind;
    if (p->kind != PARE_POS_ROTARY) return PARE_OK;
    return pare_json_bool(&p->interleaved, o, "interleaved", err);
}

static pare_status read_stem(pare_stem *s, const cJSON *root, pare_err *err)
{
    static const char *const keys[] = {"ids", "width", "vocab", "positions", "norm", NULL};
    const cJSON *o = NULL;
    pare_status st;
    if ((st = pare_json_object(&o, root, "stem", err)) || (st = only_keys(o, keys, err)) ||
        (st = pare_json_bool(&s->ids, o, "ids", err)) ||
        (st = pare_json_size(&s->width, o, "width", err)) ||
        (st = pare_json_size_opt(&s->vocab, o, "vocab", err)) ||
        (st = read_positions(&s->pos, o, err)))
        return st;
    return read_norm(&s->norm, o, "norm", err);
}

static pare_status read_expander(pare_pattern *p, const cJSON *pattern, pare_err *err)
{
    static const char *const keys[] = {"degree", "seed", NULL};
    const cJSON *o = NULL;
    pare_status st = pare_json_object_opt(&o, pattern, "expander", err);
    if (st || !o) return st;
    if ((st = only_keys(o, keys, err)) ||
        (st = pare_json_size(&p->expander_degree, o, "degree", err)))
        return st;
    return pare_json_u64(&p->expander_seed, o, "seed", err);
}

static pare_status read_pattern(pare_pattern *p, const cJSON *root, pare_err *err)
{
    static const char *const keys[] = {"kind", "window", "sinks", "self_loops", "expander", NULL};
    const cJSON *o = NULL;
    int kind = 0;
    pare_status st;
    if ((st = pare_json_object(&o, root, "pattern", err)) || (st = only_keys(o, keys, err)) ||
        (st = word(&kind, o, "kind", &pattern_words, false, err)) ||
        (st = pare_json_size_opt(&p->window, o, "window", err)) ||
        (st = pare_json_size_opt(&p->sinks, o, "sinks", err)) ||
        (st = pare_json_bool_opt(&p->self_loops, o, "self_loops", err)))
        return st;
    p->kind = (pare_pattern_kind)kind;
    return read_expander(p, o, err);
}

static pare_status read_top(pare_top *t, const cJSON *root, pare_err *err)
{
    static const char *const keys[] = {"norm", "pool", "act", "tied", NULL};
    const cJSON *o = NULL;
    int pool = 0, act = 0;
    pare_status st;
    if ((st = pare_json_object(&o, root, "top", err)) || (st = only_keys(o, keys, err)) ||
        (st = word(&pool, o, "pool", &pool_words, true, err)) ||
        (st = word(&act, o, "act", &act_words, true, err)) ||
        (st = pare_json_bool_opt(&t->tied, o, "tied", err)))
        return st;
    t->pool = (pare_pool)pool;
    t->act = (pare_act)act;
    return read_norm(&t->norm, o, "norm", err);
}

static pare_status read_model(pare_model *m, const cJSON *root, pare_err *err)
{
    static const char *const keys[] = {"version", "name", "context",   "stem", "pattern",
                                       "blocks",  "top",  "tokenizer", NULL};
    const char *name = "";
    size_t version = 0;
    int tokenizer = 0;
    pare_status st;
    if (!cJSON_IsObject(root)) return pare_fail(err, PARE_ERR_INPUT, "not an object");
    if ((st = only_keys(root, keys, err)) || (st = pare_json_size(&version, root, "version", err)))
        return st;
    if (version != ARCH_VERSION)
        return pare_fail(err, PARE_ERR_INPUT, "version %zu; this program reads version %d", version,
                         ARCH_VERSION);
    if ((st = pare_json_string_opt(&name, root, "name", err)) ||
        (st = pare_json_size_opt(&m->context, root, "context", err)) ||
        (st = word(&tokenizer, root, "tokenizer", &tokenizer_words, true, err)) ||
        (st = read_stem(&m->stem, root, err)) || (st = read_pattern(&m->pattern, root, err)) ||
        (st = read_blocks(m, root, err)))
        return st;
    m->tokenizer = (pare_tokenizer_kind)tokenizer;
    m->name = pare_strdup(m->arena, name);
    if (!m->name) return pare_no_memory(err);
    return read_top(&m->top, root, err);
}

pare_status arch_read(pare_model *m, const char *text, pare_err *err)
{
    cJSON *root = NULL;
    pare_status st = pare_json_parse(&root, text, strlen(text), err);
    if (!st) st = read_model(m, root, err);
    if (st) pare_err_prefix(err, "architecture");
    cJSON_Delete(root);
    return st;
}
