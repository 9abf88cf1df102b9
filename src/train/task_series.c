/* Sequences with targets (sorting) or with values (angular velocity). A batch is rows drawn with
 * repetition. Rows of a file are shared out by a shuffle that depends on the split alone. */
#include "task.h"

#include <math.h>
#include <string.h>

enum { TRAIN, VAL, TEST, PARTS };
#define ID_LIMIT ((int64_t)1 << 31)

typedef struct table { /* one file */
    const char *path;
    size_t n, tokens, features; /* features 0: ids */
    size_t targets;             /* numbers of `target` or `value` per row */
    int64_t *ids, *target;
    double *x, *value;
    int64_t top_id, top_target; /* the largest */
} table;

typedef struct part { /* rows of a table */
    const table *from;
    const uint32_t *row; /* n */
    size_t n;
} part;

typedef struct series_task {
    size_t batch;
    bool lead; /* a row of zeros before the vectors */
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

static pare_status read_ids(int64_t **out, int64_t *top, pare_arena *a, const pare_array *v,
                            int64_t least, const char *key, pare_err *err)
{
    const size_t n = pare_array_count(v);
    int64_t *ids = *out = pare_alloc(a, n ? n : 1, sizeof *ids);
    if (!ids) return pare_no_memory(err);
    *top = -1;
    for (size_t i = 0; i < n; i++) {
        ids[i] = pare_array_i64(v, i);
        if (ids[i] < least || ids[i] >= ID_LIMIT)
            return pare_fail(err, PARE_ERR_INPUT, "%s: row %zu holds %lld", key, i / row_size(v),
                             (long long)ids[i]);
        if (ids[i] > *top) *top = ids[i];
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

static pare_status read_inputs(table *t, pare_arena *a, const pare_npz *z, pare_err *err)
{
    pare_array v;
    const pare_status st = pare_npz_get(&v, z, "inputs", err);
    if (st) return st;
    const bool ids = v.ndim == 2 && pare_array_is_integer(&v);
    const bool vectors = v.ndim == 3 && v.dtype != PARE_TEXT && v.shape[2] > 0;
    if ((!ids && !vectors) || v.shape[0] == 0 || v.shape[0] > UINT32_MAX || v.shape[1] == 0)
        return bad_shape(&v, "inputs", "ids [n, T] or vectors [n, T, d]", err);
    t->n = v.shape[0];
    t->tokens = v.shape[1];
    t->features = ids ? 0 : v.shape[2];
    return ids ? read_ids(&t->ids, &t->top_id, a, &v, 0, "inputs", err)
               : read_numbers(&t->x, a, &v, "inputs", err);
}

static pare_status read_targets(table *t, pare_arena *a, const pare_npz *z, pare_err *err)
{
    pare_array v;
    const pare_status st = pare_npz_get(&v, z, "targets", err);
    if (st) return st;
    const bool each = v.ndim == 2 && v.shape[1] == t->tokens;
    if ((!each && v.ndim != 1) || v.shape[0] != t->n || !pare_array_is_integer(&v))
        return bad_shape(&v, "targets", "integers [n, T] or [n] as the inputs", err);
    t->targets = each ? t->tokens : 1;
    return read_ids(&t->target, &t->top_target, a, &v, -1, "targets", err);
}

static pare_status read_values(table *t, pare_arena *a, const pare_npz *z, pare_err *err)
{
    pare_array v;
    const pare_status st = pare_npz_get(&v, z, "values", err);
    if (st) return st;
    if ((v.ndim != 1 && v.ndim != 2) || v.shape[0] != t->n || v.dtype == PARE_TEXT ||
        row_size(&v) == 0)
        return bad_shape(&v, "values", "numbers [n] or [n, k] as the inputs", err);
    t->targets = row_size(&v);
    return read_numbers(&t->value, a, &v, "values", err);
}

static pare_status read_table(table *t, pare_arena *a, const char *path, pare_err *err)
{
    pare_npz *z = NULL;
    *t = (table){.path = path};
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    pare_status st = pare_npz_open(&z, scratch, path, err);
    if (!st) st = read_inputs(t, a, z, err);
    if (!st && !pare_npz_has(z, "targets") && !pare_npz_has(z, "values"))
        st = pare_fail(err, PARE_ERR_INPUT, "neither targets nor values beside the inputs");
    if (!st)
        st = pare_npz_has(z, "targets") ? read_targets(t, a, z, err) : read_values(t, a, z, err);
    pare_npz_close(z);
    pare_arena_free(scratch);
    return task_prefix_error(st, err, path);
}

/* ---- sharing out --------------------------------------------------------------------------- */

/* The rows of `t` in the order of the split. */
static pare_status shuffled(uint32_t **row, pare_arena *a, const table *t, size_t split,
                            pare_err *err)
{
    *row = pare_alloc(a, t->n, sizeof **row);
    if (!*row) return pare_no_memory(err);
    for (size_t i = 0; i < t->n; i++) (*row)[i] = (uint32_t)i;
    pare_rng r = pare_rng_at(0, split);
    pare_rng_shuffle(&r, *row, t->n);
    return PARE_OK;
}

static part cut(part *from)
{
    const size_t n = (size_t)(PARE_SERIES_SHARE * (double)from->from->n);
    from->n -= n;
    return (part){from->from, from->row + from->n, n};
}

/* Which targets of a row count; a part must have one. */
static bool counts(const part *p)
{
    if (p->from->value) return p->n > 0;
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->from->targets; k++)
            if (p->from->target[p->row[i] * p->from->targets + k] >= 0) return true;
    return false;
}

/* A file of its own must ask the same of a model as the training file does. */
static pare_status alike(const table *t, const table *u, pare_err *err)
{
    if (t->features == u->features && t->tokens == u->tokens && t->targets == u->targets &&
        !t->value == !u->value)
        return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT,
                     "%s: %zu tokens, %zu features, %zu targets a row; %s has %zu, %zu and %zu",
                     u->path, u->tokens, u->features, u->targets, t->path, t->tokens, t->features,
                     t->targets);
}

static pare_status share_out(series_task *s, table file[PARTS], pare_arena *a,
                             const pare_series_lesson *o, pare_err *err)
{
    static const char *const name[PARTS] = {"training", "validation", "test"};
    const char *const path[PARTS] = {o->train, o->val, o->test};
    pare_status st = PARE_OK;
    for (size_t p = 0; !st && p < PARTS; p++) {
        uint32_t *row;
        if (!path[p]) continue;
        st = read_table(&file[p], a, path[p], err);
        if (!st && p) st = alike(&file[TRAIN], &file[p], err);
        if (!st) st = shuffled(&row, a, &file[p], o->split, err);
        if (!st) s->part[p] = (part){&file[p], row, file[p].n};
    }
    for (size_t p = PARTS - 1; !st && p > 0; p--)
        if (!path[p]) s->part[p] = cut(&s->part[TRAIN]);
    for (size_t p = 0; !st && p < PARTS; p++)
        if (!counts(&s->part[p]))
            st = pare_fail(err, PARE_ERR_INPUT, "%s: no target counts in the %zu %s rows",
                           s->part[p].from->path, s->part[p].n, name[p]);
    return st;
}

/* ---- batches and marks --------------------------------------------------------------------- */

static void put_row(const series_task *s, int64_t *ids, double *x, const table *t, size_t row)
{
    const size_t width = t->features ? t->features : 1, n = t->tokens * width;
    if (ids) memcpy(ids, t->ids + row * n, n * sizeof *ids);
    if (!x) return;
    const size_t skip = s->lead ? width : 0; /* the arena's zeros stay in front */
    memcpy(x + skip, t->x + row * n, n * sizeof *x);
}

/* Rows of a table as one batch. */
static pare_status gather(pare_batch *out, pare_arena *a, const series_task *s, const table *t,
                          const uint32_t *row, size_t n, pare_err *err)
{
    const size_t tokens = t->tokens + s->lead, width = t->features ? t->features : 1;
    int64_t *ids = t->ids ? pare_alloc(a, n, tokens * sizeof *ids) : NULL;
    double *x = t->x ? pare_alloc(a, n, tokens * width * sizeof *x) : NULL;
    int64_t *label = t->target ? pare_alloc(a, n, t->targets * sizeof *label) : NULL;
    double *value = t->value ? pare_alloc(a, n, t->targets * sizeof *value) : NULL;
    if (!(ids || x) || !(label || value)) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        put_row(s, ids ? ids + i * tokens : NULL, x ? x + i * tokens * width : NULL, t, row[i]);
        for (size_t k = 0; k < t->targets; k++) {
            if (label) label[i * t->targets + k] = t->target[row[i] * t->targets + k];
            if (value) value[i * t->targets + k] = t->value[row[i] * t->targets + k];
        }
    }
    *out =
        (pare_batch){.in = {.batch = n, .tokens = tokens, .width = t->features, .ids = ids, .x = x},
                     .label = label,
                     .value = value};
    return PARE_OK;
}

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    const series_task *s = self;
    const part *p = &s->part[TRAIN];
    uint32_t *row = pare_alloc(a, s->batch, sizeof *row);
    if (!row) return pare_no_memory(err);
    pare_rng r = task_rng(seed, step);
    for (size_t i = 0; i < s->batch; i++) row[i] = p->row[pare_rng_below(&r, p->n)];
    return gather(out, a, s, p->from, row, s->batch, err);
}

