/* model_file.c - reads pare's own model file (docs/format.md). */
#include "arch.h"
#include "base/array.h"
#include "header_checksum.h"
#include "linalg/packed.h"
#include "model_file.h"
#include "precision.h"
#include "safetensors.h"
#include "shared_rows.h"
#include "ticket_store.h"
#include <string.h>

static const char VOCAB[] = "vocab";

/* The seed and stream of a ticket. */
typedef struct ticket_source {
    const char *name;
    uint64_t seed, stream;
} ticket_source;

typedef struct binder {
    pare_model *m;
    const st_file *file;
    size_t version; /* of the file */
    size_t used;
    size_t identity_entries; /* that identities may still have: nothing in them bounds these */
    ticket_source *sources;  /* of the tickets so far */
    size_t nsources;
    pare_int_groups *ints; /* capacity: one of each tensor; the model's list */
    precision_counts stored;
    pare_arena *scratch;
    bool packed; /* matrices stay as they are stored, for running */
} binder;

/* Two weights from one source would not be independent: no honest ticket has that. */
static pare_status check_source(binder *b, const char *name, const pare_coded_head *h,
                                pare_err *err)
{
    if (h->kind == PARE_CODED_IDENTITY || h->kind == PARE_CODED_GROUPS ||
        h->kind == PARE_CODED_SEEDS)
        return PARE_OK; /* draw nothing from the source */
    const uint64_t stream = h->stream >> 24 << 24;
    if (stream != h->stream)
        return pare_fail(err, PARE_ERR_INPUT, "a ticket's stream ends in 24 zero bits, not %06x",
                         (unsigned)(h->stream & 0xffffff));
    for (size_t i = 0; i < b->nsources; i++)
        if (b->sources[i].seed == h->seed && b->sources[i].stream == stream)
            return pare_fail(err, PARE_ERR_INPUT, "it has the seed and the stream of tensor %s",
                             b->sources[i].name);
    if (!b->sources) b->sources = pare_alloc(b->scratch, b->file->n, sizeof *b->sources);
    char *const copy = pare_strdup(b->scratch, name);
    if (!b->sources || !copy) return pare_no_memory(err);
    b->sources[b->nsources++] = (ticket_source){copy, h->seed, stream};
    return PARE_OK;
}

/* How many coded tensors stand for a weight; the last one and its name are given back. */
static size_t find_coded(const st_tensor **out, char (*full)[128], const char **suffix,
                         const st_file *f, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; pare_coded_suffixes[i]; i++) {
        char each[sizeof *full];
        snprintf(each, sizeof each, "%s%s", name, pare_coded_suffixes[i]);
        const st_tensor *const t = st_find(f, each);
        if (!t) continue;
        *out = t;
        *suffix = pare_coded_suffixes[i];
        memcpy(*full, each, sizeof each);
        n++;
    }
    return n;
}

/* The integers of a quantized weight, for the engine that runs them. */
static pare_status keep_integers(binder *b, const pare_weight *w, const st_tensor *t, pare_err *err)
{
    pare_int_groups *const to = &b->ints[b->m->nints];
    const pare_status st = pare_coded_integers(to, b->m->arena, t->data, t->end - t->begin, err);
    if (st) return st;
    to->of = w->data;
    b->m->nints++;
    return PARE_OK;
}

/* The passes cut the stacked matrices of umix apart, which panels do not allow. */
static bool may_be_packed(const binder *b, const char *name, bool vector)
{
    const char *const dot = strrchr(name, '.');
    return b->packed && !vector && !(dot && strcmp(dot, ".mix") == 0);
}

/* The integers of a quantized weight in its place; *done: they are such as can be packed. */
static pare_status pack_integers(bool *done, binder *b, pare_weight *w, const pare_coded *c,
                                 const char *suffix, pare_err *err)
{
    pare_int_groups g;
    pare_coded_head h;
    *done = false;
    pare_status st =
        pare_coded_expand(NULL, &h, b->scratch, c->data, c->bytes, b->identity_entries, err);
    if (st || h.kind != PARE_CODED_GROUPS || strcmp(pare_coded_suffix(c), suffix) != 0 ||
        !packed_takes(h.cols, h.n))
        return st; /* as numbers, or refused */
    const pare_mark mark = pare_arena_mark(b->scratch);
    st = pare_coded_integers(&g, b->scratch, c->data, c->bytes, err);
    if (!st) st = packed_integers(w, b->m->arena, &g, err);
    pare_arena_reset(b->scratch, mark);
    *done = !st;
    return st;
}

