/* task_series.c - sequences with targets (sorting) or with values (angular velocity). A batch is
 * rows drawn with repetition. */
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
    bool per_token; /* a target at every token */
} table;

typedef struct series_task {
    size_t batch;
    pare_dataset part[PARTS]; /* an input each row */
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

/* A row of zeros before every sequence of vectors: the regression token. */
static pare_status add_regression_token(table *t, pare_arena *a, pare_err *err)
{
    size_t n;
    const size_t given = t->tokens * t->features, row = given + t->features;
    double *const x = pare_mul(&n, t->n, row) ? pare_alloc(a, n, sizeof *x) : NULL;
    if (!x) return pare_no_memory(err);
    for (size_t i = 0; i < t->n; i++)
        memcpy(x + i * row + t->features, t->x + i * given, given * sizeof *x);
    t->x = x;
    t->tokens++;
    return PARE_OK;
}

/* The rows as pare_dataset_load has them. */
static pare_status data_of(pare_dataset *out, const table *t, pare_arena *a, pare_err *err)
{
    pare_input *const in = pare_alloc(a, t->n, sizeof *in);
    const int64_t **const target = pare_alloc(a, t->n, sizeof *target);
    if (!in || !target) return pare_no_memory(err);
    for (size_t i = 0; i < t->n; i++) {
        target[i] = t->target ? t->target + i * t->targets : NULL;
        in[i] = (pare_input){.batch = 1,
                             .tokens = t->tokens,
                             .width = t->features,
                             .ids = t->ids ? t->ids + i * t->tokens : NULL,
                             .x = t->x ? t->x + i * t->tokens * t->features : NULL};
    }
    *out = (pare_dataset){.task = t->value       ? PARE_TASK_VALUES
                                  : t->per_token ? PARE_TASK_TOKENS
                                                 : PARE_TASK_SENTENCE,
                          .inputs = {t->n, in},
                          .target = t->target ? target : NULL,
                          .value = t->value,
                          .nvalues = t->value ? t->targets : 0};
    return PARE_OK;
}

/* A file of its own must have the same shape as the training file. */
static pare_status read_file(pare_dataset *d, table *t, const table *train, pare_arena *a,
                             const char *path, pare_err *err)
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
    t->per_token = t->target && t->targets == t->tokens;
    if (t->x && t->value && (st = add_regression_token(t, a, err))) return st;
    if (t->features != train->features || t->tokens != train->tokens ||
        t->targets != train->targets || !t->value != !train->value)
        return pare_fail(err, PARE_ERR_INPUT,
                         "%s: %zu tokens, %zu features, %zu targets a row; %s has %zu, %zu and %zu",
                         t->path, t->tokens, t->features, t->targets, train->path, train->tokens,
                         train->features, train->targets);
    return data_of(d, t, a, err);
}

/* Rows in the order of a shuffle by the split alone: fixed shares of it are the parts. */
static pare_status share_rows(task_parts *out, pare_arena *a, size_t n,
                              const pare_task_series_opts *o, pare_err *err)
{
    uint32_t *const row = pare_alloc(a, n, sizeof *row);
    size_t *const order = pare_alloc(a, n, sizeof *order);
    if (!row || !order) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) row[i] = (uint32_t)i;
    pare_rng r = pare_rng_at(0, o->split);
    pare_rng_shuffle(&r, row, n);
    for (size_t i = 0; i < n; i++) order[i] = row[i];
    task_share_parts(out, order, n, (size_t)(PARE_SERIES_SHARE * (double)n), !o->val, !o->test);
    return PARE_OK;
}

static bool any_counts(const pare_dataset *d, size_t targets)
{
    if (d->value) return d->inputs.n > 0;
    for (size_t i = 0; i < d->inputs.n; i++)
        for (size_t k = 0; k < targets; k++)
            if (d->target[i][k] >= 0) return true;
    return false;
}

