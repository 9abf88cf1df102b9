/* safetensors.c - the safetensors container: 8 bytes of header length (little endian), a JSON
 * header, the data. All of it is a claim until it is checked against the size of the file. */
#include "safetensors.h"

#include "base/json.h"
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES     8u
#define MAX_HEADER_BYTES ((size_t)100 * 1000 * 1000) /* the limit of the format's own reader */

bool st_looks_like(const pare_blob *b)
{
    return b->bytes > LENGTH_BYTES && b->data[LENGTH_BYTES] == '{';
}

/* A whole number from 0 to 2^53: what a double carries exactly. */
static bool get_whole(size_t *out, const cJSON *item)
{
    if (!cJSON_IsNumber(item)) return false;
    const double v = item->valuedouble;
    if (!(v >= 0 && v <= 0x1p53) || v != (double)(uint64_t)v) return false;
    *out = (size_t)v;
    return true;
}

static pare_status read_tensor(st_tensor *t, pare_arena *a, const cJSON *entry, size_t data_bytes,
                               const uint8_t *data, pare_err *err)
{
    static const pare_dtype known[] = {PARE_BOOL, PARE_U8,  PARE_I8,  PARE_U16, PARE_I16,
                                       PARE_U32,  PARE_I32, PARE_U64, PARE_I64, PARE_F16,
                                       PARE_BF16, PARE_F32, PARE_F64};
    const size_t count = sizeof known / sizeof *known;
    const char *dtype = NULL;
    const cJSON *list = NULL, *item = NULL;
    char text[128];
    t->name = pare_strdup(a, entry->string);
    if (!t->name) return pare_no_memory(err);
    if (!cJSON_IsObject(entry))
        return pare_fail(err, PARE_ERR_INPUT, "tensor '%s' is not described by an object", t->name);

    pare_status st = pare_json_string(&dtype, entry, "dtype", err);
    if (st) return st;
    size_t i = 0;
    while (i < count && strcmp(dtype, pare_dtype_name(known[i])) != 0) i++;
    if (i == count)
        return pare_fail(err, PARE_ERR_INPUT, "tensor '%s': unknown dtype '%.40s'", t->name, dtype);
    t->dtype = known[i];

    if ((st = pare_json_array(&list, entry, "shape", err))) return st;
    cJSON_ArrayForEach(item, list)
    {
        if (t->ndim == PARE_MAX_DIMS)
            return pare_fail(err, PARE_ERR_INPUT, "tensor '%s': more than %d dimensions", t->name,
                             PARE_MAX_DIMS);
        if (!get_whole(&t->shape[t->ndim], item))
            return pare_fail(err, PARE_ERR_INPUT,
                             "tensor '%s': entry %zu of shape is not a whole number", t->name,
                             t->ndim);
        t->ndim++;
    }

    if ((st = pare_json_array(&list, entry, "data_offsets", err))) return st;
    const cJSON *const first = list->child, *const second = first ? first->next : NULL;
    if (!second || second->next || !get_whole(&t->begin, first) || !get_whole(&t->end, second))
        return pare_fail(err, PARE_ERR_INPUT, "tensor '%s': data_offsets are not two whole numbers",
                         t->name);
    if (t->begin > t->end)
        return pare_fail(err, PARE_ERR_INPUT, "tensor '%s': data_offsets [%zu, %zu] run backwards",
                         t->name, t->begin, t->end);

    size_t bytes = pare_dtype_size(t->dtype);
    bool ok = true;
    for (i = 0; i < t->ndim; i++) ok = ok && pare_mul(&bytes, bytes, t->shape[i]);
    if (!ok)
        return pare_fail(err, PARE_ERR_INPUT, "tensor '%s': shape %s overflows", t->name,
                         pare_shape_text(text, t->shape, t->ndim));
    if (t->end > data_bytes)
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor '%s': data_offsets [%zu, %zu] reach beyond the %zu data bytes",
                         t->name, t->begin, t->end, data_bytes);
    if (bytes != t->end - t->begin)
        return pare_fail(err, PARE_ERR_INPUT,
                         "tensor '%s': %s %s needs %zu bytes, data_offsets give %zu", t->name,
                         pare_dtype_name(t->dtype), pare_shape_text(text, t->shape, t->ndim), bytes,
                         t->end - t->begin);
    t->data = data + t->begin;
    return PARE_OK;
}

