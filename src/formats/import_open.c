/* import_open.c - opening what importers read: a file, its shards, its config.json, an npz. */
#include "base/array.h"
#include "base/support.h"
#include "import_tensors.h"

#include <stdlib.h>
#include <string.h>

static int by_key(const void *x, const void *y)
{
    const im_tensor *a = x, *b = y;
    const int order = strcmp(a->key, b->key);
    return order ? order : strcmp(a->name, b->name);
}

/* Models are saved with and without the name of the wrapper around them. */
const char *im_key(const char *name)
{
    static const char *const wrappers[] = {"distilbert.", "roberta.", "transformer.", "model.",
                                           "bert."};
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        const size_t n = strlen(wrappers[i]);
        if (strncmp(name, wrappers[i], n) != 0 || !name[n]) continue;
        return i == 0 ? im_key(name + n) : name + n; /* distilbert.transformer. */
    }
    return name;
}

void im_sort(im_source *s)
{
    if (s->st) return;
    qsort(s->tensors, s->n, sizeof *s->tensors, by_key);
    for (size_t i = 1; i < s->n; i++)
        if (strcmp(s->tensors[i - 1].key, s->tensors[i].key) == 0)
            im_fail(s, "tensors '%s' and '%s' are the same one given twice", s->tensors[i - 1].name,
                    s->tensors[i].name);
}

/* ---- safetensors ----------------------------------------------------------------------------- */

static void open_one(im_source *s, const char *path)
{
    if (s->st) return;
    s->st = pare_files_read(s->in, &s->blobs[s->nfiles], path, s->err);
    if (s->st) return;
    s->nfiles++; /* from here on im_close gives the file back */
    s->st = st_open(&s->files[s->nfiles - 1], s->scratch, s->blobs[s->nfiles - 1], s->err);
}

static bool reserve_files(im_source *s, size_t n)
{
    s->blobs = pare_alloc(s->scratch, n + 2, sizeof *s->blobs);
    s->files = pare_alloc(s->scratch, n + 2, sizeof *s->files);
    if (!s->blobs || !s->files) s->st = pare_no_memory(s->err);
    return !s->st;
}

static void collect(im_source *s)
{
    const size_t nmodel = s->nfiles; /* behind them the dense layer of sentence-transformers */
    if (!s->st && s->pooling.dense) open_one(s, s->pooling.dense);
    if (s->st) return;
    size_t n = 0;
    for (size_t f = 0; f < s->nfiles; f++) n += s->files[f].n;
    s->tensors = pare_alloc(s->scratch, n + 1, sizeof *s->tensors);
    if (!s->tensors) {
        s->st = pare_no_memory(s->err);
        return;
    }
    for (size_t f = 0; f < s->nfiles; f++) {
        for (size_t i = 0; i < s->files[f].n; i++) {
            const st_tensor *t = &s->files[f].tensors[i];
            im_tensor *to = &s->tensors[s->n++];
            *to = (im_tensor){.key = im_key(t->name),
                              .name = t->name,
                              .array = {.dtype = t->dtype, .ndim = t->ndim, .data = t->data},
                              .blob = s->blobs[f]};
            memcpy(to->array.shape, t->shape, sizeof t->shape);
            if (f < nmodel) continue;
            to->key = pare_sprintf(s->scratch, IM_DENSE_PREFIX "%s", t->name);
            if (!to->key) {
                s->st = pare_no_memory(s->err);
                return;
            }
        }
    }
    im_sort(s);
}

/* What stands beside a file is found from its path; the folder form hands in a name inside. */
static char *path_beside(im_source *s, const char *file, const char *name)
{
    char *path = s->st ? NULL : pare_path_beside(s->scratch, file, name);
    if (!s->st && !path) s->st = pare_no_memory(s->err);
    return path;
}

static bool exists(im_source *s, const char *path)
{
    bool there = false;
    if (!s->st) s->st = pare_files_exists(s->in, &there, path, s->err);
    return there && !s->st;
}

void im_read_json(im_source *s, cJSON **out, const char *path)
{
    pare_blob *b = NULL;
    *out = NULL;
    if (!exists(s, path)) return;
    if (!s->st) s->st = pare_files_read(s->in, &b, path, s->err);
    if (!s->st) s->st = pare_json_read_blob(out, b, s->err);
    pare_blob_release(b);
}

static void read_config(im_source *s, const char *file)
{
    const char *path = path_beside(s, file, "config.json");
    im_read_json(s, &s->config, path);
    if (!s->st && s->config && !cJSON_IsObject(s->config))
        s->st = pare_fail(s->err, PARE_ERR_INPUT, "%s: is not a JSON object", path);
}

