/* Tests the rows of Rank collapse 2025 in docs/errata.md: the definitions of
 * studies/errata_depth_lemmas.c and errata_depth.c beside numbers known by hand. */
#include "depth_nets.h"
#include <errata_rows.h>
#include <pare/depth.h>
#include <pare/ticket.h>

static void depth_fact_3_3_max_entry_norm_is_not_submultiplicative(void **state)
{
    (void)state;
    false_as_printed(1, 2, 2);
}

static void depth_fact_3_3_entrywise_sum_needs_the_number_of_columns(void **state)
{
    (void)state;
    false_as_printed(1, 2, 2);
}

static void depth_lemma_4_1_res_moves_by_twice_as_much(void **state)
{
    (void)state;
    false_as_printed(.25, .5, .5);
}

/* theta = 2 .05^2 6^3 .3^2 = .0972; .05 (e^theta - 1); .05 6 tanh(theta / 2), which is met. */
static void depth_lemma_5_1_is_false_by_the_width(void **state)
{
    (void)state;
    false_as_printed(.00510404, .0145686, .0145686);
}

/* .5 .05^2 1.2^2, and 2 6^3 times that. */
static void depth_lemma_b4_misses_the_cube_of_the_width(void **state)
{
    (void)state;
    false_as_printed(.0018, .7776, .7776);
}

/* tanh(1.01) / 2 - tanh(.01) / 2 in the first weight. With softmax(a) in its place |b| / 2 holds.
 */
static void depth_lemma_d5_compares_with_the_wrong_softmax(void **state)
{
    (void)state;
    false_as_printed(.04, .377854, NAN);
    const double a[] = {2, 0}, sum[] = {2.01, -.01};
    double p[2], q[2];
    softmax_of(p, sum, 2);
    softmax_of(q, a, 2);
    assert_le(fabs(p[0] - q[0]), pare_softmax_perturbation(pare_ub_of(.02)).v);
    assert_le(pare_softmax_perturbation(pare_ub_of(.02)).v, .01 / 2);
}

/* 12 1e-4 1e-3; scores 64e-4 (1.001^2 - 1) apart either way. */
static void depth_lemma_d6_misses_the_width(void **state)
{
    (void)state;
    false_as_printed(1.2e-6, 6.403e-6, 6.4032e-6);
}

/* eps = 2 .05 2 1.05 = .21, .15 (.0441 + 1); .05 4. */
static void depth_lemma_d7_drops_the_distance(void **state)
{
    (void)state;
    false_as_printed(.156615, .2, .2);
    assert_true(pare_collapse_paper(.05, 2, 1, 1).holds);
}

/* 12 4 .000125 + .05 = .056; .15 1.04 = .156. */
static void depth_lemma_d7_arithmetic_is_off(void **state)
{
    (void)state;
    const sides s = false_step(.156, .056, .056);
    assert_true(s.is < s.printed); /* harmless as an inequality */
}

static void depth_lemma_5_2_scores_see_the_shift(void **state)
{
    (void)state;
    false_step(0, .9645, NAN);
}

/* tanh(.35), and twice that: p - q = (t, -t). Lemmas B.2 and D.4 themselves are true. */
static void depth_lemma_c1_needs_the_sum_of_weights_not_the_largest(void **state)
{
    (void)state;
    const sides s = false_step(.336376, .672751, .672751);
    assert_le(s.printed, 2 * expm1(1.4)); /* B.2: 2 (e^eps - 1) for scores that move by eps */
}

/* 2 (e^.1 - 1); 1 / (1 + e^-5.01) - 1/2; tanh(5.01 / 4). */
static void depth_lemma_c1_takes_the_move_of_x_for_that_of_the_scores(void **state)
{
    (void)state;
    false_step(.210342, .493381, .849005);
}

static void depth_lemma_c2_misses_the_width(void **state)
{
    (void)state;
    false_as_printed(1.02, 1.16, 1.16);
}

static void depth_lemma_d8_misses_the_width(void **state)
{
    (void)state;
    false_as_printed(1.01, 1.16, 1.16);
}

