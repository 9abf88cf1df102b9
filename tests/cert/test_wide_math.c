/* Tests linalg/dd.h, src/cert/wide.h and wide_math.c: every operation and function of double-double
 * against 113 bits, within the errors that the proof kernel counts for it (over the whole range of
 * f64: tests/linalg/test_dd_mpfr.c). */
#include "wide_quad.h"
#include <float.h>

enum { TRIES = 60000 };

static void constants_are_those_of_quad_precision(void **state)
{
    (void)state;
    quad ln2 = 0, quarter = 0;
    for (int i = 0; i < 3; i++) ln2 += (quad)ln2_parts[i];
    for (int i = 0; i < 3; i++) quarter += (quad)quarter_parts[i];
    assert_true(q_abs(ln2 - q_log(2)) < (quad)0x1p-110);
    assert_true(q_abs(2 * quarter - q_pi()) < (quad)0x1p-110);
    quad s, c;
    q_sincos(q_pi() / 6, &s, &c);
    assert_true(q_abs(s - (quad)0.5) < (quad)0x1p-109);
}

/* |got - exact| in v^2 |scale|, and a pair is a pair. */
static double off(dd got, quad exact, quad scale)
{
    assert_true(fabs(got.lo) <= 0x1p-53 * fabs(got.hi));
    const quad d = q_abs(q_of(got) - exact);
    return d == 0 ? 0 : (double)(d / q_abs(scale) / (quad)V2);
}

static void operations_are_within_their_published_errors(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 0);
    double add = 0, add_d = 0, mul = 0, mul_d = 0, div = 0, div_d = 0, root = 0;
    for (size_t t = 0; t < 10 * TRIES; t++) {
        const double size = ldexp(1, (int)pare_rng_below(&r, 600) - 300);
        const dd x = random_dd(&r, size);
        dd y = random_dd(&r, ldexp(size, (int)pare_rng_below(&r, 40) - 20));
        const double d = y.hi;
        if (t % 3 == 0) { /* near cancellation: a few units in some place apart */
            y = dd_neg(x);
            y.hi *= 1 + ldexp((double)pare_rng_below(&r, 9) - 4, -(int)pare_rng_below(&r, 52) - 1);
            if (y.hi != 0) y = with_lo(&r, y.hi);
        }
        const quad qx = q_of(x), qy = q_of(y), qd = (quad)d, sum = qx + qy, sum_d = qx + qd;
        if (sum != 0) add = fmax(add, off(dd_add(x, y), sum, sum));
        if (sum_d != 0) add_d = fmax(add_d, off(dd_add_d(x, d), sum_d, sum_d));
        const dd z = random_dd(&r, 1); /* products in range */
        const quad qz = q_of(z);
        mul = fmax(mul, off(dd_mul(x, z), qx * qz, qx * qz));
        mul_d = fmax(mul_d, off(dd_mul_d(x, z.hi), qx * (quad)z.hi, qx * (quad)z.hi));
        div = fmax(div, off(dd_div(x, z), qx / qz, qx / qz));
        div_d = fmax(div_d, off(dd_div_d(x, z.hi), qx / (quad)z.hi, qx / (quad)z.hi));
        const dd p = x.hi < 0 ? dd_neg(x) : x;
        root = fmax(root, off(dd_sqrt(p), q_sqrt(q_abs(qx)), q_sqrt(q_abs(qx))));
    }
    print_message("in v^2: add %.2f %.2f, mul %.2f %.2f, div %.2f %.2f, sqrt %.2f\n", add, add_d,
                  mul, mul_d, div, div_d, root);
    assert_le(add, 3.1);
    assert_le(add_d, 2.1);
    assert_le(mul, 5.1);
    assert_le(mul_d, 2.1);
    assert_le(div, 15.1);
    assert_le(div_d, 3.1);
    assert_le(root, 3.2);
    assert_true(add > 1 && mul > 1 && div > 1); /* the search comes near */
    assert_true(dd_sqrt(dd_of(0)).hi == 0 && isnan(dd_sqrt(dd_of(-1)).hi));
}

