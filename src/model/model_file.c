/* model_file.c - reads pare's own model file (docs/format.md). */
#include "arch.h"
#include "model_file.h"
#include "safetensors.h"
#include "header_checksum.h"
#include <pare/coded.h>
#include <string.h>

static const char VOCAB[] = "vocab";

typedef struct binder {
    pare_model *m;
    const st_file *file;
    size_t used;
    size_t eyes; /* entries that identities may still have: nothing in them bounds these */
    /* Of the tickets so far: their sources. */
    struct drawn {
        const char *name;
        uint64_t seed, stream;
    } * drawn;
    size_t ndrawn;
    pare_arena *scratch;
} binder;

/* Files of ours are aligned; one written by hand may not be, and is copied then. */
static pare_status bind_data(pare_weight *w, pare_model *m, const st_tensor *t, pare_err *err)
{
    const size_t size = pare_dtype_size(t->dtype);
    w->data = t->data;
    if ((uintptr_t)t->data % size == 0) return PARE_OK;
    void *const copy = pare_alloc(m->arena, w->rows * w->cols, size);
    if (!copy) return pare_no_memory(err);
    memcpy(copy, t->data, t->end - t->begin);
    w->data = copy;
    return PARE_OK;
}

/* Two weights from one source would not be independent: no honest ticket has that. */
static pare_status own_source(binder *b, const char *name, const pare_coded_head *h, pare_err *err)
{
    if (h->kind == PARE_CODED_EYE) return PARE_OK; /* draws nothing */
    const uint64_t stream = h->stream >> 24 << 24;
    if (stream != h->stream)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket's stream ends in 24 zero bits, not %06x",
                         (unsigned)(h->stream & 0xffffff));
    for (size_t i = 0; i < b->ndrawn; i++)
        if (b->drawn[i].seed == h->seed && b->drawn[i].stream == stream)
            return pare_fail(err, PARE_ERR_INPUT, "it has the seed and the stream of tensor %s",
                             b->drawn[i].name);
    if (!b->drawn) b->drawn = pare_alloc(b->scratch, b->file->n, sizeof *b->drawn);
    char *const copy = pare_strdup(b->scratch, name);
    if (!b->drawn || !copy) return pare_no_memory(err);
    b->drawn[b->ndrawn++] = (struct drawn){copy, h->seed, stream};
    return PARE_OK;
}

/* A weight that is a seed and masks in the file; *found: it is. */
static pare_status bind_coded(binder *b, bool *found, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    char full[128];
    pare_coded_head h;
    snprintf(full, sizeof full, "%s" PARE_CODED_SUFFIX, name);
    const st_tensor *const t = st_find(b->file, full);
    *found = t != NULL;
    if (!t) return PARE_OK;
    b->used++;
    if (t->dtype != PARE_U8 || t->ndim != 1 || st_find(b->file, name))
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor %s must be U8 with one dimension, in the place of numbers", full);
    pare_status st =
        pare_coded_expand(w, &h, b->m->arena, t->data, t->end - t->begin, b->eyes, err);
    if (!st && h.kind == PARE_CODED_EYE) b->eyes -= h.rows * h.cols;
    if (!st && vector && w->rows != 1)
        st = pare_fail(err, PARE_ERR_INPUT, "%zu x %zu in the place of a vector", w->rows, w->cols);
    if (!st) st = own_source(b, full, &h, err);
    if (!st || st == PARE_ERR_MEMORY) return st;
    char where[160];
    snprintf(where, sizeof where, "tensor %s", full);
    pare_err_prefix(err, where);
    return st;
}

