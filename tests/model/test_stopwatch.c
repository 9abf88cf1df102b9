/* Tests src/plan/stopwatch.c: every model is timed, and more work takes longer. */
#include <pare_test.h>
#include "model/stopwatch.h"

static void a_larger_model_takes_longer(void **state)
{
    (void)state;
    pare_err err;
    pare_inputs set;
    pare_model *m[2] = {NULL, NULL};
    double ms[2] = {0, 0};
    pare_arena *const a = pare_arena_new();
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.context = 32;
    for (size_t i = 0; i < 2; i++) {
        o.dim = i ? 256 : 16; /* some two hundred times the work */
        assert_ok(pare_random_model(&m[i], &o, &err), &err);
    }
    assert_ok(pare_inputs_random(&set, a, m[0], 1, 32, 1, &err), &err);
    const pare_model *const both[] = {m[1], m[0]};
    assert_ok(pare_forward_ms(ms, both, 2, &set.in[0], a, NULL, &err), &err);
    assert_true(ms[1] > 0 && isfinite(ms[0]) && ms[0] > ms[1]);
    pare_model_free(m[0]);
    pare_model_free(m[1]);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_larger_model_takes_longer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
