/* norms.c - norms of stored matrices, each proven: a sum of m rounded terms has its factor
 * 1 / (1 - gamma), a square its term for underflow. f32 entries are widened, which is exact. */
#include "bounds.h"
#include "norms.h"
#include <math.h>

/* Lost to underflow by the square of a scaled entry: its own 2^-1075 counts twice (times an entry
 * below 1), the rounding of the square once; rounded up generously. */
static const double lost_square = 0x1p-1072;

unit_scale pare_unit_scale_of(double largest)
{
    unit_scale s = {0, 1, 1};
    PARE_ASSERT(largest > 0 && isfinite(largest));
    (void)frexp(largest, &s.e);
    const int up = -s.e, most = 1000;
    s.first = ldexp(1, up > most ? most : up);
    s.second = ldexp(1, up > most ? up - most : 0);
    return s;
}

pare_ub pare_unscaled(const unit_scale *s, pare_ub a)
{
    const double v = ldexp(a.v, s->e);
    const bool exact = isinf(v) || ldexp(v, -s->e) == a.v;
    return exact ? pare_ub_exact(v) : pare_ub_of(v);
}

pare_ub pare_sum_up(double computed, size_t roundings)
{
    const pare_ub g = pare_gamma(roundings, PARE_UNIT_F64);
    if (g.v == 0) return pare_ub_exact(computed);
    return pare_ub_div(pare_ub_exact(computed), nextafter(1 - g.v, 0)); /* inf when g >= 1 */
}

static bool is_empty(const pare_weight *w)
{
    return !pare_has(w) || w->rows == 0 || w->cols == 0;
}

pare_ub pare_norm_max(const pare_weight *w)
{
    double max = 0;
    if (is_empty(w)) return pare_ub_exact(0);
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        const double x = fabs(pare_weight_at(w, i));
        if (!(x <= max)) max = x;
        if (isnan(max)) return pare_ub_inf();
    }
    return pare_ub_exact(max);
}

/* Largest euclidean norm of `rows` scaled rows of `len` entries each. Of each entry's square: one
 * rounding of its own, at most len - 1 of the sum (the first addition, to zero, is exact). */
static pare_ub unit_row2(const pare_weight *w, const unit_scale *s, size_t rows, size_t len)
{
    double max = 0;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < len; j++) {
            const double x = scaled(s, pare_weight_at(w, i * len + j));
            sum += x * x;
        }
        if (sum > max) max = sum;
    }
    const pare_ub square = pare_ub_add(pare_ub_exact(max), pare_times(len, lost_square));
    return pare_ub_sqrt(pare_sum_up(square.v, len));
}

pare_ub pare_unit_fro(const pare_weight *w, const unit_scale *s)
{
    return unit_row2(w, s, 1, w->rows * w->cols);
}

static pare_ub largest_row2(const pare_weight *w, size_t rows, size_t len)
{
    const pare_ub max = pare_norm_max(w);
    if (max.v == 0 || isinf(max.v)) return max;
    const unit_scale s = pare_unit_scale_of(max.v);
    return pare_unscaled(&s, unit_row2(w, &s, rows, len));
}

pare_ub pare_norm_fro(const pare_weight *w)
{
    return is_empty(w) ? pare_ub_exact(0) : largest_row2(w, 1, w->rows * w->cols);
}

pare_ub pare_norm_max_row2(const pare_weight *w)
{
    return is_empty(w) ? pare_ub_exact(0) : largest_row2(w, w->rows, w->cols);
}

/* Largest sum of |entries| over `rows` rows of `len`; additions do not underflow. */
static pare_ub largest_row1(const pare_weight *w, size_t rows, size_t len)
{
    double max = 0;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t j = 0; j < len; j++) sum += fabs(pare_weight_at(w, i * len + j));
        if (!(sum <= max)) max = sum;
        if (isnan(max)) return pare_ub_inf();
    }
    return pare_sum_up(max, len - 1);
}

pare_ub pare_norm_max_row(const pare_weight *w)
{
    return is_empty(w) ? pare_ub_exact(0) : largest_row1(w, w->rows, w->cols);
}

pare_ub pare_norm_max_col(const pare_weight *w)
{
    enum { strip = 128 }; /* columns summed side by side, in the order of memory */
    double max = 0;
    if (is_empty(w)) return pare_ub_exact(0);
    for (size_t c = 0; c < w->cols; c += strip) {
        const size_t cols = w->cols - c < strip ? w->cols - c : strip;
        double sum[strip] = {0};
        for (size_t i = 0; i < w->rows; i++)
            for (size_t j = 0; j < cols; j++)
                sum[j] += fabs(pare_weight_at(w, i * w->cols + c + j));
        for (size_t j = 0; j < cols; j++) {
            if (isnan(sum[j])) return pare_ub_inf();
            if (sum[j] > max) max = sum[j];
        }
    }
    return pare_sum_up(max, w->rows - 1);
}

pare_status pare_norm_bilinear_inf(pare_ub *out, const pare_weight *w, pare_arena *scratch,
                                   pare_err *err)
{
    pare_ub spectral;
    const pare_status st = pare_norm_spectral(&spectral, w, scratch, err);
    *out = pare_ub_inf();
    if (st != PARE_OK) return st;
    *out = pare_ub_exact(0);
    if (is_empty(w)) return PARE_OK;
    /* |u|_2 <= sqrt(rows) |u|_inf, and the same for v. */
    const pare_ub sides = pare_ub_mul(pare_times(w->rows, 1), pare_times(w->cols, 1));
    const pare_ub by_norm = pare_ub_mul(pare_ub_sqrt(sides), spectral);
    *out = pare_ub_min(largest_row1(w, 1, w->rows * w->cols), by_norm);
    return PARE_OK;
}
