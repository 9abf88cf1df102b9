/* series.h - doubles that come in one after another, in an arena. Private to src/data. */
#ifndef PARE_DATA_SERIES_H
#define PARE_DATA_SERIES_H
#include <pare/base.h>

typedef struct pare_series {
    pare_arena *arena;
    double *v;
    size_t n, room;
} pare_series;

/* Makes room for `more` values at v + n; what was there stays. */
PARE_MUST_USE pare_status pare_series_grow(pare_series *s, size_t more, pare_err *err);
/* One row of logits, ready for logarithms of its softmax. */
typedef struct pare_log_row {
    double high, log_sum; /* the largest logit; log sum_i exp(x_i - high) */
    size_t top;           /* the first index of the largest */
} pare_log_row;

/* PARE_ERR_NONFINITE when a logit is nan or inf. n > 0. */
PARE_MUST_USE pare_status pare_log_row_of(pare_log_row *r, const float *x, size_t n, pare_err *err);
/* log softmax. Adding high and log_sum up first would drown the small one in the large. */
static inline double pare_log_share(const pare_log_row *r, float x)
{
    return ((double)x - r->high) - r->log_sum;
}
#endif
