/* metric.c - accuracy, cross entropy, AUC and KL divergence of output rows.
 *
 * All from logits x in f64, through the logarithm of the softmax
 *
 *     log softmax(x)_i = (x_i - max x) - log sum_j exp(x_j - max x),
 *
 * so that a tiny probability is not lost. */
#include "base/support.h"
#include "graph_data.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows of logits -------------------------------------------------------------------------- */

typedef struct log_softmax_row {
    double max, log_sum; /* log_sum = log sum_j exp(x_j - max) */
    size_t argmax;       /* the first index of the largest logit */
} log_softmax_row;

static pare_status read_row(log_softmax_row *r, const float *x, size_t n, pare_err *err)
{
    r->argmax = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return pare_fail(err, PARE_ERR_NONFINITE, "logit %zu of a row is %g", i, (double)x[i]);
        if (x[i] > x[r->argmax]) r->argmax = i;
    }
    r->max = (double)x[r->argmax];
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - r->max);
    r->log_sum = log(sum);
    return PARE_OK;
}

/* max + log_sum first would lose the digits of the smaller of the two. */
static double log_softmax(const log_softmax_row *r, float x)
{
    return ((double)x - r->max) - r->log_sum;
}

/* A growing array of doubles in an arena. */
typedef struct series {
    pare_arena *arena;
    double *v;
    size_t n, capacity;
} series;

static pare_status reserve(series *s, size_t more, pare_err *err)
{
    size_t need;
    if (!pare_add(&need, s->n, more)) return pare_no_memory(err);
    if (need <= s->capacity) return PARE_OK;
    /* Doubling: the arena keeps the old arrays, together no more than the new one. */
    const size_t capacity = need < 2 * s->capacity ? 2 * s->capacity : need;
    double *v = pare_alloc(s->arena, capacity, sizeof *v);
    if (!v) return pare_no_memory(err);
    if (s->n) memcpy(v, s->v, s->n * sizeof *v);
    s->v = v;
    s->capacity = capacity;
    return PARE_OK;
}

/* Compares doubles, and structs that begin with one. */
static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- AUC ------------------------------------------------------------------------------------- */

typedef struct scored_row {
    double score;
    uint8_t positive;
} scored_row;

/* The probability that a random positive scores above a random negative, ties counting half, by
 * ranks (Mann-Whitney):
 *
 *     AUC = (sum of the positives' ranks - P (P + 1) / 2) / (P N),   P positives, N negatives,
 *
 * with mean ranks for ties. It is exact but for the last division: mean ranks are halves of
 * integers, and twice their sum is added up as an integer. */
pare_status pare_auc(double *out, const double *score, const uint8_t *positive, size_t n,
                     pare_err *err)
{
    *out = NAN;
    if (n > INT32_MAX) return pare_fail(err, PARE_ERR_INPUT, "AUC of %zu rows is too many", n);
    scored_row *v = malloc((n ? n : 1) * sizeof *v);
    if (!v) return pare_no_memory(err);
    uint64_t pos = 0;
    bool ordered = true;
    for (size_t i = 0; i < n; i++) {
        v[i] = (scored_row){score[i], positive[i] != 0};
        pos += v[i].positive;
        ordered = ordered && !isnan(score[i]);
    }
    const uint64_t neg = n - pos;
    pare_status st = PARE_OK;
    if (!ordered) {
        st = pare_fail(err, PARE_ERR_NONFINITE, "AUC: a score is nan");
    } else if (pos == 0 || neg == 0) {
        st = pare_fail(err, PARE_ERR_INPUT,
                       "AUC needs both classes: %zu rows are positive, %zu negative", (size_t)pos,
                       (size_t)neg);
    } else {
        uint64_t twice_rank_sum = 0;
        qsort(v, n, sizeof *v, by_value);
        for (size_t i = 0, j; i < n; i = j) { /* equal scores [i, j): mean rank (i + 1 + j) / 2 */
            uint64_t positives = 0;
            for (j = i; j < n && v[j].score == v[i].score; j++) positives += v[j].positive;
            twice_rank_sum += positives * (uint64_t)(i + 1 + j);
        }
        *out = (double)(twice_rank_sum - pos * (pos + 1)) / (2 * (double)pos * (double)neg);
    }
    free(v);
    return st;
}

/* ---- accuracy, cross entropy, AUC of two classes --------------------------------------------- */

