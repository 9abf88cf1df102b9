/* Tests pare_auc of src/data/metric.c. */
#include "small.h"
#include "base/array.h"
#include "data/graph_data.h"

/* The definition: pairs won, ties half. */
static double by_pairs(const double *score, const uint8_t *y, size_t n)
{
    double won = 0, pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (y[i] && !y[j]) {
                pairs++;
                won += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
            }
    return won / pairs;
}

static void hand_made_cases(void **state)
{
    (void)state;
    pare_err err;
    double auc;
    assert_ok(pare_auc(&auc, (double[]){1, 2, 3, 4}, (uint8_t[]){0, 0, 1, 1}, 4, &err), &err);
    assert_true(auc == 1);
    assert_ok(pare_auc(&auc, (double[]){4, 3, 2, 1}, (uint8_t[]){0, 0, 1, 1}, 4, &err), &err);
    assert_true(auc == 0);
    assert_ok(pare_auc(&auc, (double[]){1, 1, 1}, (uint8_t[]){0, 1, 0}, 3, &err), &err);
    assert_true(auc == 0.5);
    assert_ok(pare_auc(&auc, (double[]){1, 2, 2, 3}, (uint8_t[]){0, 1, 0, 1}, 4, &err), &err);
    assert_true(auc == 0.875);
    assert_ok(pare_auc(&auc, (double[]){-INFINITY, INFINITY}, (uint8_t[]){0, 1}, 2, &err), &err);
    assert_true(auc == 1);
}

static void ranks_agree_with_pairs_under_ties(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        pare_rng rng = pare_rng_at(seed, 0);
        double score[120], auc;
        uint8_t y[120];
        pare_err err;
        const size_t n = 2 + pare_rng_below(&rng, 118), levels = 1 + pare_rng_below(&rng, 20);
        for (size_t i = 0; i < n; i++) {
            score[i] = (double)pare_rng_below(&rng, levels);
            y[i] = (uint8_t)pare_rng_below(&rng, 2);
        }
        y[0] = 0;
        y[1] = 1;
        assert_ok(pare_auc(&auc, score, y, n, &err), &err);
        if (!(fabs(auc - by_pairs(score, y, n)) <= 1e-14)) {
            print_error("seed %llu: %.17g\n", (unsigned long long)seed, auc);
            fail();
        }
    }
}

static void a_missing_class_or_a_nan_is_refused(void **state)
{
    (void)state;
    pare_err err;
    double auc;
    assert_status(pare_auc(&auc, (double[]){1, 2}, (uint8_t[]){1, 1}, 2, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "2 rows are positive, 0 negative");
    assert_true(isnan(auc));
    assert_status(pare_auc(&auc, (double[]){1}, (uint8_t[]){0}, 1, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_auc(&auc, NULL, NULL, 0, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_auc(&auc, (double[]){1, NAN}, (uint8_t[]){1, 0}, 2, &err),
                  PARE_ERR_NONFINITE, &err);
    assert_true(isnan(auc));
}

static void the_golden_fixture(void **state)
{
    (void)state;
    static const char path[] = "../shared/reference/width/fixtures/tiny.npz";
    NEED_SHARED(path);
    pare_arena *a = pare_arena_new();
    pare_npz *z;
    pare_err err;
    pare_array score, y, want;
    assert_ok(pare_npz_open(&z, a, path, &err), &err);
    assert_ok(pare_npz_get(&score, z, "auc_score", &err), &err);
    assert_ok(pare_npz_get(&y, z, "auc_y", &err), &err);
    assert_ok(pare_npz_get(&want, z, "auc", &err), &err);
    double s[50], auc;
    uint8_t p[50];
    assert_int_equal(pare_array_count(&score), 50);
    for (size_t i = 0; i < 50; i++) {
        s[i] = pare_array_f64(&score, i);
        p[i] = pare_array_i64(&y, i) == 1;
    }
    assert_ok(pare_auc(&auc, s, p, 50, &err), &err);
    assert_near(auc, pare_array_f64(&want, 0), 1e-15);
    pare_npz_close(z);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_made_cases),
        cmocka_unit_test(ranks_agree_with_pairs_under_ties),
        cmocka_unit_test(a_missing_class_or_a_nan_is_refused),
        cmocka_unit_test(the_golden_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
