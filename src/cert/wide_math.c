/* wide_math.c - activations, weights and sinusoidal positions in double-double, on linalg/dd.h. */
#include "wide.h"

/* silu: 60 of the exponential, 2, 15 v^2. tanh: 400. Its gelu: half of 400, its argument's 25 v^2
 * times max |t sech^2 t| < 0.45, 9 for the gate. gelu: half of 16, its
 * argument's 6 v^2 times half of max |t erf'(t)| < 0.49, 9 for the gate: below 19 v^2. */
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
        return 2;
    }
    return INFINITY;
}

/* Weights below e^-300 are 0: nothing underflows, which would be slow, and WIDE_TINY covers it. */
PARE_DD_INLINE dd exp_body(dd x)
{
    return x.hi < -300 ? dd_of(0) : dd_exp(x);
}

/* x / 2 (1 + f) */
PARE_DD_INLINE dd half_gate(dd x, dd f)
{
    const dd y = dd_mul(x, dd_add_d(f, 1));
    return (dd){0.5 * y.hi, 0.5 * y.lo};
}

PARE_DD_INLINE dd gelu_tanh(dd x)
{
    static const dd c = {0x1.9884533d43651p-1, -0x1.cbc0d30ebfd15p-55};   /* sqrt(2 / pi) */
    static const dd cube = {0x1.6e4e26d4801f7p-5, 0x1.441355475a31ap-59}; /* 0.044715 */
    if (!(fabs(x.hi) <= 20)) return x.hi < 0 ? dd_of(0) : x; /* the gate is within e^-600 of 0, 1 */
    const dd inner = dd_add_d(dd_mul(cube, dd_mul(x, x)), 1);
    return half_gate(x, dd_tanh(dd_mul(c, dd_mul(x, inner))));
}

static const dd root_half = {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55};

PARE_DD_INLINE dd act_body(pare_act act, const dd_erf_row *erf, dd x)
{
    switch (act) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x.hi > 0 ? x : dd_of(x.hi <= 0 ? 0 : NAN);
    case PARE_ACT_TANH:
        return dd_tanh(x);
    case PARE_ACT_GELU:
        return half_gate(x, dd_erf(erf, dd_mul(x, root_half)));
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

dd wide_act(pare_act act, dd x)
{
    return act_body(act, pare_dd_erf_rows(), x);
}

/* ---- rows, twice: with the processor's fma, and without ----------------------------- */

/* gelu of eight numbers at a time, step by step over all of them: the steps of one wait for one
 * another. The same bits as one by one. */
enum { EIGHT = 8 };

PARE_DD_INLINE void gelu_eight(const dd_erf_row *rows, double *hi, double *lo)
{
    const dd_erf_row *row[EIGHT];
    double th[EIGHT], tl[EIGHT], hh[EIGHT], hl[EIGHT], yh[EIGHT], yl[EIGHT], ah[EIGHT], al[EIGHT];
    for (size_t e = 0; e < EIGHT; e++) {
        const dd t = dd_mul((dd){hi[e], lo[e]}, root_half);
        th[e] = t.hi < 0 ? -t.hi : t.hi;
        tl[e] = t.hi < 0 ? -t.lo : t.lo;
    }
    for (size_t e = 0; e < EIGHT; e++) {
        const double k =
            th[e] <= 8.5 ? floor(16 * th[e] + 0.5) : 0; /* of others one by one below */
        const dd h = dd_two_sum(th[e] - k / 16, tl[e]);
        row[e] = &rows[(size_t)k];
        hh[e] = h.hi;
        hl[e] = h.lo;
        yh[e] = row[e]->tail[DD_ERF_TAIL - 1];
    }
    for (int n = DD_ERF_TAIL - 2; n >= 0; n--) {
        for (size_t e = 0; e < EIGHT; e++) ah[e] = row[e]->tail[n];
        for (size_t e = 0; e < EIGHT; e++) yh[e] = yh[e] * hh[e] + ah[e];
    }
    for (size_t e = 0; e < EIGHT; e++) {
        const dd y = dd_add_d(row[e]->a[DD_ERF_PAIRS - 1], yh[e] * hh[e]);
        yh[e] = y.hi;
        yl[e] = y.lo;
    }
    for (int n = DD_ERF_PAIRS - 2; n >= -1; n--) {
        for (size_t e = 0; e < EIGHT; e++) {
            const dd a = n >= 0 ? row[e]->a[n] : row[e]->value;
            ah[e] = a.hi;
            al[e] = a.lo;
        }
        for (size_t e = 0; e < EIGHT; e++) {
            const dd y = dd_add((dd){ah[e], al[e]}, dd_mul((dd){yh[e], yl[e]}, (dd){hh[e], hl[e]}));
            yh[e] = y.hi;
            yl[e] = y.lo;
        }
    }
    for (size_t e = 0; e < EIGHT; e++) {
        const dd x = {hi[e], lo[e]}, f = {yh[e], yl[e]};
        const bool negative = x.hi < 0;
        const dd y = th[e] <= 8.5 ? half_gate(x, negative ? dd_neg(f) : f)
                                  : act_body(PARE_ACT_GELU, rows, x);
        hi[e] = y.hi;
        lo[e] = y.lo;
    }
}

PARE_DD_INLINE void act_row(pare_act act, double *hi, double *lo, size_t n)
{
    for (; act == PARE_ACT_GELU && n >= EIGHT; n -= EIGHT, hi += EIGHT, lo += EIGHT)
        gelu_eight(pare_dd_erf_rows(), hi, lo);
    const dd_erf_row *const erf = pare_dd_erf_rows();
    for (size_t k = 0; k < n; k++) {
        const dd y = act_body(act, erf, (dd){hi[k], lo[k]});
        hi[k] = y.hi;
        lo[k] = y.lo;
    }
}

PARE_DD_INLINE void exp_row(double *hi, double *lo, dd top, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const dd y = exp_body(dd_sub((dd){hi[k], lo[k]}, top));
        hi[k] = y.hi;
        lo[k] = y.lo;
    }
}

PARE_DD_FMA static void act_row_fma(pare_act act, double *hi, double *lo, size_t n)
{
    act_row(act, hi, lo, n);
}

PARE_DD_FMA static void exp_row_fma(double *hi, double *lo, dd top, size_t n)
{
    exp_row(hi, lo, top, n);
}

void wide_act_row(pare_act act, double *hi, double *lo, size_t n)
{
    if (pare_has_fma())
        act_row_fma(act, hi, lo, n);
    else
        act_row(act, hi, lo, n);
}

void wide_exp_row(double *hi, double *lo, dd top, size_t n)
{
    if (pare_has_fma())
        exp_row_fma(hi, lo, top, n);
    else
        exp_row(hi, lo, top, n);
}

/* ---- positions ---------------------------------------------------------------------- */

/* With L = ln base, within 4 units: the exponent L j'/d carries 4 and half a unit for its own two
 * operations, of |L| at most, less what log really needs (dd.c: 2.5); the power 4 units and the
 * quotient one more. */
dd wide_wave(double base, size_t pos, size_t j, size_t d)
{
    dd s, c;
    const dd share = dd_div_d(dd_of((double)(j - j % 2)), (double)d);
    const dd power = pare_dd_exp(dd_mul(pare_dd_log(base), share));
    pare_dd_sincos(dd_div(dd_of((double)pos), power), &s, &c);
    return j % 2 == 1 ? c : s;
}
