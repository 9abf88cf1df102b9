/* import_folder.c - a folder as Hugging Face and sentence-transformers lay it out: which file has
 * the weights, how the outputs are pooled, how long a text may be.
 *
 *     config.json, *.safetensors (one of any name, or shards)
 *     modules.json               the modules in order, each with its folder
 *     1_Pooling/config.json      mean, first, max or last token
 *     2_Dense/                   a dense layer with its activation
 *     sentence_bert_config.json  max_seq_length
 *     tokenizer.json and its kin kept with the model */
#include "base/support.h"
#include "import_tensors.h"
#include "text/text_internal.h"

#include <stdlib.h>
#include <string.h>

static const char *inside(im_source *s, const char *folder, const char *name)
{
    const char *const path = s->st ? NULL : pare_sprintf(s->scratch, "%s/%s", folder, name);
    if (!s->st && !path) s->st = pare_no_memory(s->err);
    return path;
}

static bool exists(im_source *s, const char *path)
{
    bool there = false;
    if (!s->st) s->st = pare_files_exists(s->in, &there, path, s->err);
    return there && !s->st;
}

static bool ends_with(const char *name, const char *tail)
{
    const size_t n = strlen(name), t = strlen(tail);
    return n > t && strcmp(name + n - t, tail) == 0;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Sorted names NAME-00001-of-00003.safetensors, none missing. */
static bool are_shards(char *const *names, size_t n)
{
    static const char form[] = "00001-of-00001.safetensors";
    const size_t tail = sizeof form - 1;
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(names[i]);
        if (length < tail || length != strlen(names[0]) ||
            strncmp(names[i], names[0], length - tail) != 0)
            return false;
        const char *const at = names[i] + length - tail;
        if (strtoul(at, NULL, 10) != i + 1 || strncmp(at + 5, "-of-", 4) != 0 ||
            strtoul(at + 9, NULL, 10) != n)
            return false;
    }
    return true;
}

static void no_weights(im_source *s, const char *folder)
{
    if (exists(s, inside(s, folder, "pytorch_model.bin")))
        im_fail(s, "the folder has no .safetensors file; its pytorch_model.bin is " IM_PICKLED);
    else
        im_fail(s, "the folder has no weights: neither a .safetensors file nor an index of shards");
}

/* model.safetensors, its index, or whatever the one file is called. Beside the first two others may
 * lie (consolidated.safetensors), which Hugging Face does not read either. The folder is listed
 * only where its names decide: files that were read once are known without it. */
static void open_weights(im_source *s, const char *folder)
{
    const char *const usual = inside(s, folder, "model.safetensors");
    const char *const index = inside(s, folder, "model.safetensors.index.json");
    if (exists(s, usual)) {
        im_open_file(s, usual);
        return;
    }
    if (exists(s, index)) {
        im_open_index(s, index);
        return;
    }
    char **names = NULL, **found = NULL;
    size_t n = 0, nfound = 0, nindex = 0, at = 0;
    if (!s->st) s->st = pare_folder_list(&names, &n, s->scratch, folder, s->err);
    if (!s->st && !(found = pare_alloc(s->scratch, n + 1, sizeof *found)))
        s->st = pare_no_memory(s->err);
    if (s->st) return;
    for (size_t i = 0; i < n; i++) {
        if (ends_with(names[i], ".safetensors")) found[nfound++] = names[i];
        if (ends_with(names[i], ".safetensors.index.json")) nindex++, at = i;
    }
    if (nindex == 1)
        im_open_index(s, inside(s, folder, names[at]));
    else if (nfound == 0)
        no_weights(s, folder);
    else if (nfound == 1)
        im_open_file(s, inside(s, folder, found[0]));
    else if (are_shards(found, nfound))
        im_open_shards(s, folder, found, nfound);
    else
        im_fail(s,
                "the folder has %zu weights files that are not the shards of one model (%.60s, "
                "%.60s%s); give the path of the one that is meant",
                nfound, found[0], found[1], nfound > 2 ? ", ..." : "");
}

/* ---- sentence-transformers ------------------------------------------------------------------- */

