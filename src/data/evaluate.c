/* evaluate.c - a model on a dataset, input by input (pare/data.h). */
#include "evaluate.h"
#include "graph_data.h"
#include "base/work.h"
#include "base/support.h"
#include "model/inputs.h"
#include "model/model_facts.h"

#include <math.h>

/* What a data set asks of a model's outputs. */
typedef enum scoring { CLASSES, VALUES, EMBEDDINGS } scoring;

/* One of the models that are scored. */
typedef struct scored {
    const pare_model *m;
    pare_metric *metric;       /* of classes */
    float *out;                /* of some inputs, one after the other */
    double squares;            /* values: the sum of the squared errors, ... */
    size_t counted;            /* ... and how many they are */
    size_t bytes;              /* of the tokens that text was to predict */
    pare_tokenizer *tokenizer; /* NULL: not of text, or there is none */
} scored;

bool pare_dataset_has_targets(const pare_model *m, const pare_dataset *d)
{
    if (d->value) return true;
    for (size_t i = 0; i < d->inputs.n; i++)
        for (size_t r = 0; r < pare_output_rows(m, &d->inputs.in[i]); r++)
            if (d->target[i][r] >= 0) return true;
    return false;
}

/* The inputs from number `first` on that are evaluated together: those of the f32 engine side by side,
 * the reference pass one by one. */
static pare_inputs some_inputs(const pare_model *m, const pare_inputs *all, size_t first, bool f64)
{
    return (pare_inputs){f64 ? 1 : pare_inputs_together(m, all, first), all->in + first};
}

static size_t rows_of(const pare_model *m, const pare_inputs *set)
{
    size_t rows = 0;
    for (size_t i = 0; i < set->n; i++) rows += pare_output_rows(m, &set->in[i]);
    return rows;
}

/* The most output rows of inputs that are evaluated together. */
static size_t most_rows(const pare_model *m, const pare_inputs *all, bool f64)
{
    size_t most = 0;
    for (size_t i = 0; i < all->n;) {
        const pare_inputs some = some_inputs(m, all, i, f64);
        const size_t rows = rows_of(m, &some);
        if (rows > most) most = rows;
        i += some.n;
    }
    return most;
}

static void open_scored(pare_work *w, scored *s, const pare_model *m, const pare_dataset *d,
                        bool f64)
{
    size_t n = 0;
    s->m = m;
    if (d->task == PARE_TASK_TEXT && m->tokenizer != PARE_TOK_NONE && !w->st)
        pare_work_keep(w, pare_tokenizer_new(&s->tokenizer, w->arena, m->tokenizer, m->vocab,
                                             m->vocab_bytes, w->err));
    if (!pare_mul(&n, most_rows(m, &d->inputs, f64), pare_model_outputs(m)))
        pare_work_keep(w, pare_no_memory(w->err));
    s->out = pare_work_alloc(w, n, sizeof *s->out);
    if (!w->st)
        pare_work_keep(w, pare_metric_new(&s->metric, w->arena, pare_model_outputs(m), w->err));
}

static pare_status forward(pare_work *w, scored *s, const pare_inputs *some, bool f64)
{
    if (!f64) return pare_forward_set(s->out, PARE_F32, s->m, some, w->exec, w->err);
    const size_t n = rows_of(s->m, some) * pare_model_outputs(s->m);
    const pare_mark mark = pare_arena_mark(w->arena);
    double *const y = pare_alloc(w->arena, n, sizeof *y);
    const pare_status st =
        y ? pare_forward_set(y, PARE_F64, s->m, some, w->exec, w->err) : pare_no_memory(w->err);
    for (size_t k = 0; !st && k < n; k++) s->out[k] = (float)y[k];
    pare_arena_reset(w->arena, mark);
    return st;
}

/* The outputs of input i, which begin at `out`, added to the scores. */
static pare_status add_input(pare_work *w, scored *s, const pare_dataset *d, size_t i,
                             const float *out, scoring aim)
{
    const pare_input *const in = &d->inputs.in[i];
    const size_t rows = pare_output_rows(s->m, in);
    if (aim == EMBEDDINGS) return PARE_OK;
    if (aim == CLASSES) {
        for (size_t r = 0; s->tokenizer && r < rows; r++) {
            size_t bytes = 0;
            if (d->target[i][r] < 0) continue;
            (void)pare_decode(s->tokenizer, in->ids[r], d->target[i][r], &bytes);
            s->bytes += bytes;
        }
        return pare_metric_add(s->metric, out, d->target[i], rows, w->err);
    }
    const double *const value = d->value + i * d->nvalues;
    for (size_t k = 0; k < d->nvalues; k++) {
        if (!isfinite(out[k]))
            return pare_fail(w->err, PARE_ERR_NONFINITE, "output %zu is %g", k, (double)out[k]);
        s->squares += ((double)out[k] - value[k]) * ((double)out[k] - value[k]);
    }
    s->counted += d->nvalues;
    return PARE_OK;
}

