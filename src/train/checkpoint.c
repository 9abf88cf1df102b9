/* A checkpoint is a safetensors file whose last tensor is the SHA-256 of all bytes before it.
 *
 * The reader believes nothing that the checksum does not cover, then compares the run that the file
 * names with the run that asks, and at last the whole header with the one it would write itself:
 * there is one right layout, so nothing in it needs to be looked at by itself. */
#include "checkpoint.h"
#include <math.h>
#include <string.h>

#define CHECKPOINT_VERSION 1
#define META               "pare.checkpoint"

enum { DIGITS = PARE_SHA256_HEX - 1, ALIGN = 64, TENSORS = 8, MARKS = 3 };

typedef struct tensor {
    const char *name, *dtype;
    size_t count, size;
    void *data; /* NULL: the checksum */
} tensor;

static void layout(tensor t[TENSORS], const checkpoint *c, double marks[MARKS])
{
    const tensor all[TENSORS] = {
        {"marks", "F64", MARKS, sizeof(double), marks},
        {"values", "F32", c->count, sizeof(float), c->values},
        {"stats", "F32", c->nstats, sizeof(float), c->stats},
        {"m", "F32", c->count, sizeof(float), c->m},
        {"v", "F32", c->count, sizeof(float), c->v},
        {"best.values", "F32", c->count, sizeof(float), c->best_values},
        {"best.stats", "F32", c->nstats, sizeof(float), c->best_stats},
        {"sha256", "U8", DIGITS, 1, NULL},
    };
    memcpy(t, all, sizeof all);
}

/* ---- the header -------------------------------------------------------------------------------
 */

static bool add_tensor(cJSON *to, const tensor *t, size_t *at)
{
    cJSON *const o = pare_json_add_object(to, t->name);
    const size_t from = *at;
    *at += t->count * t->size;
    if (!o || !pare_json_add_string(o, "dtype", t->dtype)) return false;
    cJSON *const shape = pare_json_add_array(o, "shape");
    cJSON *const range = pare_json_add_array(o, "data_offsets");
    return shape && range && pare_json_add_size(shape, NULL, t->count) &&
           pare_json_add_size(range, NULL, from) && pare_json_add_size(range, NULL, *at);
}

static pare_status meta_text(char **text, pare_arena *a, const checkpoint *c, const cJSON *run,
                             pare_err *err)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON *const twin = cJSON_Duplicate(run, 1);
    bool ok = o && twin && pare_json_add_size(o, "version", CHECKPOINT_VERSION) &&
              pare_json_add_u64(o, "step", c->step) &&
              pare_json_add_u64(o, "best_step", c->best_step);
    if (ok && cJSON_AddItemToObject(o, "run", twin)) {
        const pare_status st = pare_json_print(text, NULL, a, o, 0, err);
        cJSON_Delete(o);
        return st;
    }
    cJSON_Delete(twin);
    cJSON_Delete(o);
    return pare_no_memory(err);
}

/* The header with spaces at its end, so that the tensors begin at a multiple of ALIGN. */
static pare_status header_text(char **out, size_t *bytes, pare_arena *a, const tensor t[TENSORS],
                               const char *meta, pare_err *err)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON *const data = o ? pare_json_add_object(o, "__metadata__") : NULL;
    bool ok = data && pare_json_add_string(data, META, meta);
    size_t at = 0, n = 0;
    char *text = NULL;
    for (size_t i = 0; ok && i < TENSORS; i++) ok = add_tensor(o, &t[i], &at);
    pare_status st = ok ? pare_json_print(&text, &n, a, o, 0, err) : pare_no_memory(err);
    cJSON_Delete(o);
    if (st) return st;
    *bytes = (8 + n + ALIGN - 1) / ALIGN * ALIGN - 8;
    *out = pare_alloc(a, *bytes, 1);
    if (!*out) return pare_no_memory(err);
    memset(*out, ' ', *bytes);
    memcpy(*out, text, n);
    return PARE_OK;
}

/* ---- writing ----------------------------------------------------------------------------------
 */

static pare_status put(pare_out *o, pare_sha256 *h, const void *data, size_t bytes, pare_err *err)
{
    pare_sha256_add(h, data, bytes);
    return pare_out_write(o, data, bytes, err);
}

static pare_status put_all(pare_out *o, const tensor t[TENSORS], const char *header, size_t bytes,
                           pare_err *err)
{
    uint8_t length[8];
    char hex[PARE_SHA256_HEX];
    pare_sha256 h;
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bytes >> (8 * i));
    pare_status st = pare_sha256_begin(&h, err);
    if (st) return st;
    st = put(o, &h, length, sizeof length, err);
    if (!st) st = put(o, &h, header, bytes, err);
    for (size_t i = 0; !st && i < TENSORS; i++)
        if (t[i].data) st = put(o, &h, t[i].data, t[i].count * t[i].size, err);
    pare_sha256_end(&h, hex);
    return st ? st : pare_out_write(o, hex, DIGITS, err);
}

