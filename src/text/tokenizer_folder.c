/* tokenizer_folder.c - the tokenizer of a folder as Hugging Face lays it out (text_internal.h).
 *
 * tokenizer.json is taken as it is. Without it one is made from vocab.txt, from vocab.json and
 * merges.txt, from tokenizer.model or from sentencepiece.bpe.model, with added_tokens.json, as
 * transformers does it. */
#include "tokenizer_folder.h"
#include "base/support.h"
#include "text_internal.h"
#include <math.h>
#include <string.h>

enum { MOST_SPECIAL = 1024 };

/* ---- what the makers share ------------------------------------------------------------------- */

static const cJSON *get(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

const char *pare_special_token(const pare_tokenizer_config *c, const char *key,
                               const char *fallback)
{
    const cJSON *const from[] = {get(c->special, key), get(c->config, key)};
    for (size_t i = 0; i < 2; i++) {
        const cJSON *const text = cJSON_IsObject(from[i]) ? get(from[i], "content") : from[i];
        if (cJSON_IsString(text)) return text->valuestring;
    }
    return fallback;
}

static bool is_added(const cJSON *list, const char *content)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, list)
    {
        const cJSON *const text = get(entry, "content");
        if (cJSON_IsString(text) && strcmp(text->valuestring, content) == 0) return true;
    }
    return false;
}

/* "added_tokens_decoder": {"151643": {"content": ..., "special": true, ...}}. */
static pare_status add_decoder(cJSON *list, const cJSON *decoder, pare_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, decoder)
    {
        const char *content;
        bool strip_left = false, strip_right = false, single = false, special = false;
        const size_t digits = strspn(entry->string, "0123456789");
        size_t id = 0;
        for (size_t i = 0; i < digits && i < 10; i++)
            id = id * 10 + (size_t)(entry->string[i] - '0');
        if (digits == 0 || digits > 9 || entry->string[digits])
            return pare_fail(err, PARE_ERR_INPUT, "added_tokens_decoder: \"%.60s\" is not an id",
                             entry->string);
        pare_status st = pare_json_string(&content, entry, "content", err);
        if (!st) st = pare_json_bool_opt(&strip_left, entry, "lstrip", err);
        if (!st) st = pare_json_bool_opt(&strip_right, entry, "rstrip", err);
        if (!st) st = pare_json_bool_opt(&single, entry, "single_word", err);
        if (!st) st = pare_json_bool_opt(&special, entry, "special", err);
        bool normalized = !special;
        if (!st) st = pare_json_bool_opt(&normalized, entry, "normalized", err);
        if (st) return st;
        if (!pare_json_add_record(list, NULL,
                                  "id:z content:s single_word:b lstrip:b rstrip:b normalized:b "
                                  "special:b",
                                  id, content, single, strip_left, strip_right, normalized,
                                  special))
            return pare_no_memory(err);
    }
    return PARE_OK;
}

static pare_status add_known(cJSON *list, const cJSON *ids, const char *token, bool strip,
                             pare_err *err)
{
    const cJSON *const id = get(ids, token);
    if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble < 0x1p31)) return PARE_OK;
    if (is_added(list, token) ||
        pare_json_add_record(
            list, NULL, "id:z content:s single_word:b lstrip:b rstrip:b normalized:b special:b",
            (size_t)id->valuedouble, token, false, strip, false, false, true))
        return PARE_OK;
    return pare_no_memory(err);
}

static const char *const special_keys[PARE_SPECIAL_TOKENS] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "cls_token", "pad_token", "mask_token"};

/* The list of either file; the first that has one. */
static pare_status more_special(const cJSON **out, const pare_tokenizer_config *c, pare_err *err)
{
    const cJSON *const from[] = {get(c->config, "additional_special_tokens"),
                                 get(c->special, "additional_special_tokens")};
    *out = cJSON_IsArray(from[0]) ? from[0] : cJSON_IsArray(from[1]) ? from[1] : NULL;
    if (cJSON_GetArraySize(*out) <= MOST_SPECIAL) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "more than %d additional_special_tokens", MOST_SPECIAL);
}

static const char *token_text(const cJSON *token)
{
    const cJSON *const text = cJSON_IsObject(token) ? get(token, "content") : token;
    return cJSON_IsString(text) ? text->valuestring : NULL;
}