/* Of a metric that has none of the figures of classes. */
static pare_evaluation other_metric(const char *name, double value, size_t counted)
{
    return (pare_evaluation){
        name,
        value,
        {.counted = counted, .accuracy = NAN, .nats = NAN, .perplexity = NAN, .auc = NAN},
        NAN};
}

static pare_status final_scores(pare_evaluation *e, scored *s, pare_task_kind task, pare_err *err)
{
    if (task == PARE_TASK_VALUES) {
        *e = other_metric("mse", s->squares / (double)s->counted, s->counted);
        return PARE_OK;
    }
    const pare_status st = pare_metric_scores(&e->scores, s->metric, err);
    if (st) return st;
    e->nats_per_byte =
        s->bytes ? e->scores.nats * (double)e->scores.counted / (double)s->bytes : NAN;
    if (task == PARE_TASK_TEXT) {
        e->metric = "perplexity";
        e->value = e->scores.perplexity;
    } else if (task == PARE_TASK_NODES && !isnan(e->scores.auc)) {
        e->metric = "auc";
        e->value = e->scores.auc;
    } else {
        e->metric = "accuracy";
        e->value = e->scores.accuracy;
    }
    return PARE_OK;
}

/* ---- cosines --------------------------------------------------------------------------------- */

static pare_status cosine_of(double *out, const float *a, const float *b, size_t n, pare_err *err)
{
    double aa = 0, bb = 0, ab = 0;
    for (size_t k = 0; k < n; k++) {
        if (!isfinite(a[k]) || !isfinite(b[k]))
            return pare_fail(err, PARE_ERR_NONFINITE, "output %zu is %g", k,
                             (double)(isfinite(a[k]) ? b[k] : a[k]));
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
        ab += (double)a[k] * (double)b[k];
    }
    const double lengths = sqrt(aa) * sqrt(bb);
    *out = lengths > 0 ? fmin(1, fmax(-1, ab / lengths)) : 0;
    return PARE_OK;
}

static void report_cosines(pare_cosine_report *out, double *v, size_t n)
{
    double sum = 0;
    pare_sort_doubles(v, n);
    for (size_t i = 0; i < n; i++) sum += v[i];
    *out = (pare_cosine_report){.rows = n,
                                .mean = sum / (double)n,
                                .median = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2,
                                .p05 = v[n / 20],
                                .p01 = v[n / 100],
                                .least = v[0]};
}

static pare_status check_reference(const pare_model *m, const pare_model *ref,
                                   const pare_dataset *d, pare_err *err)
{
    if (pare_model_outputs(m) != pare_model_outputs(ref))
        return pare_fail(err, PARE_ERR_INPUT, "the reference has %zu outputs, the model %zu",
                         pare_model_outputs(ref), pare_model_outputs(m));
    if (m->head.pool != ref->head.pool &&
        (m->head.pool == PARE_POOL_NONE || ref->head.pool == PARE_POOL_NONE))
        return pare_fail(err, PARE_ERR_INPUT,
                         "the reference and the model do not pool alike: %s and %s",
                         pare_pool_name(ref->head.pool), pare_pool_name(m->head.pool));
    for (size_t i = 0; i < d->inputs.n; i++) {
        const pare_status st = pare_input_check(ref, &d->inputs.in[i], err);
        if (st) {
            pare_err_prefix(err, "the reference");
            return st;
        }
    }
    return PARE_OK;
}

