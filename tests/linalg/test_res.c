/* Tests src/linalg/res.c. A test is named after the claim it would refute. */
#include "linalg_test.h"
#include <float.h>

static void midranges_are_taken_away_column_by_column(void **state)
{
    (void)state;
    double v[] = {1, 10, 5, 20, 2, 40}, out[6];
    const pare_mat z = pare_mat_of(v, 3, 2);
    pare_mat r = pare_mat_of(out, 3, 2);
    pare_ub max;
    assert_int_equal(pare_res(&r, &max, &z), PARE_OK);
    const double want[] = {-2, -15, 2, -5, -1, 15};
    for (size_t i = 0; i < 6; i++) assert_true(out[i] == want[i]);
    assert_true(max.v >= 15 && max.v <= 15 * (1 + 1e-15));
    assert_true(v[0] == 1 && v[5] == 40);
}

static void bound_holds_after_rounding_and_a_nan_is_refused(void **state)
{
    (void)state;
    double v[] = {-0x1p-60, 1}, bad[] = {0, NAN}, worse[] = {1, INFINITY};
    pare_mat z = pare_mat_of(v, 2, 1), b = pare_mat_of(bad, 2, 1), w = pare_mat_of(worse, 2, 1);
    pare_ub ub;
    assert_int_equal(pare_res(&z, &ub, &z), PARE_OK); /* 1 + 2^-60 rounds down to 1 */
    assert_true(ub.v > 0.5 && ub.v < 0.5 * (1 + 1e-15));
    assert_int_equal(pare_res(&b, &ub, &b), PARE_ERR_NONFINITE);
    assert_true(isinf(ub.v));
    assert_int_equal(pare_res(&w, &ub, &w), PARE_ERR_NONFINITE);
    assert_true(isinf(ub.v));
    assert_int_equal(pare_res(&b, NULL, &b), PARE_ERR_NONFINITE);
}

/* |A - B| <= e is claimed to give |Res(A) - Res(B)| <= e. The constant is 2. */
static void res_moves_by_two_eps_not_one(void **state)
{
    (void)state;
    const double e = 0.25;
    double av[] = {-8 - e, 8 - e, e}, bv[] = {-8, 8, 0};
    pare_mat a = pare_mat_of(av, 3, 1), b = pare_mat_of(bv, 3, 1);
    assert_int_equal(pare_res(&a, NULL, &a), PARE_OK);
    assert_int_equal(pare_res(&b, NULL, &b), PARE_OK);
    assert_true(av[0] == -8 && av[1] == 8 && av[2] == 2 * e);
    assert_true(bv[0] == -8 && bv[1] == 8 && bv[2] == 0);
}

static void the_widest_range_does_not_overflow(void **state)
{
    (void)state;
    double v[] = {-DBL_MAX, DBL_MAX / 2}, high[] = {DBL_MAX, DBL_MAX / 2};
    pare_mat z = pare_mat_of(v, 2, 1), h = pare_mat_of(high, 2, 1);
    pare_ub ub;
    assert_int_equal(pare_res(&z, &ub, &z), PARE_OK);
    assert_true(ub.v >= 0.75 * DBL_MAX && isfinite(ub.v) && isfinite(v[0]) && isfinite(v[1]));
    assert_int_equal(pare_res(&h, &ub, &h), PARE_OK);
    assert_true(fabs(high[0] / DBL_MAX - 0.25) < 1e-15 && fabs(high[1] / DBL_MAX + 0.25) < 1e-15);
}

static void constant_and_empty_matrices_have_none(void **state)
{
    (void)state;
    double v[] = {3, -1, 3, -1};
    pare_mat z = pare_mat_of(v, 2, 2), rows = {0, 5, 5, v}, cols = {5, 0, 0, v};
    pare_ub ub;
    assert_int_equal(pare_res(&z, &ub, &z), PARE_OK);
    assert_true(ub.v == 0 && v[0] == 0 && v[3] == 0);
    assert_int_equal(pare_res(&rows, &ub, &rows), PARE_OK);
    assert_true(ub.v == 0);
    assert_int_equal(pare_res(&cols, &ub, &cols), PARE_OK);
    assert_true(ub.v == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(midranges_are_taken_away_column_by_column),
        cmocka_unit_test(bound_holds_after_rounding_and_a_nan_is_refused),
        cmocka_unit_test(res_moves_by_two_eps_not_one),
        cmocka_unit_test(the_widest_range_does_not_overflow),
        cmocka_unit_test(constant_and_empty_matrices_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
