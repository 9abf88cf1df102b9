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
        cmocka_unit_test(length_relative_rounding_bounds_miss_underflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