pare_status checkpoint_write(const char *path, const checkpoint *c, const cJSON *run, pare_err *err)
{
    double marks[MARKS] = {c->val, c->test, c->loss};
    tensor t[TENSORS];
    char *meta = NULL, *header = NULL;
    size_t bytes = 0;
    pare_out *o = NULL;
    pare_arena *const a = pare_arena_new();
    layout(t, c, marks);
    pare_status st = a ? meta_text(&meta, a, c, run, err) : pare_no_memory(err);
    if (!st) st = header_text(&header, &bytes, a, t, meta, err);
    if (!st) st = pare_out_open(&o, path, true, err);
    if (!st) st = put_all(o, t, header, bytes, err);
    if (!st) {
        st = pare_out_commit(o, err);
        o = NULL;
    }
    pare_out_abort(o);
    pare_arena_free(a);
    return st;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static pare_status damaged(pare_err *err, const char *how)
{
    return pare_fail(err, PARE_ERR_INPUT, "the checkpoint is damaged: %s", how);
}

static pare_status sum_check(const pare_blob *b, pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    if (b->bytes < 8 + DIGITS) return damaged(err, "it is too short");
    const size_t body = b->bytes - DIGITS;
    const pare_status st = pare_sha256_of(hex, b->data, body, err);
    if (st) return st;
    return memcmp(hex, b->data + body, DIGITS) == 0
               ? PARE_OK
               : damaged(err, "its bytes do not fit its checksum");
}

/* One line of a run as text, to be compared and shown. */
static pare_status shown(char **out, pare_arena *a, const cJSON *v, pare_err *err)
{
    *out = "not given";
    if (cJSON_IsString(v)) {
        *out = pare_strdup(a, v->valuestring);
        return *out ? PARE_OK : pare_no_memory(err);
    }
    return v ? pare_json_print(out, NULL, a, v, 0, err) : PARE_OK;
}

static size_t word_length(const char *s)
{
    return strcspn(s, " ");
}

/* The words of two lessons, "text window 64 batch 16 HASH", up to the first that differs: it is the
 * value of the word before it, unless it is the hash of a file. */
static pare_status compare_lessons(const char *is, const char *want, pare_err *err)
{
    const char *before = "";
    int length = 0;
    for (;;) {
        const size_t m = word_length(is), n = word_length(want);
        if (m != n || memcmp(is, want, n) != 0) {
            if (m >= DIGITS || n >= DIGITS || !length) break;
            return pare_fail(err, PARE_ERR_INPUT,
                             "the checkpoint is of another run: %.*s was %.*s in it and is %.*s "
                             "now",
                             length, before, (int)m, is, (int)n, want);
        }
        before = want;
        length = (int)n;
        if (!is[m] || !want[n]) break;
        is += m + 1;
        want += n + 1;
    }
    return pare_fail(err, PARE_ERR_INPUT,
                     "the checkpoint is of another run: it learned from other data");
}

static pare_status compare_line(pare_arena *a, const char *key, const cJSON *there,
                                const cJSON *here, pare_err *err)
{
    char *is = NULL, *want = NULL;
    pare_status st = shown(&is, a, there, err);
    if (!st) st = shown(&want, a, here, err);
    if (st || strcmp(is, want) == 0) return st;
    if (strcmp(key, "lesson") == 0) return compare_lessons(is, want, err);
    if (strcmp(key, "start") == 0 || strcmp(key, "teacher") == 0)
        return pare_fail(err, PARE_ERR_INPUT,
                         strcmp(key, "start") == 0
                             ? "the checkpoint is of another run: it began with another model"
                             : "the checkpoint is of another run: it had another teacher");
    return pare_fail(err, PARE_ERR_INPUT,
                     "the checkpoint is of another run: %.64s was %.150s in it and is %.150s now",
                     key, is, want);
}

static pare_status run_check(pare_arena *a, const cJSON *there, const cJSON *here, pare_err *err)
{
    const cJSON *line = NULL;
    pare_status st = PARE_OK;
    cJSON_ArrayForEach(line, here)
    {
        if (st) break;
        const cJSON *const other = cJSON_GetObjectItemCaseSensitive(there, line->string);
        st = compare_line(a, line->string, other, line, err);
    }
    cJSON_ArrayForEach(line, there) /* what was said then and is not now */
    {
        if (st) break;
        if (!cJSON_GetObjectItemCaseSensitive(here, line->string))
            st = compare_line(a, line->string, line, NULL, err);
    }
    return st;
}

static pare_status meta_read(checkpoint *c, pare_arena *a, const char *text, const cJSON *run,
                             uint64_t steps, pare_err *err)
{
    cJSON *o = NULL;
    const cJSON *there = NULL;
    size_t version = 0;
    pare_status st = pare_json_parse(&o, text, strlen(text), err);
    if (!st) st = pare_json_size(&version, o, "version", err);
    if (!st && version != CHECKPOINT_VERSION)
        st =
            pare_fail(err, PARE_ERR_INPUT, "the checkpoint has version %zu, this is for version %d",
                      version, CHECKPOINT_VERSION);
    if (!st) st = pare_json_object(&there, o, "run", err);
    if (!st) st = run_check(a, there, run, err);
    if (!st) st = pare_json_u64(&c->step, o, "step", err);
    if (!st) st = pare_json_u64(&c->best_step, o, "best_step", err);
    if (!st && (c->step > steps || c->best_step > c->step))
        st = damaged(err, "no run can be at its step");
    cJSON_Delete(o);
    return st;
}

/* The text in the header that says what the file is; in the arena. */
static pare_status meta_find(char **text, pare_arena *a, const char *header, size_t bytes,
                             pare_err *err)
{
    cJSON *o = NULL;
    const cJSON *data = NULL;
    const char *found = NULL;
    pare_status st = pare_json_parse(&o, header, bytes, err);
    if (!st) st = pare_json_object(&data, o, "__metadata__", err);
    if (!st) st = pare_json_string(&found, data, META, err);
    if (!st && !(*text = pare_strdup(a, found))) st = pare_no_memory(err);
    cJSON_Delete(o);
    return st;
}

/* Everything after the checksum, up to the tensors: c has the marks of the file afterwards, and
 * *body is where they begin. */
static pare_status header_check(checkpoint *c, size_t *body, pare_arena *a, const pare_blob *b,
                                const cJSON *run, uint64_t steps, pare_err *err)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++) n |= (uint64_t)b->data[i] << (8 * i);
    if (n > b->bytes - 8 - DIGITS) return damaged(err, "its header is longer than the file");
    const char *const there = (const char *)b->data + 8;
    char *meta = NULL, *again = NULL, *own = NULL;
    size_t bytes = 0;
    double marks[MARKS] = {0};
    tensor t[TENSORS];
    pare_status st = meta_find(&meta, a, there, (size_t)n, err);
    if (!st) st = meta_read(c, a, meta, run, steps, err);
    layout(t, c, marks);
    if (!st) st = meta_text(&own, a, c, run, err);
    if (!st) st = header_text(&again, &bytes, a, t, own, err);
    if (st) return st;
    size_t whole = 8 + bytes;
    for (size_t i = 0; i < TENSORS; i++) whole += t[i].count * t[i].size;
    if (n != bytes || memcmp(there, again, bytes) != 0 || b->bytes != whole)
        return damaged(err, "its tensors are not those of this model");
    *body = 8 + bytes;
    return PARE_OK;
}

