/* npy.c - .npy files, versions 1 to 3: "\x93NUMPY", two version bytes, the length of the header (2
 * bytes in version 1, else 4), the header (a Python dict as text), the data. */
#include "array.h"
#include "support.h"
#include "npy.h"

#include <stdalign.h>
#include <string.h>

#define MAGIC      "\x93NUMPY"
#define MAGIC_SIZE 6

/* ---- the element type ------------------------------------------------------------------ */

static const struct {
    const char *descr; /* without the byte order */
    pare_dtype dtype;
} descrs[] = {
    {"b1", PARE_BOOL}, {"u1", PARE_U8},  {"i1", PARE_I8},  {"u2", PARE_U16},
    {"i2", PARE_I16},  {"u4", PARE_U32}, {"i4", PARE_I32}, {"u8", PARE_U64},
    {"i8", PARE_I64},  {"f2", PARE_F16}, {"f4", PARE_F32}, {"f8", PARE_F64},
};

/* The number at *p, before end; false where there is none or it does not fit. */
static bool read_digits(size_t *out, const char **p, const char *end)
{
    const char *const first = *p;
    *out = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
        if (!pare_mul(out, *out, 10) || !pare_add(out, *out, (size_t)(**p - '0'))) return false;
    return *p > first;
}

static pare_status parse_descr(pare_npy_header *h, const char *descr, pare_err *err)
{
    const char order = descr[0];
    if (order && strchr("<>=|", order)) {
        const char *type = descr + 1;
        h->swap = order == '>';
        for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++) {
            if (strcmp(type, descrs[i].descr) != 0) continue;
            h->dtype = descrs[i].dtype;
            h->item = pare_dtype_size(h->dtype);
            return PARE_OK;
        }
        /* numpy has no bf16; with a byte order (plain raw bytes have '|') V2 is what the usual
         * extension types write for it. */
        if (strcmp(descr, "<V2") == 0) {
            h->dtype = PARE_BF16;
            h->item = 2;
            return PARE_OK;
        }
        const size_t unit = *type == 'U' ? 4 : *type == 'S' ? 1 : 0;
        const char *digit = type + 1, *const end = type + strlen(type);
        size_t width;
        if (unit && read_digits(&width, &digit, end) && digit == end &&
            pare_mul(&h->item, width, unit)) {
            h->dtype = PARE_TEXT;
            return PARE_OK;
        }
        if (*type == 'O')
            return pare_fail(err, PARE_ERR_INPUT,
                             "holds Python objects (dtype '%s'), only plain numbers can be read",
                             descr);
    }
    return pare_fail(err, PARE_ERR_INPUT, "dtype '%s' is not supported", descr);
}

/* ---- the header: a small Python dict --------------------------------------------------- */

typedef struct cursor {
    const char *p, *end;
} cursor;

static char peek(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
    return c->p < c->end ? *c->p : '\0';
}

static bool take(cursor *c, char want)
{
    if (peek(c) != want) return false;
    c->p++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t n = strlen(word);
    peek(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0) return false;
    c->p += n;
    return true;
}

static bool take_string(cursor *c, char out[32])
{
    const char quote = peek(c);
    if (quote != '\'' && quote != '"') return false;
    const char *from = ++c->p;
    while (c->p < c->end && *c->p != quote) c->p++;
    const size_t n = (size_t)(c->p - from);
    if (c->p == c->end || n >= 32 || memchr(from, '\0', n) || memchr(from, '\\', n)) return false;
    memcpy(out, from, n);
    out[n] = '\0';
    c->p++;
    return true;
}

/* "()", "(3,)", "(3, 4)", "(3, 4,)"; but "(3)" is a number in Python, not a tuple. */
static bool take_shape(cursor *c, pare_npy_header *h)
{
    if (!take(c, '(')) return false;
    h->ndim = 0;
    while (peek(c) != ')') {
        if (h->ndim == PARE_MAX_DIMS || !read_digits(&h->shape[h->ndim], &c->p, c->end))
            return false;
        h->ndim++;
        if (c->p < c->end && *c->p == 'L') c->p++; /* a long of Python 2 */
        const bool comma = take(c, ',');
        if (!comma && (peek(c) != ')' || h->ndim == 1)) return false;
    }
    return take(c, ')');
}

