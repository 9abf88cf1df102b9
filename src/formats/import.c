/* import.c - which importer? Decided by what is in the file, never by its name. */
#include "base/array.h"
#include "import.h"
#include "import_families.h"
#include "model/precision.h"

#include <string.h>

typedef struct family {
    const char *name;
    bool (*is)(const im_source *s);
    void (*fill)(im_source *s);
} family;

static const family in_safetensors[] = {
    {"gpt2", im_is_gpt2, im_gpt2},
    {"llama", im_is_llama, im_llama},
    {"bert", im_is_bert, im_bert},
    {"distilbert", im_is_distilbert, im_distilbert},
    {"perhead", im_is_perhead, im_perhead},
    {"graph", im_is_graph, im_graph},
    {"moonshine", im_is_moonshine, im_moonshine},
};
static const family in_npz[] = {
    {"depth", im_is_depth, im_depth},
    {"width", im_is_width, im_width},
};

/* model_type of config.json: who reads it, or why nobody does. docs/huggingface.md has the same. */
static const struct {
    const char *type;
    void (*fill)(im_source *s);
    const char *refusal;
} model_types[] = {
    {"bert", im_bert, NULL},
    {"distilbert", im_distilbert, NULL},
    {"roberta", im_roberta, NULL},
    {"xlm-roberta", im_roberta, NULL},
    {"camembert", im_roberta, NULL},
    {"gpt2", im_gpt2, NULL},
    {"llama", im_llama, NULL},
    {"mistral", im_llama, NULL},
    {"qwen2", im_llama, NULL},
    {"gpt_neox", NULL,
     "its attention and feed-forward part read the same input (parallel blocks) (not yet)"},
    {"qwen3", NULL, "it has norms on queries and keys (not yet)"},
    {"gemma", NULL, "its norms have an offset and its embeddings a scale (not yet)"},
    {"gptj", NULL, "its attention and feed-forward part read the same input (parallel blocks)"},
    {"phi", NULL, "its attention and feed-forward part read the same input (parallel blocks)"},
    {"falcon", NULL, "its attention and feed-forward part read the same input (parallel blocks)"},
    {"cohere", NULL, "its attention and feed-forward part read the same input (parallel blocks)"},
    {"phi3", NULL, "its queries, keys and values are stored as one tensor, and so are gate and up"},
    {"smollm3", NULL, "some of its layers have no positions"},
    {"granite", NULL, "its embeddings, blocks and outputs have scales"},
    {"olmo2", NULL, "it has norms on queries and keys"},
    {"bloom", NULL, "its attention has a bias for the distance of two tokens (ALiBi)"},
    {"mpt", NULL, "its attention has a bias for the distance of two tokens (ALiBi)"},
    {"gemma2", NULL, "it caps its scores softly, and its windows differ by layer"},
    {"gemma3", NULL, "it has norms on queries and keys, and its windows differ by layer"},
    {"gemma3_text", NULL, "it has norms on queries and keys, and its windows differ by layer"},
    {"mpnet", NULL, "its attention has a bias for the distance of two tokens"},
    {"t5", NULL, "it is an encoder and a decoder, with a bias for the distance of two tokens"},
    {"mt5", NULL, "it is an encoder and a decoder, with a bias for the distance of two tokens"},
    {"bart", NULL, "it is an encoder and a decoder"},
    {"electra", NULL, "a map stands between its embeddings and its blocks (not yet)"},
    {"xlnet", NULL, "its attention has terms for the distance of two tokens"},
    {"nomic_bert", NULL, "its weights are called otherwise, and its code comes with it"},
    {"deberta-v2", NULL, "its attention has terms for the distance of two tokens"},
    {"modernbert", NULL, "its windows differ by layer"},
    {"albert", NULL, "its blocks share their weights"},
    {"mixtral", NULL, "it is a mixture of experts"},
    {"qwen2_moe", NULL, "it is a mixture of experts"},
    {"qwen3_moe", NULL, "it is a mixture of experts"},
    {"deepseek_v2", NULL, "it is a mixture of experts"},
    {"deepseek_v3", NULL, "it is a mixture of experts"},
    {"gpt_oss", NULL, "it is a mixture of experts"},
};

