/* lb.c - lower bounds on numbers that are not negative: every operation rounds down, and only when
 * it is not exact. The mirror of ub.c: results are computed to nearest, the sign of the rounding
 * error is found exactly, and the double below is taken when the result came out too large. What
 * overflows is DBL_MAX at least; what is no bound (nan, negative) counts as 0: nothing is known. */
#include "bounds.h"
#include <float.h>
#include <math.h>

/* Results above this have rounding errors that are doubles: 2^-900 * 2^-106 > 2^-1074. */
static const double safe = 0x1p-900;

static double known(pare_lb a)
{
    return a.v >= 0 ? fmin(a.v, DBL_MAX) : 0;
}

static pare_lb down_if(bool too_large, double v)
{
    const double y = v > DBL_MAX ? DBL_MAX : too_large ? nextafter(v, -INFINITY) : v;
    return (pare_lb){y > 0 ? y : 0};
}

pare_lb pare_lb_exact(double value)
{
    return (pare_lb){known((pare_lb){value})};
}

pare_lb pare_lb_of(double computed)
{
    return down_if(true, known((pare_lb){computed}));
}

/* The error of s = x + y: two-sum, exact in this order and for any x, y. */
static double sum_error(double x, double y, double s)
{
    const double part = s - x;
    return (x - (s - part)) + (y - part);
}

pare_lb pare_lb_add(pare_lb a, pare_lb b)
{
    const double x = known(a), y = known(b), s = x + y;
    return down_if(sum_error(x, y, s) < 0, s);
}

pare_lb pare_lb_sub(pare_lb a, pare_ub b)
{
    const double x = known(a), y = b.v;
    if (!(y >= 0) || !(x > y)) return (pare_lb){0}; /* a nan, inf or negative b is unknown */
    const double s = x - y;
    return down_if(sum_error(x, -y, s) < 0, s);
}

pare_lb pare_lb_mul(pare_lb a, pare_lb b)
{
    const double x = known(a), y = known(b), p = x * y;
    if (x == 0 || y == 0) return (pare_lb){0};
    return down_if(p < safe || fma(x, y, -p) < 0, p);
}

pare_lb pare_lb_div(pare_lb a, pare_ub b)
{
    const double x = known(a), y = b.v;
    if (!(y >= 0) || isinf(y) || x == 0) return (pare_lb){0};
    const double q = x / y;
    if (isinf(q)) return (pare_lb){DBL_MAX};
    return down_if(q < safe || x < safe || fma(-q, y, x) < 0, q);
}

pare_lb pare_lb_sqrt(pare_lb a)
{
    const double x = known(a), r = sqrt(x);
    return down_if(x > 0 && (x < safe || fma(-r, r, x) < 0), r);
}

pare_lb pare_lb_max(pare_lb a, pare_lb b)
{
    const double x = known(a), y = known(b);
    return (pare_lb){x > y ? x : y};
}

pare_lb pare_lb_min(pare_lb a, pare_lb b)
{
    const double x = known(a), y = known(b);
    return (pare_lb){x < y ? x : y};
}

double pare_lb_written(pare_lb a)
{
    return pare_lb_mul(a, pare_lb_exact(1 - 1e-4)).v;
}
