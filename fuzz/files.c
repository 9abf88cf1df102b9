/* Files in memory, and what targets expect. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 16 };

static struct {
    const char *path;
    const uint8_t *data;
    size_t bytes;
} files[MOST_FILES];
static size_t nfiles;

pare_status __wrap_pare_blob_open(pare_blob **out, const char *path, pare_err *err);
pare_status __wrap_pare_text_read(char **out, size_t *bytes, pare_arena *a, const char *path,
                                  pare_err *err);
bool __wrap_pare_file_exists(const char *path);
bool __wrap_pare_is_dir(const char *path);
pare_status __wrap_pare_folder_list(char ***names, size_t *n, pare_arena *a, const char *folder,
                                    pare_err *err);

void fuzz_broken(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
    abort();
}

void fuzz_expect_said(pare_status st, const pare_err *err)
{
    FUZZ_EXPECT(st == PARE_OK || (err->code == st && err->msg[0] != '\0'));
    /* No size claim may ask for more memory than there is. */
    FUZZ_EXPECT(st != PARE_ERR_MEMORY);
}

void fuzz_file(const char *path, const uint8_t *data, size_t bytes)
{
    FUZZ_EXPECT(nfiles < MOST_FILES);
    files[nfiles].path = path;
    files[nfiles].data = data;
    files[nfiles++].bytes = bytes;
}

void fuzz_no_files(void)
{
    nfiles = 0;
}

static size_t find(const char *path)
{
    size_t i = 0;
    while (i < nfiles && strcmp(files[i].path, path) != 0) i++;
    return i;
}

/* A block of exactly these bytes. */
static uint8_t *exact_copy(const uint8_t *data, size_t bytes)
{
    uint8_t *const copy = malloc(bytes);
    FUZZ_EXPECT(copy || bytes == 0);
    if (bytes) memcpy(copy, data, bytes);
    return copy;
}

pare_status __wrap_pare_blob_open(pare_blob **out, const char *path, pare_err *err)
{
    const size_t i = find(path);
    *out = NULL;
    if (i == nfiles) return pare_fail(err, PARE_ERR_IO, "%s: cannot open: no such file", path);
    pare_blob *const b = calloc(1, sizeof *b);
    FUZZ_EXPECT(b);
    b->path = (char *)exact_copy((const uint8_t *)path, strlen(path) + 1);
    b->block = exact_copy(files[i].data, files[i].bytes);
    b->data = b->block;
    b->bytes = files[i].bytes;
    b->refs = 1;
    *out = b;
    return PARE_OK;
}

pare_status __wrap_pare_text_read(char **out, size_t *bytes, pare_arena *a, const char *path,
                                  pare_err *err)
{
    const size_t i = find(path);
    if (i == nfiles) return pare_fail(err, PARE_ERR_IO, "%s: cannot open: no such file", path);
    *out = pare_alloc(a, files[i].bytes + 1, 1);
    FUZZ_EXPECT(*out);
    if (files[i].bytes) memcpy(*out, files[i].data, files[i].bytes);
    if (bytes) *bytes = files[i].bytes;
    return PARE_OK;
}

bool __wrap_pare_file_exists(const char *path)
{
    return find(path) < nfiles;
}

/* The name of a file within a folder; NULL for one that lies elsewhere. */
static const char *name_in(const char *folder, const char *path)
{
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

bool __wrap_pare_is_dir(const char *path)
{
    for (size_t i = 0; i < nfiles; i++)
        if (name_in(path, files[i].path)) return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

pare_status __wrap_pare_folder_list(char ***names, size_t *n, pare_arena *a, const char *folder,
                                    pare_err *err)
{
    (void)err;
    *n = 0;
    *names = pare_alloc(a, MOST_FILES, sizeof **names);
    FUZZ_EXPECT(*names);
    for (size_t i = 0; i < nfiles; i++) {
        const char *const name = name_in(folder, files[i].path);
        if (!name || strchr(name, '/')) continue;
        (*names)[*n] = pare_strdup(a, name);
        FUZZ_EXPECT((*names)[(*n)++]);
    }
    qsort(*names, *n, sizeof **names, by_text);
    return PARE_OK;
}
