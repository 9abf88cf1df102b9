/* Tests src/cert/engine_distance.c: what is proven is no less than what is seen, and hardly more. */
#include <math.h>
#include <pare/pare.h>
#include <pare_test.h>

static void the_proven_distance_is_that_of_the_outputs_from_the_exact_function(void **state)
{
    (void)state;
    enum { TOKENS = 9, VOCAB = 50, N = TOKENS * VOCAB };
    int64_t ids[TOKENS];
    for (size_t i = 0; i < TOKENS; i++) ids[i] = (int64_t)(7 * i % VOCAB);
    const pare_input in = {.batch = 1, .tokens = TOKENS, .ids = ids};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
        pare_model *m = NULL;
        pare_err err = {0};
        static double exact[N], seen;
        static float y[N];
        o.kind = seed % 2 ? PARE_RANDOM_GPT : PARE_RANDOM_LLAMA;
        o.dim = 16;
        o.heads = 2;
        o.vocab = VOCAB;
        o.seed = seed;
        assert_ok(pare_random_model(&m, &o, &err), &err);
        assert_ok(pare_forward_f64(exact, m, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f32(y, m, &in, NULL, NULL, &err), &err);
        double proven;
        seen = 0;
        for (size_t i = 0; i < N; i++) seen = fmax(seen, fabs((double)y[i] - exact[i]));
        assert_ok(pare_engine_distance(&proven, m, &in, y, NULL, &err), &err);
        /* The reference is no further from the exact function than 1e-12. */
        assert_true(proven >= seen - 1e-12 && proven <= 1.1 * seen + 1e-12 && seen > 0);
        y[N - 1] += 0.5f; /* another engine, whatever it does */
        assert_ok(pare_engine_distance(&proven, m, &in, y, NULL, &err), &err);
        seen = fabs((double)y[N - 1] - exact[N - 1]);
        assert_true(proven >= seen - 1e-12 && proven <= seen + 1e-7);
        y[3] = NAN;
        assert_ok(pare_engine_distance(&proven, m, &in, y, NULL, &err), &err);
        assert_true(isinf(proven));
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_proven_distance_is_that_of_the_outputs_from_the_exact_function)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