/* reference NULL: out->model alone. */
pare_status pare_evaluate_against(pare_comparison *out, const pare_model *m,
                                  const pare_model *reference, const pare_dataset *d, bool f64,
                                  const pare_exec *exec, pare_err *err)
{
    const scoring aim = d->value                                       ? VALUES
                        : pare_model_embeds(reference ? reference : m) ? EMBEDDINGS
                                                                       : CLASSES;
    const size_t cols = pare_model_outputs(m), n = d->inputs.n;
    *out = (pare_comparison){0};
    if (aim == EMBEDDINGS && !reference)
        return pare_fail(err, PARE_ERR_INPUT,
                         "the outputs are embeddings: there is nothing to score but their "
                         "distance from those of a reference model");
    if (aim == CLASSES && !pare_dataset_has_targets(m, d))
        return pare_fail(
            err, PARE_ERR_INPUT, "%s",
            d->task == PARE_TASK_TEXT ? "no text has two tokens: there is no next one to predict"
            : d->task == PARE_TASK_NODES
                ? "no node of the test mask has a label"
                : "the data have no labels, so there is nothing to score: take a file with a "
                  "column 'label' (.tsv, .csv, .jsonl) or an array 'targets' (.npz)");
    pare_work w = {.arena = pare_arena_new(), .exec = exec, .err = err};
    if (!w.arena) return pare_no_memory(err);
    scored s = {0}, ref = {0};
    pare_kl *kl = NULL;
    double *const cosine = aim == EMBEDDINGS ? pare_work_alloc(&w, n, sizeof *cosine) : NULL;
    open_scored(&w, &s, m, d, f64);
    pare_status st = w.st;
    if (!st && reference) st = check_reference(m, reference, d, err);
    if (!st && reference) {
        open_scored(&w, &ref, reference, d, f64);
        st = w.st;
        if (!st) st = pare_kl_new(&kl, w.arena, cols, err);
    }
    for (size_t i = 0, end; i < n && !st; i = end) {
        const pare_inputs some = some_inputs(m, &d->inputs, i, f64);
        end = i + some.n;
        st = forward(&w, &s, &some, f64);
        if (!st && reference) st = forward(&w, &ref, &some, f64);
        for (size_t k = i, at = 0; k < end && !st; k++) {
            const size_t rows = pare_output_rows(m, &d->inputs.in[k]);
            st = add_input(&w, &s, d, k, s.out + at, aim);
            if (!st && reference) st = add_input(&w, &ref, d, k, ref.out + at, aim);
            if (!st && cosine) st = cosine_of(&cosine[k], ref.out + at, s.out + at, cols, err);
            for (size_t r = 0; kl && aim == CLASSES && r < rows && !st; r++)
                if (d->target[k][r] >= 0) /* those that the metric counts */
                    st = pare_kl_add(kl, ref.out + at + r * cols, s.out + at + r * cols, 1, err);
            at += rows * cols;
        }
        if (!st) st = pare_progress(exec, "evaluating", end, n, err);
    }
    if (!st && aim == EMBEDDINGS) {
        report_cosines(&out->cosine, cosine, n);
        out->model = other_metric("cosine", out->cosine.mean, n);
        out->reference = other_metric("cosine", 1, n);
    } else {
        if (!st) st = final_scores(&out->model, &s, d->task, err);
        if (!st && reference) st = final_scores(&out->reference, &ref, d->task, err);
        if (!st && reference && aim == CLASSES) st = pare_kl_scores(&out->kl, kl, err);
    }
    pare_arena_free(w.arena);
    return st;
}

pare_status pare_evaluate(pare_evaluation *out, const pare_model *m, const pare_dataset *d,
                          bool f64, const pare_exec *exec, pare_err *err)
{
    pare_comparison alone;
    const pare_status st = pare_evaluate_against(&alone, m, NULL, d, f64, exec, err);
    if (!st) *out = alone.model;
    return st;
}

/* ---- outputs themselves ---------------------------------------------------------------------- */

/* The outputs of some inputs on the f32 engine, in the arena. */
static pare_status outputs_of(float **out, size_t *n, const pare_model *m, const pare_inputs *some,
                              pare_arena *a, const pare_exec *exec, pare_err *err)
{
    *n = rows_of(m, some) * pare_model_outputs(m);
    *out = pare_alloc(a, *n, sizeof **out);
    return *out ? pare_forward_set(*out, PARE_F32, m, some, exec, err) : pare_no_memory(err);
}

pare_status pare_output_error(double *out, const pare_model *f, const pare_model *g,
                              const pare_inputs *set, pare_arena *scratch, const pare_exec *exec,
                              pare_err *err)
{
    double difference = 0, size = 0; /* sums of squares */
    pare_status st = PARE_OK;
    for (size_t i = 0, n; !st && i < set->n;) {
        const pare_mark mark = pare_arena_mark(scratch);
        const pare_inputs some = some_inputs(f, set, i, false);
        float *a, *b;
        st = outputs_of(&a, &n, f, &some, scratch, exec, err);
        if (!st) st = outputs_of(&b, &n, g, &some, scratch, exec, err);
        for (size_t k = 0; !st && k < n; k++) {
            difference += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
            size += (double)a[k] * (double)a[k];
        }
        pare_arena_reset(scratch, mark);
        i += some.n;
    }
    *out = size > 0 ? sqrt(difference / size) : 0;
    return st;
}

pare_status pare_largest_output(double *out, const pare_model *m, const pare_inputs *set,
                                pare_arena *scratch, const pare_exec *exec, pare_err *err)
{
    pare_status st = PARE_OK;
    double most = 0;
    for (size_t i = 0, n; !st && !isnan(most) && i < set->n;) {
        const pare_mark mark = pare_arena_mark(scratch);
        const pare_inputs some = some_inputs(m, set, i, false);
        float *y;
        st = outputs_of(&y, &n, m, &some, scratch, exec, err);
        for (size_t k = 0; !st && k < n; k++)
            most = isfinite(y[k]) ? fmax(most, fabs((double)y[k])) : NAN;
        pare_arena_reset(scratch, mark);
        i += some.n;
    }
    *out = st == PARE_ERR_NONFINITE ? NAN : most;
    return st == PARE_ERR_NONFINITE ? PARE_OK : st;
}
