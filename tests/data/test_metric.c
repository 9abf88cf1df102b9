/* Tests src/data/metric.c. */
#include "data/graph_data.h"
#include "small.h"

static void rows_without_a_target_do_not_count(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_metric *m;
    pare_scores s;
    const float l = logf(3);
    /* softmax of (log 3, 0, 0) is (3/5, 1/5, 1/5). */
    const float x[4 * 3] = {l, 0, 0, 0, l, 0, 0, 0, l, NAN, 0, 0};
    assert_ok(pare_metric_new(&m, a, 3, &err), &err);
    assert_ok(pare_metric_add(m, x, (int64_t[]){0, 0, 2, -1}, 4, &err), &err);
    assert_ok(pare_metric_scores(&s, m, &err), &err);
    assert_int_equal(s.counted, 3);
    assert_near(s.accuracy, 2.0 / 3, 1e-15);
    assert_near(s.nats, (2 * log(5.0 / 3) + log(5)) / 3, 1e-7);
    assert_near(s.perplexity, exp(s.nats), 0);
    assert_true(isnan(s.auc)); /* three classes have none */
    pare_arena_free(a);
}

static void ties_go_to_the_first_class(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_metric *m;
    pare_scores s;
    assert_ok(pare_metric_new(&m, a, 3, &err), &err);
    assert_ok(pare_metric_add(m, (float[]){1, 2, 2}, (int64_t[]){1}, 1, &err), &err);
    assert_ok(pare_metric_scores(&s, m, &err), &err);
    assert_true(s.accuracy == 1);
    pare_arena_free(a);
}

static void two_classes_rank_by_the_difference_of_logits(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        pare_rng rng = pare_rng_at(seed, 0);
        pare_arena *a = pare_arena_new();
        pare_err err;
        pare_metric *m;
        pare_scores s;
        assert_ok(pare_metric_new(&m, a, 2, &err), &err);
        double score[200], want;
        uint8_t y[200];
        size_t n = 0;
        for (size_t i = 0; i < 40; i++) { /* five rows at a time, so that it must grow */
            float x[10];
            int64_t target[5];
            for (size_t k = 0; k < 5; k++) {
                x[2 * k] = (float)pare_rng_below(&rng, 5);
                x[2 * k + 1] = (float)pare_rng_below(&rng, 5);
                target[k] = (int64_t)pare_rng_below(&rng, 3) - 1;
                if (target[k] < 0) continue;
                score[n] = (double)x[2 * k + 1] - (double)x[2 * k];
                y[n++] = target[k] == 1;
            }
            assert_ok(pare_metric_add(m, x, target, 5, &err), &err);
        }
        assert_ok(pare_metric_scores(&s, m, &err), &err);
        assert_ok(pare_auc(&want, score, y, n, &err), &err);
        assert_int_equal(s.counted, n);
        if (s.auc != want) {
            print_error("seed %llu: %.17g and %.17g\n", (unsigned long long)seed, s.auc, want);
            fail();
        }
        pare_arena_free(a);
    }
}

static void one_class_leaves_the_auc_undefined(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_metric *m;
    pare_scores s;
    assert_ok(pare_metric_new(&m, a, 2, &err), &err);
    assert_status(pare_metric_scores(&s, m, &err), PARE_ERR_INPUT, &err); /* nothing counted yet */
    assert_ok(pare_metric_add(m, (float[]){0, 1}, (int64_t[]){1}, 1, &err), &err);
    assert_ok(pare_metric_scores(&s, m, &err), &err);
    assert_true(s.accuracy == 1 && isnan(s.auc));
    pare_arena_free(a);
}

static void large_logits_do_not_overflow(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_metric *m;
    pare_scores s;
    assert_ok(pare_metric_new(&m, a, 2, &err), &err);
    assert_ok(pare_metric_add(m, (float[]){3e38f, 0, -3e38f, -3e38f}, (int64_t[]){0, 0}, 2, &err),
              &err);
    assert_ok(pare_metric_scores(&s, m, &err), &err);
    assert_near(s.nats, log(2) / 2, 1e-15);
    pare_arena_free(a);
}

static void bad_rows_are_refused(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_metric *m;
    assert_ok(pare_metric_new(&m, a, 2, &err), &err);
    assert_status(pare_metric_add(m, (float[]){0, NAN}, (int64_t[]){0}, 1, &err),
                  PARE_ERR_NONFINITE, &err);
    assert_status(pare_metric_add(m, (float[]){0, INFINITY}, (int64_t[]){0}, 1, &err),
                  PARE_ERR_NONFINITE, &err);
    assert_status(pare_metric_add(m, (float[]){0, 1}, (int64_t[]){2}, 1, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "target 2");
    assert_status(pare_metric_add(m, (float[]){0, 1}, (int64_t[]){-2}, 1, &err), PARE_ERR_INPUT,
                  &err);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_without_a_target_do_not_count),
        cmocka_unit_test(ties_go_to_the_first_class),
        cmocka_unit_test(two_classes_rank_by_the_difference_of_logits),
        cmocka_unit_test(one_class_leaves_the_auc_undefined),
        cmocka_unit_test(large_logits_do_not_overflow),
        cmocka_unit_test(bad_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
