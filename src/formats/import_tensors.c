/* import_tensors.c - weights by name and shape: borrowed from the bytes of the file where that can
 * be, copied where not. */
#include "base/array.h"
#include "import_tensors.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 200 /* our keys: two numbers and a few words */
#define TILE      32  /* 32 x 32 doubles twice: within the first cache */

void im_fail(im_source *s, const char *fmt, ...)
{
    if (s->st) return;
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    s->st = pare_fail(s->err, PARE_ERR_INPUT, "%s: %s", s->path, text);
}

void im_note(im_source *s, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (s->st) return;
    const char *const before = s->m->notes;
    s->m->notes =
        pare_sprintf(s->m->arena, "%s%s%s", before ? before : "", before ? "\n" : "", text);
    if (!s->m->notes) s->st = pare_no_memory(s->err);
}

void *im_alloc(im_source *s, size_t count, size_t size)
{
    if (s->st) return NULL;
    void *p = pare_alloc(s->m->arena, count ? count : 1, size);
    if (!p) s->st = pare_no_memory(s->err);
    return p;
}

/* ---- what is there --------------------------------------------------------------------------- */

im_tensor *im_find(const im_source *s, const char *key)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(key, s->tensors[mid].key);
        if (order == 0) return &s->tensors[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

bool im_has(const im_source *s, const char *fmt, ...)
{
    char key[KEY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof key, fmt, args);
    va_end(args);
    return im_find(s, key) != NULL;
}

static im_tensor *need(im_source *s, const char *key)
{
    im_tensor *t = s->st ? NULL : im_find(s, key);
    if (!t) im_fail(s, "tensor '%s' is missing", key);
    return t;
}

bool im_shape(im_source *s, size_t *shape, size_t ndim, const char *fmt, ...)
{
    char key[KEY_BYTES], text[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof key, fmt, args);
    va_end(args);
    const im_tensor *t = need(s, key);
    if (!t) return false;
    if (t->array.ndim != ndim || pare_array_count(&t->array) == 0) {
        im_fail(s, "tensor '%s' has shape %s, expected %zu dimensions, none of them 0", t->name,
                pare_shape_text(text, t->array.shape, t->array.ndim), ndim);
        return false;
    }
    memcpy(shape, t->array.shape, ndim * sizeof *shape);
    return true;
}

size_t im_outputs(im_source *s, const char *fmt, ...)
{
    char key[KEY_BYTES];
    size_t shape[2] = {0, 0};
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof key, fmt, args);
    va_end(args);
    if (!im_shape(s, shape, 2, "%s", key)) return 0;
    return s->input_first ? shape[1] : shape[0];
}

