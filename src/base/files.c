/* Files read once. */
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct read_file {
    pare_blob *blob; /* has the path */
    char sha256[PARE_SHA256_HEX];
} read_file;

/* What was found at a path before anything was read there. */
typedef struct looked_at {
    const char *path;
    bool exists, is_dir;
} looked_at;

struct pare_files {
    pare_arena *arena; /* names and lists */
    bool hashed;
    size_t nread, read_room;
    read_file *read;
    size_t nlooked, looked_room;
    looked_at *looked;
};

static pare_files *new_files(bool hashed)
{
    pare_files *const f = calloc(1, sizeof *f);
    pare_arena *const a = f ? pare_arena_new() : NULL;
    if (!a) {
        free(f);
        return NULL;
    }
    f->arena = a;
    f->hashed = hashed;
    return f;
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

/* Room for one more of `size` bytes behind n; the list, or NULL when memory is out. */
static void *grown(pare_arena *a, void *list, size_t n, size_t *room, size_t size)
{
    if (n < *room) return list;
    const size_t more = 2 * *room + 8;
    void *const to = pare_alloc(a, more, size);
    if (!to) return NULL;
    if (n) memcpy(to, list, n * size);
    *room = more;
    return to;
}

static const read_file *find_read(const pare_files *f, const char *path)
{
    for (size_t i = 0; i < f->nread; i++)
        if (strcmp(f->read[i].blob->path, path) == 0) return &f->read[i];
    return NULL;
}

static const looked_at *find_looked(const pare_files *f, const char *path)
{
    for (size_t i = 0; i < f->nlooked; i++)
        if (strcmp(f->looked[i].path, path) == 0) return &f->looked[i];
    return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static pare_status read_new(pare_files *f, const char *path, pare_err *err)
{
    read_file *const list = grown(f->arena, f->read, f->nread, &f->read_room, sizeof *f->read);
    if (!list) return pare_no_memory(err);
    f->read = list;
    read_file *const to = &list[f->nread];
    pare_status st = pare_blob_open(&to->blob, path, err);
    if (st) return st;
    if (f->hashed) st = pare_sha256_of(to->sha256, to->blob->data, to->blob->bytes, err);
    if (st)
        pare_blob_release(to->blob);
    else
        f->nread++;
    return st;
}

pare_status pare_files_read(pare_files *f, pare_blob **out, const char *path, pare_err *err)
{
    *out = NULL;
    const looked_at *const looked = find_looked(f, path);
    if (looked && !looked->exists)
        return pare_fail(err, PARE_ERR_IO, "%s: cannot open: %s", path, strerror(ENOENT));
    const read_file *at = find_read(f, path);
    if (!at) {
        const pare_status st = read_new(f, path, err);
        if (st) return st;
        at = &f->read[f->nread - 1];
    }
    *out = pare_blob_retain(at->blob);
    return PARE_OK;
}

/* ---- looking --------------------------------------------------------------------------------- */

static pare_status look(pare_files *f, looked_at *out, const char *path, pare_err *err)
{
    const looked_at *const before = find_looked(f, path);
    if (before || find_read(f, path)) {
        *out = before ? *before : (looked_at){path, true, false};
        return PARE_OK;
    }
    looked_at *const list =
        grown(f->arena, f->looked, f->nlooked, &f->looked_room, sizeof *f->looked);
    const char *const name = pare_strdup(f->arena, path);
    if (!list || !name) return pare_no_memory(err);
    f->looked = list;
    list[f->nlooked] = (looked_at){name, pare_file_exists(path), pare_is_dir(path)};
    *out = list[f->nlooked++];
    return PARE_OK;
}

pare_status pare_files_exists(pare_files *f, bool *out, const char *path, pare_err *err)
{
    looked_at at = {0};
    const pare_status st = look(f, &at, path, err);
    *out = at.exists;
    return st;
}

pare_status pare_files_is_dir(pare_files *f, bool *out, const char *path, pare_err *err)
{
    looked_at at = {0};
    const pare_status st = look(f, &at, path, err);
    *out = at.is_dir;
    return st;
}

/* ---- what was read --------------------------------------------------------------------------- */

size_t pare_files_count(const pare_files *f)
{
    return f->nread;
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

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* root is a file where it is among those that were read. Loaders make the names of files out of
 * root's, so that mostly the text alone tells. */
static const char *name_in(pare_arena *a, const pare_files *f, const char *root, const char *path)
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

static pare_status list_lines(char **line, pare_arena *a, const pare_files *f, const char *root,
                              pare_err *err)
{
    for (size_t i = 0; i < f->nread; i++) {
        const char *const name = name_in(a, f, root, pare_files_path(f, i));
        if (!name) return pare_no_memory(err);
        if (strchr(name, '\n'))
            return pare_fail(err, PARE_ERR_INPUT,
                             "%s: a file name with a line end cannot be part of an identity",
                             pare_files_path(f, i));
        line[i] = pare_sprintf(a, "%s  %s\n", f->read[i].sha256, name);
        if (!line[i]) return pare_no_memory(err);
    }
    qsort(line, f->nread, sizeof *line, by_bytes);
    return PARE_OK;
}

static pare_status hash_lines(char hex[PARE_SHA256_HEX], pare_arena *a, const pare_files *f,
                              const char *root, pare_err *err)
{
    char **const line = pare_alloc(a, f->nread, sizeof *line);
    pare_sha256 h;
    pare_status st = line ? list_lines(line, a, f, root, err) : pare_no_memory(err);
    if (st == PARE_OK) st = pare_sha256_begin(&h, err);
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
