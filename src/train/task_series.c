/* task_series.c - sequences with targets (sorting) or with values (angular velocity). A batch is
 * rows drawn with repetition. Rows of a file are split by a shuffle that depends on the split
 * alone. */
#include "base/array.h"
#include "base/support.h"
#include "task.h"

#include <math.h>
#include <string.h>

#define ID_LIMIT ((int64_t)1 << 31)

typedef struct table { /* one file */
    const char *path;
    size_t n, tokens, features; /* features 0: ids */
    size_t targets;             /* numbers of `target` or `value` per row */
    int64_t *ids, *target;
    double *x, *value;
    int64_t max_id, max_target;
} table;

typedef struct part { /* rows of a table */
    const table *from;
    const uint32_t *row; /* n */
    size_t n;
} part;

typedef struct series_task {
    size_t batch;
    bool regression_token; /* a row of zeros before the vectors */
    part part[PARTS];
} series_task;

/* ---- reading ------------------------------------------------------------------------------- */

/* The size of one row of an array whose first dimension is n. */
static size_t row_size(const pare_array *v)
{
    size_t n = 1;
    for (size_t i = 1; i < v->ndim; i++) n *= v->shape[i];
    return n;
}

static pare_status read_ids(int64_t **out, int64_t *max, pare_arena *a, const pare_array *v,
                            int64_t least, const char *key, pare_err *err)
{
    const size_t n = pare_array_count(v);
    int64_t *ids = *out = pare_alloc(a, n ? n : 1, sizeof *ids);
    if (!ids) return pare_no_memory(err);
    *max = -1;
    for (size_t i = 0; i < n; i++) {
        ids[i] = pare_array_i64(v, i);
        if (ids[i] < least || ids[i] >= ID_LIMIT)
            return pare_fail(err, PARE_ERR_INPUT, "%s: row %zu holds %lld", key, i / row_size(v),
                             (long long)ids[i]);
        if (ids[i] > *max) *max = ids[i];
    }
    return PARE_OK;
}

static pare_status read_numbers(double **out, pare_arena *a, const pare_array *v, const char *key,
                                pare_err *err)
{
    const size_t n = pare_array_count(v);
    double *x = *out = pare_alloc(a, n ? n : 1, sizeof *x);
    if (!x) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        x[i] = pare_array_f64(v, i);
        if (!isfinite(x[i]))
            return pare_fail(err, PARE_ERR_INPUT, "%s: row %zu holds %g", key, i / row_size(v),
                             x[i]);
    }
    return PARE_OK;
}

static pare_status bad_shape(const pare_array *v, const char *key, const char *wanted,
                             pare_err *err)
{
    char have[128];
    return pare_fail(err, PARE_ERR_INPUT, "%s is %s %s, expected %s", key,
                     pare_dtype_name(v->dtype), pare_shape_text(have, v->shape, v->ndim), wanted);
}

/* Inputs, and integers "targets" or numbers "values". */
static pare_status read_arrays(table *t, pare_arena *a, const pare_npz *z, pare_err *err)
{
    pare_array v;
    pare_status st = pare_npz_get(&v, z, "inputs", err);
    if (st) return st;
    const bool ids = v.ndim == 2 && pare_array_is_integer(&v);
    const bool vectors = v.ndim == 3 && v.dtype != PARE_TEXT && v.shape[2] > 0;
    if ((!ids && !vectors) || v.shape[0] == 0 || v.shape[0] > UINT32_MAX || v.shape[1] == 0)
        return bad_shape(&v, "inputs", "ids [n, T] or vectors [n, T, d]", err);
    t->n = v.shape[0];
    t->tokens = v.shape[1];
    t->features = ids ? 0 : v.shape[2];
    st = ids ? read_ids(&t->ids, &t->max_id, a, &v, 0, "inputs", err)
             : read_numbers(&t->x, a, &v, "inputs", err);
    if (st) return st;
    const bool classes = pare_npz_has(z, "targets");
    if (!classes && !pare_npz_has(z, "values"))
        return pare_fail(err, PARE_ERR_INPUT, "neither targets nor values beside the inputs");
    st = pare_npz_get(&v, z, classes ? "targets" : "values", err);
    if (st) return st;
    const bool fits = (v.ndim == 1 || v.ndim == 2) && v.shape[0] == t->n;
    t->targets = fits ? row_size(&v) : 0;
    if (classes) {
        if (!fits || (v.ndim == 2 && v.shape[1] != t->tokens) || !pare_array_is_integer(&v))
            return bad_shape(&v, "targets", "integers [n, T] or [n] as the inputs", err);
        return read_ids(&t->target, &t->max_target, a, &v, -1, "targets", err);
    }
    if (t->targets == 0 || v.dtype == PARE_TEXT)
        return bad_shape(&v, "values", "numbers [n] or [n, k] as the inputs", err);
    return read_numbers(&t->value, a, &v, "values", err);
}

