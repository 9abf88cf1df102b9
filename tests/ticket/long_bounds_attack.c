/* 2,000 targets, tickets and inputs made as bad as gradient ascent can: no statement breaks. */
#include "relu_tickets.h"

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

static void nor_in_1000_of_relu_tickets(void **state)
{
    relu_sum sum = {0};
    (void)state;
    for (uint64_t seed = 100; seed < 1100; seed++) relu_attack(&sum, seed, 25);
    print_message("%zu ReLU tickets: up to %.3g of the bound (all inputs), %.3g (given)\n", sum.n,
                  sum.free, sum.given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_proven_is_exceeded_in_500_attacks),
        cmocka_unit_test(nor_in_500_more),
        cmocka_unit_test(nor_in_the_third_500),
        cmocka_unit_test(nor_in_the_last_500_of_2000),
        cmocka_unit_test(nor_in_1000_of_relu_tickets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
