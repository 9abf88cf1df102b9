/* ub.c - upper bounds: every operation rounds up, and only when it is not exact.
 *
 * Each result is computed to nearest; the sign of its rounding error is then found exactly (two-sum
 * for additions, fused multiply-add for the rest) and the next double taken when the result came
 * out too small. Near underflow that error itself can be lost, so there the next double is taken
 * always. Whatever is not a bound (nan, negative) counts as +inf: nothing is known. */
#include "bounds.h"
#include "norms.h"
#include <float.h>
#include <math.h>

/* Results above this have rounding errors that are doubles: 2^-900 * 2^-106 > 2^-1074. */
static const double safe = 0x1p-900;

static double known(pare_ub a)
{
    return a.v >= 0 ? a.v : INFINITY;
}

static pare_ub up_if(bool too_small, double v)
{
    return (pare_ub){too_small ? nextafter(v, INFINITY) : v};
}

pare_ub pare_ub_inf(void)
{
    return (pare_ub){INFINITY};
}

pare_ub pare_ub_exact(double value)
{
    return isnan(value) ? pare_ub_inf() : (pare_ub){fabs(value)};
}

pare_ub pare_ub_of(double computed)
{
    return up_if(true, pare_ub_exact(computed).v);
}

pare_ub pare_ub_add(pare_ub a, pare_ub b)
{
    const double x = known(a), y = known(b), s = x + y;
    if (isinf(s)) return pare_ub_inf();
    /* Two-sum: x + y = s + e without error, in this order and for any x, y. */
    const double part = s - x, e = (x - (s - part)) + (y - part);
    return up_if(e > 0, s);
}

pare_ub pare_ub_mul(pare_ub a, pare_ub b)
{
    const double x = known(a), y = known(b), p = x * y;
    if (isinf(x) || isinf(y) || isinf(p)) return pare_ub_inf();
    if (x == 0 || y == 0) return pare_ub_exact(0);
    return up_if(p < safe || fma(x, y, -p) > 0, p);
}

pare_ub pare_ub_div(pare_ub a, double lower)
{
    const double x = known(a);
    if (!(lower > 0) || isinf(lower) || isinf(x)) return pare_ub_inf();
    if (x == 0) return pare_ub_exact(0);
    const double q = x / lower;
    if (isinf(q)) return pare_ub_inf();
    return up_if(q < safe || x < safe || fma(-q, lower, x) > 0, q);
}

pare_ub pare_ub_max(pare_ub a, pare_ub b)
{
    const double x = known(a), y = known(b);
    return (pare_ub){x > y ? x : y};
}

pare_ub pare_ub_min(pare_ub a, pare_ub b)
{
    const double x = known(a), y = known(b);
    return (pare_ub){x < y ? x : y};
}

pare_ub pare_ub_sqrt(pare_ub a)
{
    const double x = known(a);
    if (isinf(x) || x == 0) return pare_ub_exact(x);
    const double r = sqrt(x);
    return up_if(x < safe || fma(-r, r, x) > 0, r);
}

pare_ub pare_ub_fma(pare_ub a, pare_ub b, pare_ub c)
{
    return pare_ub_add(pare_ub_mul(a, b), c);
}

pare_ub pare_times(size_t count, double size)
{
    const double rounded = (double)count; /* beyond 2^53 it may be below */
    const pare_ub n = count <= (size_t)1 << 53 ? pare_ub_exact(rounded) : pare_ub_of(rounded);
    return pare_ub_mul(n, pare_ub_exact(size));
}

pare_ub pare_gamma(size_t n, double u)
{
    const pare_ub nu = pare_times(n, u);
    if (!(nu.v < 1)) return pare_ub_inf();
    if (nu.v == 0) return nu;
    return pare_ub_div(nu, nextafter(1 - nu.v, 0));
}

double pare_ub_written(pare_ub a)
{
    return pare_ub_mul(a, pare_ub_exact(1 + 1e-4)).v;
}
