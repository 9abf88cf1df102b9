/* graph_file.c - graphs from .npz, in the three forms they are published in:
 *
 *   heterophilous-graphs  node_features [n,f], node_labels [n], edges [m,2], {train,val,test}_masks
 *   packed bits           features_packed [n,ceil(f/8)] with n_features instead of node_features
 *   gnn-benchmark CSR     adj_{data,indices,indptr,shape}, attr_{...}, labels [n]
 *
 * Nothing in the file is believed: every complaint names the member and the shapes. */
#include "base/array.h"
#include "graph_data.h"
#include "dataset.h"
#include <math.h>

typedef struct graph_reader {
    const pare_npz *npz;
    pare_graph_data *out;
    pare_arena *arena, *scratch;
} graph_reader;

#define ANY SIZE_MAX

static const char *size_text(char buf[24], size_t size)
{
    if (size == ANY)
        snprintf(buf, 24, "any");
    else
        snprintf(buf, 24, "%zu", size);
    return buf;
}

/* A member of the given shape (ANY: free) and, where asked, of whole numbers. */
static pare_status get(pare_array *out, const graph_reader *r, const char *key, bool whole,
                       size_t ndim, size_t rows, size_t cols, pare_err *err)
{
    const pare_status st = pare_npz_get(out, r->npz, key, err);
    if (st) return st;
    const size_t wanted[2] = {rows, cols};
    bool fits = out->ndim == ndim;
    for (size_t i = 0; fits && i < ndim; i++) fits = wanted[i] == ANY || out->shape[i] == wanted[i];
    if (!fits) {
        char have[128], row[24], col[24];
        return pare_fail(err, PARE_ERR_INPUT, "%s has the shape %s, expected [%s%s%s]", key,
                         pare_shape_text(have, out->shape, out->ndim),
                         ndim ? size_text(row, rows) : "", ndim > 1 ? ", " : "",
                         ndim > 1 ? size_text(col, cols) : "");
    }
    if (out->dtype == PARE_TEXT || (whole && !pare_array_is_integer(out)))
        return pare_fail(err, PARE_ERR_INPUT, "%s holds %s, expected %s", key,
                         pare_dtype_name(out->dtype), whole ? "integers" : "numbers");
    return PARE_OK;
}

/* A sparse matrix of the CSR form: data, indices and indptr, checked against one another. */
typedef struct sparse {
    size_t rows, cols, count;
    pare_array data, indices, indptr;
} sparse;

/* A sparse matrix whose first dimension is the number of nodes; `cols` may be ANY. */
static pare_status get_sparse(sparse *s, const graph_reader *r, const char *name, size_t cols,
                              pare_err *err)
{
    char key[32];
    pare_array shape;
    snprintf(key, sizeof key, "%s_shape", name);
    pare_status st = get(&shape, r, key, true, 1, 2, 0, err);
    if (st) return st;
    const int64_t rows = pare_array_i64(&shape, 0), width = pare_array_i64(&shape, 1);
    if (rows < 0 || (size_t)rows != r->out->graph.n || width < 0 || width > INT32_MAX ||
        (cols != ANY && (size_t)width != cols))
        return pare_fail(err, PARE_ERR_INPUT, "%s is [%lld, %lld], but there are %zu labels", key,
                         (long long)rows, (long long)width, r->out->graph.n);
    s->rows = (size_t)rows;
    s->cols = (size_t)width;
    snprintf(key, sizeof key, "%s_indptr", name);
    st = get(&s->indptr, r, key, true, 1, s->rows + 1, 0, err);
    if (st) return st;
    snprintf(key, sizeof key, "%s_indices", name);
    st = get(&s->indices, r, key, true, 1, ANY, 0, err);
    if (st) return st;
    s->count = s->indices.shape[0];
    snprintf(key, sizeof key, "%s_data", name);
    st = get(&s->data, r, key, false, 1, s->count, 0, err);
    if (st) return st;

    int64_t before = 0;
    for (size_t i = 0; i <= s->rows; i++) {
        const int64_t at = pare_array_i64(&s->indptr, i);
        if (at < before || (i == 0 && at != 0) || (uint64_t)at > s->count ||
            (i == s->rows && (uint64_t)at != s->count))
            return pare_fail(err, PARE_ERR_INPUT,
                             "%s_indptr: entry %zu is %lld after %lld (of %zu)", name, i,
                             (long long)at, (long long)before, s->count);
        before = at;
    }
    for (size_t i = 0; i < s->count; i++) {
        const int64_t col = pare_array_i64(&s->indices, i);
        if (col < 0 || (uint64_t)col >= s->cols)
            return pare_fail(err, PARE_ERR_INPUT, "%s_indices: entry %zu is %lld of %zu columns",
                             name, i, (long long)col, s->cols);
        if (!isfinite(pare_array_f64(&s->data, i)))
            return pare_fail(err, PARE_ERR_INPUT, "%s_data: entry %zu is %g", name, i,
                             pare_array_f64(&s->data, i));
    }
    return PARE_OK;
}