/* ---- parts --------------------------------------------------------------------------------- */

/* All rows of a file, shuffled; a file of its own must have the same shape as the training file. */
static pare_status read_part(part *p, table *t, const table *train, pare_arena *a, const char *path,
                             size_t split, pare_err *err)
{
    pare_npz *z = NULL;
    *t = (table){.path = path};
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    pare_status st = pare_npz_open(&z, scratch, path, err);
    if (!st) st = read_arrays(t, a, z, err);
    pare_npz_close(z);
    pare_arena_free(scratch);
    if (st) return task_prefix_error(st, err, path);
    if (t->features != train->features || t->tokens != train->tokens ||
        t->targets != train->targets || !t->value != !train->value)
        return pare_fail(err, PARE_ERR_INPUT,
                         "%s: %zu tokens, %zu features, %zu targets a row; %s has %zu, %zu and %zu",
                         t->path, t->tokens, t->features, t->targets, train->path, train->tokens,
                         train->features, train->targets);
    uint32_t *const row = pare_alloc(a, t->n, sizeof *row);
    if (!row) return pare_no_memory(err);
    for (size_t i = 0; i < t->n; i++) row[i] = (uint32_t)i;
    pare_rng r = pare_rng_at(0, split);
    pare_rng_shuffle(&r, row, t->n);
    *p = (part){t, row, t->n};
    return PARE_OK;
}

static pare_status split_rows(series_task *s, table file[PARTS], pare_arena *a,
                              const pare_task_series_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    part *const train = &s->part[TRAIN];
    pare_status st = PARE_OK;
    for (size_t p = 0; !st && p < PARTS; p++)
        if (path[p]) st = read_part(&s->part[p], &file[p], &file[TRAIN], a, path[p], o->split, err);
    for (size_t p = PARTS - 1; !st && p > 0; p--) {
        const size_t n = (size_t)(PARE_SERIES_SHARE * (double)file[TRAIN].n);
        if (path[p]) continue;
        train->n -= n;
        s->part[p] = (part){train->from, train->row + train->n, n};
    }
    for (size_t p = 0; !st && p < PARTS; p++) {
        const part *const q = &s->part[p];
        bool counts = q->from->value && q->n > 0;
        for (size_t i = 0; !q->from->value && !counts && i < q->n; i++)
            for (size_t k = 0; k < q->from->targets; k++)
                counts = counts || q->from->target[q->row[i] * q->from->targets + k] >= 0;
        if (!counts)
            st = pare_fail(err, PARE_ERR_INPUT, "%s: no target counts in the %zu %s rows",
                           q->from->path, q->n, task_part_name[p]);
    }
    return st;
}

/* ---- batches and scores -------------------------------------------------------------------- */

/* Rows of a table as one batch. */
static void gather(pare_work *w, pare_batch *out, const series_task *s, const table *t,
                   const uint32_t *row, size_t n)
{
    const size_t tokens = t->tokens + s->regression_token, width = t->features ? t->features : 1;
    const size_t stride = tokens * width, numbers = t->tokens * width;
    const size_t skip = stride - numbers; /* zeros in front */
    int64_t *ids = t->ids ? pare_work_alloc(w, n, stride * sizeof *ids) : NULL;
    double *x = t->x ? pare_work_alloc(w, n, stride * sizeof *x) : NULL;
    int64_t *label = t->target ? pare_work_alloc(w, n, t->targets * sizeof *label) : NULL;
    double *value = t->value ? pare_work_alloc(w, n, t->targets * sizeof *value) : NULL;
    for (size_t i = 0; !w->st && i < n; i++) {
        const size_t from = row[i] * numbers, target = row[i] * t->targets;
        if (ids) memcpy(ids + i * stride, t->ids + from, numbers * sizeof *ids);
        if (x) memcpy(x + i * stride + skip, t->x + from, numbers * sizeof *x);
        for (size_t k = 0; k < t->targets; k++) {
            if (label) label[i * t->targets + k] = t->target[target + k];
            if (value) value[i * t->targets + k] = t->value[target + k];
        }
    }
    *out =
        (pare_batch){.in = {.batch = n, .tokens = tokens, .width = t->features, .ids = ids, .x = x},
                     .label = label,
                     .value = value};
}

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const series_task *s = self;
    const part *p = &s->part[TRAIN];
    pare_work w = {.arena = a, .err = err};
    uint32_t *row = pare_work_alloc(&w, s->batch, sizeof *row);
    pare_rng r = task_rng(seed, step);
    for (size_t i = 0; row && i < s->batch; i++) row[i] = p->row[pare_rng_below(&r, p->n)];
    gather(&w, out, s, p->from, row, s->batch);
    return w.st;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part which,
                         const pare_exec *exec, pare_err *err)
{
    const series_task *s = self;
    const part *p = &s->part[which == PARE_PART_VAL ? VAL : TEST];
    const size_t targets = p->from->targets;
    const size_t most = task_eval_limit(m, p->from->tokens + s->regression_token, s->batch);
    pare_scores scores = {0};
    task_eval e;
    bool diverged;
    task_eval_open(&e, m, exec, err);
    for (size_t i = 0, n; !e.work.st && i < p->n; i += n) {
        pare_batch b;
        n = p->n - i < most ? p->n - i : most;
        gather(&e.work, &b, s, p->from, p->row + i, n);
        if (!e.work.st) task_eval_batch(&e, &b, b.label ? pare_output_rows(m, &b.in) : n * targets);
    }
    const pare_status st = task_eval_close(&e, p->from->value ? NULL : &scores, &diverged);
    if (st) return st;
    *out = diverged         ? NAN
           : p->from->value ? e.squares / (double)p->n / (double)targets
                            : scores.accuracy;
    return PARE_OK;
}

