/* Tests src/model/input.c: the random inputs of a certificate. */
#include <pare_test.h>
#include "model/inputs.h"

static void more_vectors_than_memory_are_refused_also_when_their_number_wraps(void **state)
{
    (void)state;
    pare_model m = {.stem = {.width = (size_t)1 << 32}};
    pare_inputs set;
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    const size_t tokens = (size_t)1 << 32; /* times the width it is 0 */
    assert_status(pare_inputs_random(&set, a, &m, 1, tokens, 0, &err), PARE_ERR_MEMORY, &err);
    pare_arena_free(a);
}

static void seeds_beyond_two_to_the_63_give_inputs_of_their_own(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {0, 1, (uint64_t)1 << 63, UINT64_MAX};
    const pare_model m = {.stem = {.ids = true, .vocab = 1000}};
    char hex[4][PARE_SHA256_HEX];
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    for (size_t i = 0; i < 4; i++) {
        pare_inputs set;
        assert_ok(pare_inputs_random(&set, a, &m, 2, 9, seeds[i], &err), &err);
        assert_ok(pare_inputs_sha256(hex[i], &set, &err), &err);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(hex[i], hex[j]);
    }
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_vectors_than_memory_are_refused_also_when_their_number_wraps),
        cmocka_unit_test(seeds_beyond_two_to_the_63_give_inputs_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
