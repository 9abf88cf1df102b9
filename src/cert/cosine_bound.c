/* cosine_bound.c - a proven upper bound on 1 - cos(f, g) of two output rows.
 *
 * Lemma (chord). For rows a, b other than 0,
 *
 *     | a/|a| - b/|b| |  <=  2 |a - b| / (|a| + |b|).
 *
 * Proof. Let c be the left side (the chord), so that 1 - cos(a, b) = c^2 / 2. Then
 *     |a - b|^2 = (|a| - |b|)^2 + 2 |a||b| (1 - cos) = (|a| - |b|)^2 + |a||b| c^2, and
 *     ((|a| + |b|)/2)^2 c^2 = |a||b| c^2 + ((|a| - |b|)/2)^2 c^2 <= |a - b|^2,   as c <= 2. []
 *
 * With a midpoint F and |f - F| <= r < |F|, |f| is at least |F| - r, hence
 *
 *     | f/|f| - F/|F| |  <=  r / (|F| - r/2).
 *
 * What is stored of a row is u = F/s, rounded, s >= |F| an upper bound that is at most |F|/(1 - t):
 * |u - F/|F|| <= 2^-53 + t + sqrt(n) 2^-1074. Both together are the error e of the row, and
 *
 *     1 - cos(f, g)  =  | f/|f| - g/|g| |^2 / 2  <=  (|u - v| + e_u + e_v)^2 / 2.
 *
 * Nothing cancels: |u - v| is a sum of squares of differences, so that cosines next to 1 are proven
 * to about n 2^-53 of the chord, where 1 - <u, v> would be lost below 1e-16. */
#include "enclose.h"

/* The row times 2^-exponent, with its largest entry in [1/2, 1), so that squares stay in range;
 * entries that underflow change by 2^-1074 each. False: nothing is known of it, or it is 0. */
static bool scale_row(double *to, int *exponent, const double *mid, size_t n)
{
    const double most = enclose_max_up(mid, n);
    if (!(most > 0 && most <= DBL_MAX)) return false;
    (void)frexp(most, exponent);
    for (size_t k = 0; k < n; k++) to[k] = ldexp(mid[k], -*exponent);
    return true;
}

double pare_unit_row(double *unit, const double *mid, size_t n, double radius)
{
    int exponent = 0;
    const bool known = scale_row(unit, &exponent, mid, n);
    const double under = up_mul(up_sqrt((double)n), 0x1p-1074);
    const double r = up_add(radius == 0 ? 0 : up(ldexp(radius, -exponent)), under);
    const double low = known ? enclose_norm_down(unit, n) : 0;
    const double high = known ? enclose_norm_up(unit, n) : 0;
    if (!(low > r)) {
        for (size_t k = 0; k < n; k++) unit[k] = 0;
        return INFINITY;
    }
    for (size_t k = 0; k < n; k++) unit[k] /= high;
    const double rounding = up_add(up_div(up(high - low), high), 0x1p-53);
    return up_add(up_div(r, down_sub(low, up(0.5 * r))), up_add(rounding, under));
}

pare_ub pare_cosine_distance(const double *u, double u_error, const double *v, double v_error,
                             size_t n)
{
    const double chord = up_add(enclose_distance_up(u, v, n), up_add(u_error, v_error));
    return pare_ub_exact(up_min(2, up(0.5 * up_mul(chord, chord))));
}
