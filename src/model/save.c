/* save.c - writes a model: safetensors with the architecture and a checksum in the metadata.
 *
 * f64 tensors come first, then f32, then half precision, then bytes, and the data begins at a multiple of 64: so every
 * tensor can be used where it lies when the file is in memory. */
#include "arch.h"
#include "header_checksum.h"
#include "base/json.h"
#include "base/support.h"
#include "model_file.h"
#include "precision.h"
#include "shared_rows.h"
#include "ticket_store.h"
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *name;
    const void *data;
    size_t bytes, rows, cols;
    pare_dtype dtype;
    bool vector;
} entry;

typedef struct entries {
    pare_arena *arena;
    const pare_model *m;
    pare_dtype precision;
    bool as_held; /* every weight in the type that it has in memory */
    bool counts;  /* nothing is written: no numbers are needed */
    entry *e;
    size_t n, capacity;
} entries;

/* The bytes must expand to exactly these numbers. */
static pare_status check_coded(const pare_coded *c, const pare_weight *w, pare_err *err)
{
    pare_weight expanded;
    pare_arena *const scratch = pare_arena_new();
    pare_status st =
        scratch ? pare_coded_expand(&expanded, NULL, scratch, c->data, c->bytes, SIZE_MAX, err)
                : pare_no_memory(err);
    if (!st && (w->dtype != PARE_F32 || expanded.rows != w->rows || expanded.cols != w->cols ||
                memcmp(expanded.data, w->data, w->rows * w->cols * sizeof(float)) != 0))
        st = pare_fail(err, PARE_ERR_VERIFY, "tensor %s: its %s does not expand to it", c->name,
                       pare_coded_suffix(c) + 1);
    pare_arena_free(scratch);
    return st;
}

/* The bytes in the place of the numbers. */
static pare_status add_coded(entries *l, const pare_coded *c, const pare_weight *w, pare_err *err)
{
    const pare_status st = l->counts ? PARE_OK : check_coded(c, w, err);
    char *const name = pare_sprintf(l->arena, "%s%s", c->name, pare_coded_suffix(c));
    if (st || !name) return st ? st : pare_no_memory(err);
    l->e[l->n++] = (entry){name, c->data, c->bytes, 1, c->bytes, PARE_U8, true};
    return PARE_OK;
}

static pare_status add_weight(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    entries *const l = self;
    if (!pare_has(w)) return PARE_OK;
    if (w->dtype == PARE_U8 && !vector)
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor %s was loaded packed, to be run: it cannot be saved", name);
    if (l->n == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : 64;
        entry *const e = pare_alloc(l->arena, capacity, sizeof *e);
        if (!e) return pare_no_memory(err);
        if (l->n) memcpy(e, l->e, l->n * sizeof *e);
        l->e = e;
        l->capacity = capacity;
    }
    for (size_t i = 0; i < l->m->ncoded; i++)
        if (strcmp(l->m->coded[i].name, name) == 0) return add_coded(l, &l->m->coded[i], w, err);
    char *const copy = pare_strdup(l->arena, name);
    if (!copy) return pare_no_memory(err);
    const pare_dtype t = l->as_held ? w->dtype : weight_stored_dtype(w, l->precision);
    const size_t bytes = w->rows * w->cols * pare_dtype_size(t);
    const bool narrows = t != w->dtype && !l->counts;
    void *const narrow = narrows ? pare_alloc(l->arena, bytes, 1) : NULL;
    if (narrows && !narrow) return pare_no_memory(err);
    if (narrow) weight_store(narrow, t, w);
    l->e[l->n++] = (entry){copy, narrow ? narrow : w->data, bytes, w->rows, w->cols, t, vector};
    return PARE_OK;
}

/* The header, padded with spaces so that 8 + *bytes is a multiple of 64. */
static pare_status header_text(char **out, size_t *bytes, const entries *l, const char *arch,
                               pare_err *err)
{
    char zeros[CHECKSUM_DIGITS + 1];
    memset(zeros, '0', CHECKSUM_DIGITS);
    zeros[CHECKSUM_DIGITS] = 0;
    cJSON *const root = cJSON_CreateObject();
    cJSON *const meta = root ? pare_json_add_object(root, "__metadata__") : NULL;
    bool ok = meta && pare_json_add_string(meta, "pare", arch) &&
              pare_json_add_string(meta, CHECKSUM_KEY, zeros);
    size_t at = 0, n = 0;
    for (size_t i = 0; ok && i < l->n; at += l->e[i++].bytes) {
        const entry *const e = &l->e[i];
        cJSON *const o = pare_json_add_object(root, e->name);
        ok = o && pare_json_add_string(o, "dtype", pare_dtype_name(e->dtype));
        cJSON *const shape = ok ? pare_json_add_array(o, "shape") : NULL;
        cJSON *const range = shape ? pare_json_add_array(o, "data_offsets") : NULL;
        ok = range && (e->vector || pare_json_add_size(shape, NULL, e->rows)) &&
             pare_json_add_size(shape, NULL, e->cols) && pare_json_add_size(range, NULL, at) &&
             pare_json_add_size(range, NULL, at + e->bytes);
    }
    char *text = NULL;
    pare_status st = ok ? pare_json_print(&text, &n, l->arena, root, 0, err) : pare_no_memory(err);
    cJSON_Delete(root);
    if (st) return st;
    *bytes = (8 + n + 63) / 64 * 64 - 8;
    *out = pare_alloc(l->arena, *bytes, 1);
    if (!*out) return pare_no_memory(err);
    memset(*out, ' ', *bytes);
    memcpy(*out, text, n);
    return checksum_set(*out, *bytes, err);
}