void im_open_file(im_source *s, const char *path)
{
    if (s->st || !reserve_files(s, 1)) return;
    open_one(s, path);
    collect(s);
    read_config(s, path);
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* The place of a shard among those already opened; opens it when it is new. */
static size_t shard_number(im_source *s, const char *index, const char *name, const char **names)
{
    for (size_t i = 0; i < s->nfiles; i++)
        if (strcmp(names[i], name) == 0) return i;
    if (!*name || strchr(name, '/') || strcmp(name, "..") == 0) {
        im_fail(s, "weight_map names '%.80s', which is not a file beside it", name);
        return 0;
    }
    const char *path = path_beside(s, index, name);
    names[s->nfiles] = name;
    open_one(s, path);
    return s->nfiles ? s->nfiles - 1 : 0;
}

static void open_shards(im_source *s, const char *path, const cJSON *map)
{
    const size_t n = (size_t)cJSON_GetArraySize(map);
    const char **names = pare_alloc(s->scratch, n + 1, sizeof *names);
    if (!names) s->st = pare_no_memory(s->err);
    if (s->st || !reserve_files(s, n)) return;
    if (n == 0) im_fail(s, "weight_map is empty");
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, map)
    {
        if (s->st) return;
        if (!cJSON_IsString(item)) {
            im_fail(s, "weight_map of '%s' is not a file name", item->string);
            return;
        }
        const size_t f = shard_number(s, path, item->valuestring, names);
        if (!s->st && !st_find(&s->files[f], item->string))
            im_fail(s, "tensor '%s' is not in '%s', where weight_map says it is", item->string,
                    item->valuestring);
    }
}

/* Who names a certificate or a plan means the model that it is about. */
static void no_index(im_source *s, const cJSON *root, const char *path)
{
    const char *model = NULL;
    const cJSON *output = NULL;
    pare_err ignored;
    if (s->st || pare_json_has(root, "weight_map")) return;
    if (pare_json_has(root, "pare_length"))
        im_fail(s, "this is a certificate of pare length, not a model");
    else if (pare_json_has(root, "pare_plan"))
        im_fail(s, "this is a plan of pare length, not a model");
    else if (pare_json_has(root, "pare") && !pare_json_object(&output, root, "output", &ignored) &&
             !pare_json_string(&model, output, "path", &ignored))
        im_fail(s, "this is a certificate, not a model; its model is %.200s",
                path_beside(s, path, model));
    else
        im_fail(s, "not a model: JSON without the weight_map of an index of shards; %s",
                im_understood);
}

void im_open_index(im_source *s, const char *path)
{
    cJSON *root = NULL;
    const cJSON *map = NULL;
    if (s->st) return;
    im_read_json(s, &root, path);
    no_index(s, root, path);
    if (!s->st) s->st = pare_json_object(&map, root, "weight_map", s->err);
    if (!s->st) open_shards(s, path, map);
    cJSON_Delete(root);
    collect(s);
    read_config(s, path);
}

void im_open_shards(im_source *s, const char *folder, char *const *names, size_t n)
{
    char *const inside = s->st ? NULL : pare_sprintf(s->scratch, "%s/x", folder);
    if (!s->st && !inside) s->st = pare_no_memory(s->err);
    if (s->st || !reserve_files(s, n)) return;
    for (size_t i = 0; i < n; i++) open_one(s, path_beside(s, inside, names[i]));
    collect(s);
    read_config(s, inside);
}

/* ---- npz ------------------------------------------------------------------------------------- */

void im_open_npz(im_source *s, pare_blob *b, bool (*wanted)(const char *name))
{
    pare_npz *z = NULL;
    if (s->st) return;
    s->st = pare_npz_open_blob(&z, s->m->arena, b, s->err);
    if (s->st) return;
    const size_t n = pare_npz_count(z);
    s->n = 0;
    s->tensors = pare_alloc(s->scratch, n + 1, sizeof *s->tensors);
    if (!s->tensors) s->st = pare_no_memory(s->err);
    for (size_t i = 0; i < n && !s->st; i++) {
        const char *name = pare_npz_name(z, i);
        if (!wanted(name)) continue;
        im_tensor *t = &s->tensors[s->n++];
        t->name = t->key = pare_strdup(s->scratch, name);
        if (!t->name)
            s->st = pare_no_memory(s->err);
        else
            s->st = pare_npz_get(&t->array, z, name, s->err);
    }
    pare_npz_close(z);
    im_sort(s);
}

void im_close(im_source *s)
{
    for (size_t i = 0; i < s->nfiles; i++) pare_blob_release(s->blobs[i]);
    s->nfiles = 0;
    cJSON_Delete(s->config);
    s->config = NULL;
}
