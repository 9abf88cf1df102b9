/* A data set from a file, by its extension. */
#include "base/array.h"
#include "base/support.h"
#include "graph_data.h"
#include "name_file.h"
#include "dataset.h"
#include <math.h>

static bool ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), t = strlen(tail);
    return n >= t && strcmp(s + n - t, tail) == 0;
}

/* ---- a graph: one input, targets where the test mask is set ------------------------------- */

static const int64_t *masked_targets(pare_arena *a, const pare_graph_data *d, const uint8_t *test)
{
    int64_t *target = pare_alloc(a, d->graph.n, sizeof *target);
    for (size_t i = 0; target && i < d->graph.n; i++) target[i] = test[i] ? d->labels[i] : -1;
    return target;
}

static pare_status graph_gather(pare_gather *g, const char *path, size_t split, pare_err *err)
{
    const pare_model *m = g->model;
    pare_graph_data *d = pare_alloc(g->arena, 1, sizeof *d);
    if (!d) return pare_no_memory(err);
    const uint8_t *train, *val, *test;
    pare_status st = pare_graph_load_files(d, g->arena, path, g->files, err);
    if (st == PARE_OK) st = pare_graph_masks(&train, &val, &test, g->arena, d, split, err);
    if (st) return st;
    if (m->stem.ids)
        return pare_fail(err, PARE_ERR_INPUT,
                         "the file holds a graph; this model takes token ids 0 to %zu",
                         m->stem.vocab - 1);
    if (m->stem.width != d->features)
        return pare_fail(err, PARE_ERR_INPUT,
                         "the nodes have %zu features; this model takes vectors of %zu numbers",
                         d->features, m->stem.width);
    if (m->top.pool != PARE_POOL_NONE)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a label per node needs an output per token; this model pools");
    const int64_t *target = masked_targets(g->arena, d, test);
    if (!target) return pare_no_memory(err);
    const pare_input in = {.batch = 1,
                           .tokens = d->graph.n,
                           .width = d->features,
                           .x = d->x,
                           .graph = m->pattern.kind == PARE_GRAPH ? &d->graph : NULL};
    return pare_gather_add(g, in, target, err);
}

/* ---- {inputs, targets or values}
 * --------------------------------------------------------------------- */

typedef struct rows {
    size_t n, tokens, width, targets; /* targets: per row */
    int64_t *ids, *target;
    double *x;
    double *value; /* NULL: there are targets, or nothing */
    size_t nvalues;
} rows;

static pare_status read_inputs(rows *r, pare_arena *a, const pare_array *in, const pare_model *m,
                               pare_err *err)
{
    char shape[128];
    const size_t ndim = m->stem.ids ? 2 : 3;
    if (in->ndim != ndim || in->dtype == PARE_TEXT || (m->stem.ids && !pare_array_is_integer(in)) ||
        (!m->stem.ids && in->shape[2] != m->stem.width)) {
        if (!m->stem.ids && in->ndim == 2 && pare_array_is_integer(in))
            return pare_fail(err, PARE_ERR_INPUT,
                             "the file holds token ids; this model takes vectors of %zu numbers "
                             "(or a graph whose nodes have %zu features)",
                             m->stem.width, m->stem.width);
        return pare_fail(err, PARE_ERR_INPUT,
                         "inputs is %s %s, the model takes %s of %zu: [n, T%s]",
                         pare_dtype_name(in->dtype), pare_shape_text(shape, in->shape, in->ndim),
                         m->stem.ids ? "ids" : "vectors",
                         m->stem.ids ? m->stem.vocab : m->stem.width, m->stem.ids ? "" : ", d");
    }
    r->n = in->shape[0];
    r->tokens = in->shape[1];
    r->width = m->stem.ids ? 0 : m->stem.width;
    if (m->stem.ids)
        r->ids = pare_array_ids(a, in);
    else
        r->x = pare_array_numbers(a, in);
    return r->ids || r->x ? PARE_OK : pare_no_memory(err);
}

