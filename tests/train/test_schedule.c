/* Tests pare_cosine of src/train/adamw.c. */
#include "train/optimizer.h"
#include <pare_test.h>

static void warm_up_is_a_line_that_ends_at_the_rate(void **state)
{
    (void)state;
    for (uint64_t w = 1; w < 20; w++) {
        for (uint64_t s = 0; s < w; s++)
            assert_near(pare_cosine(s, 100, w, 2, 0), 2 * (double)(s + 1) / (double)(w + 1), 1e-15);
        assert_true(pare_cosine(w, 100, w, 2, 0) == 2);
        assert_true(pare_cosine(0, 100, w, 2, 0) > 0); /* no step is for nothing */
    }
    assert_true(pare_cosine(0, 100, 0, 2, 0) == 2);
}

static void then_half_a_cosine_falls_to_the_last_rate(void **state)
{
    (void)state;
    assert_near(pare_cosine(10 + 45, 100, 10, 3, 1), 2, 1e-15);   /* the middle */
    assert_near(pare_cosine(10 + 30, 100, 10, 3, 1), 2.5, 1e-15); /* cos 60 degrees */
    for (uint64_t s = 11; s < 100; s++)
        assert_true(pare_cosine(s, 100, 10, 3, 1) < pare_cosine(s - 1, 100, 10, 3, 1));
    assert_true(pare_cosine(99, 100, 10, 3, 1) > 1);
    assert_true(pare_cosine(100, 100, 10, 3, 1) == 1);
    assert_true(pare_cosine(5000, 100, 10, 3, 1) == 1);
}

static void odd_cases_are_finite(void **state)
{
    (void)state;
    assert_true(pare_cosine(0, 1, 0, 1, 0) == 1);
    assert_near(pare_cosine(0, 1, 1, 1, 0), 0.5, 0);
    assert_true(pare_cosine(1, 1, 1, 1, 0.25) == 0.25);
    assert_true(pare_cosine(7, 10, 2, 0.5, 0.5) == 0.5); /* constant */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_up_is_a_line_that_ends_at_the_rate),
        cmocka_unit_test(then_half_a_cosine_falls_to_the_last_rate),
        cmocka_unit_test(odd_cases_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
