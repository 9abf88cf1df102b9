/* directed.c - exp, expm1, tanh and log rounded upwards and downwards.
 *
 * The double-double functions of linalg/dd.h come as hi + lo with a proven relative error of at
 * most ERROR. The exact value is at most hi + (lo + ERROR |hi|): hi itself where the bracket is not
 * above 0, and the next double otherwise, since the bracket is below one ulp of hi. The same
 * downwards. So the result is the tightest double but once in about 2^45 arguments; next to 0,
 * where the functions come nearer than that to doubles, e^x against 1, e^x - 1 >= x and tanh x <= x
 * keep it so. Below 2^-900, where lo may be lost and subnormal results round twice, two doubles are
 * taken. No function of libm is used. */
#include "bounds.h"
#include "dd.h"
#include <float.h>

#define ERROR 0x1p-96 /* of every function below: 28 units are 2^-97.2 */

static double above(dd y)
{
    if (!(fabs(y.hi) <= DBL_MAX)) return y.hi == -INFINITY ? -DBL_MAX : INFINITY; /* nan too */
    if (fabs(y.hi) < 0x1p-900) return nextafter(nextafter(y.hi, INFINITY), INFINITY);
    return y.lo + ERROR * fabs(y.hi) > 0 ? nextafter(y.hi, INFINITY) : y.hi;
}

static double below(dd y)
{
    return -above(dd_neg(y));
}

double pare_exp_up(double x)
{
    if (x == 0) return 1;
    if (x == -INFINITY) return 0;
    const double y = above(pare_dd_exp(dd_of(x)));
    return x < 0 && y > 1 ? 1 : y;
}
double pare_exp_down(double x)
{
    if (x == 0) return 1;
    const double y = below(pare_dd_exp(dd_of(x))), least = x > 0 ? 1 : 0;
    return y > least ? y : least; /* a nan is -inf in `below` */
}

double pare_expm1_up(double x)
{
    if (x == 0) return 0;
    return x == -INFINITY ? -1 : above(pare_dd_expm1(dd_of(x)));
}
double pare_expm1_down(double x)
{
    if (x == 0) return 0;
    const double y = below(pare_dd_expm1(dd_of(x))), least = x > -1 && x < 1 ? x : -1;
    return y > least ? y : least; /* e^x - 1 >= x, and > -1 */
}

double pare_tanh_up(double x)
{
    if (x == 0) return 0;
    const double y = above(pare_dd_tanh(dd_of(x)));
    const double least = x > 0 && x < 1 ? x : 1; /* tanh x < x, and < 1 */
    return y < least ? y : least;
}
double pare_tanh_down(double x)
{
    return -pare_tanh_up(-x);
}

double pare_log_up(double x)
{
    if (x == 1) return 0;
    return x == 0 ? -INFINITY : above(pare_dd_log(x));
}
double pare_log_down(double x)
{
    return x == 1 ? 0 : below(pare_dd_log(x));
}

/* ---- as bounds ---------------------------------------------------------------------- */

static double known_ub(pare_ub a)
{
    return a.v >= 0 ? a.v : INFINITY;
}
static double known_lb(pare_lb a)
{
    return a.v >= 0 ? a.v : 0;
}
static pare_ub ub_of(double v)
{
    return (pare_ub){v > 0 ? v : 0};
}
static pare_lb lb_of(double v)
{
    return (pare_lb){v > 0 ? v : 0};
}

pare_ub pare_ub_exp(pare_ub a)
{
    return ub_of(pare_exp_up(known_ub(a)));
}
pare_ub pare_ub_expm1(pare_ub a)
{
    return ub_of(pare_expm1_up(known_ub(a)));
}
pare_ub pare_ub_tanh(pare_ub a)
{
    return ub_of(pare_tanh_up(known_ub(a)));
}
pare_ub pare_ub_log(pare_ub a)
{
    return ub_of(pare_log_up(known_ub(a)));
}

pare_lb pare_lb_exp(pare_lb a)
{
    return lb_of(pare_exp_down(known_lb(a)));
}
pare_lb pare_lb_expm1(pare_lb a)
{
    return lb_of(pare_expm1_down(known_lb(a)));
}
pare_lb pare_lb_tanh(pare_lb a)
{
    return lb_of(pare_tanh_down(known_lb(a)));
}
pare_lb pare_lb_log(pare_lb a)
{
    return lb_of(pare_log_down(known_lb(a)));
}
