/* npz.c - .npz files: a zip of .npy files. */
#include "array.h"
#include "support.h"
#include "npy.h"
#include "zip.h"

#include <stdlib.h>
#include <string.h>

#define SUFFIX     ".npy"
#define SUFFIX_LEN 4

struct pare_npz {
    pare_blob *blob;
    pare_arena *own;    /* the directory */
    pare_arena *arrays; /* the caller's */
    pare_zip zip;
    size_t count;
    const pare_zip_member **member; /* those that are arrays */
    const char **name;              /* theirs, without ".npy" */
};

/* The directory, and which of its members are arrays; others are ignored, as numpy does. */
static pare_status read_directory(pare_npz *z, pare_err *err)
{
    z->own = pare_arena_new();
    if (!z->own) return pare_no_memory(err);
    const pare_status st = pare_zip_scan(&z->zip, z->own, z->blob->data, z->blob->bytes, err);
    if (st != PARE_OK) return st;
    z->member = pare_alloc(z->own, z->zip.count, sizeof *z->member);
    z->name = pare_alloc(z->own, z->zip.count, sizeof *z->name);
    if (!z->member || !z->name) return pare_no_memory(err);
    for (size_t i = 0; i < z->zip.count; i++) {
        const pare_zip_member *m = &z->zip.member[i];
        const size_t len = strlen(m->name);
        if (len < SUFFIX_LEN || strcmp(m->name + len - SUFFIX_LEN, SUFFIX) != 0) continue;
        const char *name = pare_strndup(z->own, m->name, len - SUFFIX_LEN);
        if (!name) return pare_no_memory(err);
        z->member[z->count] = m;
        z->name[z->count++] = name;
    }
    return PARE_OK;
}

pare_status pare_npz_open_blob(pare_npz **out, pare_arena *arena, pare_blob *b, pare_err *err)
{
    *out = NULL;
    pare_npz *z = calloc(1, sizeof *z);
    if (!z) return pare_no_memory(err);
    z->blob = pare_blob_retain(b);
    z->arrays = arena;
    const pare_status st = read_directory(z, err);
    if (st != PARE_OK) {
        pare_err_prefix(err, b->path);
        pare_npz_close(z);
        return st;
    }
    *out = z;
    return PARE_OK;
}

pare_status pare_npz_open(pare_npz **out, pare_arena *arena, const char *path, pare_err *err)
{
    *out = NULL;
    pare_blob *b;
    pare_status st = pare_blob_open(&b, path, err);
    if (st != PARE_OK) return st;
    st = pare_npz_open_blob(out, arena, b, err);
    pare_blob_release(b);
    return st;
}

void pare_npz_close(pare_npz *z)
{
    if (!z) return;
    pare_blob_release(z->blob);
    pare_arena_free(z->own);
    free(z);
}

size_t pare_npz_count(const pare_npz *z)
{
    return z->count;
}

const char *pare_npz_name(const pare_npz *z, size_t i)
{
    PARE_ASSERT(i < z->count);
    return z->name[i];
}

static const pare_zip_member *find(const pare_npz *z, const char *name)
{
    for (size_t i = 0; i < z->count; i++)
        if (strcmp(z->name[i], name) == 0) return z->member[i];
    return NULL;
}

bool pare_npz_has(const pare_npz *z, const char *name)
{
    return find(z, name) != NULL;
}

pare_status pare_npz_get(pare_array *out, const pare_npz *z, const char *name, pare_err *err)
{
    const pare_zip_member *m = find(z, name);
    if (!m) return pare_fail(err, PARE_ERR_INPUT, "%s: has no array '%s'", z->blob->path, name);
    const pare_mark mark = pare_arena_mark(z->arrays);
    const uint8_t *bytes;
    bool in_arena;
    pare_status st = pare_zip_unpack(&bytes, &in_arena, &z->zip, m, z->arrays, err);
    if (st == PARE_OK) {
        pare_npy_header h;
        st = pare_npy_header_parse(&h, bytes, m->size, err);
        if (st == PARE_OK) st = pare_npy_place(out, z->arrays, &h, bytes, in_arena, err);
        if (st != PARE_OK && st != PARE_ERR_MEMORY) pare_err_prefix(err, m->name);
    }
    if (st == PARE_OK) return PARE_OK;
    pare_err_prefix(err, z->blob->path);
    pare_arena_reset(z->arrays, mark);
    return st;
}

/* ---- writing --------------------------------------------------------------------------- */

static pare_status write_members(pare_out *o, pare_arena *own, size_t n, const char *const *names,
                                 const pare_array *arrays, bool deflated, pare_err *err)
{
    pare_zip_writer w;
    pare_status st = pare_zip_begin(&w, o, own, n, err);
    for (size_t i = 0; i < n && st == PARE_OK; i++) {
        const pare_array *const a = &arrays[i];
        const size_t bytes = pare_array_count(a) * pare_dtype_size(a->dtype);
        char header[PARE_NPY_HEADER_MAX];
        size_t header_bytes;
        st = pare_npy_header_print(header, &header_bytes, a, err);
        if (st != PARE_OK) {
            pare_err_prefix(err, names[i]);
            return st;
        }
        const char *file = pare_sprintf(own, "%s" SUFFIX, names[i]);
        if (!file) return pare_no_memory(err);
        st = pare_zip_add(&w, file, header, header_bytes, a->data, bytes, deflated, err);
    }
    return st == PARE_OK ? pare_zip_end(&w, err) : st;
}

pare_status pare_npz_write(const char *path, size_t n, const char *const *names,
                           const pare_array *arrays, bool deflate, bool overwrite, pare_err *err)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) PARE_ASSERT(strcmp(names[i], names[j]) != 0);
    pare_arena *own = pare_arena_new();
    if (!own) return pare_no_memory(err);
    pare_out *o;
    pare_status st = pare_out_open(&o, path, overwrite, err);
    if (st == PARE_OK) {
        st = write_members(o, own, n, names, arrays, deflate, err);
        if (st == PARE_OK)
            st = pare_out_commit(o, err);
        else
            pare_out_abort(o);
        if (st == PARE_ERR_INPUT) pare_err_prefix(err, path);
    }
    pare_arena_free(own);
    return st;
}