static bool is_special(const pare_tokenizer_config *c,
                       const char *const defaults[PARE_SPECIAL_TOKENS], const cJSON *more,
                       const char *token)
{
    const cJSON *entry;
    for (size_t i = 0; i < PARE_SPECIAL_TOKENS; i++) {
        const char *const text = pare_special_token(c, special_keys[i], defaults[i]);
        if (text && strcmp(text, token) == 0) return true;
    }
    cJSON_ArrayForEach(entry, more)
    {
        const char *const text = token_text(entry);
        if (text && strcmp(text, token) == 0) return true;
    }
    return false;
}

/* {"<extra>": 32000}: found before anything else, but for what is special in normalized text. */
static pare_status add_added(cJSON *list, const pare_tokenizer_config *c,
                             const char *const defaults[PARE_SPECIAL_TOKENS], const cJSON *more,
                             pare_err *err)
{
    const cJSON *id;
    cJSON_ArrayForEach(id, c->added)
    {
        const double v = cJSON_IsNumber(id) ? id->valuedouble : -1;
        if (!(v >= 0 && v < 1e9 && v == floor(v)) || !id->string[0])
            return pare_fail(err, PARE_ERR_INPUT, "added_tokens.json: \"%.60s\" has no id",
                             id->string);
        const bool special = is_special(c, defaults, more, id->string);
        const bool strip = special && strcmp(id->string, "<mask>") == 0;
        if (!pare_json_add_record(
                list, NULL, "id:z content:s single_word:b lstrip:b rstrip:b normalized:b special:b",
                (size_t)v, id->string, false, strip, false, !special, special))
            return pare_no_memory(err);
    }
    return PARE_OK;
}

pare_status pare_add_tokens(cJSON *root, const pare_tokenizer_config *c,
                            const char *const defaults[PARE_SPECIAL_TOKENS], const cJSON *ids,
                            pare_err *err)
{
    cJSON *const list = pare_json_add_array(root, "added_tokens");
    const cJSON *const decoder = get(c->config, "added_tokens_decoder"), *token, *more = NULL;
    if (!list) return pare_no_memory(err);
    pare_status st = more_special(&more, c, err);
    if (!st && decoder) st = add_decoder(list, decoder, err);
    if (!st && !decoder) st = add_added(list, c, defaults, more, err);
    for (size_t i = 0; i < PARE_SPECIAL_TOKENS && !st; i++) {
        const char *const text = pare_special_token(c, special_keys[i], defaults[i]);
        /* RoBERTa's mask takes the blank before it. */
        const bool strip = text && strcmp(text, "<mask>") == 0;
        if (text) st = add_known(list, ids, text, strip, err);
    }
    cJSON_ArrayForEach(token, more)
    {
        const char *const text = token_text(token);
        if (!st && text) st = add_known(list, ids, text, false, err);
    }
    return st;
}

static pare_status add_special(cJSON *single, cJSON *special, const cJSON *ids, const char *token,
                               pare_err *err)
{
    const cJSON *const id = get(ids, token);
    if (!cJSON_IsNumber(id))
        return pare_fail(err, PARE_ERR_INPUT,
                         "the special token \"%.60s\" is not in the vocabulary", token);
    if (!(id->valuedouble >= 0 && id->valuedouble < 0x1p31))
        return pare_fail(
            err, PARE_ERR_INPUT,
            "the special token \"%.60s\" has the id %g: from 0 to 2147483647 are possible", token,
            id->valuedouble);
    cJSON *const part = pare_json_add_object(single, NULL);
    bool ok = part && pare_json_add_record(part, "SpecialToken", "id:s", token);
    if (ok && !get(special, token)) {
        cJSON *const entry = pare_json_add_object(special, token);
        cJSON *const list = entry ? pare_json_add_array(entry, "ids") : NULL;
        ok = list && pare_json_add_size(list, NULL, (size_t)id->valuedouble);
    }
    return ok ? PARE_OK : pare_no_memory(err);
}

pare_status pare_add_template(cJSON *root, const cJSON *ids, const char *before, const char *after,
                              pare_err *err)
{
    if (!before && !after) return PARE_OK;
    cJSON *const post = pare_json_add_object(root, "post_processor");
    cJSON *const single = post && pare_json_add_string(post, "type", "TemplateProcessing")
                              ? pare_json_add_array(post, "single")
                              : NULL;
    cJSON *const special = single ? pare_json_add_object(post, "special_tokens") : NULL;
    if (!special) return pare_no_memory(err);
    pare_status st = before ? add_special(single, special, ids, before, err) : PARE_OK;
    if (st) return st;
    cJSON *const text = pare_json_add_object(single, NULL);
    if (!text || !pare_json_add_record(text, "Sequence", "id:s", "A")) return pare_no_memory(err);
    return after ? add_special(single, special, ids, after, err) : PARE_OK;
}

