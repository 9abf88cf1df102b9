#include "base/support.h"
#include "log_softmax.h"
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

pare_status pare_log_row_of(pare_log_row *r, const float *x, size_t n, pare_err *err)
{
    r->top = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            return pare_fail(err, PARE_ERR_NONFINITE, "logit %zu of a row is %g", i, (double)x[i]);
        if (x[i] > x[r->top]) r->top = i;
    }
    r->high = (double)x[r->top];
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - r->high);
    r->log_sum = log(sum);
    return PARE_OK;
}
