/* Tests the rows of Shirzad 2024 in docs/errata.md: the definitions of
 * studies/errata_width.c beside numbers known by hand. */
#include <errata_rows.h>
#include "width/jl_bounds.h"
#include <pare/width.h>

/* c2 = 4 16 (1 + 2 + 1) = 256; scores +-16e-4 give 64 tanh(16e-4), and the recursion is met. */
static void width_theorem_3_3_constants_are_too_small(void **state)
{
    (void)state;
    false_step(256e-4, .1023999, .1024);
}

/* x = y and as many dimensions as the lemma asks for: nearly every draw is good. */
static void width_corollary_3_2_has_its_probability_reversed(void **state)
{
    (void)state;
    false_as_printed(.01, 1, NAN);
}

/* Orthogonal vectors: a factor turns 0 into nothing else. Up to an additive eps all draws are
 * good. */
static void width_corollary_3_2_is_not_multiplicative(void **state)
{
    (void)state;
    false_as_printed(.99, 0, 1);
}

/* 2 3 .1 + .09; 9 (1.21 - 1). */
static void width_c1_drops_a_beta(void **state)
{
    (void)state;
    false_step(.69, 1.89, 1.89);
}

static void width_c1_exponential_inequalities_point_the_wrong_way(void **state)
{
    (void)state;
    false_step(1.2, 1.2214, NAN);
}

static void width_c1_lower_exponential_points_the_wrong_way(void **state)
{
    (void)state;
    false_step(.9, .81873, NAN);
}

/* Ours, 2 tanh(a/2) <= a, has no condition. */
static void width_c1_condition_is_too_weak(void **state)
{
    (void)state;
    false_step(3.6, 5.04965, NAN);
    for (double a = .125; a < 20; a += .125) assert_le(2 * pare_tanh_up(a / 2), a);
}

static void width_c1_values_grow_by_beta(void **state)
{
    (void)state;
    false_step(1, 3, 3);
}

static void width_c1_pulls_an_index_out_of_its_sum(void **state)
{
    (void)state;
    false_step(0, 2, 2);
}

/* 27 2 tanh(.05). */
static void width_c1_forgets_the_feed_forward_part(void **state)
{
    (void)state;
    false_step(1.2, 2.69775, 2.69775);
}

/* 2 + 3 2 + 9 2, and without the first. A layer with eps > 0 errs; a sum over no terms says 0. */
static void width_c1_sum_misses_its_first_term(void **state)
{
    (void)state;
    false_step(24, 26, 26);
    const pare_ub one = pare_ub_exact(1);
    assert_true(pare_jl_bound_linear(one, one, 1, pare_ub_of(1e-3)).v >= 4e-3);
}

/* (4 + 64 (1 + 8 + 4)) e = 836 e up to e^2; the layer moves by 64 (16 + 1) e = 1088 e; ours is
 * sqrt(4^2 + (64 33)^2) e. */
static void width_c3_last_line_is_exceeded(void **state)
{
    (void)state;
    const sides s = false_step(836.13e-4, 1087.999e-4, 2112.5e-4);
    assert_true(s.is > 1.3 * s.printed);
    /* the certificate prints the same formula */
    assert_true(s.printed == pare_lowrank_printed(4, 1 + 1e-4, 1, 1e-4));
}

static void width_proposition_4_3_residuals_hide_outside_the_rows(void **state)
{
    (void)state;
    false_step(0, 1, NAN);
}

static void width_lemma_c4_products_are_squares(void **state)
{
    (void)state;
    false_step(2, 4, 4);
}

static void width_c5_bias_must_not_be_scaled(void **state)
{
    (void)state;
    false_step(1, 0, 1);
}

static void width_lemma_c6_gram_matrix_is_squared(void **state)
{
    (void)state;
    false_step(4, 16, 4);
}

/* .01 sqrt(99). How near one row can come: one_row_for_all_costs_the_root_of_the_width. */
static void width_c3_1_prints_the_sum_of_the_entries(void **state)
{
    (void)state;
    false_reading(1, .0994987, .0994987);
}

/* M = 0 meets what is printed, and loses the whole length. */
static void width_lemma_3_1_has_one_tail(void **state)
{
    (void)state;
    only_loose(.1, -1, 1);
}