const char im_understood[] =
    "pare reads pare files, Hugging Face BERT, DistilBERT, RoBERTa, GPT-2, Llama, Mistral and "
    "Qwen2 "
    "files and folders, and llama2.c .bin (docs/huggingface.md and docs/run.md list the rest)";

/* Files that people have, told by their first bytes. */
static const struct {
    const char *begin, *refusal;
} foreign[] = {
    {"24ka", "a newer llama2.c export; only its legacy form (version 0) is read"},
    {"GGUF", "a GGUF file; pare reads the safetensors that it was made from"},
    {"\x80\002", IM_PICKLED},
};

/* Keys of any family that change the function, and are not honored. */
static void check_config(im_source *s)
{
    bool both = false;
    if (im_flag(s, &both, "is_encoder_decoder") && both)
        im_fail(s,
                "config.json: is_encoder_decoder is not supported: pare has no attention between "
                "two sequences");
    im_refuse_key(s, "add_cross_attention", "pare has no attention between two sequences");
    im_refuse_key(s, "pruned_heads", "pare wants all heads of a layer, or none");
    im_refuse_key(s, "quantization_config",
                  "the weights are packed; pare reads F64, F32, F16, BF16");
    im_refuse_key(s, "alibi", "pare has no bias for the distance of two tokens");
    if (!s->st && s->config && pare_json_has(s->config, "auto_map"))
        im_note(s, "config.json: auto_map: the model may have code of its own; pare computes what "
                   "its model_type says");
}

static void fill_by(im_source *s, const char *name, void (*fill)(im_source *s))
{
    s->m->name = pare_strdup(s->m->arena, name);
    if (!s->m->name) s->st = pare_no_memory(s->err);
    check_config(s);
    if (!s->st) fill(s);
}

/* By config.json's model_type, where there is one. */
static bool fill_by_type(im_source *s)
{
    const char *type = NULL;
    if (!im_text(s, &type, "model_type")) return s->st != PARE_OK;
    for (size_t i = 0; i < sizeof model_types / sizeof *model_types; i++) {
        if (strcmp(type, model_types[i].type) != 0) continue;
        if (model_types[i].fill)
            fill_by(s, type, model_types[i].fill);
        else
            im_fail(s, "config.json: model_type '%s' is not supported: %s", type,
                    model_types[i].refusal);
        return true;
    }
    im_fail(s, "config.json: model_type '%.60s' is not supported; %s", type, im_understood);
    return true;
}

static void fill(im_source *s, const family *f, size_t n)
{
    if (f == in_safetensors && fill_by_type(s)) return;
    for (size_t i = 0; i < n && !s->st; i++) {
        if (!f[i].is(s)) continue;
        fill_by(s, f[i].name, f[i].fill);
        return;
    }
    char names[200] = "";
    size_t used = 0, i = 0;
    for (; i < s->n && i < 4 && used + 50 < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.40s", i ? ", " : "",
                                 s->tensors[i].name);
    im_fail(s, "not a known kind of model: it has %zu tensors (%s%s); %s", s->n, names,
            i < s->n ? ", ..." : "", im_understood);
}

static void from_npz(im_source *s, pare_blob *b)
{
    pare_npz *z = NULL;
    s->st = pare_npz_open_blob(&z, s->scratch, b, s->err);
    if (s->st) return;
    const bool depth = pare_npz_has(z, "cfg") && pare_npz_has(z, "e.weight");
    const bool width = pare_npz_has(z, "n_layers");
    if (pare_npz_count(z) == 0)
        im_fail(s, "a zip without arrays, perhaps " IM_PICKLED);
    else if (!depth && !width)
        im_fail(s, "not a known kind of model: an npz with %zu members (%.60s%s); %s",
                pare_npz_count(z), pare_npz_name(z, 0), pare_npz_count(z) > 1 ? ", ..." : "",
                im_understood);
    pare_npz_close(z);
    im_open_npz(s, b, depth ? im_depth_member : im_width_member);
    if (!s->st) fill(s, in_npz, sizeof in_npz / sizeof *in_npz);
}