static pare_status expand_coded(binder *b, pare_weight *w, const st_tensor *t, const char *name,
                                const char *weight, const char *suffix, bool vector, pare_err *err)
{
    pare_coded_head h;
    const pare_coded c = {name, t->data, t->end - t->begin};
    bool packed = false;
    pare_status st = PARE_OK;
    if (may_be_packed(b, weight, vector)) st = pack_integers(&packed, b, w, &c, suffix, err);
    if (st || packed) return st;
    st = pare_coded_expand(w, &h, b->m->arena, c.data, c.bytes, b->identity_entries, err);
    if (!st && strcmp(pare_coded_suffix(&c), suffix) != 0)
        st = pare_fail(err, PARE_ERR_INPUT, "its kind %d belongs into a tensor that ends in %s",
                       (int)h.kind, pare_coded_suffix(&c));
    if (!st && h.kind == PARE_CODED_IDENTITY) b->identity_entries -= h.rows * h.cols;
    if (!st && vector && w->rows != 1)
        st = pare_fail(err, PARE_ERR_INPUT, "%zu x %zu in the place of a vector", w->rows, w->cols);
    if (!st) st = check_source(b, name, &h, err);
    if (!st && h.kind == PARE_CODED_GROUPS) st = keep_integers(b, w, t, err);
    return st;
}

/* A weight that the file holds in another form than its numbers; *found: it does. */
static pare_status bind_coded(binder *b, bool *found, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    char full[128], where[160];
    const char *suffix = NULL;
    const st_tensor *t = NULL;
    const size_t n = find_coded(&t, &full, &suffix, b->file, name);
    *found = n > 0;
    if (!t) return PARE_OK;
    b->used++;
    if (t->dtype != PARE_U8 || t->ndim != 1 || n > 1 || st_find(b->file, name))
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor %s must be U8 with one dimension, in the place of numbers", full);
    const pare_status st = expand_coded(b, w, t, full, name, suffix, vector, err);
    if (!st || st == PARE_ERR_MEMORY) return st;
    snprintf(where, sizeof where, "tensor %s", full);
    pare_err_prefix(err, where);
    return st;
}

/* A weight's name in a file of this version. */
static const char *name_in_file(char (*buffer)[128], size_t version, const char *name)
{
    static const char *const words[][2] = {{"embedding.", "stem."}, {"head.", "top."}};
    for (size_t i = 0; i < 2 && version == 1; i++) {
        const size_t n = strlen(words[i][0]);
        if (strncmp(name, words[i][0], n) != 0) continue;
        snprintf(*buffer, sizeof *buffer, "%s%s", words[i][1], name + n);
        return *buffer;
    }
    return name;
}

/* Half precision is widened; files that pare writes are aligned, one written by hand may not be,
 * and is copied then. */
static pare_status bind_numbers(pare_model *m, pare_weight *w, const st_tensor *t, pare_err *err)
{
    const bool half = t->dtype == PARE_F16 || t->dtype == PARE_BF16;
    const size_t n = w->rows * w->cols;
    w->dtype = half ? PARE_F32 : t->dtype;
    w->data = t->data;
    const size_t size = pare_dtype_size(w->dtype);
    if (!half && (uintptr_t)t->data % size == 0) return PARE_OK;
    void *const copy = pare_alloc(m->arena, n, size);
    if (!copy) return pare_no_memory(err);
    if (!half) memcpy(copy, t->data, n * size);
    for (size_t i = 0; half && i < n; i++) {
        uint16_t h;
        memcpy(&h, t->data + i * sizeof h, sizeof h);
        ((float *)copy)[i] = t->dtype == PARE_F16 ? pare_f16_to_f32(h) : pare_bf16_to_f32(h);
    }
    w->data = copy;
    return PARE_OK;
}

static pare_status bind(void *self, const char *weight, pare_weight *w, bool vector, pare_err *err)
{
    binder *const b = self;
    char buffer[128], shape[128];
    const char *const name = name_in_file(&buffer, b->version, weight);
    const st_tensor *const t = st_find(b->file, name);
    bool found;
    const pare_status st = bind_coded(b, &found, name, w, vector, err);
    if (st || found || !t) return st;
    b->used++;
    if (t->dtype != PARE_F16 && t->dtype != PARE_BF16 && t->dtype != PARE_F32 &&
        t->dtype != PARE_F64)
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s is %s, must be F16, BF16, F32 or F64",
                         name, pare_dtype_name(t->dtype));
    if (t->ndim != (vector ? 1u : 2u))
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s is %s, must have %d dimension(s)", name,
                         pare_shape_text(shape, t->shape, t->ndim), vector ? 1 : 2);
    *w = (pare_weight){t->dtype, vector ? 1 : t->shape[0], t->shape[t->ndim - 1], NULL};
    if (w->rows == 0 || w->cols == 0)
        return pare_fail(err, PARE_ERR_INPUT, "tensor %s is %s: empty", name,
                         pare_shape_text(shape, t->shape, t->ndim));
    precision_count(&b->stored, t->dtype, w->rows * w->cols);
    if (w->rows > 1 && may_be_packed(b, name, vector) &&
        (t->dtype == PARE_F16 || t->dtype == PARE_BF16))
        return packed_halves(w, b->m->arena, t->data, w->rows, w->cols, t->dtype, err);
    return bind_numbers(b->m, w, t, err);
}

