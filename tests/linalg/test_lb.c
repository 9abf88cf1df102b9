/* Tests src/linalg/lb.c: a lower bound that rounds up once is a false statement; one that gives
 * away more than a rounding is weak. */
#include "linalg/bounds.h"
#include "linalg_test.h"
#include <float.h>

enum { TRIES = 20000 };

/* A positive double, each exponent between the two as likely. */
static double positive(pare_rng *r, int lo, int hi)
{
    const int e = lo + (int)pare_rng_below(r, (uint64_t)(hi - lo));
    return ldexp(1 + pare_rng_uniform(r), e);
}

/* got is the largest double not above the exact value, or the one below it near underflow. */
static void tight(double got, quad exact, const char *what, size_t t)
{
    CHECK((quad)got <= exact, "seed 1, try %zu: %s %a is too large", t, what, got);
    double next = nextafter(got, INFINITY);
    if (got < 0x1p-890) next = nextafter(next, INFINITY);
    CHECK((quad)next > exact || got == DBL_MAX, "seed 1, try %zu: %s %a is weak", t, what, got);
}

static void results_are_the_largest_doubles_not_above_the_exact_ones(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 0);
    for (size_t t = 0; t < TRIES; t++) {
        const int low = t % 2 ? -40 : -900, high = t % 2 ? 40 : 900;
        const double x = positive(&r, low, high);
        const double y = t % 3 ? positive(&r, low, high) : x * (1 - 0x1p-30 * pare_rng_uniform(&r));
        const pare_lb a = pare_lb_exact(x), b = pare_lb_exact(y);
        const pare_ub c = pare_ub_exact(y);
        const bool near = fabs(log2(x / y)) < 50; /* sums of 113 bits */
        if (near) tight(pare_lb_add(a, b).v, (quad)x + (quad)y, "sum", t);
        if (near && x > y) tight(pare_lb_sub(a, c).v, (quad)x - (quad)y, "difference", t);
        if (x <= y) assert_true(pare_lb_sub(a, c).v == 0);
        tight(pare_lb_mul(a, b).v, (quad)x * (quad)y, "product", t);
        tight(pare_lb_div(a, c).v, (quad)x / (quad)y, "quotient", t);
        const double root = pare_lb_sqrt(a).v, next = nextafter(root, INFINITY);
        assert_true((quad)root * (quad)root <= (quad)x);
        assert_true((quad)next * (quad)next > (quad)x || x < 0x1p-890);
    }
}

static void exact_results_stay(void **state)
{
    (void)state;
    const pare_lb two = pare_lb_exact(2), three = pare_lb_exact(3), four = pare_lb_exact(4);
    assert_true(pare_lb_add(two, three).v == 5 && pare_lb_mul(two, three).v == 6);
    assert_true(pare_lb_sub(three, pare_ub_exact(2)).v == 1 && pare_lb_sqrt(four).v == 2);
    assert_true(pare_lb_div(three, pare_ub_exact(2)).v == 1.5);
    assert_true(pare_lb_max(two, three).v == 3 && pare_lb_min(two, three).v == 2);
    assert_true(pare_lb_of(1).v == nextafter(1, 0) && pare_lb_of(0).v == 0);
    assert_true(pare_lb_sqrt(pare_lb_exact(0)).v == 0);
}

static void what_is_unknown_is_zero_and_what_overflows_is_finite(void **state)
{
    (void)state;
    const pare_lb one = pare_lb_exact(1), big = pare_lb_exact(DBL_MAX), bad = {NAN};
    assert_true(pare_lb_exact(-1).v == 0 && pare_lb_exact(NAN).v == 0);
    assert_true(pare_lb_exact(INFINITY).v == DBL_MAX && pare_lb_of(NAN).v == 0);
    assert_true(pare_lb_add(bad, one).v == 1 && pare_lb_mul(bad, one).v == 0);
    assert_true(pare_lb_sub(one, (pare_ub){NAN}).v == 0);
    assert_true(pare_lb_sub(big, pare_ub_inf()).v == 0 && pare_lb_div(one, pare_ub_inf()).v == 0);
    assert_true(pare_lb_sub(one, (pare_ub){-1}).v == 0 && pare_lb_div(one, (pare_ub){NAN}).v == 0);
    assert_true(pare_lb_add(big, big).v == DBL_MAX && pare_lb_mul(big, big).v == DBL_MAX);
    assert_true(pare_lb_div(one, pare_ub_exact(0)).v == DBL_MAX);
    assert_true(pare_lb_div(pare_lb_exact(0), pare_ub_exact(0)).v == 0);
    assert_true(pare_lb_max(bad, one).v == 1 && pare_lb_min(bad, one).v == 0);
    assert_true(pare_lb_mul(pare_lb_exact(0x1p-600), pare_lb_exact(0x1p-600)).v == 0);
    assert_true(pare_lb_mul(pare_lb_exact(0x1.8p-537), pare_lb_exact(0x1p-537)).v < 0x1.8p-1074);
}

static void written_is_one_part_in_ten_thousand_lower(void **state)
{
    (void)state;
    assert_true(pare_lb_written(pare_lb_exact(0)) == 0);
    const double w = pare_lb_written(pare_lb_exact(3));
    assert_true(w < 3 * (1 - 0.99e-4) && w > 3 * (1 - 1.01e-4));
    assert_true(pare_lb_written(pare_lb_exact(0x1p-1074)) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_the_largest_doubles_not_above_the_exact_ones),
        cmocka_unit_test(exact_results_stay),
        cmocka_unit_test(what_is_unknown_is_zero_and_what_overflows_is_finite),
        cmocka_unit_test(written_is_one_part_in_ten_thousand_lower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
