/* Tests src/linalg/mat.c and weight.c. */
#include "linalg_test.h"

static void new_is_zero_and_too_large_is_refused(void **state)
{
    const pare_mat m = pare_mat_new(*state, 3, 4);
    assert_true(m.v && m.rows == 3 && m.cols == 4 && m.ld == 4);
    for (size_t i = 0; i < 12; i++) assert_true(m.v[i] == 0);
    assert_non_null(pare_mat_new(*state, 0, 7).v);
    assert_null(pare_mat_new(*state, SIZE_MAX / 2, 3).v);
    assert_null(pare_mat_new(*state, SIZE_MAX / 2 + 1, 2).v); /* the product wraps to 0 */
}

static void part_is_a_view_of_the_same_numbers(void **state)
{
    pare_mat m = pare_mat_new(*state, 3, 5);
    for (size_t i = 0; i < 15; i++) m.v[i] = (double)i;
    pare_mat p = pare_mat_part(&m, 1, 2, 2, 3);
    assert_true(p.rows == 2 && p.cols == 3 && p.ld == 5);
    assert_true(pare_row(&p, 0)[0] == 7 && pare_row(&p, 1)[2] == 14);
    pare_row_mut(&p, 1)[0] = -1;
    assert_true(m.v[12] == -1);
    const pare_mat none = pare_mat_part(&m, 3, 5, 0, 0);
    assert_true(none.rows == 0 && none.cols == 0);
}

static void widen_takes_the_part_that_was_asked_for(void **state)
{
    const float narrow[] = {0, 1, 2, 3, 4, 5.5f, 6, 7, 8, 9, 10, 0.1f};
    const double wide[] = {0, 1, 2, 3, 4, 5.5, 6, 7, 8, 9, 10, 0.1};
    const pare_weight f = {PARE_F32, 3, 4, narrow}, d = {PARE_F64, 3, 4, wide};
    pare_mat outer = pare_mat_new(*state, 2, 5), out = pare_mat_part(&outer, 0, 0, 2, 3);
    outer.v[3] = -7;
    pare_weight_widen(&out, &f, 1, 1);
    assert_true(outer.v[0] == 5.5 && outer.v[2] == 7 && outer.v[3] == -7 && outer.v[5] == 9);
    assert_true(outer.v[7] == (double)0.1f && outer.v[7] != 0.1);
    pare_weight_widen(&out, &d, 1, 1);
    assert_true(outer.v[0] == 5.5 && outer.v[3] == -7 && outer.v[7] == 0.1);
    assert_true(pare_weight_at(&f, 5) == 5.5 && pare_weight_at(&d, 11) == 0.1);
}

static void the_first_bad_element_is_found(void **state)
{
    (void)state;
    float f[] = {1, 2, 3, 4};
    double d[] = {1, NAN, INFINITY, 4};
    size_t where = 99;
    const pare_weight wf = {PARE_F32, 2, 2, f}, wd = {PARE_F64, 2, 2, d};
    assert_true(pare_weight_finite(&wf, &where) && where == 99);
    assert_false(pare_weight_finite(&wd, &where));
    assert_int_equal(where, 1);
    f[3] = -INFINITY;
    assert_false(pare_weight_finite(&wf, &where));
    assert_int_equal(where, 3);
    assert_false(pare_weight_finite(&wf, NULL));
    const pare_weight absent = {PARE_F32, 2, 2, NULL};
    assert_true(pare_weight_finite(&absent, NULL) && !pare_has(&absent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(new_is_zero_and_too_large_is_refused),
        ARENA_TEST(part_is_a_view_of_the_same_numbers),
        ARENA_TEST(widen_takes_the_part_that_was_asked_for),
        ARENA_TEST(the_first_bad_element_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
