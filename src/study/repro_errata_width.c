/* The width paper's errata, computed. What its Table 3 has wrong stands in `repro width`: that
 * needs the files. */
#include "repro_errata.h"
#include "repro_nets.h"
#include <pare/width.h>
#include <math.h>

/* ---- C.1, C.3: attention after a projection -------------------------------------------------- */

static sides c1_scores(void)
{
    const double beta = 3, x = 1, moved = 1.1, eps = moved - x; /* |x| <= sqrt(alpha) = 1 */
    return (sides){2 * beta * eps + beta * eps * beta * eps,
                   beta * moved * beta * moved - beta * x * beta * x,
                   beta * beta * (2 * eps + eps * eps)};
}

static sides c1_above(void)
{
    const double eps = .1;
    return (sides){1 + 2 * eps, exp(2 * eps), NAN};
}

static sides c1_below(void)
{
    const double eps = .1;
    return (sides){1 - eps, exp(-2 * eps), NAN};
}

static sides c1_values(void)
{
    const double beta = 3, h = 1;
    return (sides){1, beta * h, beta};
}

static sides c1_index(void)
{
    const double a[] = {1, 0}, b[] = {0, 1}, v[] = {1, -1};
    double sum = 0, weights = 0, l1 = 0;
    for (size_t j = 0; j < 2; j++) {
        sum += (a[j] - b[j]) * v[j];
        weights += a[j] - b[j];
        l1 += fabs(a[j] - b[j]);
    }
    return (sides){v[0] * weights, sum, l1};
}

/* Row 0 of one dimension behind attention over rows 1 and 2 and the feed-forward part, all weights
 * beta; the first score is off by `up`. */
static double plain_row(double beta, const double h[3], double up)
{
    const double q = beta * h[0], p = 1 / (1 + exp(q * beta * (h[2] - h[1]) - up));
    return beta * beta * (p * beta * h[1] + (1 - p) * beta * h[2]);
}

static sides c1_condition(void)
{
    const double a = .9;
    return (sides){4 * a, expm1(2 * a), NAN};
}

static sides c1_feed_forward(void)
{
    const double beta = 3, off = .1, h[] = {0, 1, -1};
    return (sides){4 * beta * off, plain_row(beta, h, off) - plain_row(beta, h, -off),
                   beta * beta * beta * 2 * tanh(off / 2)};
}

/* The recursion of three layers, in units of eps. */
static sides c1_sum(void)
{
    const double c1 = 3, c2 = 2;
    double is = 0, printed = 0;
    for (int l = 0; l < 3; l++) is = c1 * is + c2;
    for (int i = 1; i < 3; i++) printed += pow(c1, i) * c2;
    return (sides){printed, is, c2 * (pow(c1, 3) - 1) / (c1 - 1)};
}

static sides c3_last_line(void)
{
    const double e = .01, s = 3 + e, h[] = {0, 3, -3}, g[] = {e, 3 + e, -3 + e};
    return (sides){(1 + s) * e, plain_row(1, g, 0) - plain_row(1, h, 0),
                   e + s * 2 * tanh((2 * s * e + e * e) / 2)};
}

/* ---- projections ----------------------------------------------------------------------------- */

/* The plane on the line (1, 1) / sqrt 2. */
static sides corollary_3_2(void)
{
    const double x[] = {1, 0}, y[] = {0, 1}, eps = .5;
    const double mx = (x[0] + x[1]) / sqrt(2), my = (y[0] + y[1]) / sqrt(2);
    return (sides){(1 + eps) * fabs(x[0] * y[0] + x[1] * y[1]), fabs(mx * my), eps};
}

/* M = 0: one side of the statement holds, the other does not. */
static sides lemma_3_1(void)
{
    const double x = 1, mx = 0, eps = .1;
    return (sides){eps * x * x, fabs(mx * mx - x * x), NAN};
}

