/* res.c - Res(Z) = Z - 1 y', y = argmin max_ij |Z_ij - y_j|: what is left of Z when its best
 * constant row is taken away. y_j is the midrange of column j, so max|Res(Z)| is half the widest
 * column. |A - B| <= e moves Res by 2e at most, not by e as it is sometimes stated. */
#include "matrix.h"
#include <math.h>

pare_status pare_res(pare_mat *r, pare_ub *max, const pare_mat *z)
{
    PARE_ASSERT(r->rows == z->rows && r->cols == z->cols);
    pare_ub widest = pare_ub_exact(0);
    if (max) *max = pare_ub_inf(); /* what the caller keeps if we leave early */
    for (size_t j = 0; j < z->cols && z->rows > 0; j++) {
        double lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < z->rows; i++) {
            const double x = pare_row(z, i)[j];
            if (!isfinite(x)) return PARE_ERR_NONFINITE; /* comparisons alone would drop a nan */
            if (x < lo) lo = x;
            if (x > hi) hi = x;
        }
        const double mid = lo / 2 + hi / 2; /* lo + hi could overflow */
        for (size_t i = 0; i < z->rows; i++) pare_row_mut(r, i)[j] = pare_row(z, i)[j] - mid;
        /* Half of hi - lo, one rounding in all: halving is exact unless the difference is subnormal
         * or overflows, and a subnormal difference was exact itself. By gradual underflow a
         * difference of 0 means equal, not merely close. */
        const double width = hi - lo;
        if (width != 0)
            widest = pare_ub_max(widest, pare_ub_of(isinf(width) ? hi / 2 - lo / 2 : width / 2));
    }
    if (max) *max = widest;
    return PARE_OK;
}
