/* Tests src/data/evaluate.c: the metric of a task, the divergence of a model from itself and from
 * another, distances of outputs. */
#include <pare_test.h>
#include "data/evaluate.h"

enum { INPUTS = 3, TOKENS = 6 };

typedef struct scene {
    pare_arena *a;
    pare_err err;
    pare_model *m, *other;
    int64_t ids[INPUTS][TOKENS], target[INPUTS][TOKENS];
    const int64_t *targets[INPUTS];
    pare_input in[INPUTS];
    pare_dataset d;
} scene;

static pare_model *model(uint64_t seed, size_t vocab)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.dim = 8;
    o.heads = 2;
    o.vocab = vocab;
    o.seed = seed;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static void open_scene(scene *s)
{
    *s = (scene){.a = pare_arena_new(), .m = model(1, 16), .other = model(2, 16)};
    assert_non_null(s->a);
    for (size_t i = 0; i < INPUTS; i++) {
        for (size_t k = 0; k < TOKENS; k++) s->ids[i][k] = (int64_t)((3 * i + 5 * k) % 16);
        for (size_t k = 0; k < TOKENS; k++)
            s->target[i][k] = k + 1 < TOKENS ? s->ids[i][k + 1] : -1;
        s->targets[i] = s->target[i];
        s->in[i] = (pare_input){.batch = 1, .tokens = TOKENS, .ids = s->ids[i]};
    }
    s->d = (pare_dataset){.task = PARE_TASK_TEXT, .inputs = {INPUTS, s->in}, .target = s->targets};
}

static void close_scene(scene *s)
{
    pare_model_free(s->m);
    pare_model_free(s->other);
    pare_arena_free(s->a);
}

static void the_task_chooses_the_metric(void **state)
{
    (void)state;
    scene s;
    pare_evaluation e, wide;
    open_scene(&s);
    assert_true(pare_dataset_has_targets(s.m, &s.d));
    assert_ok(pare_evaluate(&e, s.m, &s.d, false, NULL, &s.err), &s.err);
    assert_string_equal(e.metric, "perplexity");
    assert_int_equal(e.scores.counted, INPUTS * (TOKENS - 1));
    assert_near(e.value, exp(e.scores.nats), 1e-9 * e.value);
    assert_ok(pare_evaluate(&wide, s.m, &s.d, true, NULL, &s.err), &s.err);
    assert_near(wide.value, e.value, 1e-4 * e.value);
    s.d.task = PARE_TASK_TOKENS;
    assert_ok(pare_evaluate(&e, s.m, &s.d, false, NULL, &s.err), &s.err);
    assert_string_equal(e.metric, "accuracy");
    for (size_t i = 0; i < INPUTS; i++)
        for (size_t k = 0; k < TOKENS; k++) s.target[i][k] = -1;
    assert_false(pare_dataset_has_targets(s.m, &s.d));
    close_scene(&s);
}

static void a_model_does_not_diverge_from_itself(void **state)
{
    (void)state;
    scene s;
    pare_comparison c;
    open_scene(&s);
    assert_ok(pare_evaluate_against(&c, s.m, s.m, &s.d, false, NULL, &s.err), &s.err);
    assert_true(c.model.value == c.reference.value && c.kl.same_top == 1 &&
                c.kl.rows == INPUTS * (TOKENS - 1));
    assert_near(c.kl.max, 0, 1e-12);
    assert_ok(pare_evaluate_against(&c, s.m, s.other, &s.d, false, NULL, &s.err), &s.err);
    assert_true(c.model.value != c.reference.value && c.kl.mean > 0);
    pare_model *const wrong = model(1, 17);
    assert_status(pare_evaluate_against(&c, s.m, wrong, &s.d, false, NULL, &s.err), PARE_ERR_INPUT,
                  &s.err);
    assert_contains(s.err.msg, "the reference has 17 outputs, the model 16");
    pare_model_free(wrong);
    close_scene(&s);
}

static void outputs_are_compared_by_their_size(void **state)
{
    (void)state;
    scene s;
    double error, most;
    open_scene(&s);
    assert_ok(pare_output_error(&error, s.m, s.m, &s.d.inputs, s.a, NULL, &s.err), &s.err);
    assert_true(error == 0);
    assert_ok(pare_output_error(&error, s.m, s.other, &s.d.inputs, s.a, NULL, &s.err), &s.err);
    assert_true(error > 0);
    assert_ok(pare_largest_output(&most, s.m, &s.d.inputs, s.a, NULL, &s.err), &s.err);
    float y[TOKENS * 16];
    double seen = 0;
    for (size_t i = 0; i < INPUTS; i++) {
        assert_ok(pare_forward_f32(y, s.m, &s.in[i], NULL, NULL, &s.err), &s.err);
        for (size_t k = 0; k < TOKENS * 16; k++) seen = fmax(seen, fabs((double)y[k]));
    }
    assert_true(most == seen);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_task_chooses_the_metric),
        cmocka_unit_test(a_model_does_not_diverge_from_itself),
        cmocka_unit_test(outputs_are_compared_by_their_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
