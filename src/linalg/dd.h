/* dd.h - double-double arithmetic and elementary functions with proven errors; for the sources
 * of the library, and for those who write kernels of their own.
 *
 * A dd is an unevaluated sum hi + lo with |lo| <= ulp(hi)/2, so lo is below 2^-53 |hi| and about
 * 106 bits are kept. With v = 2^-53, and while no result or part of it leaves the range of normal
 * numbers, the operations have these relative errors ("Tight and rigorous error bounds for basic
 * building blocks of double-word arithmetic", ACM TOMS 44(2), 2017; the root: "Accurate calculation
 * of euclidean norms using double-word arithmetic", ACM TOMS 49(1), 2023):
 *
 *     dd + double 2 v^2   dd + dd 3 v^2 + 13 v^3   dd * double 2 v^2   dd * dd 5 v^2
 *     dd / double 3 v^2   dd / dd 15 v^2 + 56 v^3  sqrt 25/8 v^2
 *
 * The errors of the functions are counted in units of PARE_DD_UNIT = 2^-102 = 16 v^2 and proven in
 * src/linalg/dd.c; tests/linalg/test_dd_mpfr.c compares all of them with MPFR. */
#ifndef PARE_LINALG_DD_H
#define PARE_LINALG_DD_H
#include "base/simd.h"
#include <math.h>
#include <pare/base.h>
#include <stdbool.h>

#define PARE_DD_UNIT 0x1p-102
/* Inlined into functions that are compiled twice, with and without the processor's fma. */
#define PARE_DD_INLINE static inline __attribute__((always_inline))
#define PARE_DD_FMA    PARE_AVX2
/* Whether the processor fuses a multiplication and an addition. Elsewhere than on x86, fma() is
 * whatever the compiler makes of it. */
static inline bool pare_has_fma(void)
{
    return simd_best() >= SIMD_AVX2;
}

typedef struct dd {
    double hi, lo;
} dd;

PARE_DD_INLINE dd dd_of(double x)
{
    return (dd){x, 0};
}
PARE_DD_INLINE dd dd_neg(dd x)
{
    return (dd){-x.hi, -x.lo};
}
/* a + b exactly, for any a, b. */
PARE_DD_INLINE dd dd_two_sum(double a, double b)
{
    const double s = a + b, t = s - a;
    return (dd){s, (a - (s - t)) + (b - t)};
}
/* The same for |a| >= |b| (or a = 0). */
PARE_DD_INLINE dd dd_fast_sum(double a, double b)
{
    const double s = a + b;
    return (dd){s, b - (s - a)};
}
/* a b exactly. */
PARE_DD_INLINE dd dd_product(double a, double b)
{
    const double p = a * b;
    return (dd){p, fma(a, b, -p)};
}
PARE_DD_INLINE dd dd_add_d(dd x, double y)
{
    const dd s = dd_two_sum(x.hi, y);
    return dd_fast_sum(s.hi, x.lo + s.lo);
}
PARE_DD_INLINE dd dd_add(dd x, dd y)
{
    const dd s = dd_two_sum(x.hi, y.hi), t = dd_two_sum(x.lo, y.lo);
    const dd v = dd_fast_sum(s.hi, s.lo + t.hi);
    return dd_fast_sum(v.hi, t.lo + v.lo);
}
PARE_DD_INLINE dd dd_sub(dd x, dd y)
{
    return dd_add(x, dd_neg(y));
}
PARE_DD_INLINE dd dd_mul_d(dd x, double y)
{
    const dd p = dd_product(x.hi, y);
    return dd_fast_sum(p.hi, fma(x.lo, y, p.lo));
}
PARE_DD_INLINE dd dd_mul(dd x, dd y)
{
    const dd p = dd_product(x.hi, y.hi);
    return dd_fast_sum(p.hi, p.lo + fma(x.lo, y.hi, fma(x.hi, y.lo, x.lo * y.lo)));
}
PARE_DD_INLINE dd dd_div_d(dd x, double y)
{
    const double q = x.hi / y;
    const dd p = dd_product(q, y);
    return dd_fast_sum(q, ((x.hi - p.hi) - p.lo + x.lo) / y);
}
PARE_DD_INLINE dd dd_div(dd x, dd y)
{
    const double q = x.hi / y.hi;
    const dd p = dd_mul_d(y, q);
    return dd_fast_sum(q, ((x.hi - p.hi) + (x.lo - p.lo)) / y.hi);
}
PARE_DD_INLINE dd dd_sqrt(dd x)
{
    const double s = sqrt(x.hi);
    if (!(s > 0)) return dd_of(s);
    return dd_fast_sum(s, (x.lo + fma(-s, s, x.hi)) / (2 * s));
}

/* ---- functions; what is said of each error is proven in src/linalg/dd.c ------------- */

/* 2^k for -1022 <= k <= 1023 */
PARE_DD_INLINE double dd_pow2(int k)
{
    return ldexp(1, k);
}