typedef struct tally {
    pare_metric *metric; /* targets */
    double squares;      /* values */
} tally;

static pare_status add_rows(tally *t, pare_arena *a, const series_task *s, const part *p,
                            size_t first, size_t n, const pare_model *m, const pare_exec *exec,
                            pare_err *err)
{
    pare_batch b;
    float *y;
    pare_status st = gather(&b, a, s, p->from, p->row + first, n, err);
    if (!st) st = task_forward(&y, a, m, &b.in, exec, err);
    if (st) return st;
    if (b.label) return pare_metric_add(t->metric, y, b.label, pare_output_rows(m, &b.in), err);
    for (size_t i = 0; i < n * p->from->targets; i++) {
        if (!isfinite(y[i]))
            return pare_fail(err, PARE_ERR_NONFINITE, "an output is %g", (double)y[i]);
        t->squares += ((double)y[i] - b.value[i]) * ((double)y[i] - b.value[i]);
    }
    return PARE_OK;
}

static pare_status score_in(const series_task *s, double *out, pare_arena *a, const pare_model *m,
                            const part *p, const pare_exec *exec, pare_err *err)
{
    tally t = {0};
    pare_scores scores;
    const size_t most = task_batch_limit(m, p->from->tokens + s->lead, s->batch);
    pare_arena *scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    pare_status st = pare_metric_new(&t.metric, a, pare_model_outputs(m), err);
    for (size_t i = 0, n; !st && i < p->n; i += n) {
        const pare_mark mark = pare_arena_mark(scratch);
        n = p->n - i < most ? p->n - i : most;
        st = add_rows(&t, scratch, s, p, i, n, m, exec, err);
        pare_arena_reset(scratch, mark);
    }
    pare_arena_free(scratch);
    if (st) return st;
    if (p->from->value) {
        *out = t.squares / (double)p->n / (double)p->from->targets;
        return PARE_OK;
    }
    st = pare_metric_scores(&scores, t.metric, err);
    if (!st) *out = scores.accuracy;
    return st;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part which,
                         const pare_exec *exec, pare_err *err)
{
    const series_task *s = self;
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st =
        score_in(s, out, a, m, &s->part[which == PARE_PART_VAL ? VAL : TEST], exec, err);
    pare_arena_free(a);
    return task_score_status(st, out, err);
}