static pare_status read_targets(rows *r, pare_arena *a, const pare_array *t, const pare_model *m,
                                pare_err *err)
{
    char have[128], want[128];
    const size_t shape[2] = {r->n, r->tokens}, ndim = m->top.pool == PARE_POOL_NONE ? 2 : 1;
    if (t->ndim != ndim || memcmp(t->shape, shape, ndim * sizeof *shape) != 0 ||
        !pare_array_is_integer(t))
        return pare_fail(err, PARE_ERR_INPUT, "targets is %s %s, expected integers %s",
                         pare_dtype_name(t->dtype), pare_shape_text(have, t->shape, t->ndim),
                         pare_shape_text(want, shape, ndim));
    r->target = pare_array_ids(a, t);
    return r->target ? PARE_OK : pare_no_memory(err);
}

/* Data without targets serve to run and to measure on: no row counts. */
static pare_status no_targets(rows *r, pare_arena *a, pare_err *err)
{
    size_t count;
    if (!pare_mul(&count, r->n, r->targets)) return pare_no_memory(err);
    r->target = pare_alloc(a, count ? count : 1, sizeof *r->target);
    if (!r->target) return pare_no_memory(err);
    for (size_t i = 0; i < count; i++) r->target[i] = -1;
    return PARE_OK;
}

/* What training on values puts in front of every row of vectors: zeros, where the answer is read.
 */
static pare_status lead_with_zeros(rows *r, pare_arena *a, pare_err *err)
{
    size_t tokens, row, all;
    if (!pare_add(&tokens, r->tokens, 1) || !pare_mul(&row, tokens, r->width) ||
        !pare_mul(&all, row, r->n))
        return pare_no_memory(err);
    double *const x = pare_alloc(a, all ? all : 1, sizeof *x);
    if (!x) return pare_no_memory(err);
    for (size_t i = 0; i < r->n; i++)
        memcpy(x + i * row + r->width, r->x + i * (row - r->width), (row - r->width) * sizeof *x);
    r->x = x;
    r->tokens = tokens;
    return PARE_OK;
}

static pare_status read_values(rows *r, pare_arena *a, const pare_array *v, const pare_model *m,
                               pare_err *err)
{
    char shape[128];
    const size_t k = v->ndim == 2 ? v->shape[1] : 1, want = pare_model_outputs(m);
    if (m->top.pool == PARE_POOL_NONE)
        return pare_fail(err, PARE_ERR_INPUT,
                         "values are for inputs as wholes; this model answers at every token");
    if ((v->ndim != 1 && v->ndim != 2) || v->shape[0] != r->n || k != want || v->dtype == PARE_TEXT)
        return pare_fail(err, PARE_ERR_INPUT, "values is %s %s, the model gives [%zu, %zu]",
                         pare_dtype_name(v->dtype), pare_shape_text(shape, v->shape, v->ndim), r->n,
                         want);
    r->nvalues = k;
    r->value = pare_array_numbers(a, v);
    if (!r->value) return pare_no_memory(err);
    for (size_t i = 0; i < r->n * k; i++)
        if (!isfinite(r->value[i]))
            return pare_fail(err, PARE_ERR_INPUT, "values: row %zu holds %g", i / k, r->value[i]);
    return r->x ? lead_with_zeros(r, a, err) : PARE_OK;
}

static pare_status read_answers(rows *r, pare_arena *a, const pare_npz *npz, const pare_model *m,
                                pare_err *err)
{
    pare_array v;
    pare_status st = PARE_OK;
    r->targets = m->top.pool == PARE_POOL_NONE ? r->tokens : 1;
    if (pare_npz_has(npz, "targets")) {
        st = pare_npz_get(&v, npz, "targets", err);
        return st ? st : read_targets(r, a, &v, m, err);
    }
    if (pare_npz_has(npz, "values")) st = pare_npz_get(&v, npz, "values", err);
    if (!st && pare_npz_has(npz, "values")) st = read_values(r, a, &v, m, err);
    return st ? st : no_targets(r, a, err);
}

