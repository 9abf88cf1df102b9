/* wide_math.c - elementary functions in double-double.
 *
 * v = 2^-53, a unit is 16 v^2; the errors of the operations are in wide.h.
 *
 * exp. x = k ln 2 + r, |r| <= 0.3466; ln 2 in three parts, the first of 38 bits, so that k times it
 * is exact: r is off by 6 v^2 at most. With s = r / 256 the series of e^s - 1 ends after s^10
 * (rest 2^-120 |s|); the terms from s^6 on are in f64 (their roundings are 2^-107 |s|). Horner in
 * dd: y = e^s - 1 within 12 v^2 of itself. Then y <- y (2 + y) eight times: each adds 7 v^2, and
 * the given error grows by z e^z / (e^z - 1) < 1.19 in all (z = r). So e^r - 1 is within
 * 1.19 (12 + 8 * 7.1) v^2 < 82 v^2 of itself, e^r = 1 + y within 82 * 0.4143 / 0.707 + 2 < 51 v^2,
 * and exp within 60 v^2.
 * tanh. y = e^(-2|x|) - 1 without cancellation (the series above for |2x| <= 0.3466, else
 * |y| >= 0.29): within 60 * 0.71 / 0.29 + 2 < 150 v^2; tanh|x| = -y / (2 + y) within 400 v^2.
 * erf. 2/sqrt(pi) e^(-t^2) sum_n 2^n t^(2n+1) / (2n+1)!!, positive terms only; term n carries
 * 8 n v^2, the additions 3 n v^2, n < 250 for t <= 8.5 (beyond, erfc < 2^-107); e^(-t^2) carries
 * 60 + 5 t^2 < 430 v^2. Together below 3300 v^2.
 * sin, cos. x - k pi/2 with pi/2 in three parts is off by 12 v^2 (k < 2^31); the series to r^29
 * (rest 2^-112) rounds with 8 + 3 v^2 a term, geometrically less: below 60 v^2.
 * log. One step y + d - d^2/2, d = x e^-y - 1, from libm's y: d < 2^-40 |y|, so d^3 is nothing. */
#include "wide.h"

/* silu: 60 of the exponential, 2, 15 v^2. tanh: 400. Its gelu: half of 400, its argument's 25 v^2
 * times max |t sech^2 t| < 0.45, 9 for the gate. gelu: half of 3300, its argument's, 9. */
double wide_act_units(pare_act act)
{
    switch (act) {
    case PARE_ACT_NONE:
    case PARE_ACT_RELU:
        return 0;
    case PARE_ACT_SILU:
        return 6;
    case PARE_ACT_TANH:
        return 28;
    case PARE_ACT_GELU_TANH:
        return 16;
    case PARE_ACT_GELU:
        return 112;
    }
    return INFINITY;
}

/* ---- exp ------------------------------------------------------------------------------------- */

/* e^r - 1 for |r| <= 0.35 */
WIDE_INLINE dd expm1_small(dd r)
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

/* x - k ln 2, |k| <= 512 */
WIDE_INLINE dd exp_reduce(dd x, double k)
{
    const dd a = dd_add_d(dd_two_sum(x.hi, -k * 0x1.62e42fefa0000p-1), x.lo);
    dd b = dd_product(k, 0x1.cf79abc9e3b3ap-40);
    b.lo = fma(k, -0x1.ff0342542fc33p-94, b.lo);
    return dd_sub(a, b);
}

WIDE_INLINE dd exp_body(dd x)
{
    if (!(x.hi >= -300)) return dd_of(x.hi < -300 ? 0 : NAN);
    if (!(x.hi <= 300)) return dd_of(INFINITY);
    const double k = floor(x.hi * 0x1.71547652b82fep+0 + 0.5);
    const dd y = dd_add_d(expm1_small(exp_reduce(x, k)), 1);
    const double two_k = ldexp(1, (int)k);
    return (dd){y.hi * two_k, y.lo * two_k};
}

/* ---- the others ------------------------------------------------------------------------------ */

WIDE_INLINE dd tanh_body(dd x)
{
    const bool negative = x.hi < 0;
    if (fabs(x.hi) > 40) return dd_of(negative ? -1 : 1); /* 1 - tanh(40) < 2^-114 */
    const dd z = negative ? (dd){2 * x.hi, 2 * x.lo} : (dd){-2 * x.hi, -2 * x.lo};
    const dd y = z.hi >= -0.3466 ? expm1_small(z) : dd_add_d(exp_body(z), -1);
    return dd_div(negative ? y : dd_neg(y), dd_add_d(y, 2));
}

WIDE_INLINE dd erf_body(dd x)
{
    static const dd front = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56}; /* 2 / sqrt(pi) */
    const bool negative = x.hi < 0;
    const dd t = negative ? dd_neg(x) : x;
    if (!(t.hi <= 8.5)) return dd_of(isnan(t.hi) ? NAN : negative ? -1 : 1);
    const dd square = dd_mul(t, t), twice = {2 * square.hi, 2 * square.lo};
    dd term = t, sum = t;
    for (int n = 0; n < 400; n++) {
        term = dd_div_d(dd_mul(term, twice), 2 * n + 3);
        sum = dd_add(sum, term);
        /* From here on each term is below half the one before: all of them below this one. */
        if (twice.hi < n + 1 && !(term.hi > 0x1p-112 * sum.hi)) break;
    }
    const dd y = dd_mul(dd_mul(front, exp_body(dd_neg(square))), sum);
    return negative ? dd_neg(y) : y;
}

