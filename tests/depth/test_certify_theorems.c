/* Tests src/depth/certify_theorems.c: the domain that a user names is the one that is spoken of. */
#include "depth/certify_theorems.h"
#include "depth_nets.h"
#include <claims.h>

enum { N = 5, D = 4 };

typedef struct said {
    pare_arena *a;
    pare_cert cert;
} said;

static said within(const pare_model *f, const pare_model *g, double data, double diam)
{
    said s = {.a = pare_arena_new()};
    pare_err err = {0};
    double x[N * D];
    for (size_t i = 0; i < N * D; i++) x[i] = i % 2 ? data : -data;
    const pare_input in = net_input(x, N, D);
    const pare_inputs set = {1, (pare_input *)&in};
    assert_non_null(s.a);
    cert_builder b = {.work = {.arena = s.a, .err = &err}, .cert = &s.cert};
    theorems_within(&b, f, g, &set, diam);
    assert_ok(b.work.st, &err);
    return s;
}

/* Tokens at most diam apart in every entry, entries up to phi: as far apart as they may be. */
static void narrow_input(double *x, pare_rng *r, double phi, double diam)
{
    for (size_t j = 0; j < D; j++) {
        const double low = -phi + (2 * phi - diam) * (double)pare_rng_below(r, 3) / 2;
        for (size_t i = 0; i < N; i++)
            x[i * D + j] = low + (pare_rng_below(r, 3) ? diam * (double)pare_rng_below(r, 2)
                                                       : diam * pare_rng_uniform(r));
    }
}

static double spread(const double *y)
{
    double most = 0;
    for (size_t i = 0; i < N * D; i++)
        for (size_t k = i % D; k < N * D; k += D) most = fmax(most, fabs(y[i] - y[k]));
    return most;
}

static void nothing_in_the_named_domain_exceeds_the_bound(void **state)
{
    (void)state;
    size_t ranks = 0;
    double tight = INFINITY;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pare_rng r = pare_rng_at(seed, 0);
        const bool bare = seed % 4 == 0;
        const double data = seed % 3 ? 1 : .1, diam = seed % 2 ? .3 : 2.5;
        const double phi = fmax(data, diam / 2);
        const net_shape s = {.layers = 1 + pare_rng_below(&r, 3),
                             .heads = 2,
                             .d = D,
                             .eta = .2,
                             .beta = 1,
                             .bias = seed % 5 ? 0 : .1,
                             .law = seed % 2 ? LAW_SIGNS : LAW_ALL_ETA,
                             .no_skip = bare};
        pare_model *const f = net_of(&r, &s), *const g = all_uniform(f);
        said t = within(f, g, data, diam);
        const pare_claim *const all = claim_must(&t.cert, PARE_DIAMETER_OUTPUTS);
        double x[N * D], y[N * D];
        assert_true(all->p[0] == diam);
        assert_int_equal(t.cert.nclaims, bare ? 2 : 1);
        ranks += bare;
        for (size_t k = 0; k < 60; k++) {
            narrow_input(x, &r, phi, diam);
            const double apart = net_apart(f, g, x, N, D);
            if (!(apart <= all->value + 1e-13))
                fail_msg("seed %u: %g > %g", (unsigned)seed, apart, all->value);
            if (apart > 1e-9) tight = fmin(tight, all->value / apart);
            net_run(y, f, x, N, D);
            if (bare)
                assert_le(spread(y), claim_value(&t.cert, PARE_DIAMETER_RANK_COLLAPSE) + 1e-13);
        }
        pare_model_free(g);
        pare_model_free(f);
        pare_arena_free(t.a);
    }
    print_message("%zu nets without skips; closest bound %.3g times what was found\n", ranks,
                  tight);
    assert_true(ranks == 10 && tight < 2);
}

/* What the prover makes of a claim about a diameter: nothing of one that is not above 0. */
static void a_claim_asks_for_one_diameter_and_for_nothing_else(void **state)
{
    (void)state;
    static const double diameters[] = {0, -1, NAN, 1e-300, 0.1, 1 / 3., 17, 1e300};
    const net_shape shape = {.layers = 1, .heads = 1, .d = D, .eta = .2, .beta = 1};
    pare_rng r = pare_rng_at(1, 0);
    pare_model *const f = net_of(&r, &shape), *const g = all_uniform(f);
    double x[N * D];
    hostile_input(x, &r, N, D, 1);
    pare_input in = net_input(x, N, D);
    const pare_inputs set = {1, &in};
    for (size_t i = 0; i < sizeof diameters / sizeof *diameters; i++) {
        pare_err err = {0};
        pare_arena *const a = pare_arena_new();
        pare_claim ask = pare_depth_diameter(diameters[i]);
        const pare_cert claimed = {.reduction = "depth",
                                   .data = {.kind = "random", .count = 1, .tokens = N},
                                   .nclaims = 1,
                                   .claims = &ask};
        pare_cert cert = {.reduction = "depth", .data = claimed.data};
        assert_ok(pare_depth_prover.prove(&cert, a, &claimed, f, g, &set, NULL, &err), &err);
        const pare_claim *const made = pare_cert_find(&cert, PARE_DIAMETER_OUTPUTS);
        assert_true(diameters[i] > 0 ? made && made->p[0] == diameters[i] : !made);
        pare_arena_free(a);
    }
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_in_the_named_domain_exceeds_the_bound),
        cmocka_unit_test(a_claim_asks_for_one_diameter_and_for_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
