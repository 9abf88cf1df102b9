/* dataset.c - a data set from a file, by its extension. */
#include "model/inputs.h"
#include "base/array.h"
#include "base/support.h"
#include "graph_data.h"
#include "dataset.h"
#include <math.h>
#include <string.h>

static bool ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), t = strlen(tail);
    return n >= t && strcmp(s + n - t, tail) == 0;
}

/* ---- a graph: one input, targets where the test mask is set ---------------------------------- */

static pare_status read_graph(pare_data_reader *r, const char *path)
{
    const pare_model *m = r->model;
    const uint8_t *train, *val, *test;
    pare_graph_data *d = pare_alloc(r->arena, 1, sizeof *d);
    if (!d) return pare_no_memory(r->err);
    r->out->task = PARE_TASK_NODES;
    pare_status st = pare_graph_load_files(d, r->arena, path, r->files, r->err);
    if (st == PARE_OK)
        st = pare_graph_masks(&train, &val, &test, r->arena, d, r->out->split, r->err);
    if (st) return st;
    if (m->embedding.ids)
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "the file holds a graph; this model takes token ids 0 to %zu",
                         m->embedding.vocab - 1);
    if (m->embedding.width != d->features)
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "the nodes have %zu features; this model takes vectors of %zu numbers",
                         d->features, m->embedding.width);
    if (m->head.pool != PARE_POOL_NONE)
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "a label per node needs an output per token; this model pools");
    int64_t *target = pare_alloc(r->arena, d->graph.n, sizeof *target);
    if (!target) return pare_no_memory(r->err);
    for (size_t i = 0; i < d->graph.n; i++) target[i] = test[i] ? d->labels[i] : -1;
    const pare_input in = {.batch = 1,
                           .tokens = d->graph.n,
                           .width = d->features,
                           .x = d->x,
                           .graph = m->pattern.kind == PARE_GRAPH ? &d->graph : NULL};
    return pare_data_add(r, in, target);
}

/* ---- arrays: {inputs, targets or values}, or inputs alone ------------------------------------ */

/* Adds every sequence of the batch `all` with its targets. NULL: data without targets serve to run
 * and to measure on, and no row counts. */
static pare_status add_batch(pare_data_reader *r, const pare_input *all, const int64_t *target)
{
    const size_t targets = r->model->head.pool == PARE_POOL_NONE ? all->tokens : 1;
    pare_status st = PARE_OK;
    if (!target) {
        size_t count;
        if (!pare_mul(&count, all->batch, targets)) return pare_no_memory(r->err);
        int64_t *const none = pare_alloc(r->arena, count ? count : 1, sizeof *none);
        if (!none) return pare_no_memory(r->err);
        for (size_t i = 0; i < count; i++) none[i] = -1;
        target = none;
    }
    for (size_t i = 0; st == PARE_OK && i < all->batch; i++) {
        st = pare_data_add(r, pare_input_sequence(all, i), target + i * targets);
    }
    return st;
}

/* The values that the outputs are to meet. Training on values puts a row of zeros before every
 * sequence of vectors, where the answer is read: so does this. */
static pare_status read_values(pare_data_reader *r, pare_input *all, const pare_npz *npz)
{
    char shape[128];
    pare_array v;
    const pare_status st = pare_npz_get(&v, npz, "values", r->err);
    if (st) return st;
    const size_t k = v.ndim == 2 ? v.shape[1] : 1, want = pare_model_outputs(r->model);
    if (r->model->head.pool == PARE_POOL_NONE)
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "values are for inputs as wholes; this model answers at every token");
    if ((v.ndim != 1 && v.ndim != 2) || v.shape[0] != all->batch || k != want ||
        v.dtype == PARE_TEXT)
        return pare_fail(r->err, PARE_ERR_INPUT, "values is %s %s, the model gives [%zu, %zu]",
                         pare_dtype_name(v.dtype), pare_shape_text(shape, v.shape, v.ndim),
                         all->batch, want);
    double *const value = pare_array_numbers(r->arena, &v);
    if (!value) return pare_no_memory(r->err);
    for (size_t i = 0; i < all->batch * k; i++)
        if (!isfinite(value[i]))
            return pare_fail(r->err, PARE_ERR_INPUT, "values: row %zu holds %g", i / k, value[i]);
    r->out->task = PARE_TASK_VALUES;
    r->out->value = value;
    r->out->nvalues = k;
    if (!all->x) return PARE_OK;

    size_t tokens, row, total;
    if (!pare_add(&tokens, all->tokens, 1) || !pare_mul(&row, tokens, all->width) ||
        !pare_mul(&total, row, all->batch))
        return pare_no_memory(r->err);
    double *const x = pare_alloc(r->arena, total ? total : 1, sizeof *x);
    if (!x) return pare_no_memory(r->err);
    const size_t given = row - all->width;
    for (size_t i = 0; i < all->batch; i++)
        memcpy(x + i * row + all->width, all->x + i * given, given * sizeof *x);
    all->x = x;
    all->tokens = tokens;
    return PARE_OK;
}