/* ---- finding the files ----------------------------------------------------------------------- */

typedef struct finder {
    pare_arena *arena, *scratch;
    pare_files *files;
    const char *folder;
    pare_err *err;
} finder;

/* The bytes of a file, in the scratch arena; s == NULL where it is not there. */
static pare_status read_file(const finder *f, pare_piece *out, const char *name)
{
    bool there = false;
    pare_blob *b = NULL;
    const char *const path = pare_sprintf(f->scratch, "%s/%s", f->folder, name);
    *out = (pare_piece){NULL, 0};
    if (!path) return pare_no_memory(f->err);
    pare_status st = pare_files_exists(f->files, &there, path, f->err);
    if (st || !there) return st;
    st = pare_files_read(f->files, &b, path, f->err);
    char *const copy = st ? NULL : pare_alloc(f->scratch, b->bytes + 1, 1);
    if (!st && !copy) st = pare_no_memory(f->err);
    if (!st && b->bytes) memcpy(copy, b->data, b->bytes);
    if (!st) *out = (pare_piece){copy, b->bytes};
    pare_blob_release(b);
    return st;
}

static void delete_tree(void *tree)
{
    cJSON_Delete(tree);
}

/* An object that lives as long as the scratch arena; NULL where the file is not there. */
static pare_status read_object(const finder *f, const cJSON **out, const char *name)
{
    pare_piece text;
    cJSON *root = NULL;
    *out = NULL;
    pare_status st = read_file(f, &text, name);
    if (st || !text.s) return st;
    st = pare_json_parse(&root, text.s, text.n, f->err);
    if (!st && !pare_arena_on_free(f->scratch, delete_tree, root)) {
        cJSON_Delete(root);
        return pare_no_memory(f->err);
    }
    if (!st && !cJSON_IsObject(root)) st = pare_fail(f->err, PARE_ERR_INPUT, "not a JSON object");
    if (st == PARE_ERR_INPUT) pare_err_prefix(f->err, name);
    *out = st ? NULL : root;
    return st;
}

/* The ids that end a text, as generation_config.json or config.json has them. */
static pare_status put_ends(const finder *f, char **json, size_t *bytes, pare_piece text,
                            const cJSON *config)
{
    const cJSON *generation;
    pare_status st = read_object(f, &generation, "generation_config.json");
    if (st) return st;
    const cJSON *ends = get(generation, "eos_token_id");
    if (!ends || cJSON_IsNull(ends)) ends = get(config, "eos_token_id");
    const size_t open = text.n ? strspn(text.s, " \t\r\n") : 0;
    const bool one = cJSON_IsNumber(ends), given = one || cJSON_IsArray(ends);
    char *list = NULL;
    if (given && text.s[open] == '{') {
        st = pare_json_print(&list, NULL, f->scratch, ends, 0, f->err);
        if (st) return st;
        *json = pare_sprintf(f->arena, "{\"pare\":{\"end_of_text\":%s%s%s},%s", one ? "[" : "",
                             list, one ? "]" : "", text.s + open + 1);
    } else {
        *json = pare_strdup(f->arena, text.s);
    }
    if (!*json) return pare_no_memory(f->err);
    *bytes = strlen(*json);
    return PARE_OK;
}

/* The class of the tokenizer, as tokenizer_config.json says it or the type of the model implies. */
static const char *class_of(const cJSON *tokenizer_config, const cJSON *config)
{
    static const char *const by_type[][2] = {
        {"gpt2", "GPT2Tokenizer"},           {"roberta", "RobertaTokenizer"},
        {"qwen2", "Qwen2Tokenizer"},         {"bert", "BertTokenizer"},
        {"llama", "LlamaTokenizer"},         {"mistral", "LlamaTokenizer"},
        {"distilbert", "BertTokenizer"},     {"xlm-roberta", "XLMRobertaTokenizer"},
        {"camembert", "CamembertTokenizer"},
    };
    const cJSON *const class = get(tokenizer_config, "tokenizer_class");
    const cJSON *const type = get(config, "model_type");
    if (cJSON_IsString(class)) return class->valuestring;
    for (size_t i = 0; i < sizeof by_type / sizeof *by_type && cJSON_IsString(type); i++)
        if (strcmp(type->valuestring, by_type[i][0]) == 0) return by_type[i][1];
    return "";
}

