/* Accuracy, cross entropy and, for two classes, AUC of output rows. */
#include "graph_data.h"
#include "log_softmax.h"
#include <math.h>

struct pare_metric {
    size_t classes, counted, correct;
    double nats, carry;           /* the sum of cross entropies, compensated */
    pare_series margin, positive; /* two classes: logit 1 - logit 0, and whether the target is 1 */
};

pare_status pare_metric_new(pare_metric **out, pare_arena *a, size_t classes, pare_err *err)
{
    PARE_ASSERT(classes > 0);
    pare_metric *m = *out = pare_alloc(a, 1, sizeof *m);
    if (!m) return pare_no_memory(err);
    m->classes = classes;
    m->margin.arena = m->positive.arena = a;
    return PARE_OK;
}

/* Kahan: a quarter of a million rows must not lose the digits the docs print. */
static void add_nats(pare_metric *m, double x)
{
    const double y = x - m->carry, sum = m->nats + y;
    m->carry = (sum - m->nats) - y;
    m->nats = sum;
}

static pare_status add_row(pare_metric *m, const float *x, int64_t target, pare_err *err)
{
    if (target < 0 || (uint64_t)target >= m->classes)
        return pare_fail(err, PARE_ERR_INPUT, "target %lld is not among the %zu outputs",
                         (long long)target, m->classes);
    pare_log_row row;
    const pare_status st = pare_log_row_of(&row, x, m->classes, err);
    if (st) return st;
    m->counted++;
    m->correct += row.top == (size_t)target;
    add_nats(m, -pare_log_share(&row, x[target]));
    if (m->classes == 2) {
        m->margin.v[m->margin.n++] = (double)x[1] - (double)x[0];
        m->positive.v[m->positive.n++] = (double)target;
    }
    return PARE_OK;
}

pare_status pare_metric_add(pare_metric *m, const float *logits, const int64_t *target, size_t rows,
                            pare_err *err)
{
    if (m->classes == 2) {
        pare_status st = pare_series_grow(&m->margin, rows, err);
        if (st == PARE_OK) st = pare_series_grow(&m->positive, rows, err);
        if (st) return st;
    }
    for (size_t i = 0; i < rows; i++) {
        if (target[i] == -1) continue;
        const pare_status st = add_row(m, logits + i * m->classes, target[i], err);
        if (st) return st;
    }
    return PARE_OK;
}

static pare_status two_class_auc(double *out, pare_metric *m, pare_err *err)
{
    *out = NAN;
    if (m->classes != 2) return PARE_OK;
    uint8_t *positive = pare_alloc(m->margin.arena, m->counted, 1);
    if (!positive) return pare_no_memory(err);
    for (size_t i = 0; i < m->counted; i++) positive[i] = m->positive.v[i] == 1;
    const pare_status st = pare_auc(out, m->margin.v, positive, m->counted, NULL);
    return st == PARE_ERR_MEMORY ? pare_no_memory(err) : PARE_OK; /* one class: stays nan */
}

pare_status pare_metric_scores(pare_scores *out, pare_metric *m, pare_err *err)
{
    *out = (pare_scores){0, NAN, NAN, NAN, NAN};
    if (m->counted == 0)
        return pare_fail(err, PARE_ERR_INPUT, "the data hold no target that counts");
    const double n = (double)m->counted;
    out->counted = m->counted;
    out->accuracy = (double)m->correct / n;
    out->nats = m->nats / n;
    out->perplexity = exp(out->nats);
    return two_class_auc(&out->auc, m, err);
}
