/* Tests src/depth/rank_collapse.c: without skips tokens become alike, doubly exponentially, and provably. */
#include "depth_nets.h"

static depth_rank rank_of(const pare_model *m, double phi0, double diam0)
{
    depth_rank k;
    pare_err err = {0};
    const depth_domain d = {phi0, diam0};
    assert_ok(depth_rank_collapse(&k, m, &d, NULL, &err), &err);
    return k;
}

static double diameter(const double *x, size_t n, size_t d)
{
    double most = 0;
    for (size_t c = 0; c < d; c++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < n; i++)
            low = fmin(low, x[i * d + c]), high = fmax(high, x[i * d + c]);
        most = fmax(most, high - low);
    }
    return most;
}

static void tokens_are_at_least_as_alike_as_promised(void **state)
{
    (void)state;
    size_t useful = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        pare_rng r = pare_rng_at(seed, 0);
        const net_shape s = {.layers = 1 + pare_rng_below(&r, 4),
                             .heads = 2,
                             .d = 4,
                             .eta = seed % 2 ? .1 : .3,
                             .beta = 1,
                             .bias = seed % 3 ? .2 : 0,
                             .law = LAW_GAUSS,
                             .no_skip = true};
        pare_model *const m = net_of(&r, &s);
        double x[24], y[24];
        for (size_t i = 0; i < 24; i++) x[i] = 2 * pare_rng_uniform(&r) - 1;
        net_run(y, m, x, 6, 4);
        const depth_rank k = rank_of(m, 1, diameter(x, 6, 4));
        assert_string_equal(k.why, "");
        assert_le(diameter(y, 6, 4), k.bound.v + 1e-14); /* below that rounding is all there is */
        useful += k.collapses && diameter(y, 6, 4) > 1e-14;
        pare_model_free(m);
    }
    print_message("%zu of 60 nets are proven to collapse\n", useful);
    assert_true(useful > 10);
}

/* k^((3^L - 1) / 2) D^(3^L): with D small the logarithm triples a layer, far below what a double
 * holds. */
static void the_logarithm_triples_and_does_not_underflow(void **state)
{
    (void)state;
    double log_d[3];
    for (size_t t = 0; t < 3; t++) {
        pare_rng r = pare_rng_at(1, 1);
        const net_shape s = {.layers = 4 + t,
                             .heads = 1,
                             .d = 2,
                             .eta = .1,
                             .beta = 1,
                             .law = LAW_ALL_ETA,
                             .no_skip = true};
        pare_model *const m = net_of(&r, &s);
        const depth_rank k = rank_of(m, 1, .01);
        log_d[t] = k.log_bound[DEPTH_NORM_INF];
        assert_true(k.bound.v > 0 && k.bound.v < 1e-250 && k.collapses);
        pare_model_free(m);
    }
    /* by hand: V has column sums .2, Bil(B) = sum of B = 4 * 2 * .01 = .08: k = .08 * .2 / 4 */
    double want = log(.01);
    for (size_t l = 0; l < 4; l++) want = log(.08 * .2 / 4) + 3 * want;
    assert_near(log_d[0], want, 1e-9 * fabs(want));
    assert_near(log_d[2] - log_d[1], 3 * (log_d[1] - log_d[0]), 1e-9 * fabs(log_d[2]));
}

static void equal_tokens_stay_equal(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(2, 0);
    const net_shape s = {.layers = 2, .heads = 2, .d = 3, .eta = .5, .beta = 1, .no_skip = true};
    pare_model *const m = net_of(&r, &s);
    const depth_rank k = rank_of(m, 1, 0);
    assert_true(k.bound.v == 0 && k.log_bound[0] == -INFINITY);
    pare_model_free(m);
}

static void where_the_lemma_does_not_hold_nothing_is_said(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(3, 0);
    net_shape s = {.layers = 2, .heads = 2, .d = 3, .eta = .5, .beta = 1};
    pare_model *const skip = net_of(&r, &s);
    assert_contains(rank_of(skip, 1, -1).why, "skip");
    assert_true(isinf(rank_of(skip, 1, -1).bound.v));
    s.no_skip = true;
    s.pattern = PARE_CAUSAL;
    pare_model *const causal = net_of(&r, &s);
    assert_contains(rank_of(causal, 1, -1).why, "pattern");
    pare_model_free(causal);
    pare_model_free(skip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_at_least_as_alike_as_promised),
        cmocka_unit_test(the_logarithm_triples_and_does_not_underflow),
        cmocka_unit_test(equal_tokens_stay_equal),
        cmocka_unit_test(where_the_lemma_does_not_hold_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
