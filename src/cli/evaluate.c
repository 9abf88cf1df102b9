/* A model on a data set, input by input. */
#include "evaluate.h"

#include <math.h>

typedef struct side { /* one of the models compared */
    const pare_model *m;
    pare_metric *metric;
    float *out;
    double squares; /* values: sum of the squared errors, and how many */
    size_t counted;
} side;

pare_status forward_floats(cli *c, float *out, const pare_model *m, const pare_input *in, bool f64)
{
    if (!f64) return pare_forward_f32(out, m, in, NULL, &c->exec, &c->err);
    const size_t n = pare_output_rows(m, in) * pare_model_outputs(m);
    const pare_mark mark = pare_arena_mark(c->arena);
    double *wide = pare_alloc(c->arena, n, sizeof *wide);
    pare_status st = wide ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = pare_forward_f64(wide, m, in, NULL, &c->exec, &c->err);
    for (size_t i = 0; !st && i < n; i++) out[i] = (float)wide[i];
    pare_arena_reset(c->arena, mark);
    return st;
}

static pare_status side_open(cli *c, side *s, const pare_model *m, size_t most_rows)
{
    size_t n = 0;
    s->m = m;
    if (!pare_mul(&n, most_rows, pare_model_outputs(m))) return pare_no_memory(&c->err);
    s->out = pare_alloc(c->arena, n, sizeof *s->out);
    if (!s->out) return pare_no_memory(&c->err);
    return pare_metric_new(&s->metric, c->arena, pare_model_outputs(m), &c->err);
}

static pare_status side_add_values(cli *c, side *s, const double *value, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (!isfinite(s->out[k]))
            return pare_fail(&c->err, PARE_ERR_NONFINITE, "output %zu is %g", k, (double)s->out[k]);
        s->squares += ((double)s->out[k] - value[k]) * ((double)s->out[k] - value[k]);
    }
    s->counted += n;
    return PARE_OK;
}

static pare_status side_add(cli *c, side *s, const pare_dataset *d, size_t i, bool f64)
{
    const pare_input *const in = &d->inputs.in[i];
    const pare_status st = forward_floats(c, s->out, s->m, in, f64);
    if (st) return st;
    if (d->value) return side_add_values(c, s, d->value + i * d->nvalues, d->nvalues);
    return pare_metric_add(s->metric, s->out, d->target[i], pare_output_rows(s->m, in), &c->err);
}

static void value_scores(evaluation *e, const side *s)
{
    e->metric = "mse";
    e->value = s->squares / (double)s->counted;
    e->scores = (pare_scores){
        .counted = s->counted, .accuracy = NAN, .nats = NAN, .perplexity = NAN, .auc = NAN};
}

static pare_status side_scores(cli *c, evaluation *e, side *s, pare_task task)
{
    if (task == PARE_TASK_VALUES) {
        value_scores(e, s);
        return PARE_OK;
    }
    const pare_status st = pare_metric_scores(&e->scores, s->metric, &c->err);
    if (st) return st;
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

/* Rows whose target counts: KL is reported on what the metric is. */
static pare_status kl_rows(cli *c, pare_kl *kl, const side *ref, const side *s,
                           const int64_t *target, size_t rows)
{
    const size_t cols = pare_model_outputs(s->m);
    pare_status st = PARE_OK;
    for (size_t r = 0; r < rows && !st; r++)
        if (target[r] >= 0)
            st = pare_kl_add(kl, ref->out + r * cols, s->out + r * cols, 1, &c->err);
    return st;
}

bool has_targets(const pare_model *m, const pare_dataset *d)
{
    if (d->value) return true;
    for (size_t i = 0; i < d->inputs.n; i++)
        for (size_t r = 0; r < pare_output_rows(m, &d->inputs.in[i]); r++)
            if (d->target[i][r] >= 0) return true;
    return false;
}

static size_t most_rows(const pare_model *m, const pare_dataset *d)
{
    size_t most = 0;
    for (size_t i = 0; i < d->inputs.n; i++) {
        const size_t rows = pare_output_rows(m, &d->inputs.in[i]);
        if (rows > most) most = rows;
    }
    return most;
}

static pare_status reference_check(cli *c, const pare_model *m, const pare_model *ref,
                                   const pare_dataset *d)
{
    if (pare_model_outputs(m) != pare_model_outputs(ref))
        return pare_fail(&c->err, PARE_ERR_INPUT, "--reference has %zu outputs, the model %zu",
                         pare_model_outputs(ref), pare_model_outputs(m));
    if (m->top.pool != ref->top.pool &&
        (m->top.pool == PARE_POOL_NONE || ref->top.pool == PARE_POOL_NONE))
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "--reference and the model do not pool alike: %s and %s",
                         pare_pool_name(ref->top.pool), pare_pool_name(m->top.pool));
    for (size_t i = 0; i < d->inputs.n; i++) {
        const pare_status st = pare_input_check(ref, &d->inputs.in[i], &c->err);
        if (st) {
            pare_err_prefix(&c->err, "--reference");
            return st;
        }
    }
    return PARE_OK;
}

pare_status evaluate(cli *c, evaluation *out, const pare_model *m, const pare_dataset *d, bool f64,
                     evaluation *of_reference, pare_kl_report *report, const pare_model *reference)
{
    side s = {0}, ref = {0};
    pare_kl *kl = NULL;
    const size_t rows = most_rows(m, d);
    pare_status st = side_open(c, &s, m, rows);
    if (!st && reference) st = reference_check(c, m, reference, d);
    if (!st && reference) st = side_open(c, &ref, reference, rows);
    if (!st && reference) st = pare_kl_new(&kl, c->arena, pare_model_outputs(m), &c->err);
    for (size_t i = 0; i < d->inputs.n && !st; i++) {
        const pare_input *in = &d->inputs.in[i];
        st = side_add(c, &s, d, i, f64);
        if (!st && reference) st = side_add(c, &ref, d, i, f64);
        if (!st && reference) st = kl_rows(c, kl, &ref, &s, d->target[i], pare_output_rows(m, in));
        if (!st) st = pare_progress(&c->exec, "evaluating", i + 1, d->inputs.n, &c->err);
    }
    if (!st) st = side_scores(c, out, &s, d->task);
    if (!st && reference) st = side_scores(c, of_reference, &ref, d->task);
    /* Values are no logits: no divergence to speak of. */
    if (!st && reference && !d->value) st = pare_kl_scores(report, kl, &c->err);
    return st;
}
