/* 2,000 targets, tickets and inputs made as bad as gradient ascent can: no statement breaks. */
#include "ticket_attack.h"

static void nothing_proven_is_exceeded_in_2000_attacks(void **state)
{
    attack_sum sum = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) attack_run(&sum, seed, 40);
    print_message("%zu attacks, %zu finite: largest measured / bound %.3g (all inputs), %.3g "
                  "(given)\n",
                  sum.n, sum.finite, sum.free, sum.given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_proven_is_exceeded_in_2000_attacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