/* ---- features -------------------------------------------------------------------------------- */

static double *new_features(graph_reader *r, size_t features)
{
    size_t count;
    r->out->features = features;
    double *x = pare_mul(&count, r->out->graph.n, features)
                    ? pare_alloc(r->arena, count ? count : 1, sizeof *x)
                    : NULL;
    r->out->x = x;
    return x;
}

static pare_status dense_features(graph_reader *r, pare_err *err)
{
    static const char key[] = "node_features";
    pare_array a;
    const pare_status st = get(&a, r, key, false, 2, r->out->graph.n, ANY, err);
    if (st) return st;
    double *x = new_features(r, a.shape[1]);
    if (!x) return pare_no_memory(err);
    for (size_t i = 0; i < pare_array_count(&a); i++) {
        x[i] = pare_array_f64(&a, i);
        if (!isfinite(x[i]))
            return pare_fail(err, PARE_ERR_INPUT, "%s: [%zu, %zu] is %g", key, i / a.shape[1],
                             i % a.shape[1], x[i]);
    }
    return PARE_OK;
}

static pare_status packed_features(graph_reader *r, pare_err *err)
{
    pare_array bits, count;
    pare_status st = get(&count, r, "n_features", true, 0, 0, 0, err);
    if (st) return st;
    const int64_t features = pare_array_i64(&count, 0);
    if (features < 1 || features > INT32_MAX)
        return pare_fail(err, PARE_ERR_INPUT, "n_features is %lld", (long long)features);
    const size_t f = (size_t)features, n = r->out->graph.n;
    st = get(&bits, r, "features_packed", true, 2, n, (f + 7) / 8, err);
    if (st) return st;
    if (bits.dtype != PARE_U8)
        return pare_fail(err, PARE_ERR_INPUT, "features_packed holds %s, expected U8",
                         pare_dtype_name(bits.dtype));
    double *x = new_features(r, f);
    if (!x) return pare_no_memory(err);
    const uint8_t *b = bits.data;
    for (size_t i = 0; i < n; i++, b += bits.shape[1]) /* the first bit is the highest */
        for (size_t j = 0; j < f; j++) x[i * f + j] = b[j / 8] >> (7 - j % 8) & 1;
    return PARE_OK;
}

/* Zeros that one stored entry (or row) may claim: the word counts of papers have 250, and a file
 * of a few bytes must not ask for gigabytes. */
enum { MOST_ZEROS = 4096 };

static pare_status csr_features(graph_reader *r, pare_err *err)
{
    sparse s;
    const pare_status st = get_sparse(&s, r, "attr", ANY, err);
    if (st) return st;
    if (s.cols / MOST_ZEROS > (s.count + s.rows) / s.rows)
        return pare_fail(err, PARE_ERR_INPUT,
                         "attr_shape is [%zu, %zu], but attr has only %zu entries", s.rows, s.cols,
                         s.count);
    double *x = new_features(r, s.cols);
    if (!x) return pare_no_memory(err);
    for (size_t i = 0; i < s.rows; i++)
        for (int64_t e = pare_array_i64(&s.indptr, i); e < pare_array_i64(&s.indptr, i + 1); e++)
            x[i * s.cols + (size_t)pare_array_i64(&s.indices, (size_t)e)] +=
                pare_array_f64(&s.data, (size_t)e); /* entries given twice are summed */
    return PARE_OK;
}

/* ---- labels, edges, masks -------------------------------------------------------------------- */

static pare_status read_edges(graph_reader *r, bool csr, pare_err *err)
{
    const size_t n = r->out->graph.n;
    pare_array list;
    sparse s;
    pare_status st =
        csr ? get_sparse(&s, r, "adj", n, err) : get(&list, r, "edges", true, 2, ANY, 2, err);
    if (st) return st;
    const size_t most = csr ? s.count : list.shape[0];
    int64_t *edges = pare_alloc(r->scratch, most ? most : 1, 2 * sizeof *edges);
    if (!edges) return pare_no_memory(err);
    if (!csr) {
        for (size_t i = 0; i < 2 * most; i++) edges[i] = pare_array_i64(&list, i);
        st = pare_graph_from_edges(&r->out->graph, r->arena, n, edges, most, err);
        if (st) pare_err_prefix(err, "edges");
        return st;
    }
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        for (int64_t e = pare_array_i64(&s.indptr, i); e < pare_array_i64(&s.indptr, i + 1); e++) {
            if (pare_array_f64(&s.data, (size_t)e) == 0) continue; /* a stored zero is no edge */
            edges[2 * m] = (int64_t)i;
            edges[2 * m++ + 1] = pare_array_i64(&s.indices, (size_t)e);
        }
    return pare_graph_from_edges(&r->out->graph, r->arena, n, edges, m, err);
}

