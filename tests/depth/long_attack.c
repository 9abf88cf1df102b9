/* 2,000 networks, random and made to hurt, with climbs from more starts. */
#include "depth_attack.h"

static void no_bound_is_broken_by_a_long_attack(void **state)
{
    (void)state;
    attack_many(1000, 2000, 8, 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_bound_is_broken_by_a_long_attack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
