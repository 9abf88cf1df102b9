/* Tests src/linalg/sum_squares.c. */
#include <pare_test.h>
#include "linalg/bounds.h"

/* Every square is rounded once and added at most n - 1 times: gamma_n of the exact sum. */
static void the_sum_is_within_its_roundings(void **state)
{
    (void)state;
    double v[70];
    pare_rng r = pare_rng_at(3, 0);
    for (size_t n = 0; n <= 70; n++) {
        long double exact = 0;
        for (size_t i = 0; i < n; i++) v[i] = pare_rng_normal(&r) * (i % 3 ? 1 : 1e6);
        for (size_t i = 0; i < n; i++) exact += (long double)v[i] * (long double)v[i];
        const double off = fabs((double)((long double)pare_squares(v, n) - exact));
        assert_le(off, pare_gamma(n, PARE_UNIT_F64).v * (double)exact); /* seed 3 */
    }
    assert_true(pare_squares((const double[]){3, 4}, 2) == 25);
    assert_true(isnan(pare_squares((const double[]){3, NAN}, 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_within_its_roundings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
