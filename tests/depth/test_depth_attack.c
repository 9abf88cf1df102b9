/* A tenth of tests/depth/long_attack.c. */
#include "depth_attack.h"

static void no_bound_is_broken_by_random_or_climbing_inputs(void **state)
{
    (void)state;
    attack_many(0, 200, 4, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bound_is_broken_by_random_or_climbing_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
