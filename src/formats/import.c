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
    {"gpt2", im_is_gpt2, im_gpt2},    {"llama", im_is_llama, im_llama},
    {"bert", im_is_bert, im_bert},    {"perhead", im_is_perhead, im_perhead},
    {"graph", im_is_graph, im_graph}, {"moonshine", im_is_moonshine, im_moonshine},
};
static const family in_npz[] = {
    {"depth", im_is_depth, im_depth},
    {"width", im_is_width, im_width},
};

const char im_understood[] = "pare reads pare files, Hugging Face GPT-2, Llama and BERT files and "
                             "folders, and llama2.c .bin "
                             "(docs/run.md lists the rest)";

/* Files that people have, told by their first bytes. */
static const struct {
    const char *begin, *refusal;
} foreign[] = {
    {"24ka", "a newer llama2.c export; only its legacy form (version 0) is read"},
    {"GGUF", "a GGUF file; pare reads the safetensors that it was made from"},
    {"\x80\002", IM_PICKLED},
};

static void fill(im_source *s, const family *f, size_t n)
{
    for (size_t i = 0; i < n && !s->st; i++) {
        if (!f[i].is(s)) continue;
        s->m->name = pare_strdup(s->m->arena, f[i].name);
        if (!s->m->name)
            s->st = pare_no_memory(s->err);
        else
            f[i].fill(s);
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

pare_status import_any(pare_model **out, const char *path, pare_files *files, pare_err *err)
{
    im_source s = {.path = path, .in = files, .err = err};
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
    if (!s.st) set_precision(&s);
    const pare_status st = s.st;
    im_close(&s);
    pare_arena_free(s.scratch);
    if (st)
        pare_model_free(s.m);
    else
        *out = s.m;
    return st;
}
