/* Tests src/linalg/ub_format.c: the text of an upper bound is never below it and never far above,
 * that of a lower bound never above it and never far below. */
#include "linalg_test.h"
#include <float.h>

static const char *text(double v, int digits)
{
    static char buf[40];
    return pare_ub_format(buf, pare_ub_exact(v), digits);
}

static void hand_made_texts(void **state)
{
    (void)state;
    assert_string_equal(text(0, 3), "0");
    assert_string_equal(text(INFINITY, 3), "inf");
    assert_string_equal(text(NAN, 3), "inf");
    assert_string_equal(text(5, 3), "5");
    assert_string_equal(text(120, 5), "120");
    assert_string_equal(text(2.5, 2), "2.5");
    assert_string_equal(text(2.5, 1), "3");
    assert_string_equal(text(1.0 / 3, 3), "0.334");
    /* The double 0.1 is above one tenth, the double 0.3 below three tenths. */
    assert_string_equal(text(0.1, 3), "0.101");
    assert_string_equal(text(0.3, 3), "0.3");
    assert_string_equal(text(0.1, 17), "0.10000000000000001");
    assert_string_equal(text(999.5, 3), "1e+03");
    assert_string_equal(text(99.95, 3), "100");
    assert_string_equal(text(1234567, 4), "1.235e+06");
    assert_string_equal(text(1234567, 7), "1234567");
    assert_string_equal(text(1234.5, 7), "1234.5");
    assert_string_equal(text(0.00012345, 3), "0.000124");
    assert_string_equal(text(0.000012345, 3), "1.24e-05");
    assert_string_equal(text(DBL_TRUE_MIN, 3), "4.95e-324");
    assert_string_equal(text(DBL_MAX, 3), "1.8e+308");
    assert_string_equal(text(2.5, 0), "3");
    assert_string_equal(text(0.5, 99), "0.5");
}

/* Sign of (decimal text) - v, by all digits of both. */
static int compare_exactly(const char *shown, double v)
{
    char a[900] = {0}, b[900];
    int exponent = 0, point = -1, n = 0;
    const char *p = shown;
    for (; *p && *p != 'e'; p++) {
        if (*p == '.') {
            point = n;
        } else {
            a[n++] = *p;
        }
    }
    if (point < 0) point = n;
    if (*p == 'e') exponent = atoi(p + 1);
    const int zeros = (int)strspn(a, "0");
    exponent += point - zeros - 1;
    memmove(a, a + zeros, (size_t)(n - zeros) + 1);
    memset(a + (n - zeros), '0', 800 - (size_t)(n - zeros));
    a[800] = '\0';
    snprintf(b, sizeof b, "%.799e", v);
    const int exponent_b = atoi(strchr(b, 'e') + 1);
    memmove(b + 1, b + 2, 799);
    b[800] = '\0';
    if (exponent != exponent_b) return exponent < exponent_b ? -1 : 1;
    return strcmp(a, b);
}

static void text_is_never_below_and_at_most_one_last_place_above(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(11, 0);
    for (size_t i = 0; i < 4000; i++) {
        const int digits = 1 + (int)(i % 17), e = (int)pare_rng_below(&rng, 2090) - 1070;
        const double v = ldexp(1 + pare_rng_uniform(&rng), i % 2 ? e : e % 20);
        const char *t = text(v, digits);
        CHECK(compare_exactly(t, v) >= 0, "seed 11, try %zu: %a with %d digits is %s", i, v, digits,
              t);
        CHECK(strtod(t, NULL) <= v * (1 + pow(10, 1 - digits) + 0x1p-51) || v < 1e-300,
              "seed 11, try %zu: %a with %d digits is %s", i, v, digits, t);
        assert_true(strlen(t) < 40);
    }
}

static const char *low(double v, int digits)
{
    static char buf[40];
    return pare_lb_format(buf, (pare_lb){v}, digits);
}

static void texts_of_lower_bounds_are_cut(void **state)
{
    (void)state;
    assert_string_equal(low(0, 3), "0");
    assert_string_equal(low(INFINITY, 3), "0"); /* no lower bound */
    assert_string_equal(low(NAN, 3), "0");
    assert_string_equal(low(0.00427783, 4), "0.004277");
    assert_string_equal(low(0.3, 3), "0.299");
    assert_string_equal(low(999.9, 3), "999");
    assert_string_equal(low(1234567, 4), "1.234e+06");
    assert_string_equal(low(DBL_TRUE_MIN, 3), "4.94e-324");
    pare_rng rng = pare_rng_at(12, 0);
    for (size_t i = 0; i < 4000; i++) {
        const int digits = 1 + (int)(i % 17), e = (int)pare_rng_below(&rng, 2090) - 1070;
        const double v = ldexp(1 + pare_rng_uniform(&rng), i % 2 ? e : e % 20);
        const char *t = low(v, digits);
        CHECK(compare_exactly(t, v) <= 0, "seed 12, try %zu: %a with %d digits is %s", i, v, digits,
              t);
        CHECK(strtod(t, NULL) >= v * (1 - pow(10, 1 - digits) - 0x1p-51) || v < 1e-300,
              "seed 12, try %zu: %a with %d digits is %s", i, v, digits, t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_made_texts),
        cmocka_unit_test(text_is_never_below_and_at_most_one_last_place_above),
        cmocka_unit_test(texts_of_lower_bounds_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
