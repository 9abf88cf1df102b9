/* 2,000 targets, tickets and inputs made as bad as gradient ascent can: no statement breaks. */
#include "ticket_attack.h"

static void attack_many(uint64_t first)
{
    attack_sum sum = {0};
    for (uint64_t seed = first; seed < first + 500; seed++) attack_run(&sum, seed, 40);
    print_message("%zu attacks, %zu finite: largest measured / bound %.3g (all inputs), %.3g "
                  "(given)\n",
                  sum.n, sum.finite, sum.free, sum.given);
}

static void nothing_proven_is_exceeded_in_500_attacks(void **state)
{
    (void)state;
    attack_many(0);
}

static void nor_in_500_more(void **state)
{
    (void)state;
    attack_many(500);
}

static void nor_in_the_third_500(void **state)
{
    (void)state;
    attack_many(1000);
}

static void nor_in_the_last_500_of_2000(void **state)
{
    (void)state;
    attack_many(1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_proven_is_exceeded_in_500_attacks),
        cmocka_unit_test(nor_in_500_more),
        cmocka_unit_test(nor_in_the_third_500),
        cmocka_unit_test(nor_in_the_last_500_of_2000),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