static pare_status bind(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    binder *const b = self;
    const st_tensor *const t = st_find(b->file, name);
    char shape[128];
    bool found;
    const pare_status st = bind_coded(b, &found, name, w, vector, err);
    if (st || found || !t) return st;
    b->used++;
    if (t->dtype != PARE_F32 && t->dtype != PARE_F64)
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s is %s, must be F32 or F64", name,
                         pare_dtype_name(t->dtype));
    if (t->ndim != (vector ? 1u : 2u))
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s is %s, must have %d dimension(s)", name,
                         pare_shape_text(shape, t->shape, t->ndim), vector ? 1 : 2);
    w->dtype = t->dtype;
    w->rows = vector ? 1 : t->shape[0];
    w->cols = t->shape[t->ndim - 1];
    if (w->rows == 0 || w->cols == 0)
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s is %s: empty", name,
                         pare_shape_text(shape, t->shape, t->ndim));
    return bind_data(w, b->m, t, err);
}

static pare_status bind_vocab(binder *b, pare_err *err)
{
    const st_tensor *const t = st_find(b->file, VOCAB);
    if (!t) return PARE_OK;
    b->used++;
    if (t->dtype != PARE_U8 || t->ndim != 1)
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s must be U8 with one dimension", VOCAB);
    b->m->vocab = t->data;
    b->m->vocab_bytes = t->end - t->begin;
    return PARE_OK;
}

typedef struct seeker {
    const char *name;
    bool found;
} seeker;

static pare_status seek(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)w, (void)vector, (void)err;
    seeker *const s = self;
    const size_t n = strlen(name);
    if (strncmp(s->name, name, n) == 0 &&
        (s->name[n] == '\0' || strcmp(s->name + n, PARE_CODED_SUFFIX) == 0))
        s->found = true;
    return PARE_OK;
}

/* A tensor that no weight asked for would be lost in silence. */
static pare_status all_used(const binder *b, pare_err *err)
{
    if (b->used == b->file->n) return PARE_OK;
    for (size_t i = 0; i < b->file->n; i++) {
        seeker s = {b->file->tensors[i].name, false};
        const pare_status st = pare_model_visit(b->m, seek, &s, err);
        if (st) return st;
        if (!s.found && strcmp(s.name, VOCAB) != 0)
            return pare_fail(err, PARE_ERR_INPUT, "tensor %s has no place in this architecture",
                             s.name);
    }
    return PARE_OK;
}

/* Ours have no holes and end where the last tensor ends. */
static pare_status exact_cover(const st_file *f, pare_err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->tensors[i].begin != at)
            return pare_fail(err, PARE_ERR_INPUT, "tensor %s begins at %zu, must begin at %zu",
                             f->tensors[i].name, f->tensors[i].begin, at);
        at = f->tensors[i].end;
    }
    const size_t whole = 8 + f->header_bytes + at;
    if (f->blob->bytes != whole)
        return pare_fail(err, PARE_ERR_INPUT, "the file has %zu bytes, must have %zu",
                         f->blob->bytes, whole);
    return PARE_OK;
}

static pare_status read_ours(pare_model *m, const st_file *f, pare_arena *scratch, pare_err *err)
{
    binder b = {.m = m, .file = f, .scratch = scratch};
    pare_status st;
    if (!pare_mul(&b.eyes, f->blob->bytes, PARE_CODED_PER_BYTE)) b.eyes = SIZE_MAX;
    if ((st = seal_check(f->header, f->header_bytes, err)) || (st = exact_cover(f, err)) ||
        (st = arch_read(m, st_meta(f, "pare"), err)) || (st = pare_model_visit(m, bind, &b, err)) ||
        (st = bind_vocab(&b, err)))
        return st;
    return all_used(&b, err);
}

pare_status model_file_read(pare_model **out, bool *ours, pare_blob *blob, pare_err *err)
{
    st_file file = {0};
    pare_model *m = NULL;
    *ours = false;
    if (!st_looks_like(blob)) return PARE_OK;
    pare_status st = pare_model_new(&m, err);
    if (st) return st;
    pare_arena *const scratch = pare_arena_new();
    st = scratch ? st_open(&file, scratch, blob, err) : pare_no_memory(err);
    if (!st && st_meta(&file, "pare")) {
        *ours = true;
        if (!(st = pare_model_keep(m, blob, err))) st = read_ours(m, &file, scratch, err);
    }
    pare_arena_free(scratch);
    if (st || !*ours) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}
