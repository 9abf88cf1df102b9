/* mpfr_cases.h - arguments over the whole range of f64, and MPFR's functions at 300 bits. */
#ifndef TEST_MPFR_CASES_H
#define TEST_MPFR_CASES_H
#include "linalg/dd.h"
#include <pare_test.h>
#include "base/support.h"
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

typedef int mpfr_function(mpfr_t, mpfr_srcptr, mpfr_rnd_t);

/* Any double but nan: each exponent as likely as any other. */
static inline double any_double(pare_rng *r)
{
    double x;
    do {
        const uint64_t bits = pare_rng_u64(r);
        memcpy(&x, &bits, sizeof x);
    } while (!isfinite(x));
    return x;
}

/* Where functions change their ways: overflow, underflow, 0, 1, the ends of series, subnormals. */
static const double special[] = {0,
                                 0x1p-1074,
                                 0x1.8p-1073,
                                 0x1p-1022,
                                 0x1p-960,
                                 0x1p-900,
                                 0x1p-110,
                                 0x1.000001p-110,
                                 0x1p-60,
                                 0x1p-56,
                                 0x1p-53,
                                 0x1p-20,
                                 0.34657359,
                                 0.3466,
                                 0.34660000001,
                                 0.17328,
                                 0.1733,
                                 0.5,
                                 0x1.fffffffffffffp-2,
                                 0.6931471805599453,
                                 1,
                                 0x1.0000000000001p0,
                                 0x1.fffffffffffffp-1,
                                 0.70710678118654746,
                                 1.4142135623730951,
                                 2,
                                 8.5,
                                 20,
                                 39.99,
                                 40.01,
                                 75,
                                 300,
                                 300.0001,
                                 620,
                                 700,
                                 708.396,
                                 709.78,
                                 709.782712893384,
                                 709.7827128933841,
                                 709.79,
                                 710,
                                 710.1,
                                 744.44,
                                 745.13321910194122,
                                 745.2,
                                 746,
                                 746.1,
                                 1e4,
                                 2e130,
                                 1e300,
                                 DBL_MAX,
                                 0x1p1023};
enum { SPECIALS = sizeof special / sizeof *special };

/* Argument t of a test: special points and their neighbors with both signs, then dense near the
 * interesting range, then all exponents. */
static inline double argument(pare_rng *r, size_t t)
{
    if (t < 6 * (size_t)SPECIALS) {
        const double x = special[t / 6];
        const double y = t % 3 == 0 ? x : nextafter(x, t % 3 == 1 ? INFINITY : -INFINITY);
        return t % 6 < 3 ? y : -y;
    }
    const double u = 2 * pare_rng_uniform(r) - 1;
    switch (t % 4) {
    case 0:
        return 750 * u;
    case 1:
        return 4 * u;
    case 2:
        return ldexp(u, -(int)(t / 4 % 120));
    default:
        return any_double(r);
    }
}

/* |got - exact| in units of 2^-106 times |scale|: 0 for equal ones. */
static inline double off_in_v2(dd got, mpfr_srcptr exact, double scale)
{
    mpfr_t d;
    mpfr_init2(d, 300);
    mpfr_set_d(d, got.hi, MPFR_RNDN);
    mpfr_add_d(d, d, got.lo, MPFR_RNDN);
    mpfr_sub(d, d, exact, MPFR_RNDN);
    if (scale != 0)
        mpfr_div_d(d, d, scale, MPFR_RNDN);
    else if (!mpfr_zero_p(d))
        mpfr_div(d, d, exact, MPFR_RNDN);
    mpfr_mul_2si(d, d, 106, MPFR_RNDN);
    const double off = fabs(mpfr_get_d(d, MPFR_RNDA));
    mpfr_clear(d);
    return off;
}
#endif