size_t im_count(const im_source *s, const char *before, const char *after)
{
    size_t n = 0;
    while (im_has(s, "%s%zu%s", before, n, after)) n++;
    return n;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* One number from bytes that may be unaligned; every half and f32 is exact in a double. */
static inline double number_at(const uint8_t *data, pare_dtype dtype, size_t i)
{
    if (dtype == PARE_F64) {
        double v;
        memcpy(&v, data + i * sizeof v, sizeof v);
        return v;
    }
    if (dtype == PARE_F32) {
        float v;
        memcpy(&v, data + i * sizeof v, sizeof v);
        return (double)v;
    }
    uint16_t h;
    memcpy(&h, data + i * sizeof h, sizeof h);
    return (double)(dtype == PARE_F16 ? pare_f16_to_f32(h) : pare_bf16_to_f32(h));
}

static inline void put(void *dst, pare_dtype dtype, size_t i, double v)
{
    if (dtype == PARE_F64)
        ((double *)dst)[i] = v;
    else
        ((float *)dst)[i] = (float)v;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void im_place(void *dst, pare_dtype dtype, size_t ld, im_tensor *t, size_t from, size_t rows,
              size_t cols, bool transposed)
{
    const pare_dtype type = t->array.dtype;
    const uint8_t *src = t->array.data;
    PARE_ASSERT(from + rows * cols <= pare_array_count(&t->array));
    PARE_ASSERT(dtype == PARE_F64 || type != PARE_F64);
    t->used = true;
    /* By tiles: a column of a large matrix touches a page per number. */
    for (size_t r0 = 0; r0 < rows; r0 += TILE) {
        const size_t r1 = least(rows, r0 + TILE);
        for (size_t c0 = 0; c0 < cols; c0 += TILE) {
            const size_t c1 = least(cols, c0 + TILE);
            for (size_t r = r0; r < r1; r++)
                for (size_t c = c0; c < c1; c++)
                    put(dst, dtype, transposed ? c * ld + r : r * ld + c,
                        number_at(src, type, from + r * cols + c));
        }
    }
}

pare_dtype im_dtype(im_source *s, const im_tensor *t)
{
    const pare_dtype d = t->array.dtype;
    if (d == PARE_F64) return PARE_F64;
    if (d != PARE_F32 && d != PARE_F16 && d != PARE_BF16)
        im_fail(s, "tensor '%s' is %s, a weight is F64, F32, F16 or BF16", t->name,
                pare_dtype_name(d));
    return PARE_F32;
}

pare_weight im_new(im_source *s, pare_dtype dtype, size_t rows, size_t cols, void **data)
{
    size_t count = 0;
    *data = NULL;
    if (s->st) return (pare_weight){0};
    if (!pare_mul(&count, rows, cols)) {
        s->st = pare_no_memory(s->err);
        return (pare_weight){0};
    }
    *data = im_alloc(s, count, pare_dtype_size(dtype));
    return (pare_weight){.dtype = dtype, .rows = rows, .cols = cols, .data = *data};
}

/* The tensor's rows x cols numbers where they are, if they are usable there. */
static bool borrow(im_source *s, im_tensor *t)
{
    const pare_dtype d = t->array.dtype;
    if (d != PARE_F32 && d != PARE_F64) return false;
    if ((uintptr_t)t->array.data % pare_dtype_size(d) != 0) return false;
    for (size_t i = 0; t->blob && i < s->m->nblobs; i++)
        if (s->m->blobs[i] == t->blob) return true;
    if (t->blob) s->st = pare_model_keep(s->m, t->blob, s->err);
    return true;
}

/* t as a rows x cols weight; transposed: it is stored cols x rows. */
static pare_weight weight_of(im_source *s, im_tensor *t, size_t rows, size_t cols, bool transposed)
{
    const pare_dtype dtype = im_dtype(s, t);
    if (s->st) return (pare_weight){0};
    t->used = true;
    if ((!transposed || rows == 1 || cols == 1) && borrow(s, t))
        return (pare_weight){.dtype = dtype, .rows = rows, .cols = cols, .data = t->array.data};
    void *data;
    const pare_weight w = im_new(s, dtype, rows, cols, &data);
    if (data && transposed)
        im_place(data, dtype, cols, t, 0, cols, rows, true);
    else if (data)
        im_place(data, dtype, cols, t, 0, rows, cols, false);
    return w;
}

/* ---- fetching -------------------------------------------------------------------------------- */

static pare_weight matrix(im_source *s, const char *key, size_t rows, size_t cols, bool transposed)
{
    im_tensor *t = need(s, key);
    if (!t) return (pare_weight){0};
    const size_t want[2] = {transposed ? cols : rows, transposed ? rows : cols};
    const size_t *got = t->array.shape;
    if (t->array.ndim == 2 && got[0] == want[0] && got[1] == want[1])
        return weight_of(s, t, rows, cols, transposed);
    char a[128], b[128];
    const bool other = t->array.ndim == 2 && got[0] == want[1] && got[1] == want[0];
    im_fail(s, "tensor '%s' has shape %s, expected %s%s", t->name,
            pare_shape_text(a, got, t->array.ndim), pare_shape_text(b, want, 2),
            other ? " (the other orientation would fit: metadata key `linear`)" : "");
    return (pare_weight){0};
}

static pare_weight vector(im_source *s, const char *key, size_t n)
{
    im_tensor *t = need(s, key);
    if (!t) return (pare_weight){0};
    if (t->array.ndim == 1 && t->array.shape[0] == n) return weight_of(s, t, 1, n, false);
    char a[128];
    im_fail(s, "tensor '%s' has shape %s, expected [%zu]", t->name,
            pare_shape_text(a, t->array.shape, t->array.ndim), n);
    return (pare_weight){0};
}

pare_weight im_matrix(im_source *s, size_t out, size_t in, const char *fmt, ...)
{
    char key[KEY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof key, fmt, args);
    va_end(args);
    return matrix(s, key, out, in, s->input_first);
}

pare_weight im_table(im_source *s, size_t rows, size_t cols, const char *fmt, ...)
{
    char key[KEY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof key, fmt, args);
    va_end(args);
    return matrix(s, key, rows, cols, false);
}

pare_weight im_vector(im_source *s, size_t n, const char *fmt, ...)
{
    char key[KEY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof key, fmt, args);
    va_end(args);
    return vector(s, key, n);
}

pare_weight im_vector_if(im_source *s, bool want, size_t n, const char *fmt, ...)
{
    char key[KEY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof key, fmt, args);
    va_end(args);
    return want ? vector(s, key, n) : (pare_weight){0};
}

pare_dense im_dense(im_source *s, size_t out, size_t in, bool bias, const char *fmt, ...)
{
    char name[KEY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    pare_dense d = {0};
    d.w = im_matrix(s, out, in, "%s.weight", name);
    d.b = im_vector_if(s, bias, out, "%s.bias", name);
    return d;
}

pare_norm im_layer_norm(im_source *s, size_t d, double eps, bool bias, const char *fmt, ...)
{
    char name[KEY_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    const pare_weight gain = im_vector(s, d, "%s.weight", name);
    return im_norm(PARE_NORM_LAYER, d, eps, gain, im_vector_if(s, bias, d, "%s.bias", name));
}

pare_weight im_part(pare_weight w, size_t from, size_t count)
{
    if (!pare_has(&w)) return w;
    const size_t step = w.rows == 1 ? 1 : w.cols; /* a vector is cut by entries */
    PARE_ASSERT(from + count <= (w.rows == 1 ? w.cols : w.rows));
    w.data = (const uint8_t *)w.data + from * step * pare_dtype_size(w.dtype);
    if (w.rows == 1)
        w.cols = count;
    else
        w.rows = count;
    return w;
}

void im_finish(im_source *s, const char *const *ignored)
{
    char text[128];
    const char *largest = NULL;
    size_t unused = 0, most = 0;
    for (size_t i = 0; i < s->n && !s->st; i++) {
        const im_tensor *t = &s->tensors[i];
        bool known = t->used;
        for (size_t k = 0; ignored[k] && !known; k++) known = fnmatch(ignored[k], t->key, 0) == 0;
        if (known && !t->used) {
            const size_t size = pare_array_count(&t->array);
            if (!largest || size > most) largest = t->name, most = size;
            unused++;
        }
        if (!known)
            im_fail(s, "tensor '%s' %s has no place in this kind of model (%s)", t->name,
                    pare_shape_text(text, t->array.shape, t->array.ndim), s->m->name);
    }
    if (unused == 1)
        im_note(s,
                "the model has no use for tensor '%.100s', and its outputs are the same without it",
                largest);
    else if (unused > 1)
        im_note(
            s,
            "the model has no use for %zu tensors ('%.100s', ...), and its outputs are the same "
            "without them",
            unused, largest);
}