static pare_status read_arrays(pare_data_reader *r, const pare_npz *npz)
{
    const pare_model *m = r->model;
    const bool ids = m->embedding.ids, per_token = m->head.pool == PARE_POOL_NONE;
    char have[128], want[128];
    pare_array in, t;
    pare_status st = pare_npz_get(&in, npz, "inputs", r->err);
    if (st) return st;
    if (!ids && in.ndim == 2 && pare_array_is_integer(&in))
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "the file holds token ids; this model takes vectors of %zu numbers "
                         "(or a graph whose nodes have %zu features)",
                         m->embedding.width, m->embedding.width);
    if (in.ndim != (ids ? 2 : 3) || in.dtype == PARE_TEXT || (ids && !pare_array_is_integer(&in)) ||
        (!ids && in.shape[2] != m->embedding.width))
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "inputs is %s %s, the model takes %s of %zu: [n, T%s]",
                         pare_dtype_name(in.dtype), pare_shape_text(have, in.shape, in.ndim),
                         ids ? "ids" : "vectors", ids ? m->embedding.vocab : m->embedding.width,
                         ids ? "" : ", d");
    pare_input all = {
        .batch = in.shape[0], .tokens = in.shape[1], .width = ids ? 0 : m->embedding.width};
    st = pare_input_fill(&all, r->arena, &in, m, r->err);
    if (st) return st;

    int64_t *target = NULL;
    r->out->task = per_token ? PARE_TASK_TOKENS : PARE_TASK_SENTENCE;
    r->out->value = NULL;
    r->out->nvalues = 0;
    if (pare_npz_has(npz, "targets")) {
        const size_t shape[2] = {all.batch, all.tokens}, ndim = per_token ? 2 : 1;
        st = pare_npz_get(&t, npz, "targets", r->err);
        if (st) return st;
        if (t.ndim != ndim || memcmp(t.shape, shape, ndim * sizeof *shape) != 0 ||
            !pare_array_is_integer(&t))
            return pare_fail(r->err, PARE_ERR_INPUT, "targets is %s %s, expected integers %s",
                             pare_dtype_name(t.dtype), pare_shape_text(have, t.shape, t.ndim),
                             pare_shape_text(want, shape, ndim));
        target = pare_array_ids(r->arena, &t);
        if (!target) return pare_no_memory(r->err);
    } else if (pare_npz_has(npz, "values")) {
        st = read_values(r, &all, npz);
        if (st) return st;
    }
    st = add_batch(r, &all, target);
    if (st == PARE_OK && all.batch == 0)
        return pare_fail(r->err, PARE_ERR_INPUT, "inputs has no rows");
    return st;
}

static pare_status read_npz(pare_data_reader *r, const char *path)
{
    pare_blob *b = NULL;
    pare_npz *npz = NULL;
    const pare_mark mark = pare_arena_mark(r->scratch);
    pare_status st = pare_files_read(r->files, &b, path, r->err);
    if (st == PARE_OK) st = pare_npz_open_blob(&npz, r->scratch, b, r->err);
    pare_blob_release(b);
    if (st == PARE_OK && pare_npz_has(npz, "inputs"))
        st = read_arrays(r, npz);
    else if (st == PARE_OK && r->model->embedding.ids && !pare_npz_is_graph(npz))
        st = pare_fail(r->err, PARE_ERR_INPUT,
                       "no array `inputs` in it, and the model takes ids: inputs [n, T], with "
                       "`targets` where they are known");
    else if (st == PARE_OK)
        st = read_graph(r, path);
    pare_npz_close(npz);
    pare_arena_reset(r->scratch, mark);
    return st;
}

/* Every .npz of a folder, in the order of their names. */
static pare_status read_folder(pare_data_reader *r, const char *folder)
{
    char **names = NULL;
    size_t n = 0, found = 0;
    pare_status st = pare_folder_list(&names, &n, r->arena, folder, r->err);
    for (size_t i = 0; st == PARE_OK && i < n; i++) {
        if (!ends_with(names[i], ".npz")) continue;
        const char *const path = pare_sprintf(r->arena, "%s/%s", folder, names[i]);
        const pare_task_kind before = r->out->task;
        st = path ? read_npz(r, path) : pare_no_memory(r->err);
        if (st == PARE_OK && found++ > 0 && r->out->task != before)
            st = pare_fail(r->err, PARE_ERR_INPUT,
                           "not the same kind of data as the files before it");
        if (st != PARE_OK) pare_err_name_file(r->err, names[i]);
    }
    if (st == PARE_OK && found == 0)
        st = pare_fail(r->err, PARE_ERR_INPUT, "no .npz in the folder");
    return st;
}

/* Ids [T] or [B, T] are text for a model with an output per token. Others have no targets: for a
 * model that pools ids, else vectors [T, d] or [B, T, d]. */