/* ---- the lesson ---------------------------------------------------------------------------- */

/* The largest id or target of all files; a model that is there already must know it. */
static pare_status limit(size_t *out, size_t known, const table file[PARTS], bool targets,
                         pare_err *err)
{
    size_t most = 1;
    for (size_t p = 0; p < PARTS; p++) {
        const int64_t top = targets ? file[p].top_target : file[p].top_id;
        if (!file[p].path) continue;
        if (known && top >= 0 && (uint64_t)top >= known)
            return pare_fail(err, PARE_ERR_INPUT, "%s: %s %lld is not among the model's %zu",
                             file[p].path, targets ? "target" : "id", (long long)top, known);
        if ((size_t)(top + 1) > most) most = (size_t)(top + 1);
    }
    *out = known ? known : most;
    return PARE_OK;
}

static pare_status find_facts(pare_lesson_facts *f, const series_task *s, const table file[PARTS],
                              const pare_series_lesson *o, pare_err *err)
{
    const table *t = &file[TRAIN];
    const bool each = t->target && t->targets == t->tokens;
    *f = (pare_lesson_facts){.features = t->features,
                             .outputs = t->targets,
                             .tokens = t->tokens + s->lead,
                             .pool = each ? PARE_POOL_NONE : PARE_POOL_FIRST,
                             .train = s->part[TRAIN].n,
                             .val = s->part[VAL].n,
                             .test = s->part[TEST].n};
    pare_status st = t->ids ? limit(&f->ids, o->ids, file, false, err) : PARE_OK;
    if (!st && t->target) st = limit(&f->outputs, o->outputs, file, true, err);
    if (st || !each || !t->ids) return st;
    /* What is asked for at every token is an id again: one alphabet for both. */
    if (!o->ids && f->outputs > f->ids) f->ids = f->outputs;
    if (!o->outputs && f->ids > f->outputs) f->outputs = f->ids;
    return PARE_OK;
}

pare_status pare_lesson_series(pare_lesson *out, pare_lesson_facts *facts, pare_arena *a,
                               const pare_series_lesson *o, pare_err *err)
{
    const char *const path[PARTS] = {o->train, o->val, o->test};
    if (o->batch == 0) return pare_fail(err, PARE_ERR_USAGE, "batch must be at least 1");
    series_task *s = pare_alloc(a, 1, sizeof *s);
    table *file = pare_alloc(a, PARTS, sizeof *file);
    if (!s || !file) return pare_no_memory(err);
    s->batch = o->batch;
    pare_status st = share_out(s, file, a, o, err);
    if (st) return st;
    s->lead = file[TRAIN].x && file[TRAIN].value;
    st = find_facts(facts, s, file, o, err);
    const char *id = pare_sprintf(a, "series split %zu batch %zu own %d%d", o->split, o->batch,
                                  o->val != NULL, o->test != NULL);
    if (!st) st = id ? task_fingerprint(&id, a, id, path, PARTS, err) : pare_no_memory(err);
    if (st) return st;
    *out = (pare_lesson){.self = s,
                         .id = id,
                         .metric = file[TRAIN].value ? "mse" : "accuracy",
                         .more_is_better = !file[TRAIN].value,
                         .epoch = (s->part[TRAIN].n + s->batch - 1) / s->batch,
                         .batch = batch,
                         .score = score};
    return PARE_OK;
}