static pare_status parse_dict(pare_npy_header *h, cursor *c, pare_err *err)
{
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};
    if (!take(c, '{')) return pare_fail(err, PARE_ERR_INPUT, "npy header is not a dict");
    while (!take(c, '}')) {
        char key[32], text[32];
        if (!take_string(c, key) || !take(c, ':'))
            return pare_fail(err, PARE_ERR_INPUT, "npy header is damaged: a key is expected");
        size_t k = 0;
        while (k < 3 && strcmp(key, keys[k]) != 0) k++;
        if (k == 3 || seen[k])
            return pare_fail(err, PARE_ERR_INPUT, "npy header has %s key '%s'",
                             k == 3 ? "an unknown" : "twice the", key);
        seen[k] = true;
        if (k == 0 && peek(c) == '[')
            return pare_fail(err, PARE_ERR_INPUT,
                             "holds a structured array (a table with named columns), only plain "
                             "numbers can be read");
        bool ok = true;
        if (k == 0 && (ok = take_string(c, text))) {
            const pare_status st = parse_descr(h, text, err);
            if (st != PARE_OK) return st;
        }
        if (k == 1) ok = (h->fortran = take_word(c, "True")) || take_word(c, "False");
        if (k == 2) ok = take_shape(c, h);
        if (!ok || (!take(c, ',') && peek(c) != '}'))
            return pare_fail(err, PARE_ERR_INPUT, "npy header has a bad value for '%s'%s", key,
                             k == 2 ? " (a tuple of at most 8 sizes is needed)" : "");
    }
    for (size_t k = 0; k < 3; k++)
        if (!seen[k]) return pare_fail(err, PARE_ERR_INPUT, "npy header lacks '%s'", keys[k]);
    if (peek(c) != '\0' || c->p != c->end)
        return pare_fail(err, PARE_ERR_INPUT, "npy header has text after the dict");
    return PARE_OK;
}

pare_status pare_npy_header_parse(pare_npy_header *h, const uint8_t *bytes, size_t n, pare_err *err)
{
    *h = (pare_npy_header){0};
    const uint8_t *const b = bytes;
    if (n < MAGIC_SIZE + 4 || memcmp(b, MAGIC, MAGIC_SIZE) != 0)
        return pare_fail(err, PARE_ERR_INPUT, "is not an npy array (no npy signature)");
    const unsigned version = b[6];
    if (version < 1 || version > 3)
        return pare_fail(err, PARE_ERR_INPUT, "npy version %u.%u is not supported", version, b[7]);
    const size_t head = version == 1 ? 10 : 12;
    size_t len = (size_t)b[8] | (size_t)b[9] << 8;
    if (version > 1 && n >= head) len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (n < head || n - head < len) return pare_fail(err, PARE_ERR_INPUT, "npy header is cut off");
    h->start = head + len;
    cursor c = {(const char *)b + head, (const char *)b + h->start};
    const pare_status st = parse_dict(h, &c, err);
    if (st != PARE_OK) return st;
    char shape[128];
    pare_shape_text(shape, h->shape, h->ndim);
    h->data_bytes = h->item;
    for (size_t i = 0; i < h->ndim; i++)
        if (!pare_mul(&h->data_bytes, h->data_bytes, h->shape[i]))
            return pare_fail(err, PARE_ERR_INPUT, "shape %s is larger than memory", shape);
    if (h->data_bytes != n - h->start)
        return pare_fail(err, PARE_ERR_INPUT,
                         "shape %s of %s needs %zu bytes of data, there are %zu", shape,
                         pare_dtype_name(h->dtype), h->data_bytes, n - h->start);
    return PARE_OK;
}

/* ---- the data -------------------------------------------------------------------------- */

/* A copy of column-major data in row-major order. */
static void copy_fortran(uint8_t *to, const uint8_t *from, const pare_npy_header *h)
{
    size_t stride[PARE_MAX_DIMS], index[PARE_MAX_DIMS] = {0}, step = h->item;
    for (size_t i = 0; i < h->ndim; i++) {
        stride[i] = step;
        step *= h->shape[i];
    }
    size_t at = 0;
    for (size_t done = 0; done < h->data_bytes; done += h->item) {
        memcpy(to + done, from + at, h->item);
        for (size_t i = h->ndim; i-- > 0;) { /* next row-major index, `at` along with it */
            at += stride[i];
            if (++index[i] < h->shape[i]) break;
            at -= stride[i] * h->shape[i];
            index[i] = 0;
        }
    }
}

