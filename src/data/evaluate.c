/* evaluate.c - a model on a dataset, input by input (pare/data.h). */
#include "evaluate.h"
#include "graph_data.h"
#include "base/work.h"
#include "base/support.h"
#include "model/model_facts.h"

#include <math.h>

/* What a data set asks of a model's outputs. */
typedef enum scoring { CLASSES, VALUES, EMBEDDINGS } scoring;

/* One of the models that are scored. */
typedef struct scored {
    const pare_model *m;
    pare_metric *metric;       /* of classes */
    float *out;                /* of one input */
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

static void open_scored(pare_work *w, scored *s, const pare_model *m, const pare_dataset *d)
{
    size_t rows = 0, n = 0;
    for (size_t i = 0; i < d->inputs.n; i++) {
        const size_t here = pare_output_rows(m, &d->inputs.in[i]);
        if (here > rows) rows = here;
    }
    s->m = m;
    if (d->task == PARE_TASK_TEXT && m->tokenizer != PARE_TOK_NONE && !w->st)
        pare_work_keep(w, pare_tokenizer_new(&s->tokenizer, w->arena, m->tokenizer, m->vocab,
                                             m->vocab_bytes, w->err));
    if (!pare_mul(&n, rows, pare_model_outputs(m))) pare_work_keep(w, pare_no_memory(w->err));
    s->out = pare_work_alloc(w, n, sizeof *s->out);
    if (!w->st)
        pare_work_keep(w, pare_metric_new(&s->metric, w->arena, pare_model_outputs(m), w->err));
}

/* The outputs of input i, added to the scores. */
static pare_status add_input(pare_work *w, scored *s, const pare_dataset *d, size_t i, scoring aim,
                             bool f64)
{
    const pare_input *const in = &d->inputs.in[i];
    const size_t rows = pare_output_rows(s->m, in), n = rows * pare_model_outputs(s->m);
    pare_status st;
    if (f64) {
        const pare_mark mark = pare_arena_mark(w->arena);
        double *const y = pare_alloc(w->arena, n, sizeof *y);
        st = y ? pare_forward_f64(y, s->m, in, NULL, w->exec, w->err) : pare_no_memory(w->err);
        for (size_t k = 0; !st && k < n; k++) s->out[k] = (float)y[k];
        pare_arena_reset(w->arena, mark);
    } else {
        st = pare_forward_f32(s->out, s->m, in, NULL, w->exec, w->err);
    }
    if (st || aim == EMBEDDINGS) return st;
    if (aim == CLASSES) {
        for (size_t r = 0; s->tokenizer && r < rows; r++) {
            size_t bytes = 0;
            if (d->target[i][r] < 0) continue;
            (void)pare_decode(s->tokenizer, in->ids[r], d->target[i][r], &bytes);
            s->bytes += bytes;
        }
        return pare_metric_add(s->metric, s->out, d->target[i], rows, w->err);
    }
    const double *const value = d->value + i * d->nvalues;
    for (size_t k = 0; k < d->nvalues; k++) {
        if (!isfinite(s->out[k]))
            return pare_fail(w->err, PARE_ERR_NONFINITE, "output %zu is %g", k, (double)s->out[k]);
        s->squares += ((double)s->out[k] - value[k]) * ((double)s->out[k] - value[k]);
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
                         "distance from those of a reference");
    pare_work w = {.arena = pare_arena_new(), .exec = exec, .err = err};
    if (!w.arena) return pare_no_memory(err);
    scored s = {0}, ref = {0};
    pare_kl *kl = NULL;
    double *const cosine = aim == EMBEDDINGS ? pare_work_alloc(&w, n, sizeof *cosine) : NULL;
    open_scored(&w, &s, m, d);
    pare_status st = w.st;
    if (!st && reference) st = check_reference(m, reference, d, err);
    if (!st && reference) {
        open_scored(&w, &ref, reference, d);
        st = w.st;
        if (!st) st = pare_kl_new(&kl, w.arena, cols, err);
    }
    for (size_t i = 0; i < n && !st; i++) {
        st = add_input(&w, &s, d, i, aim, f64);
        if (!st && reference) st = add_input(&w, &ref, d, i, aim, f64);
        if (!st && cosine) st = cosine_of(&cosine[i], ref.out, s.out, cols, err);
        const size_t rows = reference && aim == CLASSES ? pare_output_rows(m, &d->inputs.in[i]) : 0;
        for (size_t r = 0; r < rows && !st; r++) /* those that the metric counts */
            if (d->target[i][r] >= 0)
                st = pare_kl_add(kl, ref.out + r * cols, s.out + r * cols, 1, err);
        if (!st) st = pare_progress(exec, "evaluating", i + 1, n, err);
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

pare_status pare_output_error(double *out, const pare_model *f, const pare_model *g,
                              const pare_inputs *set, pare_arena *scratch, const pare_exec *exec,
                              pare_err *err)
{
    double difference = 0, size = 0; /* sums of squares */
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(scratch);
        const size_t n = pare_output_rows(f, &set->in[i]) * pare_model_outputs(f);
        float *const a = pare_alloc(scratch, n, sizeof *a);
        float *const b = pare_alloc(scratch, n, sizeof *b);
        st = a && b ? PARE_OK : pare_no_memory(err);
        if (!st) st = pare_forward_f32(a, f, &set->in[i], NULL, exec, err);
        if (!st) st = pare_forward_f32(b, g, &set->in[i], NULL, exec, err);
        for (size_t k = 0; !st && k < n; k++) {
            difference += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
            size += (double)a[k] * (double)a[k];
        }
        pare_arena_reset(scratch, mark);
    }
    *out = size > 0 ? sqrt(difference / size) : 0;
    return st;
}

pare_status pare_largest_output(double *out, const pare_model *m, const pare_inputs *set,
                                pare_arena *scratch, const pare_exec *exec, pare_err *err)
{
    pare_status st = PARE_OK;
    double most = 0;
    for (size_t i = 0; !st && !isnan(most) && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(scratch);
        const size_t n = pare_output_rows(m, &set->in[i]) * pare_model_outputs(m);
        float *const y = pare_alloc(scratch, n, sizeof *y);
        st = y ? pare_forward_f32(y, m, &set->in[i], NULL, exec, err) : pare_no_memory(err);
        for (size_t k = 0; !st && k < n; k++)
            most = isfinite(y[k]) ? fmax(most, fabs((double)y[k])) : NAN;
        pare_arena_reset(scratch, mark);
    }
    *out = st == PARE_ERR_NONFINITE ? NAN : most;
    return st == PARE_ERR_NONFINITE ? PARE_OK : st;
}
