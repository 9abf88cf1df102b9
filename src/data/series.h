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
/* log(sum exp(x_i)) of one row, stable; *top: the first index of the largest. PARE_ERR_NONFINITE
 * when a logit is nan or inf. n > 0. */
PARE_MUST_USE pare_status pare_row_lse(double *lse, size_t *top, const float *x, size_t n,
                                       pare_err *err);
#endif
