/* Tests src/train/task_text.c. */
#include <pare/data.h>
#include <pare/train.h>
#include "task_cases.h"

static char dir[200], path[300], other[300];
static pare_arena *arena;

static int set_up(void **state)
{
    (void)state;
    char text[1000];
    test_mkdir(dir);
    arena = pare_arena_new();
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i % 251);
    test_write_file(test_path(path, dir, "t.txt"), text, sizeof text);
    test_write_file(test_path(other, dir, "v.txt"), text + 100, 107);
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    test_rmdir(dir);
    pare_arena_free(arena);
    return 0;
}

static pare_task_text_opts bytes(void)
{
    return (pare_task_text_opts){
        .train = path, .shares = true, .tokenizer = PARE_TOK_BYTES, .window = 10, .batch = 4};
}

static pare_task make(pare_task_text_opts o, pare_task_facts *f)
{
    pare_task l;
    pare_err err = {0};
    assert_ok(pare_task_text(&l, f, arena, &o, &err), &err);
    return l;
}

static void a_batch_is_windows_of_the_training_text_and_the_tokens_after_them(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task l = make(bytes(), &f);
    pare_err err = {0};
    bool late = false;
    assert_true(f.ids == 256 && f.outputs == 256 && f.tokens == 10 && f.features == 0);
    assert_true(f.train == 900 && f.val == 49 && f.test == 49 && l.epoch == 23);
    assert_true(!l.more_is_better);
    for (uint64_t step = 0; step < 200; step++) {
        pare_batch b;
        assert_ok(l.batch(l.self, &b, arena, 3, step, &err), &err);
        assert_true(b.in.n == 4 && b.in.in[3].tokens == 10);
        for (size_t i = 0; i < 40; i++) {
            const int64_t *const ids = b.in.in[i / 10].ids;
            if (i % 10) assert_int_equal(ids[i % 10], (ids[i % 10 - 1] + 1) % 251);
            assert_int_equal(b.label[i], (ids[i % 10] + 1) % 251);
        }
        late |= b.in.in[0].ids[0] > 130;
    }
    assert_true(late); /* windows begin anywhere */
}

static void a_batch_depends_on_seed_and_step_alone(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task l = make(bytes(), &f);
    pare_batch a, b, other_step, other_seed;
    pare_err err = {0};
    assert_ok(l.batch(l.self, &a, arena, 3, 17, &err), &err);
    assert_ok(l.batch(l.self, &other_step, arena, 3, 18, &err), &err);
    assert_ok(l.batch(l.self, &other_seed, arena, 4, 17, &err), &err);
    assert_ok(l.batch(l.self, &b, arena, 3, 17, &err), &err);
    assert_memory_equal(a.label, b.label, 40 * sizeof *a.label);
    assert_memory_not_equal(a.label, other_step.label, 40 * sizeof *a.label);
    assert_memory_not_equal(a.label, other_seed.label, 40 * sizeof *a.label);
}

/* Every logit is the same: the score is log 256, whatever the windows; and what `pare eval` and the
 * task say of one model is the same number. */
static void the_score_is_the_mean_over_all_tokens_but_the_first(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task_text_opts o = bytes();
    o.val = other; /* 107 tokens: ten windows and one of seven */
    pare_task l = make(o, &f);
    pare_model *m = NULL;
    pare_err err = {0};
    pare_dataset d;
    pare_metric *metric;
    pare_scores s;
    double got, few;
    float y[10 * 256];
    assert_true(f.val == 106 && f.train == 950 && f.test == 49);
    const pare_init init = {
        .kind = PARE_INIT_GPT, .dim = 8, .layers = 1, .heads = 2, .vocab = 256, .context = 10};
    assert_ok(pare_init_model(&m, &init, &err), &err);
    assert_ok(l.score(l.self, &got, m, PARE_PART_VAL, NULL, &err), &err);
    assert_ok(pare_dataset_load(&d, arena, m, other, &(pare_data_opts){.window = 10}, &err), &err);
    assert_ok(pare_metric_new(&metric, arena, 256, &err), &err);
    for (size_t i = 0; i < d.inputs.n; i++) {
        assert_ok(pare_forward_f32(y, m, &d.inputs.in[i], NULL, NULL, &err), &err);
        assert_ok(pare_metric_add(metric, y, d.target[i], d.inputs.in[i].tokens, &err), &err);
    }
    assert_ok(pare_metric_scores(&s, metric, &err), &err);
    assert_int_equal(s.counted, 106);
    assert_near(got, s.nats, 1e-6);
    o.eval_tokens = 30; /* every fourth window: 0, 4, 8 */
    l = make(o, &f);
    assert_ok(l.score(l.self, &few, m, PARE_PART_VAL, NULL, &err), &err);
    assert_true(few != got);
    assert_near(few, got, 0.1);
    pare_model_free(m);
}

static void what_is_too_short_is_named(void **state)
{
    (void)state;
    pare_task l;
    pare_task_facts f;
    pare_err err = {0};
    pare_task_text_opts o = bytes();
    o.window = 950;
    assert_status(pare_task_text(&l, &f, arena, &o, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, path);
    assert_contains(err.msg, "900 tokens of training text, 951 are needed");
    o = bytes();
    o.val = path;
    o.train = other; /* 5 % of 107 tokens are 5: enough */
    assert_ok(pare_task_text(&l, &f, arena, &o, &err), &err);
    char tiny[300];
    test_write_file(test_path(tiny, dir, "s.txt"), "0123456789abcdef", 16);
    o.train = tiny;
    o.window = 3;
    assert_status(pare_task_text(&l, &f, arena, &o, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "0 tokens of test text");
    o = bytes();
    o.tokenizer = PARE_TOK_NONE;
    assert_status(pare_task_text(&l, &f, arena, &o, &err), PARE_ERR_INPUT, &err);
    o = bytes();
    o.batch = 0;
    assert_status(pare_task_text(&l, &f, arena, &o, &err), PARE_ERR_USAGE, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_windows_of_the_training_text_and_the_tokens_after_them),
        cmocka_unit_test(a_batch_depends_on_seed_and_step_alone),
        cmocka_unit_test(the_score_is_the_mean_over_all_tokens_but_the_first),
        cmocka_unit_test(what_is_too_short_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
