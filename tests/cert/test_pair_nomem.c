/* Whatever allocation fails on the way, a ball ends with PARE_ERR_MEMORY and claims nothing. */
#include "pair_models.h"
#include <fail_alloc.h>

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 24; s++) { /* once with all later ones refused, once without */
        pair_case t;
        pair_open(&t, s / 2, 0.5, 1);
        const pare_inputs set = {1, &t.in};
        pare_ball ball;
        pare_status st;
        long n = 0;
        do {
            (s % 2 ? fail_alloc_once : fail_alloc_after)(n++);
            st = pare_prove_ball(&ball, t.f, t.g, &set,
                                 (pare_neighborhood){.radius = 0.01, .norm = PARE_BALL_TWO}, NULL,
                                 &t.err);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
            if (hit) assert_true(isinf(ball.apart.v) && ball.certain == 0 && ball.refused);
        } while (st != PARE_OK && n < 10000);
        assert_int_equal(st, PARE_OK);
        assert_true(n > 3);
        pair_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
