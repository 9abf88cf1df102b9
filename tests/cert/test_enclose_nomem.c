/* Whatever allocation fails on the way, the proof ends with PARE_ERR_MEMORY and claims nothing. */
#include "cert/prove.h"
#include <enclose_models.h>
#include <fail_alloc.h>

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 50; s++) { /* once with all later ones refused, once without */
        pare_model *const m = some_model(s / 2, 1);
        pare_input in = some_input(m, s / 2, 1, 0);
        const pare_inputs set = {1, &in};
        pare_gap gap;
        pare_err err = {0};
        pare_status st;
        long n = 0;
        do {
            (s % 2 ? fail_alloc_once : fail_alloc_after)(n++);
            st = pare_prove_gap(&gap, m, m, &set, NULL, &err);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
            if (hit) assert_true(isinf(gap.proven.v) && isinf(gap.rounding.v));
        } while (st != PARE_OK && n < 10000);
        assert_int_equal(st, PARE_OK);
        assert_true(n > 3);
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