static sides theorem_3_3(void)
{
    return (sides){64, (double)pare_jl_dim(78804, 1, 1), (double)pare_jl_dim(49, 1, 1)};
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { N = 60, D = 12 };

/* Singular values of N x D numbers above 1e-9 of the largest. */
static pare_status rank_of(double *out, double *v, pare_arena *scratch, pare_err *err)
{
    const pare_mat mat = pare_mat_of(v, N, D);
    double s[D];
    const pare_status st = pare_svd(NULL, s, NULL, &mat, scratch, err);
    *out = 0;
    for (size_t i = 0; !st && i < D; i++) *out += s[i] > 1e-9 * s[0];
    return st;
}

/* Rows of rank 2 behind one layer with a skip and two heads. */
static pare_status proposition_4_1(sides *out, const erratum *e, pare_err *err)
{
    const san_shape shape = {
        .layers = 1, .heads = 2, .dim = D, .scale = .3, .size = .3, .draw = SAN_NORMAL};
    pare_rng rng = pare_rng_at(5, 0);
    double x[N * D], basis[2][D], *y = NULL;
    pare_input in = {.batch = 1, .tokens = N, .width = D, .x = x};
    const pare_inputs set = {1, &in};
    pare_arena *const a = pare_arena_new();
    pare_model *m = NULL;
    size_t n;
    (void)e;
    for (size_t i = 0; i < 2 * D; i++) basis[i / D][i % D] = pare_rng_normal(&rng);
    for (size_t i = 0; i < N; i++) {
        const double c[] = {pare_rng_normal(&rng), pare_rng_normal(&rng)};
        for (size_t k = 0; k < D; k++) x[i * D + k] = c[0] * basis[0][k] + c[1] * basis[1][k];
    }
    pare_status st = a ? san_new(&m, &shape, &rng, err) : pare_no_memory(err);
    if (!st) st = san_answers(&y, &n, a, m, &set, err);
    if (!st) st = rank_of(&out->printed, x, a, err);
    if (!st) st = rank_of(&out->is, y, a, err);
    out->holds = NAN;
    pare_model_free(m);
    pare_arena_free(a);
    return st;
}

/* U = e1, Wq U = (1, 0), bq = (0, 1), Wk U = (1, 1), keys 1 and -1: how far their scores are apart
 * for the query 1. */
static sides query_bias(void)
{
    const double wqu[] = {1, 0}, bq[] = {0, 1}, wku[] = {1, 1};
    const double printed = wqu[0] * wku[0] + wqu[1] * wku[1]; /* x U'Wq'Wk U y */
    const double is = (wqu[0] + bq[0]) * wku[0] + (wqu[1] + bq[1]) * wku[1];
    return (sides){2 * printed, 2 * is, 2 * is};
}

/* ---- rows, columns, clusters ----------------------------------------------------------------- */

static sides lemma_c3(void)
{
    const double leverage = 1; /* of the one row that carries the space; d = 1 */
    return (sides){pow(1 - leverage, 10), pow(1 - 1 / 1000.0, 10), NAN};
}

static sides proposition_4_3(void)
{
    const double residual[] = {1, 0}; /* Ax - h; S is the second row */
    return (sides){fabs(residual[1]), hypot(residual[0], residual[1]), NAN};
}

/* H = 11'/sqrt(D) + eps I with D = 100, the first row for all: the first column. */
static sides c3_1(void)
{
    const double wide = 100, eps = .01, one = 1 / sqrt(wide);
    double off = 0;
    for (double row = 1; row < wide; row++) off += pow(one - (one + eps), 2);
    const double far = sqrt(off), least = eps * sqrt(wide - 1);
    return (sides){eps * wide, far, least};
}

static sides lemma_c4(void)
{
    const double eta = 2, v = 2;
    return (sides){eta, v * v, eta * eta};
}

static sides lemma_c4_sign(void)
{
    const double t = .1, product = -1; /* one key each, values 1 and -1 */
    return (sides){exp(t) * product, product, NAN};
}

/* A cluster at 0: every unit is 0 there, so the selector is. */
static sides c5_zero(void)
{
    const double c = 0, unit = 1e9;
    return (sides){1, fmax(0, unit * c - 3), NAN};
}

/* What the scores of 64 dimensions become when 4 are left and the divisor follows. */
static sides d2_scale(void)
{
    return (sides){1, (1 / sqrt(4)) / (1 / sqrt(64)), 1};
}

/* relu(4 c.x / |c|^2 - bias) at x = c must be 1. */
static sides c5(void)
{
    const double c = 2, on = 4 * c * c / (c * c);
    return (sides){1, fmax(0, on - 3 * c * c), fmax(0, on - 3)};
}

static sides lemma_c6(void)
{
    const double wv = 2, x = 1, gram = wv * wv * x, root = sqrt(wv * wv) * x;
    return (sides){wv * x * wv * x, gram * gram, root * root};
}

/* Scores (0, -650), the first falls by 700: what becomes of the small weight. */
static sides capped(void)
{
    const double a[] = {-700, -650};
    double p[2];
    softmax_of(p, a, 2);
    return (sides){exp(-650 + 300) / (exp(-650 + 300) + exp(-300)), p[1], 1};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {"C.1", "|q.k - q'.k'| <= 2 sqrt(alpha) beta e + (beta e)^2", "one dimension, beta = 3, e = .1",
     "beta^2 (2 sqrt(alpha) e + e^2)", "width_c1_drops_a_beta", AT_MOST, .hand = c1_scores},
    {"C.1", "exp(2e) < 1 + 2e", "e = .1", "the softmax lemma with 2 tanh(w/2)",
     "width_c1_exponential_inequalities_point_the_wrong_way", AT_MOST, .hand = c1_above},
    {"C.1", "exp(-2e) > 1 - e", "e = .1", "the softmax lemma with 2 tanh(w/2)",
     "width_c1_exponential_inequalities_point_the_wrong_way", AT_LEAST, .hand = c1_below},
    {"C.1, C.3", "values are at most sqrt(alpha)", "one dimension, beta = 3", "beta sqrt(alpha)",
     "width_c1_values_grow_by_beta", AT_MOST, .hand = c1_values},
    {"C.1, C.3", "sum_j (a_j - a'_j) v_j = v_j sum_j (a_j - a'_j)",
     "a = (1, 0), a' = (0, 1), v = (1, -1)", "the inequality that follows it",
     "width_c1_pulls_an_index_out_of_its_sum", EQUAL, .hand = c1_index},
    {"C.1", "e^(2a) - 1 <= 4a for a < 1", "a = .9", "2a <= 1.25; ours is 2 tanh(a/2) <= a, always",
     "width_c1_condition_is_too_weak", AT_MOST, .hand = c1_condition},
    {"C.1", "the terms with the error of the scores escape the feed-forward part",
     "beta = 3, rows 1 and -1, scores off by .1", "beta^2 times all of them",
     "width_c1_forgets_the_feed_forward_part", AT_MOST, .hand = c1_feed_forward},
    {"C.1, last line", "the sum begins at i = 1: errors over eps", "c1 = 3, c2 = 2, three layers",
     "c2 (c1^L - 1)/(c1 - 1)", "width_c1_sum_misses_its_first_term", AT_MOST, .hand = c1_sum},
    {"C.3, last line", "a layer takes rows e apart to beta^3 (1 + sqrt(alpha)) e",
     "one dimension, beta = 1, rows 0, 3, -3, e = .01",
     "beta^2 (beta e + beta s 2 tanh(w/2)), w = beta^2 (2 s e + e^2)",
     "width_c3_last_line_misses_a_square_of_the_rows", AT_MOST, .hand = c3_last_line},
    {"Lemma C.3", "rows may be sampled uniformly: they are missed as seldom as by leverage",
     "10 of 1,000 rows, one carries the space", "probabilities by leverage scores",
     "width_lemma_c3_uniform_sampling_misses_the_row", AT_MOST, .hand = lemma_c3},
    {"C.3.1", "one row for all errs by eps D", "D = 100, eps = .01",
     "eps sqrt(D - 1), and at best eps sqrt(D) / (2 + eps sqrt(D))",
     "one_row_for_all_costs_the_root_of_the_width", EQUAL, .hand = c3_1},
    {"Lemma C.4", "v.v' <= eta for |v|, |v'| <= eta", "eta = 2", "eta^2",
     "width_lemma_c4_products_are_squares", AT_MOST, .hand = lemma_c4},
    {"Lemma C.4", "a product of pooled rows is at most e^t times itself", "values 1 and -1, t = .1",
     "the change of the weights and of the products, each with its own term",
     "width_lemma_c4_multiplies_what_may_be_negative", AT_MOST, .hand = lemma_c4_sign},
    {"C.5", "every cluster has a unit 4c / |c|^2 with which its selector is 1 at the centre",
     "c = 0: no unit does it", "refused by name",
     "what_it_does_not_cover_is_refused_with_its_numbers", EQUAL, .hand = c5_zero},
    {"C.5", "with the bias -3|c|^2 the selector is 1 at its own centre", "|c| = 2", "bias -3",
     "width_c5_bias_must_not_be_scaled", EQUAL, .hand = c5},
    {"Lemma C.6", "Wv' = U'Wv'Wv U keeps the products of values", "Wv = 2, one dimension",
     "an R with R'R = U'Wv'Wv U", "width_lemma_c6_gram_matrix_is_squared", EQUAL, .hand = lemma_c6},
    {"D.2", "scores are divided by sqrt(D) after a cut too: what they are multiplied by",
     "64 to 4 dimensions", "the old divisor stays", "width_d2_scale_stays_that_of_the_old_width",
     EQUAL, .hand = d2_scale},
    {"Lemma 3.1", "|Mx|^2 - |x|^2 <= eps |x|^2 makes lengths near: their distance",
     "M = 0, eps = .1: it holds without the outer bars", "both tails",
     "width_lemma_3_1_needs_both_tails", AT_MOST, .hand = lemma_3_1},
    {"Corollary 3.2", "projections keep dot products up to a factor 1 + eps",
     "orthogonal vectors, the plane on a line, eps = .5", "an additive eps |x||y|",
     "width_corollary_3_2_is_not_multiplicative", AT_MOST, .hand = corollary_3_2},
    {"Theorem 3.3", "O(log n / eps^2) dimensions are fewer than the 64 there are",
     "78,804 pairs, eps = 1", "equal pairs count once; 7 different rows",
     "the_dimension_it_asks_for_is_above_64", AT_MOST, .hand = theorem_3_3},
    {"Proposition 4.1", "the rank of the data bounds the width of the stream",
     "rows of rank 2, one layer with a skip and two heads",
     "the rank of the stream, at every point", "with_a_skip_and_heads_the_stream_has_a_higher_rank",
     AT_MOST, .look = proposition_4_1},
    {"Proposition 4.1", "Wq' = I, Wk' = U'Wq'Wk U keep the scores: how far two keys are apart",
     "a query bias outside the range of Wq U", "project on the range of Wk U",
     "in_an_affine_basis_nothing_is_lost_not_even_the_query_bias", EQUAL, .hand = query_bias},
    {"Proposition 4.3", "|Ax - h| = |SAx - Sh|", "a residual outside the chosen rows",
     "|Ax - h| <= sqrt(1 + |Q_S^+|^2) |r| for every node",
     "width_proposition_4_3_residuals_hide_outside_the_rows", EQUAL, .hand = proposition_4_3},
    {"our specification, 8.3", "moves of scores may be capped at 300: what a weight can become",
     "scores (0, -650), the first falls by 700",
     "beyond 300 a weight is at most 1, and no more is said", "width_8_3_scores_must_not_be_capped",
     AT_MOST, .hand = capped},
};

const errata errata_width = {list, sizeof list / sizeof *list};
