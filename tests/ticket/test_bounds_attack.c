/* Tests src/ticket/bound_*.c, model_bound.c and given_input_bounds.c by attack: a tenth of the 2,000 that
 * tests/ticket/long_bounds_attack.c makes. */
#include "ticket_attack.h"

static void nothing_proven_is_exceeded_in_200_attacks(void **state)
{
    attack_sum sum = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) attack_run(&sum, seed, 12);
    print_message("%zu attacks, %zu finite: largest measured / bound %.3g (all inputs), %.3g "
                  "(given)\n",
                  sum.n, sum.finite, sum.free, sum.given);
    assert_true(sum.finite > 200);
    assert_true(sum.free > .2 && sum.given > .2); /* not needlessly loose where they are tight */
}

/* Models as wild as the type allows: what cannot be compared is refused, what can is bounded. */
static void wild_models_are_bounded_or_refused(void **state)
{
    pare_err err = {0};
    size_t bounded = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        pare_model *const f = some_model(seed, 1);
        pare_model *const g =
            pair_ticket(f, seed, seed % 3 ? 1e-3 : .1, (int)(seed % 2), seed % 4 == 0);
        pare_input in = some_input(f, seed, 1, 0);
        const pare_inputs set = {1, &in};
        pare_ticket_bound all, given;
        double scale;
        const double far = pair_apart(f, g, &in, NULL, &scale);
        assert_ok(pare_ticket_bound_free(&all, f, g, pare_ticket_alpha(&set), NULL, &err), &err);
        assert_ok(pare_ticket_bound_given(&given, f, g, &set, NULL, &err), &err);
        if (!(far <= all.outputs.v + attack_slack(scale)) ||
            !(far <= given.outputs.v + attack_slack(scale)))
            print_error("seed %llu\n", (unsigned long long)seed);
        assert_le(far, all.outputs.v + attack_slack(scale));
        assert_le(far, given.outputs.v + attack_slack(scale));
        if (isinf(all.outputs.v)) assert_true(*all.why);
        bounded += isfinite(all.outputs.v) ? 1 : 0;
        pare_model_free(g);
        pare_model_free(f);
    }
    print_message("%zu of 300 wild models bounded\n", bounded);
    assert_true(bounded > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_proven_is_exceeded_in_200_attacks),
        cmocka_unit_test(wild_models_are_bounded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
