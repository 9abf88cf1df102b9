/* tokenizer_json.c - reading tokenizer.json, and encoding as it says (tokenizer_json.h).
 *
 * A text is cut at added tokens; what lies between is normalized, cut at added tokens again (those
 * that are looked for in normalized text), cut into words, and each word becomes ids. */
#include "tokenizer_json.h"
#include <string.h>

enum { LONGEST_ADDED = 4096 };

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reader {
    pare_json_tokenizer *t;
    pare_arena *arena;
    pare_err *err;
} reader;

/* The id that the file gives, unless the vocabulary has the token with another. */
static pare_status read_added_one(reader *r, const cJSON *entry, pare_added_token *out)
{
    size_t id = 0;
    *out = (pare_added_token){0};
    pare_status st = pare_piece_read(&out->content, r->arena, entry, "content", NULL, r->err);
    if (!st) st = pare_json_size(&id, entry, "id", r->err);
    if (!st) st = pare_json_bool_opt(&out->special, entry, "special", r->err);
    out->normalized = !out->special;
    if (!st) st = pare_json_bool_opt(&out->normalized, entry, "normalized", r->err);
    if (!st) st = pare_json_bool_opt(&out->single_word, entry, "single_word", r->err);
    if (!st) st = pare_json_bool_opt(&out->left_strip, entry, "lstrip", r->err);
    if (!st) st = pare_json_bool_opt(&out->right_strip, entry, "rstrip", r->err);
    if (st) return st;
    if (out->content.n > LONGEST_ADDED)
        return pare_fail(r->err, PARE_ERR_INPUT, "an added token has %zu bytes", out->content.n);
    const int32_t known = pare_subword_id(&r->t->model, out->content.s, out->content.n);
    if (known < 0 && id > r->t->model.size + ((size_t)1 << 20))
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "added token \"%.60s\" has id %zu; the vocabulary "
                         "has %zu",
                         out->content.s, id, r->t->model.size);
    out->id = known >= 0 ? known : (int32_t)id;
    return PARE_OK;
}

static pare_status read_added(reader *r, const cJSON *root)
{
    pare_json_tokenizer *const t = r->t;
    const cJSON *list = NULL, *entry;
    pare_status st = pare_json_array_opt(&list, root, "added_tokens", r->err);
    if (st) return st;
    const size_t n = list ? (size_t)cJSON_GetArraySize(list) : 0;
    pare_added_token *const all = pare_alloc(r->arena, n + 1, sizeof *all);
    t->plain.v = pare_alloc(r->arena, n + 1, sizeof *all);
    t->normalized.v = pare_alloc(r->arena, n + 1, sizeof *all);
    if (!all || !t->plain.v || !t->normalized.v) return pare_no_memory(r->err);
    size_t count = 0;
    t->size = t->model.size;
    cJSON_ArrayForEach(entry, list)
    {
        st = read_added_one(r, entry, &all[count]);
        if (st) return st;
        if (all[count].content.n == 0) continue;
        if ((size_t)all[count].id >= t->size) t->size = (size_t)all[count].id + 1;
        count++;
    }
    t->name = pare_alloc(r->arena, t->size, sizeof *t->name);
    t->special = pare_alloc(r->arena, t->size, sizeof *t->special);
    t->ends = pare_alloc(r->arena, t->size, sizeof *t->ends);
    if (!t->name || !t->special || !t->ends) return pare_no_memory(r->err);
    memcpy(t->name, t->model.piece, t->model.size * sizeof *t->name);
    pare_regex_run *run;
    st = pare_regex_run_new(&run, r->arena, r->err);
    for (size_t i = 0; i < count && !st; i++) {
        pare_added_token token = all[i];
        t->name[token.id] = token.content;
        t->special[token.id] = token.special;
        if (token.normalized)
            st = pare_normalize(&token.content, &t->normalizers, r->arena, run, r->err);
        pare_added_tokens *const to = token.normalized ? &t->normalized : &t->plain;
        if (token.content.n) to->v[to->n++] = token;
    }
    pare_added_tokens_index(&t->plain);
    pare_added_tokens_index(&t->normalized);
    return st;
}

/* ---- what is put around a text --------------------------------------------------------------- */

static pare_status put_special(reader *r, pare_id_list *to, size_t id)
{
    if (id >= r->t->size)
        return pare_fail(r->err, PARE_ERR_INPUT, "post_processor: id %zu in a vocabulary of %zu",
                         id, r->t->size);
    pare_id_list_put(to, (int32_t)id);
    return to->failed ? pare_no_memory(r->err) : PARE_OK;
}

/* {"special_tokens": {NAME: {"ids": [..]}}}. */
static pare_status put_named(reader *r, pare_id_list *to, const cJSON *special, const char *name)
{
    const cJSON *token, *ids, *id;
    pare_status st = pare_json_object(&token, special, name, r->err);
    if (!st) st = pare_json_array(&ids, token, "ids", r->err);
    if (st) return st;
    cJSON_ArrayForEach(id, ids)
    {
        if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < 0x1p31))
            return pare_fail(r->err, PARE_ERR_INPUT, "post_processor: \"%.60s\" has no ids", name);
        st = put_special(r, to, (size_t)id->valuedouble);
        if (st) return st;
    }
    return PARE_OK;
}