static int by_offset(const void *x, const void *y)
{
    const st_tensor *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_name(const void *x, const void *y)
{
    return strcmp((*(const st_tensor *const *)x)->name, (*(const st_tensor *const *)y)->name);
}

static pare_status read_metadata(st_file *f, pare_arena *a, const cJSON *meta, pare_err *err)
{
    if (!cJSON_IsObject(meta))
        return pare_fail(err, PARE_ERR_INPUT, "__metadata__ is not an object");
    const size_t n = (size_t)cJSON_GetArraySize(meta);
    f->meta_key = pare_alloc(a, n + 1, sizeof *f->meta_key);
    f->meta_value = pare_alloc(a, n + 1, sizeof *f->meta_value);
    if (!f->meta_key || !f->meta_value) return pare_no_memory(err);
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, meta)
    {
        if (!cJSON_IsString(item))
            return pare_fail(err, PARE_ERR_INPUT, "__metadata__ '%s' is not a string",
                             item->string);
        f->meta_key[f->nmeta] = pare_strdup(a, item->string);
        f->meta_value[f->nmeta] = pare_strdup(a, item->valuestring);
        if (!f->meta_key[f->nmeta] || !f->meta_value[f->nmeta]) return pare_no_memory(err);
        f->nmeta++;
    }
    return PARE_OK;
}

static pare_status read_entries(st_file *f, pare_arena *a, const cJSON *root, pare_err *err)
{
    if (!cJSON_IsObject(root)) return pare_fail(err, PARE_ERR_INPUT, "the header is not an object");
    const size_t n = (size_t)cJSON_GetArraySize(root);
    const uint8_t *data = f->blob->data + LENGTH_BYTES + f->header_bytes;
    const size_t data_bytes = f->blob->bytes - LENGTH_BYTES - f->header_bytes;
    f->tensors = pare_alloc(a, n + 1, sizeof *f->tensors);
    f->by_name = pare_alloc(a, n + 1, sizeof *f->by_name);
    if (!f->tensors || !f->by_name) return pare_no_memory(err);
    const cJSON *entry = NULL;
    cJSON_ArrayForEach(entry, root)
    {
        const pare_status st =
            strcmp(entry->string, "__metadata__") == 0
                ? read_metadata(f, a, entry, err)
                : read_tensor(&f->tensors[f->n++], a, entry, data_bytes, data, err);
        if (st) return st;
    }
    return PARE_OK;
}

/* After sorting only neighbours can overlap; empty tensors cover nothing. */
static pare_status check_overlap(st_file *f, pare_err *err)
{
    qsort(f->tensors, f->n, sizeof *f->tensors, by_offset);
    const st_tensor *last = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const st_tensor *t = &f->tensors[i];
        f->by_name[i] = t;
        if (t->begin == t->end) continue;
        if (last && t->begin < last->end)
            return pare_fail(err, PARE_ERR_INPUT,
                             "tensor '%s' [%zu, %zu] overlaps tensor '%s' [%zu, %zu]", t->name,
                             t->begin, t->end, last->name, last->begin, last->end);
        last = t;
    }
    for (size_t i = 0; i < f->n; i++)
        if (f->tensors[i].end > f->data_bytes) f->data_bytes = f->tensors[i].end;
    qsort(f->by_name, f->n, sizeof *f->by_name, by_name);
    return PARE_OK;
}

pare_status st_open(st_file *out, pare_arena *a, pare_blob *b, pare_err *err)
{
    st_file f = {.blob = b};
    cJSON *root = NULL;
    uint64_t n = 0;
    for (size_t i = LENGTH_BYTES; i-- > 0 && b->bytes >= LENGTH_BYTES;) n = n << 8 | b->data[i];
    pare_status st;
    if (b->bytes < LENGTH_BYTES) {
        st = pare_fail(err, PARE_ERR_INPUT, "%zu bytes are too few for a safetensors file",
                       b->bytes);
    } else if (n > b->bytes - LENGTH_BYTES) {
        st = pare_fail(err, PARE_ERR_INPUT,
                       "the header claims %llu bytes, the file has %zu after its length",
                       (unsigned long long)n, b->bytes - LENGTH_BYTES);
    } else if (n > MAX_HEADER_BYTES) {
        st = pare_fail(err, PARE_ERR_INPUT,
                       "the header claims %llu bytes, more than the allowed %zu",
                       (unsigned long long)n, MAX_HEADER_BYTES);
    } else {
        f.header_bytes = (size_t)n;
        f.header = (const char *)b->data + LENGTH_BYTES;
        st = pare_json_parse(&root, f.header, f.header_bytes, err);
    }
    if (!st) st = read_entries(&f, a, root, err);
    if (!st) st = check_overlap(&f, err);
    cJSON_Delete(root);
    if (st) {
        pare_err_prefix(err, b->path);
        return st;
    }
    *out = f;
    return PARE_OK;
}

const st_tensor *st_find(const st_file *f, const char *name)
{
    size_t lo = 0, hi = f->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(name, f->by_name[mid]->name);
        if (order == 0) return f->by_name[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const char *st_meta(const st_file *f, const char *key)
{
    for (size_t i = 0; i < f->nmeta; i++)
        if (strcmp(f->meta_key[i], key) == 0) return f->meta_value[i];
    return NULL;
}