pare_status pare_npy_place(pare_array *out, pare_arena *arena, const pare_npy_header *h,
                           const uint8_t *bytes, bool stays, pare_err *err)
{
    const uint8_t *from = bytes + h->start;
    pare_array a = {.dtype = h->dtype, .ndim = h->ndim};
    memcpy(a.shape, h->shape, sizeof a.shape);
    const bool aligned = (uintptr_t)from % alignof(max_align_t) == 0;
    const bool reorder = h->fortran && h->ndim > 1, swap = h->swap && h->item > 1;
    if (h->dtype == PARE_TEXT || (stays && aligned && !reorder && !swap)) {
        a.data = h->dtype == PARE_TEXT ? NULL : from;
        *out = a;
        return PARE_OK;
    }
    uint8_t *data = pare_alloc(arena, h->data_bytes, 1);
    if (!data) return pare_no_memory(err);
    if (reorder)
        copy_fortran(data, from, h);
    else
        memcpy(data, from, h->data_bytes);
    for (uint8_t *p = data; swap && p < data + h->data_bytes; p += h->item)
        for (size_t i = 0, j = h->item - 1; i < j; i++, j--) {
            const uint8_t t = p[i];
            p[i] = p[j];
            p[j] = t;
        }
    a.data = data;
    *out = a;
    return PARE_OK;
}

pare_status pare_npy_header_print(char buf[PARE_NPY_HEADER_MAX], size_t *bytes, const pare_array *a,
                                  pare_err *err)
{
    const char *type = a->dtype == PARE_BF16 ? "V2" : NULL;
    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++)
        if (descrs[i].dtype == a->dtype) type = descrs[i].descr;
    if (!type)
        return pare_fail(err, PARE_ERR_INPUT, "arrays of %s cannot be written as npy",
                         pare_dtype_name(a->dtype));
    PARE_ASSERT(a->ndim <= PARE_MAX_DIMS);
    char *dict = buf + 10;
    const size_t size = PARE_NPY_HEADER_MAX - 10;
    size_t n = (size_t)snprintf(dict, size, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                                pare_dtype_size(a->dtype) == 1 ? '|' : '<', type);
    for (size_t i = 0; i < a->ndim; i++) {
        const char *after = i + 1 < a->ndim ? ", " : a->ndim == 1 ? "," : "";
        n += (size_t)snprintf(dict + n, size - n, "%zu%s", a->shape[i], after);
    }
    n += (size_t)snprintf(dict + n, size - n, "), }");
    /* Spaces up to a multiple of 64, the last byte a line end: the data starts aligned. */
    const size_t total = (10 + n + 1 + 63) / 64 * 64;
    memset(dict + n, ' ', total - 10 - n);
    buf[total - 1] = '\n';
    memcpy(buf, MAGIC "\x01\x00", 8);
    buf[8] = (char)(uint8_t)((total - 10) & 255);
    buf[9] = (char)(uint8_t)((total - 10) >> 8);
    *bytes = total;
    return PARE_OK;
}

/* ---- files ----------------------------------------------------------------------------- */

pare_status pare_npy_read_blob(pare_array *out, pare_arena *arena, const pare_blob *b,
                               pare_err *err)
{
    pare_npy_header h;
    pare_status st = pare_npy_header_parse(&h, b->data, b->bytes, err);
    if (st == PARE_OK) st = pare_npy_place(out, arena, &h, b->data, false, err);
    if (st != PARE_OK) pare_err_prefix(err, b->path);
    return st;
}

pare_status pare_npy_read(pare_array *out, pare_arena *arena, const char *path, pare_err *err)
{
    pare_blob *b;
    pare_status st = pare_blob_open(&b, path, err);
    if (st != PARE_OK) return st;
    st = pare_npy_read_blob(out, arena, b, err);
    pare_blob_release(b);
    return st;
}

pare_status pare_npy_write(const char *path, const pare_array *a, bool overwrite, pare_err *err)
{
    char header[PARE_NPY_HEADER_MAX];
    size_t bytes;
    pare_status st = pare_npy_header_print(header, &bytes, a, err);
    if (st != PARE_OK) {
        pare_err_prefix(err, path);
        return st;
    }
    pare_out *o;
    st = pare_out_open(&o, path, overwrite, err);
    if (st != PARE_OK) return st;
    st = pare_out_write(o, header, bytes, err);
    if (st == PARE_OK)
        st = pare_out_write(o, a->data, pare_array_count(a) * pare_dtype_size(a->dtype), err);
    if (st == PARE_OK) return pare_out_commit(o, err);
    pare_out_abort(o);
    return st;
}