/* Dense over [-limit, limit], and logarithmically towards 0. */
static dd argument(pare_rng *r, size_t t, double limit)
{
    const double u = 2 * pare_rng_uniform(r) - 1;
    const double x = t % 3 == 0 ? limit * u : t % 3 == 1 ? 4 * u : ldexp(u, -(int)(t / 3 % 120));
    return with_lo(r, x);
}

static void exp_is_within_four_units(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(2, 0);
    double worst = 0;
    for (size_t t = 0; t < TRIES; t++) {
        dd x = argument(&r, t, 299.9);
        if (t < 1000) x = dd_of(((double)t - 500) * 0.34657359027997264); /* the ends of r */
        const quad e = qr_exp(q_of(x));
        worst = fmax(worst, off(wide_exp(x), e, e));
    }
    print_message("exp: %.1f v^2\n", worst);
    assert_le(worst, 64);
    assert_true(wide_exp(dd_of(0)).hi == 1 && wide_exp(dd_of(-301)).hi == 0);
    assert_true(wide_exp(dd_of(-INFINITY)).hi == 0 && isinf(wide_exp(dd_of(710)).hi));
    assert_true(isnan(wide_exp(dd_of(NAN)).hi));
}

static void tanh_and_erf_are_within_their_units(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(3, 0);
    double th = 0, er = 0;
    for (size_t t = 0; t < TRIES; t++) {
        const dd x = argument(&r, t, 45), y = argument(&r, 10 * t, 9);
        const quad a = qr_tanh(q_of(x));
        if (a != 0) th = fmax(th, off(pare_dd_tanh(x), a, a));
        if (t % 10 == 0) er = fmax(er, off(pare_dd_erf(y), qr_erf(q_of(y)), 1));
    }
    for (double x = 0; x < 9; x += 0x1p-7)
        er = fmax(er, off(pare_dd_erf(dd_of(-x)), qr_erf((quad)-x), 1));
    print_message("tanh: %.1f v^2, erf: %.1f v^2\n", th, er);
    assert_le(th, 28 * 16);
    assert_le(er, 16);
    assert_true(pare_dd_tanh(dd_of(1e9)).hi == 1 && pare_dd_tanh(dd_of(-INFINITY)).hi == -1);
    assert_true(pare_dd_erf(dd_of(1e9)).hi == 1 && pare_dd_erf(dd_of(-1e9)).hi == -1);
    assert_true(isnan(pare_dd_tanh(dd_of(NAN)).hi) && isnan(pare_dd_erf(dd_of(NAN)).hi));
}

static void activations_are_within_their_units_of_x(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(4, 0);
    for (int act = PARE_ACT_NONE; act <= PARE_ACT_TANH; act++) {
        double worst = 0;
        for (size_t t = 0; t < TRIES / (act == PARE_ACT_GELU ? 10 : 2); t++) {
            const dd x = argument(&r, t, t % 2 ? 12 : 350);
            if (x.hi == 0) continue;
            const quad y = qr_act((pare_act)act, q_of(x));
            const dd got = wide_act((pare_act)act, x);
            if (q_abs(q_of(got) - y) < 1024 * (quad)WIDE_TINY) continue;
            worst = fmax(worst, off(got, y, q_of(x)));
        }
        print_message("act %d: %.1f v^2\n", act, worst);
        assert_le(worst, 16 * wide_act_units((pare_act)act));
        assert_true(isnan(wide_act((pare_act)act, dd_of(NAN)).hi));
        assert_true(wide_act((pare_act)act, dd_of(0)).hi == 0);
    }
}