/* ---- the task ------------------------------------------------------------------------------ */

/* The largest id or target of all files; it must be among the `known` of a given model. */
static pare_status alphabet_size(size_t *out, size_t known, const table file[PARTS], bool targets,
                                 pare_err *err)
{
    size_t most = 1;
    for (size_t p = 0; p < PARTS; p++) {
        const int64_t max = targets ? file[p].max_target : file[p].max_id;
        if (!file[p].path) continue;
        if (known && max >= 0 && (uint64_t)max >= known)
            return pare_fail(err, PARE_ERR_INPUT, "%s: %s %lld is not among the model's %zu",
                             file[p].path, targets ? "target" : "id", (long long)max, known);
        if ((size_t)(max + 1) > most) most = (size_t)(max + 1);
    }
    *out = known ? known : most;
    return PARE_OK;
}

static pare_status find_facts(pare_task_facts *f, const series_task *s, const table file[PARTS],
                              const pare_task_series_opts *o, pare_err *err)
{
    const table *t = &file[TRAIN];
    const bool each = t->target && t->targets == t->tokens;
    *f = (pare_task_facts){.features = t->features,
                           .outputs = t->targets,
                           .tokens = t->tokens + s->regression_token,
                           .pool = each ? PARE_POOL_NONE : PARE_POOL_FIRST,
                           .train = s->part[TRAIN].n,
                           .val = s->part[VAL].n,
                           .test = s->part[TEST].n};
    pare_status st = t->ids ? alphabet_size(&f->ids, o->ids, file, false, err) : PARE_OK;
    if (!st && t->target) st = alphabet_size(&f->outputs, o->outputs, file, true, err);
    if (st || !each || !t->ids) return st;
    /* A target at every token is an id again: one alphabet for both. */
    if (!o->ids && f->outputs > f->ids) f->ids = f->outputs;
    if (!o->outputs && f->ids > f->outputs) f->outputs = f->ids;
    return PARE_OK;
}

pare_status pare_task_series(pare_task *out, pare_task_facts *facts, pare_arena *a,
                             const pare_task_series_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    if (o->batch == 0) return pare_fail(err, PARE_ERR_USAGE, "batch must be at least 1");
    series_task *s = pare_alloc(a, 1, sizeof *s);
    table *file = pare_alloc(a, PARTS, sizeof *file);
    if (!s || !file) return pare_no_memory(err);
    s->batch = o->batch;
    pare_status st = split_rows(s, file, a, o, err);
    if (st) return st;
    s->regression_token = file[TRAIN].x && file[TRAIN].value;
    st = find_facts(facts, s, file, o, err);
    const char *id = pare_sprintf(a, "series split %zu batch %zu own %d%d", o->split, o->batch,
                                  o->val != NULL, o->test != NULL);
    if (!st) st = task_fingerprint(&id, a, path, PARTS, err);
    if (st) return st;
    *out = (pare_task){.self = s,
                       .id = id,
                       .metric = file[TRAIN].value ? "mse" : "accuracy",
                       .more_is_better = !file[TRAIN].value,
                       .epoch = (s->part[TRAIN].n + s->batch - 1) / s->batch,
                       .batch = batch,
                       .score = score};
    return PARE_OK;
}