struct pare_metric {
    size_t classes, counted, correct;
    double nats, carry;      /* the sum of cross entropies, compensated */
    series margin, positive; /* two classes: logit 1 - logit 0, and whether the target is 1 */
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

pare_status pare_metric_add(pare_metric *m, const float *logits, const int64_t *target, size_t rows,
                            pare_err *err)
{
    pare_status st = PARE_OK;
    if (m->classes == 2) st = reserve(&m->margin, rows, err);
    if (m->classes == 2 && !st) st = reserve(&m->positive, rows, err);
    for (size_t i = 0; i < rows && !st; i++) {
        const float *const x = logits + i * m->classes;
        log_softmax_row row;
        if (target[i] == -1) continue;
        if (target[i] < 0 || (uint64_t)target[i] >= m->classes)
            return pare_fail(err, PARE_ERR_INPUT, "target %lld is not among the %zu outputs",
                             (long long)target[i], m->classes);
        st = read_row(&row, x, m->classes, err);
        if (st) break;
        m->counted++;
        m->correct += row.argmax == (size_t)target[i];
        /* Kahan summation: a quarter of a million rows must not lose the digits the docs print. */
        const double nats = -log_softmax(&row, x[target[i]]) - m->carry, sum = m->nats + nats;
        m->carry = (sum - m->nats) - nats;
        m->nats = sum;
        if (m->classes == 2) {
            m->margin.v[m->margin.n++] = (double)x[1] - (double)x[0];
            m->positive.v[m->positive.n++] = (double)target[i];
        }
    }
    return st;
}

pare_status pare_metric_scores(pare_scores *out, pare_metric *m, pare_err *err)
{
    *out = (pare_scores){0, NAN, NAN, NAN, NAN};
    if (m->counted == 0)
        return pare_fail(err, PARE_ERR_INPUT, "the data have no labels or tokens to score");
    const double n = (double)m->counted;
    out->counted = m->counted;
    out->accuracy = (double)m->correct / n;
    out->nats = m->nats / n;
    out->perplexity = exp(out->nats);
    if (m->classes != 2) return PARE_OK;
    uint8_t *positive = pare_alloc(m->margin.arena, m->counted, 1);
    if (!positive) return pare_no_memory(err);
    for (size_t i = 0; i < m->counted; i++) positive[i] = m->positive.v[i] == 1;
    const pare_status st = pare_auc(&out->auc, m->margin.v, positive, m->counted, NULL);
    return st == PARE_ERR_MEMORY ? pare_no_memory(err) : PARE_OK; /* one class: stays nan */
}

/* ---- KL divergence --------------------------------------------------------------------------- */

/* Per row  KL(p || q) = sum_i p_i (log p_i - log q_i),  p = softmax(reference), q =
 * softmax(model). */
struct pare_kl {
    size_t classes, same_argmax;
    series rows;
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
    pare_status st = reserve(&k->rows, rows, err);
    for (size_t r = 0; r < rows && st == PARE_OK; r++) {
        const float *p = reference + r * k->classes, *q = logits + r * k->classes;
        log_softmax_row row_p, row_q;
        double sum = 0;
        st = read_row(&row_p, p, k->classes, err);
        if (st == PARE_OK) st = read_row(&row_q, q, k->classes, err);
        if (st) return st;
        for (size_t i = 0; i < k->classes; i++) {
            const double log_p = log_softmax(&row_p, p[i]);
            sum += exp(log_p) * (log_p - log_softmax(&row_q, q[i]));
        }
        k->rows.v[k->rows.n++] = sum > 0 ? sum : 0; /* below zero it is rounding */
        k->same_argmax += row_p.argmax == row_q.argmax;
    }
    return st;
}

pare_status pare_kl_scores(pare_kl_report *out, pare_kl *k, pare_err *err)
{
    const size_t n = k->rows.n;
    double *v = k->rows.v;
    *out = (pare_kl_report){0};
    if (n == 0) return pare_fail(err, PARE_ERR_INPUT, "no rows to compare with the reference");
    qsort(v, n, sizeof *v, by_value);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i]; /* small ones first */
    out->rows = n;
    out->mean = sum / (double)n;
    out->median = n % 2 ? v[n / 2] : v[n / 2 - 1] / 2 + v[n / 2] / 2;
    out->p999 = v[n - 1 - n / 1000]; /* rank ceil(0.999 n) */
    out->max = v[n - 1];
    out->same_top = (double)k->same_argmax / (double)n;
    return PARE_OK;
}
