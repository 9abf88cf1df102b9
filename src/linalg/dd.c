/* dd.c - elementary functions in double-double, and why their errors are what linalg/dd.h says.
 *
 * v = 2^-53, a unit is 16 v^2; the errors of the operations are in linalg/dd.h.
 *
 * exp. x = k ln 2 + r, |r| <= 0.3466; ln 2 in three parts, the first of 36 bits, so that k times it
 * is exact for |k| <= 1100: r is off by 6 v^2 at most. With s = r / 256 the series of e^s - 1 ends
 * after s^10 (rest 2^-120 |s|); the terms from s^6 on are in f64 (their roundings are 2^-107 |s|).
 * Horner in dd: y = e^s - 1 within 12 v^2 of itself. Then y <- y (2 + y) eight times: each adds
 * 7 v^2, and the given error grows by z e^z / (e^z - 1) < 1.19 in all (z = r). So
 *
 *     e^r - 1      is within  1.19 (12 + 8 * 7.1) v^2      < 82 v^2 of itself,
 *     e^r = 1 + y  is within  82 * 0.4143 / 0.707 + 2      < 51 v^2,
 *     e^x          is within  51 + 6 + 1                   < 60 v^2, below 4 units.
 *
 * Powers of two are exact but for results below 2^-1022 (the high part) or 2^-969 (the low part),
 * which round once more by 2^-1075 each.
 * expm1. For |x| <= 0.3466 the 82 v^2 above; else e^x - 1 with
 *
 *     60 e^x / |e^x - 1| + 2 <= 60 * 1.4143 / 0.4142 + 2 < 207 v^2, below 16 units.
 *
 * Below 2^-110 it is x, within x^2.
 * tanh. y = e^(-2|x|) - 1 without cancellation (the series above for |2x| <= 0.3466, else
 * |y| >= 0.29): within 60 * 0.71 / 0.29 + 2 < 150 v^2; tanh|x| = -y / (2 + y) within 400 v^2. Below
 * 2^-56 it is x, within x^3 / 3.
 * erf: dd_erf.c.
 * log. x = m 2^e with sqrt(1/2) <= m < sqrt(2), and with s = (m - 1) / (m + 1), |s| < 0.1716,
 *
 *     ln m = 2 s (1 + s^2/3 + s^4/5 + ... + s^44/45),    rest below s^46 / 47 / (1 - s^2) < 2^-122.
 *
 * m - 1 is exact, m + 1 a pair, so s is within 15 v^2; Horner's last step adds 2 v^2 and what is
 * below it is damped by s^2 < 0.03 (less than 2 v^2 with the 3 v^2 of each 1/(2n+1)), the product
 * 5 v^2: ln m is within 25 v^2 of itself, also near m = 1. For e /= 0 it is |ln x| >= 0.3465 >=
 * |ln m|; e ln 2 is a sum of three parts within 4 v^2 of itself, |e ln 2| <= 2 |ln x|, and the last
 * sum adds 3 v^2:
 *
 *     ln x is within 25 + 8 + 3 + 1 < 40 v^2 of itself, 2.5 units.
 *
 * sin, cos. x - k pi/2 with pi/2 in three parts is off by 12 v^2 (k < 2^31); the series to r^29
 * (rest 2^-112) rounds with 8 + 3 v^2 a term, geometrically less: below 60 v^2. */
#include "dd.h"

/* ---- compiled twice: with the processor's fma, and without -------------------------- */

PARE_DD_FMA static dd exp_fma(dd x)
{
    return dd_exp(x);
}
PARE_DD_FMA static dd expm1_fma(dd x)
{
    return dd_expm1(x);
}
PARE_DD_FMA static dd tanh_fma(dd x)
{
    return dd_tanh(x);
}

dd pare_dd_exp(dd x)
{
    return pare_has_fma() ? exp_fma(x) : dd_exp(x);
}
dd pare_dd_expm1(dd x)
{
    return pare_has_fma() ? expm1_fma(x) : dd_expm1(x);
}
dd pare_dd_tanh(dd x)
{
    return pare_has_fma() ? tanh_fma(x) : dd_tanh(x);
}

/* ---- log ---------------------------------------------------------------------------- */

/* ln m for sqrt(1/2) <= m < sqrt(2) */
PARE_DD_INLINE dd log_near_one(double m)
{
    const dd s = dd_div(dd_of(m - 1), dd_two_sum(m, 1)), square = dd_mul(s, s);
    dd sum = dd_div_d(dd_of(1), 45);
    for (int n = 43; n >= 3; n -= 2)
        sum = dd_add(dd_mul(sum, square), dd_div_d(dd_of(1), (double)n));
    sum = dd_mul(s, dd_add_d(dd_mul(sum, square), 1));
    return (dd){2 * sum.hi, 2 * sum.lo};
}

PARE_DD_INLINE dd log_body(double x)
{
    int e;
    double m = frexp(x, &e); /* in [1/2, 1), subnormal x too */
    if (m < 0x1.6a09e667f3bcdp-1) m *= 2, e--;
    const dd y = log_near_one(m);
    if (e == 0) return y;
    const double k = e;
    dd b = dd_product(k, 0x1.cf79abc9e3b3ap-40);
    b.lo = fma(k, -0x1.ff0342542fc33p-94, b.lo);
    return dd_add(dd_add_d(b, k * 0x1.62e42fefa0000p-1), y);
}

PARE_DD_FMA static dd log_fma(double x)
{
    return log_body(x);
}

dd pare_dd_log(double x)
{
    if (!(x > 0)) return dd_of(x == 0 ? -INFINITY : NAN);
    if (isinf(x)) return dd_of(INFINITY);
    return pare_has_fma() ? log_fma(x) : log_body(x);
}

/* ---- angles ------------------------------------------------------------------------- */

/* r (1 - r^2/(a (a+1)) + ...) for sin (first = r, a = 2), and cos (first = 1, a = 1). */
PARE_DD_INLINE dd series(dd first, dd square, int a)
{
    dd term = first, sum = first;
    for (; a < 30; a += 2) {
        term = dd_neg(dd_div_d(dd_mul(term, square), a * (a + 1)));
        sum = dd_add(sum, term);
    }
    return sum;
}

PARE_DD_INLINE void sincos_body(dd x, dd *sine, dd *cosine)
{
    const double k = floor(x.hi * 0x1.45f306dc9c883p-1 + 0.5); /* 2 / pi */
    dd r = dd_sub(x, dd_product(k, 0x1.921fb54442d18p+0));
    r = dd_sub(r, dd_product(k, 0x1.1a62633145c07p-54));
    r = dd_add_d(r, k * 0x1.f1976b7ed8fbcp-110);
    const dd square = dd_mul(r, r), s = series(r, square, 2), c = series(dd_of(1), square, 1);
    const int quarter = (int)(k - 4 * floor(k / 4));
    *sine = quarter % 2 ? c : s;
    *cosine = quarter % 2 ? s : c;
    if (quarter >= 2) *sine = dd_neg(*sine);
    if (quarter == 1 || quarter == 2) *cosine = dd_neg(*cosine);
}

PARE_DD_FMA static void sincos_fma(dd x, dd *sine, dd *cosine)
{
    sincos_body(x, sine, cosine);
}

void pare_dd_sincos(dd x, dd *sine, dd *cosine)
{
    *sine = *cosine = dd_of(NAN);
    if (!(fabs(x.hi) <= 0x1p30)) return;
    if (pare_has_fma())
        sincos_fma(x, sine, cosine);
    else
        sincos_body(x, sine, cosine);
}