static pare_status read_template(reader *r, const cJSON *entry)
{
    const cJSON *single, *part, *special;
    const char *name;
    bool text = false;
    pare_status st = pare_json_array(&single, entry, "single", r->err);
    if (!st) st = pare_json_object(&special, entry, "special_tokens", r->err);
    if (st) return st;
    cJSON_ArrayForEach(part, single)
    {
        const cJSON *o = NULL;
        if (pare_json_has(part, "Sequence")) {
            st = pare_json_object(&o, part, "Sequence", r->err);
            if (!st) st = pare_json_string(&name, o, "id", r->err);
            if (!st && (text || strcmp(name, "A") != 0))
                st = pare_fail(r->err, PARE_ERR_INPUT,
                               "post_processor: a template with the text twice, or with two texts");
            text = true;
        } else {
            st = pare_json_object(&o, part, "SpecialToken", r->err);
            if (!st) st = pare_json_string(&name, o, "id", r->err);
            if (!st) st = put_named(r, text ? &r->t->after : &r->t->before, special, name);
        }
        if (st) return st;
    }
    return text ? PARE_OK
                : pare_fail(r->err, PARE_ERR_INPUT, "post_processor: a template without the text");
}

/* "cls": ["[CLS]", 101]. */
static pare_status put_pair(reader *r, pare_id_list *to, const cJSON *entry, const char *key)
{
    const cJSON *pair;
    const pare_status st = pare_json_array(&pair, entry, key, r->err);
    if (st) return st;
    const cJSON *const id = pair->child ? pair->child->next : NULL;
    if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < 0x1p31))
        return pare_fail(r->err, PARE_ERR_INPUT, "post_processor: \"%s\" has no id", key);
    return put_special(r, to, (size_t)id->valuedouble);
}

static pare_status read_post_processor(void *self, const char *type, const cJSON *entry,
                                       pare_err *err)
{
    reader *const r = self;
    if (strcmp(type, "ByteLevel") == 0) return PARE_OK; /* moves offsets alone */
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(r, entry);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        const pare_status st = put_pair(r, &r->t->before, entry, "cls");
        return st ? st : put_pair(r, &r->t->after, entry, "sep");
    }
    return pare_fail(err, PARE_ERR_INPUT, "post-processor \"%.60s\" is not one that pare reads",
                     type);
}

/* Which ids end a text: what the importer found in the model's configuration ("pare"), or the names
 * that families use. */
static pare_status read_ends(reader *r, const cJSON *root)
{
    static const char *const names[] = {"<|endoftext|>",
                                        "</s>",
                                        "<eos>",
                                        "<|end_of_text|>",
                                        "<|eot_id|>",
                                        "<|im_end|>",
                                        "[SEP]",
                                        "<\xEF\xBD\x9C"
                                        "end\xE2\x96\x81of\xE2\x96\x81sentence"
                                        "\xEF\xBD\x9C>"};
    pare_json_tokenizer *const t = r->t;
    const cJSON *own = NULL, *list = NULL, *id;
    pare_status st = pare_json_object_opt(&own, root, "pare", r->err);
    if (!st && own) st = pare_json_array_opt(&list, own, "end_of_text", r->err);
    if (st) return st;
    cJSON_ArrayForEach(id, list)
    {
        if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < (double)t->size))
            return pare_fail(r->err, PARE_ERR_INPUT, "end_of_text: not ids of the vocabulary");
        t->ends[(size_t)id->valuedouble] = true;
    }
    for (size_t i = 0; i < t->size && !list; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names && t->special[i]; k++)
            if (t->name[i].n == strlen(names[k]) &&
                memcmp(t->name[i].s, names[k], t->name[i].n) == 0)
                t->ends[i] = true;
    return PARE_OK;
}

/* What the file asks for and pare leaves out, and what is odd about it. */
static pare_status note_oddities(reader *r, const cJSON *root, const cJSON *model)
{
    static const char *const ignored[][2] = {
        {"truncation",
         "truncation in tokenizer.json is ignored: texts may be as long as the model allows"},
        {"padding", "padding in tokenizer.json is ignored: no text is filled up"},
    };
    pare_json_tokenizer *const t = r->t;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < 2 && !st; i++)
        if (pare_json_has(root, ignored[i][0]))
            st = pare_add_note(&t->notes, r->arena, ignored[i][1], r->err);
    if (!st && pare_json_has(model, "dropout"))
        st = pare_add_note(&t->notes, r->arena,
                           "dropout in tokenizer.json is ignored: no merge is left out", r->err);
    if (st || !t->model.twins) return st;
    const char *const line = pare_sprintf(
        r->arena, "tokenizer.json has %zu entries twice; of equal ones the last counts",
        t->model.twins);
    return line ? pare_add_note(&t->notes, r->arena, line, r->err) : pare_no_memory(r->err);
}

