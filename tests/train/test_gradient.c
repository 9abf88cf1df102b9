/* Tests src/train/tape*.c: gradients are slopes. */
#include "gradient_cases.h"

static const pare_mode still = {.momentum = 0.1};

static pare_mode lively(uint64_t seed)
{
    return (pare_mode){.training = true,
                       .dropout = seed % 3 ? 0.3 : 0,
                       .momentum = 0.1,
                       .seed = seed,
                       .step = seed * 7};
}

static void check(uint64_t seed, bool many, const pare_mode *mode, const char *what)
{
    pare_model *const m = some_model(seed, 1);
    pare_input in = some_input(m, seed, 1, 0);
    slope_case s;
    if (!many || many_rows(m, &in, seed)) {
        open_case(&s, m, &in, mode, seed, seed % 2);
        check_slopes(&s, seed, what);
        close_case(&s);
    }
    pare_model_free(m);
}

static void gradients_are_slopes_of_every_kind_of_model(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) check(seed, false, &still, "still");
}

/* Batch norms with the batch's own figures, and dropout. */
static void gradients_are_slopes_in_training(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1300; seed++) {
        const pare_mode mode = lively(seed);
        check(seed, false, &mode, "training");
    }
}

static void gradients_are_slopes_where_rows_are_many(void **state)
{
    (void)state;
    for (uint64_t seed = 2000; seed < 2040; seed++) {
        const pare_mode mode = lively(seed);
        check(seed, true, seed % 2 ? &mode : &still, "many rows");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes_of_every_kind_of_model),
        cmocka_unit_test(gradients_are_slopes_in_training),
        cmocka_unit_test(gradients_are_slopes_where_rows_are_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
