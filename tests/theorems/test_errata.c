/* docs/errata.md, first part: statements of the papers that fail on numbers one can check by hand.
 * Each test is the counter-example: it would fail if the printed statement were true. */
#include <pare_test.h>
#include <pare/linalg.h>

/* DEPTH, Fact 3.3 (2): max-entry norms are said to be submultiplicative. */
static void depth_fact_3_3_max_entry_norm_is_not_submultiplicative(void **state)
{
    (void)state;
    double a[] = {1, 1, 1, 1}, c[4];
    pare_mat out = pare_mat_of(c, 2, 2);
    const pare_mat ones = pare_mat_of(a, 2, 2);
    pare_gemm(&out, 1, &ones, false, &ones, false, 0);
    const pare_weight w = {PARE_F64, 2, 2, c}, one = {PARE_F64, 2, 2, a};
    assert_true(pare_norm_max(&w).v == 2);                           /* |AB| */
    assert_true(pare_norm_max(&one).v * pare_norm_max(&one).v == 1); /* |A||B| */
    /* Repaired: |AB|_max <= |A|_max times the largest column sum of |B|. */
    assert_le(pare_norm_max(&w).v, pare_norm_max(&one).v * pare_norm_max_col(&one).v);
}

/* DEPTH, Fact 3.3 (3): |AB|_1 <= |A|_1 |B|_max entry by entry; [1] times [1 1] has sum 2. */
static void depth_fact_3_3_entrywise_sum_needs_the_number_of_columns(void **state)
{
    (void)state;
    const double a = 1, b[] = {1, 1};
    const double sum = fabs(a * b[0]) + fabs(a * b[1]);
    assert_true(sum > fabs(a) * 1);
    assert_true(sum <= fabs(a) * 1 * 2); /* repaired: times the columns of B */
}

/* DEPTH, Lemma D.8: |X_{l+1}| <= (1 + H eta)|X_l|. All weights eta, X = 1: the factor is 1 + d eta.
 */
static void depth_lemma_d8_misses_the_width(void **state)
{
    (void)state;
    enum { D = 16 };
    const double eta = 0.01;
    double next =
        1; /* one entry of X + P X V with X = 1: P X = X, each column of V sums to d eta */
    for (int k = 0; k < D; k++) next += eta;
    assert_true(next > 1 + eta);
    assert_near(next, 1 + D * eta, 1e-12);
}

/* DEPTH, Theorem D.1 for the proof's own S' (keep the last layer): d = 1, H = 1, Wq = Wk = 0,
 * Wv = eta, X = 1, L = 100, eta = .003. Printed bound .066, claim .006. */
static void depth_theorem_d1_fails_for_the_network_of_its_proof(void **state)
{
    (void)state;
    const double eta = 0.003, phi0 = 1, h = 1;
    const int layers = 100;
    double deep = 1;
    for (int l = 0; l < layers; l++) deep += eta * deep; /* softmax of one token is 1 */
    const double one_layer = 1 + eta;
    /* the bound as printed: eps_l = 2 eta phi0 (1 + H eta)^l, delta = 2 g(2 H eps_L), g(e) = 2(e^e
     * - 1), C = 3 eta (eps^2 + 1), (1 + C + ... + C^L) delta */
    const double eps = 2 * eta * phi0 * pow(1 + h * eta, layers);
    const double delta = 2 * 2 * (exp(2 * h * eps) - 1), c = 3 * eta * (eps * eps + 1);
    const double printed = delta * (1 - pow(c, layers + 1)) / (1 - c);
    assert_true(eta <= 1 && eps < 1 && c < 0.5 && 2 * h * eps < 0.5); /* its hypotheses hold */
    assert_le(printed, 0.067);
    assert_true(deep - one_layer > 0.34);
}

/* WIDTH, C.1: |q.k - q'.k'| <= 2 sqrt(alpha) beta eps + (beta eps)^2 drops a factor beta. */
static void width_c1_drops_a_beta(void **state)
{
    (void)state;
    const double beta = 3, x = 1, moved = 1.1; /* one dimension, |x| <= sqrt(alpha) = 1, eps = .1 */
    const double truth = beta * moved * beta * moved - beta * x * beta * x;
    const double eps = moved - x;
    assert_true(truth > 2 * 1 * beta * eps + beta * eps * beta * eps);
    assert_le(truth, beta * beta * (2 * eps + eps * eps) * (1 + 1e-12)); /* repaired */
}

/* WIDTH, C.1: "exp(2e) < 1 + 2e" and "exp(-2e) > 1 - e" for small e: the first is false
 * for every e > 0, the second for every e in (0, .79); the sharp statement is 2 tanh(w/2). */
static void width_c1_exponential_inequalities_point_the_wrong_way(void **state)
{
    (void)state;
    for (double e = 1e-6; e < 0.5; e *= 2) {
        assert_true(exp(2 * e) > 1 + 2 * e);
        assert_true(exp(-2 * e) < 1 - e);
    }
}

/* WIDTH, C.5: the selector relu(4 c.x/|c|^2 - 3|c|^2) must be 1 at x = c; it is only for |c| = 1.
 */
static void width_c5_bias_must_not_be_scaled(void **state)
{
    (void)state;
    const double c = 2;
    const double printed = fmax(0, 4 * c * c / (c * c) - 3 * c * c);
    const double repaired = fmax(0, 4 * c * c / (c * c) - 3);
    assert_true(printed == 0);
    assert_true(repaired == 1);
}

/* WIDTH, Corollary 3.2: (1 - eps) x.y <= Mx.My <= (1 + eps) x.y. For orthogonal x, y that says 0.
 */
