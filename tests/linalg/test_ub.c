/* Tests src/linalg/ub.c: a bound that rounds down once is a false statement. */
#include "linalg/bounds.h"
#include "linalg_test.h"
#include <float.h>

enum { tries = 20000 };

static double below(double x)
{
    return nextafter(x, -1);
}

/* A positive double with exponent in [lo, hi). */
static double any_double(pare_rng *r, int lo, int hi)
{
    const int e = lo + (int)pare_rng_below(r, (uint64_t)(hi - lo));
    return ldexp(1 + pare_rng_uniform(r), e);
}

static void sum_is_the_least_double_not_below_the_exact_one(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(1, 0);
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -20, 20), b = any_double(&rng, -20, 20);
        const double s = pare_ub_add(pare_ub_exact(a), pare_ub_exact(b)).v;
        const quad exact = (quad)a + (quad)b;
        CHECK((quad)s >= exact && (quad)below(s) < exact, "seed 1, try %zu: %a + %a", i, a, b);
    }
    assert_true(pare_ub_add(pare_ub_exact(1), pare_ub_exact(0x1p-80)).v == nextafter(1, 2));
    assert_true(pare_ub_add(pare_ub_exact(0x1p-80), pare_ub_exact(1)).v == nextafter(1, 2));
    assert_true(pare_ub_add(pare_ub_exact(1), pare_ub_exact(2)).v == 3);
}

static void product_is_the_least_double_not_below_the_exact_one(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(2, 0);
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -400, 400), b = any_double(&rng, -400, 400);
        const double p = pare_ub_mul(pare_ub_exact(a), pare_ub_exact(b)).v;
        const quad exact = (quad)a * (quad)b;
        CHECK((quad)p >= exact && (quad)below(p) < exact, "seed 2, try %zu: %a * %a", i, a, b);
    }
    assert_true(pare_ub_mul(pare_ub_exact(3), pare_ub_exact(0.5)).v == 1.5);
}

static void products_that_underflow_stay_above(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(3, 0);
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -700, -200), b = any_double(&rng, -700, -200);
        const double p = pare_ub_mul(pare_ub_exact(a), pare_ub_exact(b)).v;
        CHECK((quad)p >= (quad)a * (quad)b, "seed 3, try %zu: %a * %a", i, a, b);
    }
    assert_true(pare_ub_mul(pare_ub_exact(1e-300), pare_ub_exact(1e-300)).v > 0);
}

static void quotient_is_the_least_double_not_below_the_exact_one(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(4, 0);
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -300, 300), b = any_double(&rng, -300, 300);
        const double q = pare_ub_div(pare_ub_exact(a), b).v;
        CHECK((quad)q * (quad)b >= (quad)a && (quad)below(q) * (quad)b < (quad)a,
              "seed 4, try %zu: %a / %a", i, a, b);
    }
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -1060, -500), b = any_double(&rng, -500, 500);
        const double q = pare_ub_div(pare_ub_exact(a), b).v;
        CHECK((quad)q * (quad)b >= (quad)a, "seed 4, tiny try %zu: %a / %a", i, a, b);
    }
    assert_true(pare_ub_div(pare_ub_exact(6), 3).v == 2);
}

static void root_is_the_least_double_not_below_the_exact_one(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(5, 0);
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -1070, 1000), r = pare_ub_sqrt(pare_ub_exact(a)).v;
        CHECK((quad)r * (quad)r >= (quad)a, "seed 5, try %zu: sqrt %a", i, a);
        if (a > 0x1p-800)
            CHECK((quad)below(r) * (quad)below(r) < (quad)a, "seed 5, try %zu: sqrt %a", i, a);
    }
    assert_true(pare_ub_sqrt(pare_ub_exact(9)).v == 3);
    assert_true(pare_ub_sqrt(pare_ub_exact(0)).v == 0);
}

static void fma_is_not_below_the_exact_one(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(6, 0);
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -3, 3), b = any_double(&rng, -3, 3);
        const double c = ldexp(floor(any_double(&rng, 40, 41)), -40); /* few bits: quad is exact */
        const double r = pare_ub_fma(pare_ub_exact(a), pare_ub_exact(b), pare_ub_exact(c)).v;
        const quad exact = (quad)a * (quad)b + (quad)c;
        CHECK((quad)r >= exact, "seed 6, try %zu", i);
        assert_true((quad)r <= exact * (quad)(1 + 0x1p-50));
    }
}