/* Each splits x n of 0/1; a single split may be written without its first dimension. */
static pare_status read_masks(graph_reader *r, pare_err *err)
{
    static const char *const keys[3] = {"train_masks", "val_masks", "test_masks"};
    const uint8_t **const to[3] = {&r->out->train, &r->out->val, &r->out->test};
    const size_t n = r->out->graph.n;
    bool any = false;
    for (size_t i = 0; i < 3; i++) any = any || pare_npz_has(r->npz, keys[i]);
    for (size_t k = 0; any && k < 3; k++) {
        const char *const key = keys[k];
        pare_array a;
        pare_status st = pare_npz_get(&a, r->npz, key, err);
        if (st) return st;
        st = a.ndim == 1 ? get(&a, r, key, true, 1, n, 0, err)
                         : get(&a, r, key, true, 2, r->out->splits ? r->out->splits : ANY, n, err);
        if (st) return st;
        const size_t count = pare_array_count(&a), splits = count / n;
        if (splits == 0 || (r->out->splits && splits != r->out->splits))
            return pare_fail(err, PARE_ERR_INPUT, "%s holds %zu splits, expected %zu", key, splits,
                             r->out->splits);
        uint8_t *mask = pare_alloc(r->arena, count, 1);
        if (!mask) return pare_no_memory(err);
        for (size_t i = 0; i < count; i++) {
            const int64_t v = pare_array_i64(&a, i);
            if (v != 0 && v != 1)
                return pare_fail(err, PARE_ERR_INPUT, "%s: entry %zu is %lld, expected 0 or 1", key,
                                 i, (long long)v);
            mask[i] = (uint8_t)v;
        }
        r->out->splits = splits;
        *to[k] = mask;
    }
    return PARE_OK;
}

static pare_status read_labels(graph_reader *r, const char *key, pare_err *err)
{
    pare_array a;
    const pare_status st = get(&a, r, key, true, 1, ANY, 0, err);
    if (st) return st;
    const size_t n = a.shape[0];
    if (n == 0 || n >= UINT32_MAX)
        return pare_fail(err, PARE_ERR_INPUT, "%s: a graph of %zu nodes", key, n);
    int64_t *labels = pare_alloc(r->arena, n, sizeof *labels), most = 0;
    if (!labels) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        labels[i] = pare_array_i64(&a, i);
        if (labels[i] < 0 || labels[i] >= INT32_MAX)
            return pare_fail(err, PARE_ERR_INPUT, "%s: node %zu has the label %lld", key, i,
                             (long long)labels[i]);
        if (labels[i] > most) most = labels[i];
    }
    r->out->graph.n = n;
    r->out->labels = labels;
    r->out->classes = (size_t)most + 1;
    return PARE_OK;
}

bool pare_npz_is_graph(const pare_npz *npz)
{
    return pare_npz_has(npz, "features_packed") || pare_npz_has(npz, "node_features") ||
           pare_npz_has(npz, "adj_indptr");
}

static pare_status load_graph(pare_graph_data *out, pare_arena *a, pare_blob *b, pare_err *err)
{
    *out = (pare_graph_data){0};
    pare_npz *npz = NULL;
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    pare_status st = pare_npz_open_blob(&npz, scratch, b, err);
    if (st == PARE_OK) {
        graph_reader r = {npz, out, a, scratch};
        const bool packed = pare_npz_has(npz, "features_packed");
        const bool dense = pare_npz_has(npz, "node_features"), csr = !dense && !packed;
        if (!pare_npz_is_graph(npz))
            st = pare_fail(
                err, PARE_ERR_INPUT,
                "no graph in it: neither node_features nor features_packed nor adj_indptr");
        if (!st) st = read_labels(&r, csr ? "labels" : "node_labels", err);
        if (!st)
            st = dense    ? dense_features(&r, err)
                 : packed ? packed_features(&r, err)
                          : csr_features(&r, err);
        if (!st) st = read_edges(&r, csr, err);
        if (!st) st = read_masks(&r, err);
        if (st) pare_err_name_file(err, b->path);
        pare_npz_close(npz);
    }
    pare_arena_free(scratch);
    return st;
}

pare_status pare_graph_load_files(pare_graph_data *out, pare_arena *a, const char *path,
                                  pare_files *files, pare_err *err)
{
    *out = (pare_graph_data){0};
    pare_blob *b = NULL;
    pare_status st = pare_files_read(files, &b, path, err);
    if (st == PARE_OK) st = load_graph(out, a, b, err);
    pare_blob_release(b);
    return st;
}

pare_status pare_graph_load(pare_graph_data *out, pare_arena *a, const char *path, pare_err *err)
{
    *out = (pare_graph_data){0};
    pare_blob *b = NULL;
    pare_status st = pare_blob_open(&b, path, err);
    if (st == PARE_OK) st = load_graph(out, a, b, err);
    pare_blob_release(b);
    return st;
}
