/* Area under the ROC curve: the chance that a random positive scores above a random negative, ties
 * counting half. By ranks (Mann-Whitney), which is exact: mid-ranks are halves of integers, so
 * twice their sum is kept as an integer and only the last division rounds. */
#include "graph_data.h"
#include <math.h>
#include <stdlib.h>

typedef struct scored {
    double score;
    uint8_t positive;
} scored;

static int by_score(const void *a, const void *b)
{
    const double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x > y) - (x < y);
}

/* Twice the sum of the positives' mid-ranks (ranks from 1): a tie group at [i, j) has the mean rank
 * (i + 1 + j) / 2. */
static uint64_t twice_rank_sum(const scored *v, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0, j; i < n; i = j) {
        uint64_t positives = 0;
        for (j = i; j < n && v[j].score == v[i].score; j++) positives += v[j].positive;
        sum += positives * (uint64_t)(i + 1 + j);
    }
    return sum;
}

pare_status pare_auc(double *out, const double *score, const uint8_t *positive, size_t n,
                     pare_err *err)
{
    *out = NAN;
    if (n > INT32_MAX) return pare_fail(err, PARE_ERR_INPUT, "AUC of %zu rows is too many", n);
    scored *v = malloc((n ? n : 1) * sizeof *v);
    if (!v) return pare_no_memory(err);
    uint64_t pos = 0;
    bool ordered = true;
    for (size_t i = 0; i < n; i++) {
        v[i] = (scored){score[i], positive[i] != 0};
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
        qsort(v, n, sizeof *v, by_score);
        *out = (double)(twice_rank_sum(v, n) - pos * (pos + 1)) / (2 * (double)pos * (double)neg);
    }
    free(v);
    return st;
}