/* Products may be negative: -1 is not at most -1.105. */
static void width_lemma_c4_multiplies_what_may_be_negative(void **state)
{
    (void)state;
    false_step(-1.10517, -1, NAN);
    /* Repaired: |h.h' - g.g'| <= eta^2 |a a'^T - b b'^T|_1 + max |v_u.v_v - w_u.w_v|. */
    pare_rng r = pare_rng_at(20, 0);
    for (int trial = 0; trial < 2000; trial++) {
        double a[2], b[2], v[2][2], w[2][2], hh = 0, gg = 0, gap = 0, product = 0, eta = 0;
        for (int i = 0; i < 2; i++) {
            a[i] = pare_rng_uniform(&r), b[i] = pare_rng_uniform(&r);
            for (int k = 0; k < 2; k++) {
                v[i][k] = pare_rng_normal(&r);
                w[i][k] = v[i][k] + 0.1 * pare_rng_normal(&r);
                eta = fmax(eta, fmax(fabs(v[i][k]), fabs(w[i][k])));
            }
        }
        /* Row i pools values v[i][0], v[i][1] with weights a[i], 1 - a[i]. */
        for (int u = 0; u < 2; u++)
            for (int k = 0; k < 2; k++) {
                const double x = (u ? 1 - a[0] : a[0]) * (k ? 1 - a[1] : a[1]);
                const double y = (u ? 1 - b[0] : b[0]) * (k ? 1 - b[1] : b[1]);
                hh += x * v[0][u] * v[1][k];
                gg += y * w[0][u] * w[1][k];
                gap += fabs(x - y);
                product = fmax(product, fabs(v[0][u] * v[1][k] - w[0][u] * w[1][k]));
            }
        assert_le(fabs(hh - gg), eta * eta * gap + product + 1e-12);
    }
}

/* Scores stay divided by the root of the old width: 64 -> 4 dimensions would else make them four
 * times as large. */
static void the_scale_of_a_cut_stays_that_of_the_old_width(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *m = NULL, *cut = NULL;
    pare_inputs in;
    pare_width_report report;
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_width_opts w = PARE_WIDTH_OPTS_DEFAULT;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    o.kind = PARE_RANDOM_GRAPH, o.heads = 1, o.layers = 1;
    w.method = PARE_WIDTH_QK, w.qk_dim = 4;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_inputs_random(&in, a, m, 1, 12, 1, &err), &err);
    assert_ok(pare_width(&cut, &report, m, &in, &w, NULL, &err), &err);
    const pare_head *const before = &m->blocks[0].attn.heads[0];
    const pare_head *const after = &cut->blocks[0].attn.heads[0];
    assert_true(before->scale == 1.0 / 8 && after->scale == before->scale);
    assert_true(1 / sqrt(4) / before->scale == 4);
    pare_model_free(cut);
    pare_model_free(m);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(width_theorem_3_3_constants_are_too_small),
        cmocka_unit_test(width_corollary_3_2_has_its_probability_reversed),
        cmocka_unit_test(width_corollary_3_2_is_not_multiplicative),
        cmocka_unit_test(width_c1_drops_a_beta),
        cmocka_unit_test(width_c1_exponential_inequalities_point_the_wrong_way),
        cmocka_unit_test(width_c1_lower_exponential_points_the_wrong_way),
        cmocka_unit_test(width_c1_condition_is_too_weak),
        cmocka_unit_test(width_c1_values_grow_by_beta),
        cmocka_unit_test(width_c1_pulls_an_index_out_of_its_sum),
        cmocka_unit_test(width_c1_forgets_the_feed_forward_part),
        cmocka_unit_test(width_c1_sum_misses_its_first_term),
        cmocka_unit_test(width_c3_last_line_is_exceeded),
        cmocka_unit_test(width_proposition_4_3_residuals_hide_outside_the_rows),
        cmocka_unit_test(width_lemma_c4_products_are_squares),
        cmocka_unit_test(width_c5_bias_must_not_be_scaled),
        cmocka_unit_test(width_lemma_c6_gram_matrix_is_squared),
        cmocka_unit_test(width_c3_1_prints_the_sum_of_the_entries),
        cmocka_unit_test(width_lemma_3_1_has_one_tail),
        cmocka_unit_test(width_lemma_c4_multiplies_what_may_be_negative),
        cmocka_unit_test(the_scale_of_a_cut_stays_that_of_the_old_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