static pare_status put(pare_out *o, pare_sha256 *hash, const void *data, size_t bytes,
                       pare_err *err)
{
    if (hash) pare_sha256_add(hash, data, bytes);
    return pare_out_write(o, data, bytes, err);
}

static pare_status write_file(const entries *l, const char *header, size_t bytes, const char *path,
                              bool overwrite, char *sha256, pare_err *err)
{
    pare_out *o = NULL;
    pare_sha256 state, *const hash = sha256 ? &state : NULL;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bytes >> (8 * i));
    pare_status st = pare_out_open(&o, path, overwrite, err);
    if (st) return st;
    if (hash && (st = pare_sha256_begin(hash, err))) {
        pare_out_abort(o);
        return st;
    }
    st = put(o, hash, length, sizeof length, err);
    if (!st) st = put(o, hash, header, bytes, err);
    for (size_t i = 0; !st && i < l->n; i++) st = put(o, hash, l->e[i].data, l->e[i].bytes, err);
    if (hash) pare_sha256_end(hash, sha256);
    if (!st) return pare_out_commit(o, err);
    pare_out_abort(o);
    return st;
}

/* The entries in the order of the file, large elements first and the visitor's order within, and
 * the header. */
static pare_status lay_out(entries *l, char **header, size_t *bytes, pare_err *err)
{
    char *arch = NULL;
    /* The visitor hands out mutable weights; collecting does not touch them. */
    pare_status st = pare_model_each_weight((pare_model *)l->m, add_weight, l, err);
    if (!st && l->m->embedding.rows) {
        const pare_embedding *const s = &l->m->embedding;
        pare_weight w = {PARE_U8, 1, pare_shared_bytes(s), pare_shared_bits(l->arena, s)};
        st = w.data ? add_weight(l, PARE_SHARED_TENSOR, &w, true, err) : pare_no_memory(err);
    }
    if (!st && l->m->vocab) {
        pare_weight w = {PARE_U8, 1, l->m->vocab_bytes, l->m->vocab};
        st = add_weight(l, "vocab", &w, true, err);
    }
    entry *const sorted = st ? NULL : pare_alloc(l->arena, l->n ? l->n : 1, sizeof *sorted);
    if (!st && !sorted) st = pare_no_memory(err);
    size_t n = 0;
    for (size_t size = 8; !st && size > 0; size /= 2)
        for (size_t i = 0; i < l->n; i++)
            if (pare_dtype_size(l->e[i].dtype) == size) sorted[n++] = l->e[i];
    PARE_ASSERT(st || n == l->n);
    l->e = sorted;
    if (!st) st = arch_write(&arch, l->arena, l->m, err);
    return st ? st : header_text(header, bytes, l, arch, err);
}

static pare_status save(const pare_model *m, const char *path, bool overwrite, bool as_held,
                        char *sha256, pare_err *err)
{
    entries l = {.arena = pare_arena_new(), .m = m, .precision = m->precision, .as_held = as_held};
    char *header = NULL;
    size_t bytes = 0;
    pare_status st = l.arena ? pare_model_check(m, err) : pare_no_memory(err);
    if (!st) st = lay_out(&l, &header, &bytes, err);
    if (!st) st = write_file(&l, header, bytes, path, overwrite, sha256, err);
    pare_arena_free(l.arena);
    return st;
}

pare_status pare_model_save(const pare_model *m, const char *path, bool overwrite,
                            char sha256[PARE_SHA256_HEX], pare_err *err)
{
    return save(m, path, overwrite, false, sha256, err);
}

pare_status model_file_write_as_held(const pare_model *m, const char *path, bool overwrite,
                                     char sha256[PARE_SHA256_HEX], pare_err *err)
{
    return save(m, path, overwrite, true, sha256, err);
}

pare_status model_file_bytes(uint64_t *out, const pare_model *m, pare_err *err)
{
    entries l = {.arena = pare_arena_new(), .m = m, .precision = m->precision, .counts = true};
    char *header = NULL;
    size_t bytes = 0;
    pare_status st = l.arena ? lay_out(&l, &header, &bytes, err) : pare_no_memory(err);
    *out = sizeof(uint64_t) + bytes;
    for (size_t i = 0; !st && i < l.n; i++) *out += l.e[i].bytes;
    pare_arena_free(l.arena);
    return st;
}
