/* Which bytes a certificate speaks about: a hash of every file and of every tensor in it. */
#include "cert_parts.h"

#include <string.h>

/* ---- folders ------------------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* "x.part-1234": a model of ours that is not yet proven. Shards may be called x.part-1.safetensors.
 */
static bool is_part(const char *name)
{
    const char *const part = strstr(name, ".part-");
    return part && part[6] && part[6 + strspn(part + 6, "0123456789")] == '\0';
}

/* What pare itself wrote into the folder does not belong to the model that was there before. */
static bool is_ours(pare_arena *a, const char *folder, const char *name)
{
    if (ends_with(name, ".cert.json") || ends_with(name, ".run.json")) return true;
    if (ends_with(name, ".tmp") || is_part(name)) return true; /* still being written */
    /* No tensor's hash would tell that this one was changed: no certificate beside it hides it. */
    if (strcmp(name, "config.json") == 0) return false;
    const char *const cert = pare_sprintf(a, "%s/%s.cert.json", folder, name);
    return cert && pare_file_exists(cert);
}

static pare_status hash_folder(char hex[PARE_SHA256_HEX], pare_arena *a, const char *folder,
                               pare_err *err)
{
    char **names = NULL, *lines = pare_strdup(a, ""), one[PARE_SHA256_HEX];
    size_t n = 0;
    pare_status st = lines ? pare_folder_list(&names, &n, a, folder, err) : pare_no_memory(err);
    for (size_t i = 0; st == PARE_OK && i < n; i++) {
        if (is_ours(a, folder, names[i])) continue;
        const char *const path = pare_sprintf(a, "%s/%s", folder, names[i]);
        st = path ? pare_sha256_file(one, path, err) : pare_no_memory(err);
        if (st == PARE_OK && !(lines = pare_sprintf(a, "%s%s  %s\n", lines, one, names[i])))
            st = pare_no_memory(err);
    }
    return st == PARE_OK ? pare_sha256_of(hex, lines, strlen(lines), err) : st;
}

pare_status cert_hash_path(char hex[PARE_SHA256_HEX], const char *path, pare_err *err)
{
    if (!pare_is_dir(path)) return pare_sha256_file(hex, path, err);
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st = hash_folder(hex, a, path, err);
    pare_arena_free(a);
    return st;
}

/* ---- tensors ------------------------------------------------------------------------------- */

typedef struct collector {
    pare_arena *a;
    pare_tensor_hash *list; /* NULL in the first walk, which only counts */
    size_t n;
} collector;

static pare_status collect_bytes(collector *c, const char *name, const void *data, size_t bytes,
                                 pare_err *err)
{
    if (!c->list) return c->n++, PARE_OK;
    pare_tensor_hash *const h = &c->list[c->n++];
    h->name = pare_strdup(c->a, name);
    if (!h->name) return pare_no_memory(err);
    return pare_sha256_of(h->sha256, data, bytes, err);
}

static pare_status collect(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)vector;
    if (!pare_has(w)) return PARE_OK;
    /* No overflow: the weight is in memory. */
    return collect_bytes(self, name, w->data, w->rows * w->cols * pare_dtype_size(w->dtype), err);
}

static pare_status walk(collector *c, const pare_model *m, pare_err *err)
{
    c->n = 0;
    /* The visitor hands out pointers one may write through; this one only reads. */
    const pare_status st = pare_model_visit((pare_model *)m, collect, c, err);
    if (st != PARE_OK || !m->vocab) return st;
    return collect_bytes(c, "vocab", m->vocab, m->vocab_bytes, err);
}

pare_status cert_tensor_hashes(pare_tensor_hash **out, size_t *n, pare_arena *a,
                               const pare_model *m, pare_err *err)
{
    collector c = {a, NULL, 0};
    pare_status st = walk(&c, m, err);
    if (st != PARE_OK) return st;
    c.list = pare_alloc(a, c.n ? c.n : 1, sizeof *c.list);
    if (!c.list) return pare_no_memory(err);
    st = walk(&c, m, err);
    *out = c.list;
    *n = c.n;
    return st;
}

/* ---- references ---------------------------------------------------------------------------- */

pare_status pare_file_ref_make(pare_file_ref *out, pare_arena *a, const char *cert_path,
                               const char *path, const pare_model *m, pare_err *err)
{
    *out = (pare_file_ref){0};
    out->path = pare_path_relative(a, cert_path, path);
    if (!out->path) return pare_no_memory(err);
    const pare_status st = cert_hash_path(out->sha256, path, err);
    return st == PARE_OK ? cert_tensor_hashes(&out->tensors, &out->ntensors, a, m, err) : st;
}

pare_status pare_data_ref_make(pare_data_ref *out, pare_arena *a, const char *cert_path,
                               const char *path, size_t split, size_t tokens,
                               const pare_inputs *set, pare_err *err)
{
    *out = (pare_data_ref){.kind = path ? "file" : "random", .count = set->n};
    if (path) {
        out->split = split;
        out->path = pare_path_relative(a, cert_path, path);
        if (!out->path) return pare_no_memory(err);
        const pare_status st = cert_hash_path(out->sha256, path, err);
        if (st != PARE_OK) return st;
    } else {
        out->tokens = tokens;
    }
    return pare_inputs_sha256(out->inputs_sha256, set, err);
}