static pare_status arrays_gather(pare_gather *g, pare_dataset *out, const pare_npz *npz,
                                 pare_err *err)
{
    const pare_model *m = g->model;
    rows r = {0};
    pare_array in;
    pare_status st = pare_npz_get(&in, npz, "inputs", err);
    if (st == PARE_OK) st = read_inputs(&r, g->arena, &in, m, err);
    if (st == PARE_OK) st = read_answers(&r, g->arena, npz, m, err);
    if (st) return st;
    out->task = r.value                         ? PARE_TASK_VALUES
                : m->top.pool == PARE_POOL_NONE ? PARE_TASK_TOKENS
                                                : PARE_TASK_SENTENCE;
    out->value = r.value;
    out->nvalues = r.nvalues;
    for (size_t i = 0; st == PARE_OK && i < r.n; i++) {
        const pare_input one = {.batch = 1,
                                .tokens = r.tokens,
                                .width = r.width,
                                .ids = r.ids ? r.ids + i * r.tokens : NULL,
                                .x = r.x ? r.x + i * r.tokens * r.width : NULL};
        st = pare_gather_add(g, one, r.target + i * r.targets, err);
    }
    if (st == PARE_OK && r.n == 0) return pare_fail(err, PARE_ERR_INPUT, "inputs has no rows");
    return st;
}

static pare_status npz_gather(pare_gather *g, pare_dataset *out, const char *path, size_t split,
                              pare_err *err)
{
    pare_blob *b = NULL;
    pare_npz *npz = NULL;
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    pare_status st = pare_files_read(g->files, &b, path, err);
    if (st == PARE_OK) st = pare_npz_open_blob(&npz, scratch, b, err);
    pare_blob_release(b);
    if (st == PARE_OK && pare_npz_has(npz, "inputs")) {
        st = arrays_gather(g, out, npz, err);
    } else if (st == PARE_OK && g->model->stem.ids && !pare_npz_is_graph(npz)) {
        st = pare_fail(err, PARE_ERR_INPUT,
                       "no array `inputs` in it, and the model takes ids: inputs [n, T], with "
                       "`targets` where they are known");
    } else if (st == PARE_OK) {
        out->task = PARE_TASK_NODES;
        st = graph_gather(g, path, split, err);
    }
    pare_npz_close(npz);
    pare_arena_free(scratch);
    return st;
}

/* ---- an array alone: no targets -------------------------------------------------------------- */

/* Vectors [B, T, d] or [T, d]; for a model that pools ids [B, T] or [T]. */
static pare_status plain_gather(pare_gather *g, const pare_array *a, pare_err *err)
{
    char shape[128];
    const pare_model *const m = g->model;
    const size_t n = a->ndim, own = m->stem.ids ? 1 : 2, d = m->stem.ids ? 1 : m->stem.width;
    const bool kind = m->stem.ids
                          ? (n == 1 || n == 2) && pare_array_is_integer(a)
                          : (n == 2 || n == 3) && a->dtype != PARE_TEXT && a->shape[n - 1] == d;
    if (!kind)
        return pare_fail(err, PARE_ERR_INPUT, "the array is %s %s, the model takes %s of %zu: %s",
                         pare_dtype_name(a->dtype), pare_shape_text(shape, a->shape, n),
                         m->stem.ids ? "ids" : "vectors", m->stem.ids ? m->stem.vocab : d,
                         m->stem.ids ? "[T] or [B, T]" : "[T, d] or [B, T, d]");
    rows r = {.n = n > own ? a->shape[0] : 1, .tokens = a->shape[n - own]};
    r.targets = m->top.pool == PARE_POOL_NONE ? r.tokens : 1;
    if (m->stem.ids)
        r.ids = pare_array_ids(g->arena, a);
    else
        r.x = pare_array_numbers(g->arena, a);
    if (!r.ids && !r.x) return pare_no_memory(err);
    pare_status st = no_targets(&r, g->arena, err);
    for (size_t i = 0; st == PARE_OK && i < r.n; i++) {
        const pare_input one = {.batch = 1,
                                .tokens = r.tokens,
                                .width = r.x ? d : 0,
                                .ids = r.ids ? r.ids + i * r.tokens : NULL,
                                .x = r.x ? r.x + i * r.tokens * d : NULL};
        st = pare_gather_add(g, one, r.target + i * r.targets, err);
    }
    return st;
}

/* ---- ids as text ---------------------------------------------------------------------------- */

