/* Tests pare_kl of src/data/metric.c. */
#include "data/graph_data.h"
#include "small.h"

static void two_outcomes_by_hand(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_kl *k;
    pare_kl_report r;
    assert_ok(pare_kl_new(&k, a, 2, &err), &err);
    /* p = (3/4, 1/4) against q = (1/2, 1/2), and the other way round: not the same number. */
    assert_ok(pare_kl_add(k, (float[]){logf(3), 0}, (float[]){7, 7}, 1, &err), &err);
    assert_ok(pare_kl_scores(&r, k, &err), &err);
    assert_near(r.mean, 0.75 * log(1.5) + 0.25 * log(0.5), 1e-7);
    assert_int_equal(r.rows, 1);
    assert_ok(pare_kl_new(&k, a, 2, &err), &err);
    assert_ok(pare_kl_add(k, (float[]){7, 7}, (float[]){logf(3), 0}, 1, &err), &err);
    assert_ok(pare_kl_scores(&r, k, &err), &err);
    assert_near(r.mean, 0.5 * log(2.0 / 3) + 0.5 * log(2), 1e-7);
    assert_true(r.same_top == 1);
    pare_arena_free(a);
}

static void equal_rows_are_exactly_zero_and_shifts_do_not_matter(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_rng rng = pare_rng_at(1, 0);
    pare_err err;
    pare_kl *k;
    pare_kl_report r;
    float p[100], q[100];
    for (size_t i = 0; i < 100; i++) {
        p[i] = (float)pare_rng_below(&rng, 64) / 8;
        q[i] = p[i] + 1024; /* exact */
    }
    assert_ok(pare_kl_new(&k, a, 10, &err), &err);
    assert_ok(pare_kl_add(k, p, p, 10, &err), &err);
    assert_ok(pare_kl_scores(&r, k, &err), &err);
    assert_true(r.max == 0 && r.mean == 0 && r.same_top == 1 && r.rows == 10);
    assert_ok(pare_kl_add(k, p, q, 10, &err), &err);
    assert_ok(pare_kl_scores(&r, k, &err), &err);
    assert_int_equal(r.rows, 20);
    assert_true(r.max <= 1e-12);
    pare_arena_free(a);
}

static void far_tails_are_not_lost(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_kl *k;
    pare_kl_report r;
    assert_ok(pare_kl_new(&k, a, 2, &err), &err);
    assert_ok(pare_kl_add(k, (float[]){0, 0}, (float[]){0, -10000}, 1, &err), &err);
    assert_ok(pare_kl_scores(&r, k, &err), &err);
    assert_near(r.mean, 5000 - log(2), 1e-9); /* exp(-10000) would be 0, its log inf */
    assert_ok(pare_kl_new(&k, a, 2, &err), &err);
    assert_ok(pare_kl_add(k, (float[]){0, -10000}, (float[]){0, 0}, 1, &err), &err);
    assert_ok(pare_kl_scores(&r, k, &err), &err);
    assert_near(r.mean, log(2), 1e-12); /* 0 log 0 is 0 */
    pare_arena_free(a);
}

/* Rows whose KL we choose: p certain of one outcome, q gives it exp(-d). */
static void report_of(pare_kl_report *r, size_t n)
{
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_kl *k;
    assert_ok(pare_kl_new(&k, a, 2, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const size_t j = (i * 7919) % n; /* any order (7919 is prime to n here) */
        const float p[2] = {2000, 0}, q[2] = {0, (float)(j + 40)};
        assert_ok(pare_kl_add(k, p, q, 1, &err), &err);
    }
    assert_ok(pare_kl_scores(r, k, &err), &err);
    pare_arena_free(a);
}

static void order_statistics_are_ranks(void **state)
{
    (void)state;
    pare_kl_report r;
    report_of(&r, 2000); /* 40, 41, ... 2039 */
    assert_near(r.median, (1039 + 1040) / 2.0, 1e-9);
    assert_near(r.p999, 2037, 1e-9); /* rank 1998 of 2000 */
    assert_near(r.max, 2039, 1e-9);
    assert_near(r.mean, 1039.5, 1e-9);
    assert_true(r.same_top == 0);
    report_of(&r, 5);
    assert_near(r.median, 42, 1e-9);
    assert_near(r.p999, 44, 1e-9); /* of few rows the largest */
}

static void bad_rows_are_refused(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_kl *k;
    pare_kl_report r;
    assert_ok(pare_kl_new(&k, a, 2, &err), &err);
    assert_status(pare_kl_scores(&r, k, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_kl_add(k, (float[]){0, NAN}, (float[]){0, 0}, 1, &err), PARE_ERR_NONFINITE,
                  &err);
    assert_status(pare_kl_add(k, (float[]){0, 0}, (float[]){0, -INFINITY}, 1, &err),
                  PARE_ERR_NONFINITE, &err);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_outcomes_by_hand),
        cmocka_unit_test(equal_rows_are_exactly_zero_and_shifts_do_not_matter),
        cmocka_unit_test(far_tails_are_not_lost),
        cmocka_unit_test(order_statistics_are_ranks),
        cmocka_unit_test(bad_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