/* 1.003^100 - 1.003; eps = .006 1.003^100. */
static void depth_theorem_d1_fails_for_the_network_of_its_proof(void **state)
{
    (void)state;
    const sides s = false_as_printed(.0658767, .346317, .346317);
    assert_true(s.is > 50 * pare_collapse_paper(.003, 1, 1, 100).claim);
}

/* 1.16^10 - 1.16. */
static void depth_theorem_d1_bound_is_violated(void **state)
{
    (void)state;
    false_as_printed(.18626, 3.25144, 3.25144);
}

/* 1.64^4 - 1.64. */
static void depth_theorem_d1_bound_is_violated_at_width_64(void **state)
{
    (void)state;
    false_as_printed(.17531, 5.59395, 5.59395);
}

/* 1.512^12 - 1.512. */
static void depth_theorem_d1_bound_is_violated_with_eight_heads(void **state)
{
    (void)state;
    false_as_printed(.143837, 141.2524, NAN);
}

/* Two layers; written 1,000 times over all entries are at most .002 and the hypotheses hold. */
static void depth_theorem_d1_fails_for_every_one_layer_network(void **state)
{
    (void)state;
    const sides s = false_as_printed(.0651685, .933, NAN);
    assert_true(s.is > 200 * pare_collapse_paper(.002, 2, 1, 2).claim);
}

static void depth_theorem_d1_residual_layers_do_not_contract(void **state)
{
    (void)state;
    false_step(.0045, .5015, .5015);
}

/* .003 (1.003^99 - 1); 1.003^100 - 1.003. */
static void depth_theorem_d1_does_not_count_the_residual_path(void **state)
{
    (void)state;
    false_step(.00103584, .346317, NAN);
}

/* 8 .006 1.003^100; 2 .3 / 100. */
static void depth_theorem_d1_claim_does_not_follow_from_its_bound(void **state)
{
    (void)state;
    false_step(.006, .0647640, NAN);
}

static void depth_definition_3_4_has_many_minimizers(void **state)
{
    (void)state;
    false_reading(0, .4, NAN);
}

static void depth_remark_d3_norm_is_not_the_sum_of_entries(void **state)
{
    (void)state;
    false_reading(2, 1.414214, NAN);
}