static void width_corollary_3_2_is_not_multiplicative(void **state)
{
    (void)state;
    const double m =
        1; /* a projection of the plane to a line, (1, 1)/sqrt 2: any that keeps norms */
    const double x[] = {1, 0}, y[] = {0, 1};
    const double mx = m * (x[0] + x[1]) / sqrt(2), my = m * (y[0] + y[1]) / sqrt(2);
    assert_true(x[0] * y[0] + x[1] * y[1] == 0);
    assert_true(fabs(mx * my) > 0.4);              /* no factor turns 0 into this */
    assert_le(fabs(mx * my), 0.5 * 1 * 1 + 1e-12); /* additive: eps |x||y| */
}

/* WIDTH, C.1 and C.3: |v_j| <= sqrt(alpha), where v_j = Wv h_j. */
static void width_c1_values_grow_by_beta(void **state)
{
    (void)state;
    const double beta = 3, h = 1; /* |h| <= sqrt(alpha) = 1, |Wv| = beta */
    assert_true(beta * h > 1);
    assert_le(beta * h, beta * 1);
}

/* WIDTH, C.1 and C.3: the difference of two averages, with v_j taken out of the sum over j. */
static void width_c1_pulls_an_index_out_of_its_sum(void **state)
{
    (void)state;
    const double a[] = {1, 0}, b[] = {0, 1}, v[] = {1, -1};
    double truth = 0, sum = 0, l1 = 0;
    for (int j = 0; j < 2; j++) {
        truth += (a[j] - b[j]) * v[j];
        sum += a[j] - b[j];
        l1 += fabs(a[j] - b[j]);
    }
    assert_true(truth == 2 && v[0] * sum == 0 && v[1] * sum == 0);
    assert_le(fabs(truth), l1 * 1); /* what is used afterwards: |a - a'|_1 max |v_j| */
}

/* WIDTH, Lemma C.3 as its proof writes it: k of F rows, all equally likely. The basis e_1 lives in
 * one row: a uniform draw of k = 10 of 1,000 misses it with probability .99. */
static void width_lemma_c3_uniform_sampling_misses_the_row(void **state)
{
    (void)state;
    const double missed = pow(1 - 1.0 / 1000, 10),
                 leverage = 1; /* |row 1|^2 of the basis, of d = 1 */
    assert_true(missed > 0.98);
    assert_true(pow(1 - leverage / 1, 10) == 0); /* p_i = leverage / d never misses it */
}

/* WIDTH, Proposition 4.3: |Ax - h| = |SAx - Sh| for chosen rows S. */
static void width_proposition_4_3_residuals_hide_outside_the_rows(void **state)
{
    (void)state;
    const double residual[] = {1, 0}; /* Ax - h; S chooses the second row */
    const double whole = hypot(residual[0], residual[1]), seen = fabs(residual[1]);
    assert_true(whole == 1 && seen == 0);
}

/* WIDTH, Lemma C.4: v.v' <= eta where |v|, |v'| <= eta. */
static void width_lemma_c4_products_are_squares(void **state)
{
    (void)state;
    const double eta = 2, v = 2;
    assert_true(v * v > eta);
    assert_le(v * v, eta * eta);
}

/* WIDTH, Lemma C.6: values Wv' x with Wv' = U^T Wv^T Wv U. One dimension, Wv = 2, U = 1. */
static void width_lemma_c6_gram_matrix_is_squared(void **state)
{
    (void)state;
    const double wv = 2, x = 1, printed = wv * wv * x, root = sqrt(wv * wv) * x;
    assert_true(printed * printed == 16 && wv * x * wv * x == 4);
    assert_near(root * root, 4, 1e-12);
}

/* LENGTH, rounding of merged partial results: a bound with relative terms only misses underflow.
 * f32, logits (0, -103), values (0, 1): the true answer is about 1.9e-45, the computed one 0. */
static void length_relative_rounding_bounds_miss_underflow(void **state)
{
    (void)state;
    const float p = expf(-103.0f) / (1 + expf(-103.0f));
    const double truth = exp(-103.0) / (1 + exp(-103.0));
    const double computed = (double)(p * 1.0f);
    assert_true(truth > 1.8e-45 && truth < 2.0e-45);
    assert_true(fabs(computed - truth) > 1e-3 * truth); /* no relative bound of size n u holds */
    assert_le(fabs(computed - truth), 2 * 0x1p-126);    /* the absolute term does */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_fact_3_3_max_entry_norm_is_not_submultiplicative),
        cmocka_unit_test(depth_fact_3_3_entrywise_sum_needs_the_number_of_columns),
        cmocka_unit_test(depth_lemma_d8_misses_the_width),
        cmocka_unit_test(depth_theorem_d1_fails_for_the_network_of_its_proof),
        cmocka_unit_test(width_c1_drops_a_beta),
        cmocka_unit_test(width_c1_exponential_inequalities_point_the_wrong_way),
        cmocka_unit_test(width_c5_bias_must_not_be_scaled),
        cmocka_unit_test(width_corollary_3_2_is_not_multiplicative),
        cmocka_unit_test(width_c1_values_grow_by_beta),
        cmocka_unit_test(width_c1_pulls_an_index_out_of_its_sum),
        cmocka_unit_test(width_lemma_c3_uniform_sampling_misses_the_row),
        cmocka_unit_test(width_proposition_4_3_residuals_hide_outside_the_rows),
        cmocka_unit_test(width_lemma_c4_products_are_squares),
        cmocka_unit_test(width_lemma_c6_gram_matrix_is_squared),
        cmocka_unit_test(length_relative_rounding_bounds_miss_underflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