static pare_status npy_gather(pare_gather *g, const char *path, size_t window, pare_err *err)
{
    pare_blob *b = NULL;
    pare_array a;
    char shape[128];
    pare_status st = pare_files_read(g->files, &b, path, err);
    if (st == PARE_OK) st = pare_npy_read_blob(&a, g->arena, b, err);
    pare_blob_release(b);
    if (st == PARE_OK && (!g->model->stem.ids || g->model->top.pool != PARE_POOL_NONE))
        return plain_gather(g, &a, err);
    if (st == PARE_OK) st = pare_window_of(&window, g->model, window, err);
    if (st) return st;
    if ((a.ndim != 1 && a.ndim != 2) || !pare_array_is_integer(&a))
        return pare_fail(err, PARE_ERR_INPUT, "the array is %s %s, expected ids [T] or [B, T]",
                         pare_dtype_name(a.dtype), pare_shape_text(shape, a.shape, a.ndim));
    const int64_t *ids = pare_array_ids(g->arena, &a);
    if (!ids) return pare_no_memory(err);
    const size_t texts = a.ndim == 2 ? a.shape[0] : 1, tokens = a.shape[a.ndim - 1];
    for (size_t i = 0; st == PARE_OK && i < texts; i++)
        st = pare_gather_windows(g, ids + i * tokens, tokens, window, err);
    if (st == PARE_OK && g->n == 0)
        return pare_fail(err, PARE_ERR_INPUT, "ids %s: no row has two tokens",
                         pare_shape_text(shape, a.shape, a.ndim));
    return st;
}

/* Every .npz of a folder, in the order of their names. */
static pare_status folder_gather(pare_gather *g, pare_dataset *out, const char *folder,
                                 size_t split, pare_err *err)
{
    char **names = NULL;
    size_t n = 0, found = 0;
    pare_status st = pare_folder_list(&names, &n, g->arena, folder, err);
    for (size_t i = 0; st == PARE_OK && i < n; i++) {
        if (!ends_with(names[i], ".npz")) continue;
        const char *const path = pare_sprintf(g->arena, "%s/%s", folder, names[i]);
        const pare_task before = out->task;
        st = path ? npz_gather(g, out, path, split, err) : pare_no_memory(err);
        if (st == PARE_OK && found++ > 0 && out->task != before)
            st = pare_fail(err, PARE_ERR_INPUT, "not the same kind of data as the files before it");
        if (st != PARE_OK) pare_blame(err, names[i]);
    }
    if (st == PARE_OK && found == 0) st = pare_fail(err, PARE_ERR_INPUT, "no .npz in the folder");
    return st;
}

static pare_status gather(pare_gather *g, pare_dataset *out, const char *path, size_t split,
                          size_t window, pare_err *err)
{
    bool folder = false;
    out->split = split;
    const pare_status st = pare_files_is_dir(g->files, &folder, path, err);
    if (st) return st;
    if (folder) return folder_gather(g, out, path, split, err);
    if (ends_with(path, ".npz")) return npz_gather(g, out, path, split, err);
    if (ends_with(path, ".tsv")) {
        out->task = PARE_TASK_SENTENCE;
        return pare_tsv_gather(g, &out->skipped, path, err);
    }
    out->task = PARE_TASK_TEXT;
    if (ends_with(path, ".txt")) return pare_text_gather(g, path, window, err);
    if (ends_with(path, ".npy")) return npy_gather(g, path, window, err);
    return pare_fail(err, PARE_ERR_INPUT, "data are read from .npz, .txt, .tsv and .npy");
}

pare_status pare_dataset_load_files(pare_dataset *out, pare_arena *a, const pare_model *m,
                                    const char *path, size_t split, size_t window,
                                    pare_files *files, pare_err *err)
{
    *out = (pare_dataset){0};
    pare_gather g = {.arena = a, .model = m, .files = files};
    const pare_status st = gather(&g, out, path, split, window, err);
    if (st) {
        pare_blame(err, path);
        return st;
    }
    out->inputs = (pare_inputs){g.n, g.in};
    out->target = g.target;
    out->notes = g.notes;
    return PARE_OK;
}

pare_status pare_dataset_load(pare_dataset *out, pare_arena *a, const pare_model *m,
                              const char *path, size_t split, size_t window, pare_err *err)
{
    *out = (pare_dataset){0};
    pare_files *const files = pare_files_new_unhashed();
    if (!files) return pare_no_memory(err);
    const pare_status st = pare_dataset_load_files(out, a, m, path, split, window, files, err);
    pare_files_free(files);
    return st;
}
