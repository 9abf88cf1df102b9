/* Tests depth_apriori at the ends of f64: weights and inputs from 1e-200 to 1e200, one token, zero
 * weights, masks, all collapses. A bound may be infinite; it is never nan and never too small. */
#include "depth_nets.h"
#include <float.h>

static double size_of(const pare_model *m, const double *x, size_t n, size_t d)
{
    double y[64], most = 0;
    net_run(y, m, x, n, d);
    for (size_t i = 0; i < n * d; i++)
        if (!(fabs(y[i]) <= most)) most = fabs(y[i]);
    return most;
}

/* What is seen beside a bound, or 0 where f64 itself overflows; returns what is seen of it. */
static double held_to(const pare_model *f, const pare_model *g, double phi, size_t n, pare_rng *r,
                      uint64_t seed)
{
    const size_t d = f->embedding.width;
    double x[64];
    const depth_bound b = bound_of(f, g, phi, -1);
    double share = 0;
    assert_true(b.bound.v >= 0); /* nor is it nan */
    for (size_t t = 0; t < 4; t++) {
        hostile_input(x, r, n, d, phi);
        const double size = size_of(f, x, n, d), other = size_of(g, x, n, d);
        if (!isfinite(size) || !isfinite(other)) continue;
        const double seen = net_apart(f, g, x, n, d) - 1e-13 * (size + other);
        if (!(seen <= b.bound.v))
            fail_msg("seed %llu, %s: seen %.17g, bound %.17g", (unsigned long long)seed, b.theorem,
                     seen, b.bound.v);
        if (seen > 0) share = fmax(share, seen / b.bound.v);
    }
    return share;
}

static void bounds_hold_for_numbers_of_any_size(void **state)
{
    (void)state;
    static const double sizes[] = {1e-200, 1e-160, 1e-30, 1e-6, 1, 1e3, 1e80, 1e200};
    static const pare_pattern_kind patterns[] = {PARE_FULL, PARE_CAUSAL, PARE_WINDOW};
    size_t finite = 0, close = 0, all = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        pare_rng r = pare_rng_at(seed, 7);
        const net_shape s = {.layers = 1 + pare_rng_below(&r, 3),
                             .heads = 1 + pare_rng_below(&r, 2),
                             .d = 1 + pare_rng_below(&r, 3),
                             .eta = sizes[pare_rng_below(&r, 8)],
                             .beta = seed % 5 ? 1 : sizes[pare_rng_below(&r, 6)],
                             .bias = seed % 3 ? 0 : sizes[pare_rng_below(&r, 8)],
                             .law = (weight_law)pare_rng_below(&r, 5),
                             .pattern = patterns[pare_rng_below(&r, 3)]};
        const double phi = sizes[pare_rng_below(&r, 8)];
        const size_t n = 1 + pare_rng_below(&r, 5);
        pare_model *const f = net_of(&r, &s), *const g = all_uniform(f);
        double share = held_to(f, g, phi, n, &r, seed);
        finite += isfinite(bound_of(f, g, phi, -1).bound.v) != 0;
        pare_model_free(g);
        const pare_collapse which[] = {PARE_ONE_IDENTITY, PARE_ONE_KEEP, PARE_ONE_PARALLEL,
                                       PARE_ONE_UMIX};
        for (size_t k = 0; k < 4; k++) {
            const one_layer_opts o = {.kind = which[k]};
            pare_model *one = NULL;
            pare_err err = {0};
            const pare_status st = collapse_to_one_layer(&one, f, &o, &err);
            if (st == PARE_ERR_NONFINITE) continue; /* a product of weights that is no number */
            assert_ok(st, &err);
            share = fmax(share, held_to(f, one, phi, n, &r, seed));
            pare_model_free(one);
        }
        close += share > 0.1, all++;
        pare_model_free(f);
    }
    print_message("%zu of %zu bounds finite, %zu met within 10\n", finite, all, close);
    assert_true(2 * finite > all && 4 * close > all);
}

/* Nothing to bound: no weights, no inputs, or weights that only shift. */
static void nothing_is_bounded_by_nothing(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 0);
    net_shape s = {.layers = 3, .heads = 2, .d = 3, .eta = 0, .beta = 1, .law = LAW_ALL_ETA};
    pare_model *f = net_of(&r, &s), *g = all_uniform(f);
    assert_le(bound_of(f, g, 1, -1).bound.v, DBL_MIN); /* but for numbers that underflow */
    assert_le(bound_of(f, g, 0, 0).bound.v, DBL_MIN);
    pare_model_free(g);
    pare_model_free(f);
    s.eta = 0.3;
    f = net_of(&r, &s), g = all_uniform(f);
    assert_le(bound_of(f, g, 0, 0).bound.v, DBL_MIN); /* all tokens are 0 */
    assert_le(bound_of(f, g, 1, 0).bound.v, 1e-12);   /* all tokens are alike */
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold_for_numbers_of_any_size),
        cmocka_unit_test(nothing_is_bounded_by_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
