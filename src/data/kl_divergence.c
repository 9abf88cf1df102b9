/* How far a model's answers are from the reference's: per row
 *   KL(p || q) = sum_i p_i (log p_i - log q_i),  p = softmax(reference), q = softmax(model),
 * in double with logarithms throughout, so that a tiny p_i or q_i is not lost. */
#include "graph_data.h"
#include "log_softmax.h"
#include <math.h>
#include <stdlib.h>

struct pare_kl {
    size_t classes, same;
    pare_series rows;
};

pare_status pare_kl_new(pare_kl **out, pare_arena *a, size_t classes, pare_err *err)
{
    PARE_ASSERT(classes > 0);
    pare_kl *k = *out = pare_alloc(a, 1, sizeof *k);
    if (!k) return pare_no_memory(err);
    k->classes = classes;
    k->rows.arena = a;
    return PARE_OK;
}

pare_status pare_kl_add(pare_kl *k, const float *reference, const float *logits, size_t rows,
                        pare_err *err)
{
    pare_status st = pare_series_grow(&k->rows, rows, err);
    for (size_t r = 0; r < rows && st == PARE_OK; r++) {
        const float *p = reference + r * k->classes, *q = logits + r * k->classes;
        pare_log_row row_p, row_q;
        double sum = 0;
        st = pare_log_row_of(&row_p, p, k->classes, err);
        if (st == PARE_OK) st = pare_log_row_of(&row_q, q, k->classes, err);
        if (st) return st;
        for (size_t i = 0; i < k->classes; i++) {
            const double log_p = pare_log_share(&row_p, p[i]);
            sum += exp(log_p) * (log_p - pare_log_share(&row_q, q[i]));
        }
        k->rows.v[k->rows.n++] = sum > 0 ? sum : 0; /* below zero it is rounding */
        k->same += row_p.top == row_q.top;
    }
    return st;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

pare_status pare_kl_scores(pare_kl_report *out, pare_kl *k, pare_err *err)
{
    const size_t n = k->rows.n;
    double *v = k->rows.v;
    *out = (pare_kl_report){0};
    if (n == 0) return pare_fail(err, PARE_ERR_INPUT, "no rows to compare with the reference");
    qsort(v, n, sizeof *v, ascending);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i]; /* small ones first */
    out->rows = n;
    out->mean = sum / (double)n;
    out->median = n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2;
    out->p999 = v[n - 1 - n / 1000]; /* rank ceil(0.999 n) */
    out->max = v[n - 1];
    out->same_top = (double)k->same / (double)n;
    return PARE_OK;
}