static bool begins(const pare_blob *b, const char *bytes)
{
    const size_t n = strlen(bytes);
    return b->bytes >= n && memcmp(b->data, bytes, n) == 0;
}

static const char *foreign_kind(const pare_blob *b)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (begins(b, foreign[i].begin)) return foreign[i].refusal;
    return NULL;
}

static void from_file(im_source *s, const char *path)
{
    pare_blob *b = NULL;
    s->st = pare_files_read(s->in, &b, path, s->err);
    if (s->st) return;
    if (begins(b, "{"))
        im_open_index(s, path);
    else if (st_looks_like(b))
        im_open_file(s, path);
    else if (begins(b, "PK\003\004") || begins(b, "PK\005\006"))
        from_npz(s, b);
    else if (foreign_kind(b))
        im_fail(s, "%s", foreign_kind(b));
    else if (im_llama2c_header(b)) {
        s->m->name = pare_strdup(s->m->arena, "llama");
        if (!s->m->name)
            s->st = pare_no_memory(s->err);
        else
            im_llama2c(s, b);
    } else
        im_fail(s, "not a model: neither safetensors nor npz nor a llama2.c file; %s",
                im_understood);
    if (s->nfiles && !s->m->name && !s->st)
        fill(s, in_safetensors, sizeof in_safetensors / sizeof *in_safetensors);
    pare_blob_release(b);
}

/* The floating type of most bytes of what was read. */
static void set_precision(im_source *s)
{
    precision_counts c = {{0}};
    for (size_t i = 0; i < s->n; i++)
        if (s->tensors[i].used)
            precision_count(&c, s->tensors[i].array.dtype, pare_array_count(&s->tensors[i].array));
    s->m->precision = precision_of(&c);
}

/* sentence_bert_config.json cuts texts; so does the model then. */
static void limit_context(im_source *s)
{
    const size_t limit = s->max_seq_length;
    if (s->st || limit == 0) return;
    if (s->m->context == 0 || limit < s->m->context) {
        im_note(s,
                "inputs are at most %zu tokens long: max_seq_length of sentence_bert_config.json",
                limit);
        s->m->context = limit;
    }
}

pare_status import_any(pare_model **out, const char *path, const pare_load_opts *opts,
                       pare_files *files, pare_err *err)
{
    im_source s = {.path = path, .in = files, .err = err};
    const bool pool = opts->pool != PARE_POOL_NONE, told = pool || opts->normalize;
    s.pooling =
        (im_pooling){.given = pool, .told = told, .pool = opts->pool, .normalize = opts->normalize};
    bool folder = false;
    *out = NULL;
    s.st = pare_model_new(&s.m, err);
    if (s.st) return s.st;
    s.scratch = pare_arena_new();
    s.st = s.scratch ? pare_files_is_dir(files, &folder, path, err) : pare_no_memory(err);
    if (!s.st && folder) {
        im_open_folder(&s, path);
        if (!s.st) fill(&s, in_safetensors, sizeof in_safetensors / sizeof *in_safetensors);
    }
    if (!s.st && !folder) from_file(&s, path);
    im_take_tokenizer(&s);
    if (!s.st) set_precision(&s);
    limit_context(&s);
    s.m->read_as = *opts;
    if (!s.st && told && !s.pooling.given)
        im_fail(&s, "normalize needs pool: the folder does not say how outputs are pooled");
    if (!s.st && told && !(s.m->head.pool == s.pooling.pool && s.pooling.given))
        im_fail(&s, "pool and normalize are for encoders and language models, and this is '%s'",
                s.m->name);
    const pare_status st = s.st;
    im_close(&s);
    pare_arena_free(s.scratch);
    if (st)
        pare_model_free(s.m);
    else
        *out = s.m;
    return st;
}