static pare_status make_json(const finder *f, pare_piece *text, const cJSON *config,
                             const char **notes)
{
    pare_piece words, vocab, merges, model;
    pare_tokenizer_config c = {0};
    cJSON *root = NULL;
    const char *from = NULL;
    char *made = NULL;
    pare_status st = read_object(f, &c.config, "tokenizer_config.json");
    if (!st) st = read_object(f, &c.special, "special_tokens_map.json");
    if (!st) st = read_object(f, &c.added, "added_tokens.json");
    c.class = class_of(c.config, config);
    if (!st) st = read_file(f, &words, "vocab.txt");
    if (!st) st = read_file(f, &vocab, "vocab.json");
    if (!st) st = read_file(f, &merges, "merges.txt");
    const char *const spm[] = {"tokenizer.model", "sentencepiece.bpe.model"};
    size_t at = 0;
    if (!st) st = read_file(f, &model, spm[at]);
    if (!st && !model.s) st = read_file(f, &model, spm[++at]);
    if (st) return st;
    if (words.s) {
        from = "vocab.txt";
        st = pare_json_of_wordpiece(&root, f->arena, words, &c, notes, f->err);
    } else if (vocab.s && merges.s) {
        from = "vocab.json and merges.txt";
        st = pare_json_of_bpe(&root, f->arena, vocab, merges, &c, notes, f->err);
    } else if (model.s) {
        from = spm[at];
        st = pare_json_of_sentencepiece(&root, f->arena, model, &c, f->err);
    }
    if (!st && root) st = pare_json_print(&made, &text->n, f->scratch, root, 0, f->err);
    cJSON_Delete(root);
    text->s = made;
    if (st == PARE_ERR_INPUT && from) pare_err_prefix(f->err, from);
    return st;
}

pare_status pare_folder_tokenizer(const uint8_t **json, size_t *bytes, const char **notes,
                                  pare_arena *a, pare_files *files, const char *folder,
                                  pare_err *err)
{
    const finder f = {a, pare_arena_new(), files, folder, err};
    const cJSON *config = NULL;
    pare_piece text;
    char *out = NULL;
    *json = NULL;
    *bytes = 0;
    if (!f.scratch) return pare_no_memory(err);
    pare_status st = read_file(&f, &text, "tokenizer.json");
    if (!st) st = read_object(&f, &config, "config.json");
    if (!st && !text.s) st = make_json(&f, &text, config, notes);
    if (!st && text.s) st = put_ends(&f, &out, bytes, text, config);
    *json = (const uint8_t *)out;
    pare_arena_free(f.scratch);
    return st;
}

/* A file's bytes as they are. */
static pare_status read_one_file(const uint8_t **vocab, size_t *bytes, pare_arena *a,
                                 const char *path, pare_err *err)
{
    pare_blob *b = NULL;
    pare_status st = pare_blob_open(&b, path, err);
    if (st) return st;
    uint8_t *const copy = pare_alloc(a, b->bytes + 1, 1);
    if (!copy) st = pare_no_memory(err);
    if (copy && b->bytes) memcpy(copy, b->data, b->bytes);
    *vocab = copy;
    *bytes = b->bytes;
    pare_blob_release(b);
    return st;
}

pare_status pare_vocab_read(pare_vocab *out, pare_arena *a, const char *path, pare_err *err)
{
    *out = (pare_vocab){.kind = PARE_TOK_NONE};
    if (!pare_is_dir(path)) {
        const pare_status st = read_one_file(&out->data, &out->bytes, a, path, err);
        return st ? st : pare_vocab_detect(&out->kind, out->data, out->bytes, err);
    }
    pare_files *const files = pare_files_new_unhashed();
    if (!files) return pare_no_memory(err);
    pare_status st =
        pare_folder_tokenizer(&out->data, &out->bytes, &out->notes, a, files, path, err);
    pare_files_free(files);
    if (!st && !out->data)
        st = pare_fail(err, PARE_ERR_INPUT,
                       "the folder has no tokenizer: neither tokenizer.json nor vocab.txt nor "
                       "vocab.json with merges.txt nor tokenizer.model nor "
                       "sentencepiece.bpe.model");
    out->kind = PARE_TOK_JSON;
    return st;
}
