#include "series.h"
#include <math.h>
#include <string.h>

pare_status pare_series_grow(pare_series *s, size_t more, pare_err *err)
{
    size_t need;
    if (!pare_add(&need, s->n, more)) return pare_no_memory(err);
    if (need <= s->room) return PARE_OK;
    /* Doubling: the arena keeps the old pieces, together no more than the new one. */
    const size_t room = need < 2 * s->room ? 2 * s->room : need;
    double *v = pare_alloc(s->arena, room, sizeof *v);
    if (!v) return pare_no_memory(err);
    if (s->n) memcpy(v, s->v, s->n * sizeof *v);
    s->v = v;
    s->room = room;
    return PARE_OK;
}

pare_status pare_row_lse(double *lse, size_t *top, const float *x, size_t n, pare_err *err)
{
    *top = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return pare_fail(err, PARE_ERR_NONFINITE, "logit %zu of a row is %g", i, (double)x[i]);
        if (x[i] > x[*top]) *top = i;
    }
    const double high = (double)x[*top];
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - high);
    *lse = high + log(sum);
    return PARE_OK;
}