/* `what` NULL: there was no memory to say it. */
static void malformed(im_source *s, const char *path, const char *what)
{
    if (s->st) return;
    s->st = what ? pare_fail(s->err, PARE_ERR_INPUT, "%s: %s", path, what) : pare_no_memory(s->err);
}

/* What a pooling's config calls each way; those without a counterpart are refused by name. */
static const struct {
    const char *flag, *word;
    pare_pool pool;
    bool known;
} modes[] = {
    {"pooling_mode_cls_token", "cls", PARE_POOL_FIRST, true},
    {"pooling_mode_mean_tokens", "mean", PARE_POOL_MEAN, true},
    {"pooling_mode_max_tokens", "max", PARE_POOL_MAX, true},
    {"pooling_mode_lasttoken", "lasttoken", PARE_POOL_LAST, true},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", PARE_POOL_NONE, false},
    {"pooling_mode_weightedmean_tokens", "weightedmean", PARE_POOL_NONE, false},
};
enum { MODES = sizeof modes / sizeof *modes };

static void take_mode(im_source *s, const char *path, size_t i)
{
    im_pooling *const p = &s->pooling;
    if (!modes[i].known)
        malformed(s, path,
                  pare_sprintf(s->scratch,
                               "%s is not supported: pare pools by the mean, "
                               "the first, the largest or the last",
                               modes[i].flag));
    else if (p->given)
        malformed(s, path, "asks for several poolings side by side, which is not supported");
    p->given = true;
    p->pool = modes[i].pool;
}

/* One of the newer style's words. */
static void take_word(im_source *s, const char *path, const cJSON *word)
{
    size_t i = 0;
    while (i < MODES && !(cJSON_IsString(word) && strcmp(word->valuestring, modes[i].word) == 0))
        i++;
    if (i < MODES)
        take_mode(s, path, i);
    else
        malformed(s, path, "'pooling_mode' names no pooling that pare knows");
}

/* The newer files have pooling_mode, a word or a list of them, which goes before the older flags;
 * with none of them sentence-transformers takes the mean. */
static void read_pooling(im_source *s, const char *path)
{
    cJSON *root = NULL;
    im_read_json(s, &root, path);
    if (!s->st && !cJSON_IsObject(root)) malformed(s, path, "is missing or not a JSON object");
    const cJSON *words = NULL, *word = NULL;
    if (!s->st) words = cJSON_GetObjectItemCaseSensitive(root, "pooling_mode");
    if (cJSON_IsArray(words)) {
        cJSON_ArrayForEach(word, words)
        {
            take_word(s, path, word);
        }
    } else if (words) {
        take_word(s, path, words);
    }
    for (size_t i = 0; i < MODES && !s->st && !words; i++) {
        bool on = false;
        if (pare_json_bool_opt(&on, root, modes[i].flag, s->err))
            malformed(s, path, "a pooling mode is not true or false");
        if (!s->st && on) take_mode(s, path, i);
    }
    if (!s->st && !s->pooling.given) {
        s->pooling.given = true;
        s->pooling.pool = PARE_POOL_MEAN;
        im_note(s, "1_Pooling names no mode: the mean over the tokens, as sentence-transformers "
                   "takes it");
    }
    if (!s->st &&
        (pare_json_size_opt(&s->pooling.width, root, "word_embedding_dimension", s->err) ||
         pare_json_size_opt(&s->pooling.width, root, "embedding_dimension", s->err)))
        malformed(s, path, "the dimension of the embeddings is not a whole number");
    cJSON_Delete(root);
}

