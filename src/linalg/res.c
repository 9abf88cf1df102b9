/* res.c - Res(Z) = Z - 1 y', y = argmin max_ij |Z_ij - y_j|: what is left of Z when its best
 * constant row is taken away. y_j is the midrange of column j, so max|Res(Z)| is half the widest
 * column. |A - B| <= e moves Res by 2e at most, not by e as it is sometimes stated. */
#include "matrix.h"
#include <math.h>

typedef struct span {
    double lo, hi;
} span;

/* False when the column holds a nan or an inf: comparisons alone would drop a nan. */
static bool column_span(span *s, const pare_mat *z, size_t j)
{
    *s = (span){INFINITY, -INFINITY};
    for (size_t i = 0; i < z->rows; i++) {
        const double x = pare_row(z, i)[j];
        if (!isfinite(x)) return false;
        if (x < s->lo) s->lo = x;
        if (x > s->hi) s->hi = x;
    }
    return true;
}

/* Half of hi - lo, one rounding in all: halving is exact unless the difference is subnormal or
 * overflows, and a subnormal difference was exact itself. */
static pare_ub half_width(span s)
{
    const double width = s.hi - s.lo;
    if (width == 0) return pare_ub_exact(0); /* gradual underflow: equal, not merely close */
    return pare_ub_of(isinf(width) ? s.hi / 2 - s.lo / 2 : width / 2);
}

pare_status pare_res(pare_mat *r, pare_ub *max, const pare_mat *z)
{
    PARE_ASSERT(r->rows == z->rows && r->cols == z->cols);
    pare_ub widest = pare_ub_exact(0);
    if (max) *max = pare_ub_inf(); /* what the caller keeps if we leave early */
    for (size_t j = 0; j < z->cols && z->rows > 0; j++) {
        span s;
        if (!column_span(&s, z, j)) return PARE_ERR_NONFINITE;
        const double mid = s.lo / 2 + s.hi / 2; /* lo + hi could overflow */
        for (size_t i = 0; i < z->rows; i++) pare_row_mut(r, i)[j] = pare_row(z, i)[j] - mid;
        widest = pare_ub_max(widest, half_width(s));
    }
    if (max) *max = widest;
    return PARE_OK;
}