static pare_status split_rows(series_task *s, pare_task_facts *f, table file[PARTS], pare_arena *a,
                              const pare_task_series_opts *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    pare_dataset all;
    task_parts parts;
    pare_status st = PARE_OK;
    for (size_t p = 0; !st && p < PARTS; p++)
        if (path[p]) st = read_file(&s->part[p], &file[p], &file[TRAIN], a, path[p], err);
    if (st) return st;
    all = s->part[TRAIN];
    st = o->shares || (o->val && o->test)
             ? share_rows(&parts, a, all.inputs.n, o, err)
             : task_draw_parts(&parts, a, &all.inputs, !o->val, !o->test, o->seed, o->train, err);
    for (size_t p = 0; !st && p < PARTS; p++) {
        pare_dataset *const d = &s->part[p];
        const bool own = p != TRAIN && path[p];
        if (!own) st = pare_dataset_pick(d, a, &all, parts.number[p], parts.n[p], err);
        if (!st && !any_counts(d, file[TRAIN].targets))
            st = pare_fail(err, PARE_ERR_INPUT, "%s: no target counts in the %zu %s rows",
                           own ? path[p] : o->train, d->inputs.n, task_part_name[p]);
        if (!st && p != TRAIN) task_note_part(f, d, own ? NULL : &parts, p);
    }
    return st;
}

/* ---- batches and scores -------------------------------------------------------------------- */

/* Rows drawn with repetition, one behind the other. */
static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const series_task *s = self;
    const pare_dataset *const p = &s->part[TRAIN];
    const size_t n = s->batch, tokens = p->inputs.in[0].tokens, width = p->inputs.in[0].width;
    const size_t targets = p->value ? p->nvalues : p->task == PARE_TASK_TOKENS ? tokens : 1;
    pare_work w = {.arena = a, .err = err};
    pare_input *const in = pare_work_alloc(&w, 1, sizeof *in);
    int64_t *ids = width ? NULL : pare_work_alloc(&w, n, tokens * sizeof *ids);
    double *x = width ? pare_work_alloc(&w, n, tokens * width * sizeof *x) : NULL;
    int64_t *label = p->value ? NULL : pare_work_alloc(&w, n, targets * sizeof *label);
    double *value = p->value ? pare_work_alloc(&w, n, targets * sizeof *value) : NULL;
    pare_rng r = task_rng(seed, step);
    for (size_t i = 0; !w.st && i < n; i++) {
        const size_t row = (size_t)pare_rng_below(&r, p->inputs.n);
        const pare_input *const one = &p->inputs.in[row];
        if (ids) memcpy(ids + i * tokens, one->ids, tokens * sizeof *ids);
        if (x) memcpy(x + i * tokens * width, one->x, tokens * width * sizeof *x);
        if (label) memcpy(label + i * targets, p->target[row], targets * sizeof *label);
        if (value) memcpy(value + i * targets, p->value + row * targets, targets * sizeof *value);
    }
    if (w.st) return w.st;
    *in = (pare_input){.batch = n, .tokens = tokens, .width = width, .ids = ids, .x = x};
    *out = (pare_batch){.in = {1, in}, .label = label, .value = value};
    return PARE_OK;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part which,
                         const pare_exec *exec, pare_err *err)
{
    const series_task *s = self;
    return task_score(out, m, &s->part[which == PARE_PART_VAL ? VAL : TEST], exec, err);
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
    const bool each = t->per_token;
    f->features = t->features;
    f->outputs = t->targets;
    f->tokens = t->tokens;
    f->pool = each ? PARE_POOL_NONE : PARE_POOL_FIRST;
    f->train = s->part[TRAIN].inputs.n;
    f->val = s->part[VAL].inputs.n;
    f->test = s->part[TEST].inputs.n;
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
    *facts = (pare_task_facts){0};
    pare_status st = split_rows(s, facts, file, a, o, err);
    if (st) return st;
    st = find_facts(facts, s, file, o, err);
    const unsigned long long draw = o->shares ? o->split : o->seed;
    const char *id =
        pare_sprintf(a, "series %s %llu batch %zu own %d%d", o->shares ? "split" : "seed", draw,
                     o->batch, o->val != NULL, o->test != NULL);
    if (!st) st = task_fingerprint(&id, a, path, PARTS, err);
    if (st) return st;
    *out = (pare_task){.self = s,
                       .id = id,
                       .metric = file[TRAIN].value ? "mse" : "accuracy",
                       .more_is_better = !file[TRAIN].value,
                       .epoch = (facts->train + s->batch - 1) / s->batch,
                       .batch = batch,
                       .score = score};
    return PARE_OK;
}