static void read_dense(im_source *s, const char *folder)
{
    static const struct {
        const char *name;
        pare_act act;
    } acts[] = {{"Identity", PARE_ACT_NONE},
                {"Tanh", PARE_ACT_TANH},
                {"ReLU", PARE_ACT_RELU},
                {"GELU", PARE_ACT_GELU},
                {"SiLU", PARE_ACT_SILU}};
    im_pooling *const p = &s->pooling;
    const char *const path = inside(s, folder, "config.json");
    const char *act = "torch.nn.modules.activation.Tanh"; /* what the class assumes */
    cJSON *root = NULL;
    im_read_json(s, &root, path);
    if (!s->st && !cJSON_IsObject(root)) malformed(s, path, "is missing or not a JSON object");
    p->dense_bias = true;
    if (!s->st && (pare_json_size(&p->dense_in, root, "in_features", s->err) ||
                   pare_json_size(&p->dense_out, root, "out_features", s->err) ||
                   pare_json_bool_opt(&p->dense_bias, root, "bias", s->err) ||
                   pare_json_string_opt(&act, root, "activation_function", s->err)))
        malformed(s, path, "needs in_features and out_features, whole numbers");
    const char *const dot = strrchr(act, '.');
    size_t i = 0;
    while (i < sizeof acts / sizeof *acts && strcmp(dot ? dot + 1 : act, acts[i].name) != 0) i++;
    if (i == sizeof acts / sizeof *acts)
        malformed(s, path, pare_sprintf(s->scratch, "activation '%.60s' is not supported", act));
    else
        p->act = acts[i].act;
    p->dense = inside(s, folder, "model.safetensors");
    if (!s->st && !exists(s, p->dense)) malformed(s, folder, "has no model.safetensors");
    cJSON_Delete(root);
}

/* One entry of modules.json. `after`: how many came before it. */
static void read_module(im_source *s, const char *list, const char **folder, const cJSON *item,
                        size_t after)
{
    const char *type = NULL, *path = NULL;
    if (!cJSON_IsObject(item) || pare_json_string(&type, item, "type", s->err) ||
        pare_json_string(&path, item, "path", s->err)) {
        malformed(s, list, "an entry has no type or no path");
        return;
    }
    const char *const dot = strrchr(type, '.'), *const kind = dot ? dot + 1 : type;
    if (strstr(path, "..") || path[0] == '/') {
        malformed(s, list, "a path leads out of the folder");
        return;
    }
    const char *const here = *path ? inside(s, *folder, path) : *folder;
    im_pooling *const p = &s->pooling;
    if (s->st) return;
    if (after == 0 && strcmp(kind, "Transformer") == 0)
        *folder = here;
    else if (after > 0 && strcmp(kind, "Pooling") == 0 && !p->given)
        read_pooling(s, inside(s, here, "config.json"));
    else if (strcmp(kind, "Dense") == 0 && p->given && !p->dense && !p->normalize)
        read_dense(s, here);
    else if (strcmp(kind, "Normalize") == 0 && p->given)
        p->normalize = true;
    else if (strcmp(kind, "Dropout") != 0)
        malformed(s, list,
                  pare_sprintf(s->scratch,
                               "module %zu, %.60s, is not supported there: pare reads "
                               "Transformer, Pooling, at most one Dense, Normalize",
                               after, kind));
}

/* modules.json; without it 1_Pooling alone. *folder becomes that of the transformer. */
static void read_modules(im_source *s, const char **folder)
{
    const char *const list = inside(s, *folder, "modules.json");
    const char *const pooling = inside(s, *folder, "1_Pooling/config.json");
    const char *const top = *folder;
    cJSON *root = NULL;
    im_read_json(s, &root, list);
    if (!s->st && root && !cJSON_IsArray(root)) malformed(s, list, "is not a list of modules");
    if (!root && exists(s, pooling)) read_pooling(s, pooling);
    size_t after = 0;
    const cJSON *item = NULL;
    const char *transformer = *folder;
    cJSON_ArrayForEach(item, root)
    {
        const char *at = top;
        if (!s->st) read_module(s, list, &at, item, after);
        if (after++ == 0) transformer = at;
    }
    *folder = transformer;
    cJSON_Delete(root);
}

/* How sentence-transformers treats a text before the model sees it. Its oldest versions named the
 * file after the family. */