static void nan_and_negative_are_unknown_and_infinity_absorbs(void **state)
{
    (void)state;
    const pare_ub inf = pare_ub_inf(), zero = pare_ub_exact(0), two = pare_ub_exact(2);
    const pare_ub bad = {NAN}, negative = {-1};
    assert_true(isinf(pare_ub_of(NAN).v) && isinf(pare_ub_exact(NAN).v));
    assert_true(isinf(pare_ub_of(DBL_MAX).v) && isinf(inf.v));
    assert_true(isinf(pare_ub_mul(zero, inf).v) && isinf(pare_ub_mul(inf, zero).v));
    assert_true(isinf(pare_ub_add(inf, two).v) && isinf(pare_ub_add(two, inf).v));
    assert_true(isinf(pare_ub_mul(two, bad).v) && isinf(pare_ub_add(bad, two).v));
    assert_true(isinf(pare_ub_max(bad, two).v) && isinf(pare_ub_max(two, bad).v));
    assert_true(pare_ub_min(bad, two).v == 2 && pare_ub_min(two, bad).v == 2);
    assert_true(isinf(pare_ub_add(negative, two).v) && isinf(pare_ub_sqrt(negative).v));
    assert_true(isinf(pare_ub_div(two, 0).v) && isinf(pare_ub_div(two, -1).v));
    assert_true(isinf(pare_ub_div(two, NAN).v) && isinf(pare_ub_div(inf, 3).v));
    assert_true(isinf(pare_ub_div(zero, 0).v) && pare_ub_div(zero, 3).v == 0);
    assert_true(isinf(pare_ub_mul(pare_ub_exact(1e200), pare_ub_exact(1e200)).v));
    assert_true(isinf(pare_ub_sqrt(inf).v) && isinf(pare_ub_sqrt(bad).v));
    assert_true(pare_ub_max(two, zero).v == 2 && pare_ub_min(two, zero).v == 0);
    assert_true(pare_ub_max(zero, two).v == 2 && pare_ub_min(zero, two).v == 0);
}

static void of_is_one_double_above_and_exact_is_not(void **state)
{
    (void)state;
    assert_true(pare_ub_of(1).v == nextafter(1, 2) && pare_ub_of(-1).v == nextafter(1, 2));
    assert_true(pare_ub_of(0).v > 0); /* what was computed as zero may have underflowed */
    assert_true(pare_ub_exact(1.5).v == 1.5 && pare_ub_exact(-1.5).v == 1.5);
}

static void tanh_stays_above_tanh_and_below_one_and_its_argument(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(7, 0);
    for (size_t i = 0; i < tries; i++) {
        const double a = any_double(&rng, -30, 6), t = pare_ub_tanh(pare_ub_exact(a)).v;
        CHECK((long double)t >= tanhl((long double)a), "seed 7, try %zu: tanh %a", i, a);
        assert_true(t <= 1 && t <= a && t <= tanh(a) * (1 + 1e-13));
    }
    assert_true(pare_ub_tanh(pare_ub_inf()).v == 1 && pare_ub_tanh(pare_ub_exact(0)).v == 0);
    assert_true(pare_ub_tanh((pare_ub){NAN}).v == 1);
}

static void gamma_is_above_nu_over_one_minus_nu(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(8, 0);
    for (size_t i = 0; i < tries; i++) {
        const size_t n = (size_t)pare_rng_below(&rng, (uint64_t)1 << (1 + i % 50));
        const double u = i % 2 ? PARE_UNIT_F64 : 0x1p-52;
        const quad nu = (quad)n * (quad)u, g = (quad)pare_gamma(n, u).v;
        CHECK(g * (1 - nu) >= nu, "seed 8, try %zu: gamma_%zu", i, n);
        assert_true(g * (1 - nu) <= nu * (quad)(1 + 0x1p-49));
    }
    assert_true(pare_gamma(0, PARE_UNIT_F64).v == 0);
    assert_true(isinf(pare_gamma((size_t)1 << 53, PARE_UNIT_F64).v));
    assert_true(isinf(pare_gamma((size_t)1 << 24, PARE_UNIT_F32).v));
    assert_true(pare_gamma(1, 0.5).v >= 1 && pare_gamma(1, 0.5).v < 1 + 1e-15);
    const size_t big = ((size_t)1 << 60) + 1; /* as a double it is 2^60, below */
    assert_true((quad)pare_gamma(big, 0x1p-80).v > (quad)0x1p-20 + (quad)0x1p-40);
}

static void written_is_one_part_in_ten_thousand_higher(void **state)
{
    (void)state;
    assert_true(pare_ub_written(pare_ub_exact(0)) == 0);
    assert_true(isinf(pare_ub_written(pare_ub_inf())));
    const double w = pare_ub_written(pare_ub_exact(3));
    assert_true(w >= 3 * 1.0001 && w < 3 * 1.00010001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum_is_the_least_double_not_below_the_exact_one),
        cmocka_unit_test(product_is_the_least_double_not_below_the_exact_one),
        cmocka_unit_test(products_that_underflow_stay_above),
        cmocka_unit_test(quotient_is_the_least_double_not_below_the_exact_one),
        cmocka_unit_test(root_is_the_least_double_not_below_the_exact_one),
        cmocka_unit_test(fma_is_not_below_the_exact_one),
        cmocka_unit_test(nan_and_negative_are_unknown_and_infinity_absorbs),
        cmocka_unit_test(of_is_one_double_above_and_exact_is_not),
        cmocka_unit_test(tanh_stays_above_tanh_and_below_one_and_its_argument),
        cmocka_unit_test(gamma_is_above_nu_over_one_minus_nu),
        cmocka_unit_test(written_is_one_part_in_ten_thousand_higher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