typedef struct name_search {
    const char *name;
    size_t version;
    bool found;
} name_search;

static pare_status match_name(void *self, const char *weight, pare_weight *w, bool vector,
                              pare_err *err)
{
    (void)w, (void)vector, (void)err;
    name_search *const s = self;
    char buffer[128];
    const char *const name = name_in_file(&buffer, s->version, weight);
    const size_t n = strlen(name);
    if (strncmp(s->name, name, n) != 0) return PARE_OK;
    s->found |= s->name[n] == '\0';
    for (size_t i = 0; pare_coded_suffixes[i]; i++)
        s->found |= strcmp(s->name + n, pare_coded_suffixes[i]) == 0;
    return PARE_OK;
}

/* A tensor of bytes, beside the weights; *out NULL: the file has none of that name. */
static pare_status bind_bytes(binder *b, const st_tensor **out, const char *name, pare_err *err)
{
    const st_tensor *const t = *out = st_find(b->file, name);
    if (!t) return PARE_OK;
    b->used++;
    if (t->dtype == PARE_U8 && t->ndim == 1) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "tensor %s must be U8 with one dimension", name);
}

static pare_status read_tensors(pare_model *m, const st_file *f, bool packed, pare_arena *scratch,
                                pare_err *err)
{
    binder b = {.m = m, .file = f, .scratch = scratch, .packed = packed};
    pare_status st = checksum_check(f->header, f->header_bytes, err);
    if (st) return st;
    /* The tensors have no holes between them, and the file ends where the last one ends. */
    size_t at = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (f->tensors[i].begin != at)
            return pare_fail(err, PARE_ERR_INPUT, "tensor %s begins at %zu, must begin at %zu",
                             f->tensors[i].name, f->tensors[i].begin, at);
        at = f->tensors[i].end;
    }
    const size_t whole = 8 + f->header_bytes + at, bytes = f->blob->bytes;
    if (bytes != whole)
        return pare_fail(err, PARE_ERR_INPUT, "the file has %zu bytes, must have %zu", bytes,
                         whole);
    if (!pare_mul(&b.identity_entries, bytes, PARE_CODED_PER_BYTE)) b.identity_entries = SIZE_MAX;
    m->ints = b.ints = pare_alloc(m->arena, f->n + 1, sizeof *b.ints);
    st = b.ints ? arch_read(m, &b.version, st_meta(f, "pare"), err) : pare_no_memory(err);
    if (!st) st = pare_model_each_weight(m, bind, &b, err);
    if (st) return st;
    m->precision = precision_of(&b.stored);
    const st_tensor *vocab, *shared;
    if ((st = bind_bytes(&b, &vocab, VOCAB, err)) ||
        (st = bind_bytes(&b, &shared, PARE_SHARED_TENSOR, err)))
        return st;
    if (vocab) {
        m->vocab = vocab->data;
        m->vocab_bytes = vocab->end - vocab->begin;
    }
    if (shared) {
        pare_embedding *const s = &m->embedding;
        st = pare_shared_rows_read(&s->rows, m->arena, shared->data, shared->end - shared->begin,
                                   s->vocab, s->table.rows, err);
        if (st) return st;
    }
    /* A tensor that no weight asked for would be lost in silence. */
    for (size_t i = 0; b.used != f->n && i < f->n; i++) {
        name_search s = {f->tensors[i].name, b.version, false};
        st = pare_model_each_weight(m, match_name, &s, err);
        if (st) return st;
        if (!s.found && strcmp(s.name, VOCAB) != 0 && strcmp(s.name, PARE_SHARED_TENSOR) != 0)
            return pare_fail(err, PARE_ERR_INPUT, "tensor %s has no place in this architecture",
                             s.name);
    }
    return PARE_OK;
}

pare_status model_file_read(pare_model **out, bool *ours, pare_blob *blob, bool packed,
                            pare_err *err)
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
        if (!(st = pare_model_keep(m, blob, err)))
            st = read_tensors(m, &file, packed, scratch, err);
    }
    pare_arena_free(scratch);
    if (st || !*ours) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}