/* x / 2 (1 + f) */
WIDE_INLINE dd half_gate(dd x, dd f)
{
    const dd y = dd_mul(x, dd_add_d(f, 1));
    return (dd){0.5 * y.hi, 0.5 * y.lo};
}

WIDE_INLINE dd gelu_tanh(dd x)
{
    static const dd c = {0x1.9884533d43651p-1, -0x1.cbc0d30ebfd15p-55};   /* sqrt(2 / pi) */
    static const dd cube = {0x1.6e4e26d4801f7p-5, 0x1.441355475a31ap-59}; /* 0.044715 */
    if (!(fabs(x.hi) <= 20)) return x.hi < 0 ? dd_of(0) : x; /* the gate is within e^-600 of 0, 1 */
    const dd inner = dd_add_d(dd_mul(cube, dd_mul(x, x)), 1);
    return half_gate(x, tanh_body(dd_mul(c, dd_mul(x, inner))));
}

WIDE_INLINE dd act_body(pare_act act, dd x)
{
    static const dd root_half = {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55};
    switch (act) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x.hi > 0 ? x : dd_of(x.hi <= 0 ? 0 : NAN);
    case PARE_ACT_TANH:
        return tanh_body(x);
    case PARE_ACT_GELU:
        return half_gate(x, erf_body(dd_mul(x, root_half)));
    case PARE_ACT_GELU_TANH:
        return gelu_tanh(x);
    case PARE_ACT_SILU: /* where the exponential is out of range: x, or x e^x < 1024 tiny */
        if (!(fabs(x.hi) <= 300)) return x.hi < 0 ? dd_of(0) : x;
        return dd_div(x, dd_add_d(exp_body(dd_neg(x)), 1));
    }
    return dd_of(NAN);
}

dd wide_exp(dd x)
{
    return exp_body(x);
}

dd wide_tanh(dd x)
{
    return tanh_body(x);
}

dd wide_erf(dd x)
{
    return erf_body(x);
}

dd wide_act(pare_act act, dd x)
{
    return act_body(act, x);
}

/* ---- rows, twice: with the processor's fma, and without ---------------------------------------
 */

WIDE_INLINE void act_row(pare_act act, double *hi, double *lo, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const dd y = act_body(act, (dd){hi[k], lo[k]});
        hi[k] = y.hi;
        lo[k] = y.lo;
    }
}

WIDE_INLINE void exp_row(double *hi, double *lo, dd top, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const dd y = exp_body(dd_sub((dd){hi[k], lo[k]}, top));
        hi[k] = y.hi;
        lo[k] = y.lo;
    }
}

WIDE_FMA static void act_row_fma(pare_act act, double *hi, double *lo, size_t n)
{
    act_row(act, hi, lo, n);
}

WIDE_FMA static void exp_row_fma(double *hi, double *lo, dd top, size_t n)
{
    exp_row(hi, lo, top, n);
}

void wide_act_row(pare_act act, double *hi, double *lo, size_t n)
{
    if (wide_has_fma())
        act_row_fma(act, hi, lo, n);
    else
        act_row(act, hi, lo, n);
}

void wide_exp_row(double *hi, double *lo, dd top, size_t n)
{
    if (wide_has_fma())
        exp_row_fma(hi, lo, top, n);
    else
        exp_row(hi, lo, top, n);
}

/* ---- angles -----------------------------------------------------------------------------------
 */

/* r (1 - r^2/(a (a+1)) + ...) for sin (first = r, a = 2), and cos (first = 1, a = 1). */
static dd series(dd first, dd square, int a)
{
    dd term = first, sum = first;
    for (; a < 30; a += 2) {
        term = dd_neg(dd_div_d(dd_mul(term, square), a * (a + 1)));
        sum = dd_add(sum, term);
    }
    return sum;
}

void wide_sincos(dd x, dd *sine, dd *cosine)
{
    *sine = *cosine = dd_of(NAN);
    if (!(fabs(x.hi) <= 0x1p30)) return;
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

dd wide_log(double x)
{
    const double y = log(x);
    const dd d = dd_add_d(dd_mul_d(exp_body(dd_of(-y)), x), -1);
    return dd_add_d(dd_add_d(d, y), -0.5 * d.hi * d.hi);
}

dd wide_wave(double base, size_t pos, size_t j, size_t d)
{
    dd s, c;
    const dd share = dd_div_d(dd_of((double)(j - j % 2)), (double)d);
    const dd power = exp_body(dd_mul(wide_log(base), share));
    wide_sincos(dd_div(dd_of((double)pos), power), &s, &c);
    return j % 2 == 1 ? c : s;
}