/* What is compiled for processors with fma gives the bits of what is not. */
static void rows_give_the_bits_of_single_numbers(void **state)
{
    (void)state;
    enum { N = 500 };
    pare_rng r = pare_rng_at(5, 0);
    for (int act = PARE_ACT_NONE; act <= PARE_ACT_TANH + 1; act++) {
        double hi[N], lo[N];
        dd x[N];
        const dd top = random_dd(&r, 1);
        for (size_t k = 0; k < N; k++) {
            x[k] = argument(&r, k, k % 5 == 1 ? 40 : 12); /* beyond 12 gelu is x or 0 */
            hi[k] = x[k].hi;
            lo[k] = x[k].lo;
        }
        if (act <= PARE_ACT_TANH)
            wide_act_row((pare_act)act, hi, lo, N);
        else
            wide_exp_row(hi, lo, top, N);
        for (size_t k = 0; k < N; k++) {
            const dd y =
                act <= PARE_ACT_TANH ? wide_act((pare_act)act, x[k]) : wide_exp(dd_sub(x[k], top));
            assert_true(hi[k] == y.hi && lo[k] == y.lo);
        }
    }
}

static void angles_are_within_four_units_up_to_a_billion(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(6, 0);
    double worst = 0;
    for (size_t t = 0; t < TRIES; t++) {
        dd x = argument(&r, t, t % 2 ? 1e5 : 0x1p30), s, c;
        if (t < 2000) x = dd_two_sum(((double)t - 1000) * 0.78539816339744831, 0);
        quad qs, qc;
        qr_sincos(q_of(x), &qs, &qc);
        pare_dd_sincos(x, &s, &c);
        worst = fmax(worst, fmax(off(s, qs, 1), off(c, qc, 1)));
    }
    print_message("sin, cos: %.1f v^2\n", worst);
    assert_le(worst, 64);
    dd s, c;
    pare_dd_sincos(dd_of(0x1p31), &s, &c);
    assert_true(isnan(s.hi) && isnan(c.hi));
}

static void waves_have_the_angle_that_is_counted(void **state)
{
    (void)state;
    static const double bases[] = {10000, 2,     500000,  0.5,   1,     1e-4,    1e30,
                                   2e130, 1e300, DBL_MAX, 1e-30, 1e-40, 0x1p-60, 1 + 0x1p-52};
    enum { BASES = sizeof bases / sizeof *bases };
    for (size_t b = 0; b < BASES; b++) {
        const quad ln = bases[b] == 1 ? 0 : q_log((quad)bases[b]);
        const double own = (double)q_abs(q_of(pare_dd_log(bases[b])) - ln);
        assert_le(own, 4 * WIDE_UNIT * fabs(log(bases[b])));
        for (size_t i = 0; i < 3000; i++) {
            const size_t pos = i * i % 6001, d = 2 + i % 67, j = i * 7 % d;
            quad s, c;
            const quad angle = (quad)pos / qr_exp((quad)(j - j % 2) / (quad)d * ln);
            qr_sincos(angle, &s, &c);
            const dd y = wide_wave(bases[b], pos, j, d);
            if ((double)angle > 0x1p30) { /* bases below 1 that no model has */
                assert_true(isnan(y.hi));
                continue;
            }
            const double counted =
                (double)angle * (4 * fabs(log(bases[b])) + 10) * WIDE_UNIT + 8 * WIDE_UNIT;
            assert_le((double)q_abs(q_of(y) - (j % 2 ? c : s)), counted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_are_those_of_quad_precision),
        cmocka_unit_test(operations_are_within_their_published_errors),
        cmocka_unit_test(exp_is_within_four_units),
        cmocka_unit_test(tanh_and_erf_are_within_their_units),
        cmocka_unit_test(activations_are_within_their_units_of_x),
        cmocka_unit_test(rows_give_the_bits_of_single_numbers),
        cmocka_unit_test(angles_are_within_four_units_up_to_a_billion),
        cmocka_unit_test(waves_have_the_angle_that_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