static void read_limits(im_source *s, const char *folder)
{
    static const char *const names[] = {"sentence_bert_config.json", "sentence_roberta_config.json",
                                        "sentence_distilbert_config.json",
                                        "sentence_camembert_config.json",
                                        "sentence_xlm-roberta_config.json"};
    const char *path = NULL;
    cJSON *root = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !root && !s->st; i++)
        im_read_json(s, &root, path = inside(s, folder, names[i]));
    bool lower = false;
    if (!s->st && root && !cJSON_IsObject(root)) malformed(s, path, "is not a JSON object");
    if (!s->st && pare_json_has(root, "max_seq_length") &&
        (pare_json_size(&s->max_seq_length, root, "max_seq_length", s->err) ||
         s->max_seq_length == 0))
        malformed(s, path, "'max_seq_length' is not a whole number above 0");
    if (!s->st && pare_json_bool_opt(&lower, root, "do_lower_case", s->err))
        malformed(s, path, "'do_lower_case' is not true or false");
    if (lower)
        im_note(s, "sentence-transformers gives this model lower-case text (do_lower_case); pare "
                   "leaves that to the tokenizer");
    cJSON_Delete(root);
}

static void note_prompt(im_source *s, const char *folder)
{
    cJSON *root = NULL;
    im_read_json(s, &root, inside(s, folder, "config_sentence_transformers.json"));
    if (!s->st && root && pare_json_has(root, "default_prompt_name"))
        im_note(s, "sentence-transformers puts a prompt before each text (default_prompt_name); "
                   "pare takes texts as they are");
    cJSON_Delete(root);
}

void im_open_folder(im_source *s, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--; /* names of files are made of it */
    const char *folder = pare_sprintf(s->scratch, "%.*s", (int)n, path);
    if (!s->st && !folder) s->st = pare_no_memory(s->err);
    if (s->st) return;
    const im_pooling told = s->pooling;
    s->pooling = (im_pooling){0};
    note_prompt(s, folder);
    read_modules(s, &folder);
    read_limits(s, folder);
    const bool same =
        told.pool == s->pooling.pool && told.normalize == s->pooling.normalize && !s->pooling.dense;
    if (told.pool != PARE_POOL_NONE && s->pooling.given && !same)
        im_note(s, "pooled as told, not as the folder's files say");
    if (told.pool != PARE_POOL_NONE) /* the caller knows better than the files */
        s->pooling = told;
    else if (told.normalize)
        s->pooling.normalize = s->pooling.told = true;
    s->folder = folder;
    open_weights(s, folder);
}

void im_take_tokenizer(im_source *s)
{
    pare_model *const m = s->m;
    pare_tokenizer *t = NULL;
    const uint8_t *vocab = NULL;
    const char *notes = NULL;
    size_t bytes = 0;
    if (s->st || !s->folder || !m->embedding.ids || m->tokenizer != PARE_TOK_NONE) return;
    pare_status st =
        pare_folder_tokenizer(&vocab, &bytes, &notes, m->arena, s->in, s->folder, s->err);
    if (!st && !vocab) return;
    if (!st) st = pare_tokenizer_new(&t, s->scratch, PARE_TOK_JSON, vocab, bytes, s->err);
    if (st == PARE_ERR_INPUT) { /* the model is of use without it */
        im_note(s, "the tokenizer is left out: %s", s->err->msg);
        return;
    }
    s->st = st;
    if (st) return;
    if (notes) im_note(s, "%s", notes);
    if (pare_tokenizer_notes(t)) im_note(s, "%s", pare_tokenizer_notes(t));
    if (pare_tokenizer_size(t) > m->embedding.vocab)
        im_note(s, "the tokenizer has %zu tokens, the model's embedding %zu",
                pare_tokenizer_size(t), m->embedding.vocab);
    m->tokenizer = PARE_TOK_JSON;
    m->vocab = vocab;
    m->vocab_bytes = bytes;
}

/* ---- the head -------------------------------------------------------------------------------- */

void im_pool_head(im_source *s, size_t d)
{
    const im_pooling *const p = &s->pooling;
    pare_output_head *const h = &s->m->head;
    if (s->st) return;
    h->pool = p->pool;
    h->normalize = p->normalize;
    if (p->width && p->width != d)
        im_fail(s, "1_Pooling pools %zu numbers a token, the model has %zu", p->width, d);
    if (!p->dense) return;
    if (p->dense_in != d)
        im_fail(s, "2_Dense takes %zu features, the model has %zu", p->dense_in, d);
    h->dense = im_dense(s, p->dense_out, d, p->dense_bias, IM_DENSE_PREFIX "linear");
    h->act = p->act;
}
