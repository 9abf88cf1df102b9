/* files.c - files that are read once, and the identity of all that were read. */
#include "support.h"
#include "list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct read_file {
    pare_blob *blob; /* has the path */
    char sha256[PARE_SHA256_HEX];
} read_file;

/* What was found at a path that was asked for before it was read. */
typedef struct path_info {
    const char *path;
    bool exists, is_dir;
} path_info;

struct pare_files {
    pare_arena *arena; /* names and lists */
    bool hashed;
    size_t nread, read_capacity;
    read_file *read;
    size_t nstat, stat_capacity;
    path_info *stat;
};

static pare_files *new_files(bool hashed)
{
    pare_files *const f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->hashed = hashed;
    f->arena = pare_arena_new();
    if (f->arena) return f;
    free(f);
    return NULL;
}

pare_files *pare_files_new(void)
{
    return new_files(true);
}

pare_files *pare_files_new_unhashed(void)
{
    return new_files(false);
}

void pare_files_free(pare_files *f)
{
    if (!f) return;
    for (size_t i = 0; i < f->nread; i++) pare_blob_release(f->read[i].blob);
    pare_arena_free(f->arena);
    free(f);
}

static const read_file *find_read(const pare_files *f, const char *path)
{
    for (size_t i = 0; i < f->nread; i++)
        if (strcmp(f->read[i].blob->path, path) == 0) return &f->read[i];
    return NULL;
}

static const path_info *find_stat(const pare_files *f, const char *path)
{
    for (size_t i = 0; i < f->nstat; i++)
        if (strcmp(f->stat[i].path, path) == 0) return &f->stat[i];
    return NULL;
}

pare_status pare_files_read(pare_files *f, pare_blob **out, const char *path, pare_err *err)
{
    *out = NULL;
    const path_info *const info = find_stat(f, path);
    if (info && !info->exists)
        return pare_fail(err, PARE_ERR_IO, "%s: cannot open: %s", path, strerror(ENOENT));
    const read_file *file = find_read(f, path);
    if (!file) {
        read_file *const list =
            list_grow(f->arena, f->read, f->nread, &f->read_capacity, sizeof *f->read);
        if (!list) return pare_no_memory(err);
        f->read = list;
        read_file *const to = &list[f->nread];
        pare_status st = pare_blob_open(&to->blob, path, err);
        if (st) return st;
        if (f->hashed) st = pare_sha256_of(to->sha256, to->blob->data, to->blob->bytes, err);
        if (st) {
            pare_blob_release(to->blob);
            return st;
        }
        f->nread++;
        file = to;
    }
    *out = pare_blob_retain(file->blob);
    return PARE_OK;
}

/* What is at `path`: asked of the system once, so that every later answer is the same. */
static pare_status stat_path(pare_files *f, path_info *out, const char *path, pare_err *err)
{
    const path_info *const before = find_stat(f, path);
    if (before || find_read(f, path)) {
        *out = before ? *before : (path_info){path, true, false};
        return PARE_OK;
    }
    path_info *const list =
        list_grow(f->arena, f->stat, f->nstat, &f->stat_capacity, sizeof *f->stat);
    const char *const name = pare_strdup(f->arena, path);
    if (!list || !name) return pare_no_memory(err);
    f->stat = list;
    list[f->nstat] = (path_info){name, pare_file_exists(path), pare_is_dir(path)};
    *out = list[f->nstat++];
    return PARE_OK;
}

pare_status pare_files_exists(pare_files *f, bool *out, const char *path, pare_err *err)
{
    path_info info = {0};
    const pare_status st = stat_path(f, &info, path, err);
    *out = info.exists;
    return st;
}

pare_status pare_files_is_dir(pare_files *f, bool *out, const char *path, pare_err *err)
{
    path_info info = {0};
    const pare_status st = stat_path(f, &info, path, err);
    *out = info.is_dir;
    return st;
}

/* ---- what was read --------------------------------------------------------------------------- */

size_t pare_files_count(const pare_files *f)
{
    return f->nread;
}

uint64_t pare_files_bytes(const pare_files *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->nread; i++) sum += f->read[i].blob->bytes;
    return sum;
}

const char *pare_files_path(const pare_files *f, size_t i)
{
    PARE_ASSERT(i < f->nread);
    return f->read[i].blob->path;
}

const char *pare_files_sha256(const pare_files *f, size_t i)
{
    PARE_ASSERT(i < f->nread && f->hashed);
    return f->read[i].sha256;
}

/* The name of `path` relative to root, which is a folder or one of the files that were read.
 * Loaders make the names of files out of root's, so that mostly the text alone gives the answer. */
static const char *name_below(pare_arena *a, const pare_files *f, const char *root,
                              const char *path)
{
    const char *const slash = strrchr(root, '/');
    const bool is_file = find_read(f, root) != NULL;
    const size_t n = !is_file ? strlen(root) : slash ? (size_t)(slash - root) + 1 : 0;
    const char *rest = path + n;
    if (strncmp(path, root, n) == 0 && (is_file || *rest == '/' || (n && rest[-1] == '/'))) {
        while (!is_file && *rest == '/') rest++;
        if (!strchr(rest, '/')) return rest;
    }
    const char *const from = is_file ? root : pare_sprintf(a, "%s/x", root);
    return from ? pare_path_relative(a, from, path) : NULL;
}

/* The hash of the lines "HASH  NAME" of all files, sorted: what sha256sum and sort give. */
static pare_status hash_lines(char hex[PARE_SHA256_HEX], pare_arena *a, const pare_files *f,
                              const char *root, pare_err *err)
{
    char **const line = pare_alloc(a, f->nread, sizeof *line);
    if (!line) return pare_no_memory(err);
    for (size_t i = 0; i < f->nread; i++) {
        const char *const name = name_below(a, f, root, pare_files_path(f, i));
        if (name && strchr(name, '\n'))
            return pare_fail(err, PARE_ERR_INPUT,
                             "%s: a file name with a line end cannot be part of an identity",
                             pare_files_path(f, i));
        line[i] = name ? pare_sprintf(a, "%s  %s\n", f->read[i].sha256, name) : NULL;
        if (!line[i]) return pare_no_memory(err);
    }
    sort_texts(line, f->nread);
    pare_sha256 h;
    const pare_status st = pare_sha256_begin(&h, err);
    if (st) return st;
    for (size_t i = 0; i < f->nread; i++) pare_sha256_add(&h, line[i], strlen(line[i]));
    pare_sha256_end(&h, hex);
    return PARE_OK;
}

pare_status pare_files_identity(char hex[PARE_SHA256_HEX], const pare_files *f, const char *root,
                                pare_err *err)
{
    PARE_ASSERT(f->nread > 0 && f->hashed);
    if (f->nread == 1) {
        memcpy(hex, f->read[0].sha256, PARE_SHA256_HEX);
        return PARE_OK;
    }
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st = hash_lines(hex, a, f, root, err);
    pare_arena_free(a);
    return st;
}
