/* Ten thousand searches of up to 24 items beside trying all subsets. */
#include "subset_cases.h"

static void the_best_subset_of_up_to_24_items_is_found(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(24, 0);
    for (int it = 0; it < 10000; it++) {
        int64_t x[24];
        uint64_t mask[1];
        pare_subset s;
        const size_t n = 1 + (size_t)below(&r, 24);
        const int64_t t = make_problem(x, n, it % KINDS, &r);
        assert_ok(pare_subset_sum(&s, mask, x, n, t, NULL, NULL), NULL);
        if (llabs(s.error) != by_force(x, n, t) || s.error != chosen_sum(x, n, mask) - t)
            fail_msg("case %d of kind %d, %zu items, seed 24", it, it % KINDS, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_subset_of_up_to_24_items_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