static bool all_finite(const uint8_t *p, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, p + i * sizeof x, sizeof x);
        ok = ok && isfinite(x);
    }
    return ok;
}

static pare_status tensors_check(const tensor t[TENSORS], const uint8_t *p, pare_err *err)
{
    for (size_t i = 0; i < TENSORS; i++) {
        if (t[i].size == sizeof(float) && !all_finite(p, t[i].count))
            return damaged(err, "it holds a nan or an inf");
        p += t[i].count * t[i].size;
    }
    return PARE_OK;
}

static void tensors_copy(const tensor t[TENSORS], const uint8_t *p)
{
    for (size_t i = 0; i < TENSORS; i++) {
        if (t[i].data && t[i].count) memcpy(t[i].data, p, t[i].count * t[i].size);
        p += t[i].count * t[i].size;
    }
}

pare_status checkpoint_read(checkpoint *c, const char *path, const cJSON *run, uint64_t steps,
                            pare_err *err)
{
    checkpoint now = *c;
    double marks[MARKS];
    tensor t[TENSORS];
    size_t body = 0;
    pare_blob *b = NULL;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? pare_blob_open(&b, path, err) : pare_no_memory(err);
    if (!st) {
        st = sum_check(b, err);
        if (!st) st = header_check(&now, &body, a, b, run, steps, err);
        layout(t, &now, marks);
        if (!st) st = tensors_check(t, b->data + body, err);
        if (st) pare_err_prefix(err, path);
    }
    if (!st) {
        tensors_copy(t, b->data + body);
        now.val = marks[0], now.test = marks[1], now.loss = marks[2];
        *c = now;
    }
    pare_blob_release(b);
    pare_arena_free(a);
    return st;
}
