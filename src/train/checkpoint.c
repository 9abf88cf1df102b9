/* checkpoint.c - a safetensors file whose last tensor is the SHA-256 of all bytes before it.
 *
 * The reader trusts nothing that the checksum does not cover; then it compares the fingerprint of
 * the run in the file with the one of the run that asks, and at last the whole header with the one
 * it would write itself: there is one valid layout, so no part of the header is parsed by
 * itself. */
#include "base/support.h"
#include "checkpoint.h"
#include "base/work.h"
#include <math.h>
#include <string.h>

#define CHECKPOINT_VERSION 1
#define META               "pare.checkpoint"

enum { DIGITS = PARE_SHA256_HEX - 1, ALIGN = 64, TENSORS = 8, SCORES = 3 };

typedef struct tensor {
    const char *name, *dtype;
    size_t count, size;
    void *data; /* NULL: the checksum */
} tensor;

static void layout(tensor t[TENSORS], const checkpoint *c, double scores[SCORES])
{
    const tensor all[TENSORS] = {
        {"marks", "F64", SCORES, sizeof(double), scores},
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

/* ---- the header ------------------------------------------------------------------------------- */

/* The header, with spaces at its end so that the tensors begin at a multiple of ALIGN. Its metadata
 * are JSON in a string: version, steps, and the fingerprint of the run. */
static char *header_text(pare_work *w, size_t *bytes, const tensor t[TENSORS], const checkpoint *c,
                         const cJSON *run)
{
    char *meta = NULL, *text = NULL;
    if (w->st) return NULL;
    cJSON *const about = cJSON_CreateObject(), *const copy = cJSON_Duplicate(run, 1);
    const bool added = about && copy && pare_json_add_size(about, "version", CHECKPOINT_VERSION) &&
                       pare_json_add_u64(about, "step", c->step) &&
                       pare_json_add_u64(about, "best_step", c->best_step) &&
                       cJSON_AddItemToObject(about, "run", copy);
    w->st =
        added ? pare_json_print(&meta, NULL, w->arena, about, 0, w->err) : pare_no_memory(w->err);
    if (!added) cJSON_Delete(copy);
    cJSON_Delete(about);
    if (w->st) return NULL;
    cJSON *const o = cJSON_CreateObject();
    cJSON *const data = o ? pare_json_add_object(o, "__metadata__") : NULL;
    bool ok = data && pare_json_add_string(data, META, meta);
    size_t at = 0, n = 0;
    for (size_t i = 0; ok && i < TENSORS; i++) {
        cJSON *const entry = pare_json_add_object(o, t[i].name);
        const size_t from = at;
        at += t[i].count * t[i].size;
        ok = entry && pare_json_add_string(entry, "dtype", t[i].dtype);
        cJSON *const shape = ok ? pare_json_add_array(entry, "shape") : NULL;
        cJSON *const range = ok ? pare_json_add_array(entry, "data_offsets") : NULL;
        ok = shape && range && pare_json_add_size(shape, NULL, t[i].count) &&
             pare_json_add_size(range, NULL, from) && pare_json_add_size(range, NULL, at);
    }
    w->st = ok ? pare_json_print(&text, &n, w->arena, o, 0, w->err) : pare_no_memory(w->err);
    cJSON_Delete(o);
    *bytes = (8 + n + ALIGN - 1) / ALIGN * ALIGN - 8;
    char *const padded = pare_work_alloc(w, *bytes, 1);
    if (w->st) return NULL;
    memset(padded, ' ', *bytes);
    memcpy(padded, text, n);
    return padded;
}

/* ---- writing ---------------------------------------------------------------------------------- */

static void put(pare_work *w, pare_out *o, pare_sha256 *h, const void *data, size_t bytes)
{
    if (w->st) return;
    pare_sha256_add(h, data, bytes);
    w->st = pare_out_write(o, data, bytes, w->err);
}

pare_status checkpoint_write(const char *path, const checkpoint *c, const cJSON *run, pare_err *err)
{
    double scores[SCORES] = {c->val, c->test, c->loss};
    tensor t[TENSORS];
    uint8_t length[8];
    char hex[PARE_SHA256_HEX];
    size_t bytes = 0;
    pare_out *o = NULL;
    pare_sha256 h;
    pare_work w = {.arena = pare_arena_new(), .err = err};
    if (!w.arena) return pare_no_memory(err);
    layout(t, c, scores);
    const char *const header = header_text(&w, &bytes, t, c, run);
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bytes >> (8 * i));
    if (!w.st) w.st = pare_out_open(&o, path, true, err);
    if (!w.st && !(w.st = pare_sha256_begin(&h, err))) {
        put(&w, o, &h, length, sizeof length);
        put(&w, o, &h, header, bytes);
        for (size_t i = 0; i < TENSORS; i++)
            if (t[i].data) put(&w, o, &h, t[i].data, t[i].count * t[i].size);
        pare_sha256_end(&h, hex);
        if (!w.st) w.st = pare_out_write(o, hex, DIGITS, err);
    }
    if (!w.st) {
        w.st = pare_out_commit(o, err);
        o = NULL;
    }
    pare_out_abort(o);
    pare_arena_free(w.arena);
    return w.st;
}

/* ---- comparing fingerprints ------------------------------------------------------------------- */

/* One value of a fingerprint as text, to be compared and shown. */
static char *value_text(pare_work *w, const cJSON *v)
{
    char *text = "not given";
    if (w->st || !v) return text;
    if (!cJSON_IsString(v)) {
        w->st = pare_json_print(&text, NULL, w->arena, v, 0, w->err);
    } else if (!(text = pare_strdup(w->arena, v->valuestring))) {
        w->st = pare_no_memory(w->err);
    }
    return text;
}

/* The words of two tasks, "text window 64 batch 16 HASH", up to the first that differs: it is the
 * value of the word before it, unless it is the hash of a file. */
static void report_other_task(pare_work *w, const char *is, const char *want)
{
    const char *before = "";
    int length = 0;
    for (;;) {
        const size_t m = strcspn(is, " "), n = strcspn(want, " ");
        if (m != n || memcmp(is, want, n) != 0) {
            if (m >= DIGITS || n >= DIGITS || !length) break;
            pare_work_fail(w, PARE_ERR_INPUT,
                           "the checkpoint is of another run: %.*s was %.*s in it and is %.*s now",
                           length, before, (int)m, is, (int)n, want);
            return;
        }
        before = want;
        length = (int)n;
        if (!is[m] || !want[n]) break;
        is += m + 1;
        want += n + 1;
    }
    pare_work_fail(w, PARE_ERR_INPUT,
                   "the checkpoint is of another run: it learned from other data");
}

static void compare_value(pare_work *w, const char *key, const cJSON *in_file, const cJSON *wanted)
{
    const char *const is = value_text(w, in_file), *const want = value_text(w, wanted);
    if (w->st || strcmp(is, want) == 0) return;
    if (strcmp(key, "lesson") == 0)
        report_other_task(w, is, want);
    else if (strcmp(key, "start") == 0)
        pare_work_fail(w, PARE_ERR_INPUT,
                       "the checkpoint is of another run: it began with another model");
    else if (strcmp(key, "teacher") == 0)
        pare_work_fail(w, PARE_ERR_INPUT,
                       "the checkpoint is of another run: it had another teacher");
    else
        pare_work_fail(w, PARE_ERR_INPUT,
                       "the checkpoint is of another run: %.64s was %.150s in it and is %.150s now",
                       key, is, want);
}

/* ---- reading ---------------------------------------------------------------------------------- */

static void damaged(pare_work *w, const char *how)
{
    pare_work_fail(w, PARE_ERR_INPUT, "the checkpoint is damaged: %s", how);
}

/* Steps and fingerprint out of the metadata in the header. */
static void read_meta(pare_work *w, checkpoint *c, const char *header, size_t bytes,
                      const cJSON *run, uint64_t steps)
{
    cJSON *o = NULL, *meta = NULL;
    const cJSON *data = NULL, *in_file = NULL, *v = NULL;
    const char *text = NULL;
    size_t version = 0;
    if (w->st) return;
    w->st = pare_json_parse(&o, header, bytes, w->err);
    if (!w->st) w->st = pare_json_object(&data, o, "__metadata__", w->err);
    if (!w->st) w->st = pare_json_string(&text, data, META, w->err);
    if (!w->st) w->st = pare_json_parse(&meta, text, strlen(text), w->err);
    if (!w->st) w->st = pare_json_size(&version, meta, "version", w->err);
    if (!w->st && version != CHECKPOINT_VERSION)
        pare_work_fail(w, PARE_ERR_INPUT, "the checkpoint has version %zu, this is for version %d",
                       version, CHECKPOINT_VERSION);
    if (!w->st) w->st = pare_json_object(&in_file, meta, "run", w->err);
    cJSON_ArrayForEach(v, run)
    {
        if (!w->st)
            compare_value(w, v->string, cJSON_GetObjectItemCaseSensitive(in_file, v->string), v);
    }
    cJSON_ArrayForEach(v, in_file) /* given then and not now */
    {
        if (!w->st && !cJSON_GetObjectItemCaseSensitive(run, v->string))
            compare_value(w, v->string, v, NULL);
    }
    if (!w->st) w->st = pare_json_u64(&c->step, meta, "step", w->err);
    if (!w->st) w->st = pare_json_u64(&c->best_step, meta, "best_step", w->err);
    if (!w->st && (c->step > steps || c->best_step > c->step))
        damaged(w, "no run can be at its step");
    cJSON_Delete(meta);
    cJSON_Delete(o);
}

/* Checksum and header. *c has the steps of the file afterwards; returns where the tensors begin. */
static size_t check_file(pare_work *w, checkpoint *c, const pare_blob *b, const cJSON *run,
                         uint64_t steps)
{
    char hex[PARE_SHA256_HEX];
    double scores[SCORES] = {0};
    tensor t[TENSORS];
    uint64_t n = 0;
    size_t bytes = 0;
    if (!w->st && b->bytes < 8 + DIGITS) damaged(w, "it is too short");
    if (w->st) return 0;
    const size_t body = b->bytes - DIGITS;
    w->st = pare_sha256_of(hex, b->data, body, w->err);
    if (!w->st && memcmp(hex, b->data + body, DIGITS) != 0)
        damaged(w, "its bytes do not fit its checksum");
    for (int i = 0; i < 8; i++) n |= (uint64_t)b->data[i] << (8 * i);
    if (!w->st && n > body - 8) damaged(w, "its header is longer than the file");
    const char *const header = (const char *)b->data + 8;
    read_meta(w, c, header, (size_t)n, run, steps);
    layout(t, c, scores);
    const char *const own = header_text(w, &bytes, t, c, run);
    size_t whole = 8 + bytes;
    for (size_t i = 0; i < TENSORS; i++) whole += t[i].count * t[i].size;
    if (!w->st && (n != bytes || memcmp(header, own, bytes) != 0 || b->bytes != whole))
        damaged(w, "its tensors are not those of this model");
    return 8 + bytes;
}

pare_status checkpoint_read(checkpoint *c, const char *path, const cJSON *run, uint64_t steps,
                            pare_err *err)
{
    checkpoint now = *c;
    double scores[SCORES];
    tensor t[TENSORS];
    pare_blob *b = NULL;
    pare_work w = {.arena = pare_arena_new(), .err = err};
    if (!w.arena) return pare_no_memory(err);
    w.st = pare_blob_open(&b, path, err);
    const bool opened = !w.st;
    const size_t body = check_file(&w, &now, b, run, steps);
    layout(t, &now, scores);
    /* Two walks: nothing is taken of a file with a tensor that is refused. */
    for (int copy = 0; copy < 2 && !w.st; copy++) {
        const uint8_t *p = b->data + body;
        for (size_t i = 0; i < TENSORS && !w.st; p += t[i].count * t[i].size, i++) {
            if (copy && t[i].data && t[i].count) memcpy(t[i].data, p, t[i].count * t[i].size);
            for (size_t k = 0; !copy && t[i].size == sizeof(float) && k < t[i].count; k++) {
                float x;
                memcpy(&x, p + k * sizeof x, sizeof x);
                if (!isfinite(x)) damaged(&w, "it holds a nan or an inf");
            }
        }
    }
    if (w.st && opened) pare_err_prefix(err, path);
    if (!w.st) {
        now.val = scores[0], now.test = scores[1], now.loss = scores[2];
        *c = now;
    }
    pare_blob_release(b);
    pare_arena_free(w.arena);
    return w.st;
}