/* Theorem 1.2 says O(eta): the identity, which is no attention at all, has that too. */
static void depth_theorem_1_2_holds_for_doing_nothing(void **state)
{
    (void)state;
    const sides row = row_sides(__func__, IMPRECISE);
    assert_true(row.printed == 1);
    assert_near(row.is, 1.011, .005); /* log2 of (1.016^3 - 1) / (1.008^3 - 1) */
    assert_near(row.holds, 3, .1);
    for (double eta = 1e-3; eta < .02; eta *= 2) {
        pare_rng r = pare_rng_at(3, 0);
        const net_shape s = {.layers = 3, .heads = 2, .d = 4, .eta = eta, .beta = 1};
        pare_model *const f = net_of(&r, &s), *const g = collapsed(f, PARE_ONE_IDENTITY, 0, NULL);
        double x[20];
        hostile_input(x, &r, 5, 4, 1);
        const double most = pow(1 + 2 * 4 * eta, 3) - 1; /* phi0 ((1 + H d eta)^L - 1) */
        assert_le(net_apart(f, g, x, 5, 4), most);
        assert_le(bound_of(f, g, 1, -1).bound.v, most * (1 + 1e-12));
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* With a skip the rank need not fall at all, which the paper says, too. */
static void with_a_skip_the_rank_stays(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(4, 0);
    net_shape s = {.layers = 3, .heads = 2, .d = 4, .eta = .5, .beta = .5, .no_skip = true};
    pare_model *const without = net_of(&r, &s);
    s.no_skip = false;
    pare_model *const with = net_of(&r, &s);
    for (size_t b = 0; b < 3; b++) with->blocks[b].attn.wv.data = net_room(with, 2 * 4 * 4);
    double x[20], y[20], z[20];
    hostile_input(x, &r, 5, 4, 1);
    net_run(y, with, x, 5, 4);
    net_run(z, without, x, 5, 4);
    for (size_t i = 0; i < 20; i++) assert_true(x[i] == y[i]);
    double spread = 0;
    for (size_t i = 4; i < 20; i++) spread = fmax(spread, fabs(z[i] - z[i - 4]));
    assert_le(spread, 1e-6);
    pare_model_free(with);
    pare_model_free(without);
}

/* The corollary of docs/theory/depth.md, third order in A, is about full attention. Under a causal
 * mask a single mean is off by second order: A = .1. */
static void the_corollary_needs_full_attention(void **state)
{
    (void)state;
    const size_t d = 4, layers = 4, n = 16;
    const double a = .1, eta = a / (double)(1 * layers * d);
    pare_rng r = pare_rng_at(0, 0);
    const net_shape s = {
        .layers = layers, .heads = 1, .d = d, .eta = eta, .beta = 1, .law = LAW_ALL_ETA};
    pare_model *const f = net_of(&r, &s), *const g = collapsed(f, PARE_ONE_UNIFORM, 0, NULL);
    /* beta d A^3 phi0^3 e^(4A) / (H^2 L^2) */
    const double would_be = (double)d * a * a * a * exp(4 * a) / (double)(layers * layers);
    double x[16 * 4];
    for (size_t i = 0; i < n * d; i++) x[i] = i / d < n / 2 ? 1 : -1;
    assert_le(net_apart(f, g, x, n, d), would_be);
    f->pattern.kind = g->pattern.kind = PARE_CAUSAL;
    const double masked = net_apart(f, g, x, n, d);
    pare_model *const umix = collapsed(f, PARE_ONE_UMIX, 0, NULL);
    print_message("causal: one mean %.3g, umix %.3g, would-be bound %.3g\n", masked,
                  net_apart(f, umix, x, n, d), would_be);
    assert_true(masked > 3 * would_be);
    assert_le(net_apart(f, umix, x, n, d), would_be);
    pare_model_free(umix);
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_fact_3_3_max_entry_norm_is_not_submultiplicative),
        cmocka_unit_test(depth_fact_3_3_entrywise_sum_needs_the_number_of_columns),
        cmocka_unit_test(depth_lemma_4_1_res_moves_by_twice_as_much),
        cmocka_unit_test(depth_lemma_5_1_is_false_by_the_width),
        cmocka_unit_test(depth_lemma_b4_misses_the_cube_of_the_width),
        cmocka_unit_test(depth_lemma_d5_compares_with_the_wrong_softmax),
        cmocka_unit_test(depth_lemma_d6_misses_the_width),
        cmocka_unit_test(depth_lemma_d7_drops_the_distance),
        cmocka_unit_test(depth_lemma_d7_arithmetic_is_off),
        cmocka_unit_test(depth_lemma_5_2_scores_see_the_shift),
        cmocka_unit_test(depth_lemma_c1_needs_the_sum_of_weights_not_the_largest),
        cmocka_unit_test(depth_lemma_c1_takes_the_move_of_x_for_that_of_the_scores),
        cmocka_unit_test(depth_lemma_c2_misses_the_width),
        cmocka_unit_test(depth_lemma_d8_misses_the_width),
        cmocka_unit_test(depth_theorem_d1_fails_for_the_network_of_its_proof),
        cmocka_unit_test(depth_theorem_d1_bound_is_violated),
        cmocka_unit_test(depth_theorem_d1_bound_is_violated_at_width_64),
        cmocka_unit_test(depth_theorem_d1_bound_is_violated_with_eight_heads),
        cmocka_unit_test(depth_theorem_d1_fails_for_every_one_layer_network),
        cmocka_unit_test(depth_theorem_d1_residual_layers_do_not_contract),
        cmocka_unit_test(depth_theorem_d1_does_not_count_the_residual_path),
        cmocka_unit_test(depth_theorem_d1_claim_does_not_follow_from_its_bound),
        cmocka_unit_test(depth_definition_3_4_has_many_minimizers),
        cmocka_unit_test(depth_remark_d3_norm_is_not_the_sum_of_entries),
        cmocka_unit_test(depth_theorem_1_2_holds_for_doing_nothing),
        cmocka_unit_test(with_a_skip_the_rank_stays),
        cmocka_unit_test(the_corollary_needs_full_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