static pare_status read_npy(pare_data_reader *r, const char *path)
{
    const pare_model *const m = r->model;
    const bool ids = m->embedding.ids, text = ids && m->head.pool == PARE_POOL_NONE;
    const size_t own = ids ? 1 : 2; /* dimensions of one sequence */
    pare_blob *b = NULL;
    pare_array a;
    char shape[128];
    pare_status st = pare_files_read(r->files, &b, path, r->err);
    if (st == PARE_OK) st = pare_npy_read_blob(&a, r->arena, b, r->err);
    pare_blob_release(b);
    if (st == PARE_OK && text) st = pare_data_window(r);
    if (st) return st;
    if ((a.ndim != own && a.ndim != own + 1) ||
        (ids ? !pare_array_is_integer(&a)
             : a.dtype == PARE_TEXT || a.shape[a.ndim - 1] != m->embedding.width)) {
        pare_shape_text(shape, a.shape, a.ndim);
        if (text)
            return pare_fail(r->err, PARE_ERR_INPUT,
                             "the array is %s %s, expected ids [T] or [B, T]",
                             pare_dtype_name(a.dtype), shape);
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "the array is %s %s, the model takes %s of %zu: %s",
                         pare_dtype_name(a.dtype), shape, ids ? "ids" : "vectors",
                         ids ? m->embedding.vocab : m->embedding.width,
                         ids ? "[T] or [B, T]" : "[T, d] or [B, T, d]");
    }
    pare_input all = {.batch = a.ndim > own ? a.shape[0] : 1,
                      .tokens = a.shape[a.ndim - own],
                      .width = ids ? 0 : m->embedding.width};
    st = pare_input_fill(&all, r->arena, &a, m, r->err);
    if (st || !text) return st ? st : add_batch(r, &all, NULL);
    for (size_t i = 0; st == PARE_OK && i < all.batch; i++)
        st = pare_data_add_windows(r, all.ids + i * all.tokens, all.tokens);
    if (st == PARE_OK && r->n == 0)
        return pare_fail(r->err, PARE_ERR_INPUT, "ids %s: no row has two tokens",
                         pare_shape_text(shape, a.shape, a.ndim));
    return st;
}

/* ---- by extension ---------------------------------------------------------------------------- */

/* How texts are stored in a file of that name; false: they are not. */
static bool is_text(pare_text_format *format, const char *path)
{
    static const char *const ends[] = {".txt", ".csv", ".tsv", ".jsonl"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(path, ends[i])) return *format = (pare_text_format)i, true;
    return false;
}

pare_status pare_dataset_load_files(pare_dataset *out, pare_arena *a, const pare_model *m,
                                    const char *path, const pare_data_opts *opts, pare_files *files,
                                    pare_err *err)
{
    static const pare_data_opts usual = PARE_DATA_OPTS_DEFAULT;
    const pare_data_opts *const o = opts ? opts : &usual;
    *out = (pare_dataset){.split = o->split};
    pare_data_reader r = {.arena = a,
                          .scratch = pare_arena_new(),
                          .err = err,
                          .files = files,
                          .model = m,
                          .out = out,
                          .window = o->window};
    pare_text_format format = PARE_FORMAT_TXT;
    size_t n = 0;
    bool folder = false;
    const bool self = pare_data_is_self(path, &n);
    pare_status st = r.scratch ? PARE_OK : pare_no_memory(err);
    if (st == PARE_OK && !self) st = pare_files_is_dir(files, &folder, path, err);
    const bool text = !folder && is_text(&format, path);
    if (st == PARE_OK && o->column && !(text && format != PARE_FORMAT_TXT))
        st = pare_fail(err, PARE_ERR_USAGE, "column: only .csv, .tsv and .jsonl have columns");
    if (st == PARE_OK) {
        out->task = PARE_TASK_TEXT; /* of others than text: by their content */
        st = self                      ? pare_data_write_texts(&r, n, o)
             : folder                  ? read_folder(&r, path)
             : is_text(&format, path)  ? pare_data_read_texts(&r, path, format, o)
             : ends_with(path, ".npz") ? read_npz(&r, path)
             : ends_with(path, ".npy")
                 ? read_npy(&r, path)
                 : pare_fail(err, PARE_ERR_INPUT,
                             "data are read from .txt, .csv, .tsv, .jsonl, .npy and .npz");
    }
    pare_arena_free(r.scratch);
    if (st) {
        pare_err_name_file(err, path);
        return st;
    }
    out->inputs = (pare_inputs){r.n, r.in};
    out->target = r.target;
    return PARE_OK;
}

pare_status pare_dataset_load(pare_dataset *out, pare_arena *a, const pare_model *m,
                              const char *path, const pare_data_opts *opts, pare_err *err)
{
    *out = (pare_dataset){0};
    pare_files *const files = pare_files_new_unhashed();
    if (!files) return pare_no_memory(err);
    const pare_status st = pare_dataset_load_files(out, a, m, path, opts, files, err);
    pare_files_free(files);
    return st;
}