static const cJSON *get(const cJSON *root, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(root, key);
}

pare_status pare_json_tokenizer_read(pare_json_tokenizer *t, pare_arena *a, const char *json,
                                     size_t bytes, pare_err *err)
{
    reader r = {t, a, err};
    cJSON *root = NULL;
    const cJSON *model;
    size_t twins = 0;
    t->before.arena = t->after.arena = a;
    pare_status st = pare_json_parse_vocab(&root, &twins, json, bytes, "vocab", err);
    if (!st) st = pare_json_object(&model, root, "model", err);
    if (!st) st = pare_normalizers_read(&t->normalizers, a, get(root, "normalizer"), err);
    if (!st) st = pare_pretokenizers_read(&t->pretokenizers, a, get(root, "pre_tokenizer"), err);
    if (!st) st = pare_subword_read(&t->model, a, model, t->pretokenizers.n == 0, err);
    t->model.twins += twins;
    if (!st) st = note_oddities(&r, root, model);
    if (!st) st = read_added(&r, root);
    if (!st)
        st = pare_each_entry(get(root, "post_processor"), "processors", read_post_processor, &r,
                             err);
    if (!st) st = read_ends(&r, root);
    if (!st) st = pare_token_texts_read(t, a, get(root, "decoder"), err);
    cJSON_Delete(root);
    if (st == PARE_ERR_INPUT) pare_err_prefix(err, "tokenizer.json");
    return st;
}

/* ---- encoding -------------------------------------------------------------------------------- */

typedef struct encoder {
    const pare_json_tokenizer *t;
    pare_arena *scratch;
    pare_regex_run *run;
    pare_subword_run words;
    pare_id_list *out;
    pare_err *err;
} encoder;

/* Text without added tokens, already normalized. */
static pare_status encode_plain(encoder *e, pare_span text)
{
    pare_spans words = {.arena = e->scratch};
    pare_status st = pare_pretokenize(&words, &e->t->pretokenizers, text, e->run, e->err);
    for (size_t i = 0; i < words.n && !st; i++)
        st = pare_subword_encode(&e->words, (pare_piece){words.v[i].s, words.v[i].n}, e->err);
    return st;
}

static pare_status encode_normalized(encoder *e, pare_piece text, bool first)
{
    size_t at = 0, begin, end;
    int32_t id;
    pare_status st = pare_normalize(&text, &e->t->normalizers, e->scratch, e->run, e->err);
    while (!st && at < text.n) {
        const bool found = pare_added_tokens_find(&e->t->normalized, text, at, &begin, &end, &id);
        if (!found) begin = end = text.n;
        if (begin > at)
            st = encode_plain(e, (pare_span){text.s + at, begin - at, first && at == 0});
        if (found) pare_id_list_put(e->out, id);
        at = end;
    }
    return st;
}

pare_status pare_json_tokenizer_encode(pare_id_list *out, pare_arena *scratch,
                                       const pare_json_tokenizer *t, pare_piece text, pare_err *err)
{
    encoder e = {.t = t, .scratch = scratch, .out = out, .err = err};
    size_t at = 0, begin, end;
    int32_t id;
    pare_status st = pare_regex_run_new(&e.run, scratch, err);
    if (!st) st = pare_subword_begin(&e.words, &t->model, scratch, out, text.n, err);
    for (size_t i = 0; i < t->before.n; i++) pare_id_list_put(out, t->before.v[i]);
    while (!st && at < text.n) {
        const bool found = pare_added_tokens_find(&t->plain, text, at, &begin, &end, &id);
        if (!found) begin = end = text.n;
        if (begin > at) st = encode_normalized(&e, (pare_piece){text.s + at, begin - at}, at == 0);
        if (found) pare_id_list_put(out, id);
        at = end;
    }
    for (size_t i = 0; i < t->after.n; i++) pare_id_list_put(out, t->after.v[i]);
    if (!st && out->failed) st = pare_no_memory(err);
    return st;
}

/* Special tokens print nothing; a text is still at its begin behind those that open one. */
static bool opens_text(const pare_json_tokenizer *t, int64_t id)
{
    if (id < 0 || (uint64_t)id >= t->size) return true;
    for (size_t i = 0; i < t->before.n; i++)
        if (t->before.v[i] == id) return true;
    return false;
}

pare_piece pare_json_tokenizer_decode(const pare_json_tokenizer *t, int64_t previous, int64_t id)
{
    if (opens_text(t, previous)) return t->first[id];
    if (t->merges_repeats && previous == id) return (pare_piece){"", 0};
    pare_piece p = t->text[id];
    if (t->blank_before && p.n && !t->word_ends[previous]) {
        p.s++;
        p.n--;
    }
    return p;
}