/* e^r - 1 for |r| <= 0.3467 */
PARE_DD_INLINE dd dd_expm1_small(dd r)
{
    static const dd c5 = {0x1.1111111111111p-7, 0x1.1111111111111p-63};
    static const dd c4 = {0x1.5555555555555p-5, 0x1.5555555555555p-59};
    static const dd c3 = {0x1.5555555555555p-3, 0x1.5555555555555p-57};
    const dd s = {r.hi * 0x1p-8, r.lo * 0x1p-8};
    const double h = s.hi;
    double tail = 0x1.27e4fb7789f5cp-22; /* 1/10! */
    tail = tail * h + 0x1.71de3a556c734p-19;
    tail = tail * h + 0x1.a01a01a01a01ap-16;
    tail = tail * h + 0x1.a01a01a01a01ap-13;
    tail = tail * h + 0x1.6c16c16c16c17p-10; /* 1/6! */
    dd y = dd_add_d(c5, tail * h);
    y = dd_add(c4, dd_mul(y, s));
    y = dd_add(c3, dd_mul(y, s));
    y = dd_add_d(dd_mul(y, s), 0.5);
    y = dd_add_d(dd_mul(y, s), 1);
    y = dd_mul(y, s);
    for (int i = 0; i < 8; i++) y = dd_mul(y, dd_add_d(y, 2));
    return y;
}

/* x - k ln 2, |k| <= 1100 */
PARE_DD_INLINE dd dd_exp_reduce(dd x, double k)
{
    const dd a = dd_add_d(dd_two_sum(x.hi, -k * 0x1.62e42fefa0000p-1), x.lo);
    dd b = dd_product(k, 0x1.cf79abc9e3b3ap-40);
    b.lo = fma(k, -0x1.ff0342542fc33p-94, b.lo);
    return dd_sub(a, b);
}

/* e^x: 4 units where that is at least 2^-900, and 2^-1073 more below; inf above DBL_MAX. */
PARE_DD_INLINE dd dd_exp(dd x)
{
    if (!(x.hi >= -746)) return dd_of(x.hi < -746 ? 0 : NAN);
    if (!(x.hi <= 710)) return dd_of(INFINITY);
    const double k = floor(x.hi * 0x1.71547652b82fep+0 + 0.5);
    const dd y = dd_add_d(dd_expm1_small(dd_exp_reduce(x, k)), 1);
    if (k >= -1000 && k <= 1000) {
        const double two_k = dd_pow2((int)k);
        return (dd){y.hi * two_k, y.lo * two_k};
    }
    const double hi = ldexp(y.hi, (int)k);
    return (dd){hi, hi <= 0x1.fffffffffffffp+1023 ? ldexp(y.lo, (int)k) : 0};
}

/* e^x - 1: 16 units, at any x. */
PARE_DD_INLINE dd dd_expm1(dd x)
{
    if (fabs(x.hi) <= 0x1p-110) return x;
    if (fabs(x.hi) <= 0.3466) return dd_expm1_small(x);
    const dd y = dd_exp(x);
    return isinf(y.hi) ? y : dd_add_d(y, -1);
}

/* 28 units, at any x. */
PARE_DD_INLINE dd dd_tanh(dd x)
{
    const bool negative = x.hi < 0;
    if (fabs(x.hi) <= 0x1p-56) return x;
    if (fabs(x.hi) > 40) return dd_of(negative ? -1 : 1); /* 1 - tanh(40) < 2^-114 */
    const dd z = negative ? (dd){2 * x.hi, 2 * x.lo} : (dd){-2 * x.hi, -2 * x.lo};
    const dd y = z.hi >= -0.3466 ? dd_expm1_small(z) : dd_add_d(dd_exp(z), -1);
    return dd_div(negative ? y : dd_neg(y), dd_add_d(y, 2));
}

/* Taylor's series of erf at one place: its value, the coefficients of h^1 to h^10 in double-double
 * and of h^11 to h^18 in f64. */
enum { DD_ERF_PAIRS = 10, DD_ERF_TAIL = 8 };
typedef struct dd_erf_row {
    dd value, a[DD_ERF_PAIRS];
    double tail[DD_ERF_TAIL];
} dd_erf_row;
/* At 0, 1/16, ... 8.5; made by the first call. */
const dd_erf_row *pare_dd_erf_rows(void);

/* 1 unit absolute, at any x (src/linalg/dd_erf.c); rows: pare_dd_erf_rows(). */
PARE_DD_INLINE dd dd_erf(const dd_erf_row *rows, dd x)
{
    const bool negative = x.hi < 0;
    const dd t = negative ? dd_neg(x) : x;
    if (!(t.hi <= 8.5)) return dd_of(isnan(t.hi) ? NAN : negative ? -1 : 1);
    const double k = floor(16 * t.hi + 0.5);
    const dd_erf_row *const r = &rows[(size_t)k];
    const dd h = dd_two_sum(t.hi - k / 16, t.lo);
    double tail = r->tail[DD_ERF_TAIL - 1];
    for (int n = DD_ERF_TAIL - 2; n >= 0; n--) tail = tail * h.hi + r->tail[n];
    dd y = dd_add_d(r->a[DD_ERF_PAIRS - 1], tail * h.hi);
    for (int n = DD_ERF_PAIRS - 2; n >= 0; n--) y = dd_add(r->a[n], dd_mul(y, h));
    y = dd_add(r->value, dd_mul(y, h));
    return negative ? dd_neg(y) : y;
}

/* The same as calls, with the same bits on every processor. */
dd pare_dd_exp(dd x);
dd pare_dd_expm1(dd x);
dd pare_dd_tanh(dd x);
dd pare_dd_erf(dd x);
/* ln x for any double: 4 units; -inf for 0, inf for inf, nan below 0. */
dd pare_dd_log(double x);
/* 4 units absolute; nan for |x| > 2^30. */
void pare_dd_sincos(dd x, dd *sine, dd *cosine);
#endif
