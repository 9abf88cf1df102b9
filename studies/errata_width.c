/* errata_width.c - the errata of Shirzad 2024, computed. What its Table 3 has wrong needs the
 * files: `repro width` computes it. */
#include "study_errata.h"
#include <pare/width.h>
#include <math.h>

#define PAPER "Shirzad 2024"

/* ---- Theorem 3.3 and its proof, C.1 ---------------------------------------------------------- */

/* A plain layer in two dimensions. Row 0 is e1 and sees rows 1 and 2, which are e2 and -e2 and see
 * row 0: all scores are 0. Wq = Wk = beta I; Wv, W1 and W2 are beta on e2 and 0 on e1. The map M
 * takes e1 to (1, 0) and e2 to (eps, sqrt(1 - eps^2)), so that it keeps lengths and moves no
 * product by more than eps |x||y|. */
static sides theorem_3_3(void)
{
    const double beta = 4, s = 1, eps = 1e-4, m[2][2] = {{1, 0}, {eps, sqrt(1 - eps * eps)}};
    const double rows[3][2] = {{1, 0}, {0, 1}, {0, -1}};
    double scores[2], p[2], off = 0;
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++) {
            double mi[2], mj[2];
            for (size_t c = 0; c < 2; c++) {
                mi[c] = rows[i][0] * m[0][c] + rows[i][1] * m[1][c];
                mj[c] = rows[j][0] * m[0][c] + rows[j][1] * m[1][c];
            }
            const double product = rows[i][0] * rows[j][0] + rows[i][1] * rows[j][1];
            const double kept = mi[0] * mj[0] + mi[1] * mj[1];
            off = fmax(off, fabs(kept - product));
            if (i == 0 && j > 0) scores[j - 1] = beta * beta * kept;
        }
    softmax_of(p, scores, 2);
    const double moved = beta * beta * beta * (p[0] - p[1]); /* it was 0 */
    return (sides){pare_jl_printed(beta, s, 1, eps), moved,
                   pare_jl_bound(pare_ub_exact(beta), pare_ub_exact(s), 1, pare_ub_exact(eps)).v,
                   !(off <= eps * (1 + 1e-12) && fabs(moved) <= s)};
}

static sides c1_scores(void)
{
    const double beta = 3, s = 1, x = 1, moved = 1.1, eps = moved - x; /* sqrt(alpha) = s */
    return (sides){2 * s * beta * eps + beta * eps * beta * eps,
                   beta * moved * beta * moved - beta * x * beta * x,
                   beta * beta * (2 * s * eps + eps * eps), !(x <= s)};
}

static sides c1_above(void)
{
    const double eps = .1;
    return (sides){1 + 2 * eps, exp(2 * eps), NAN, false};
}

static sides c1_below(void)
{
    const double eps = .1;
    return (sides){1 - eps, exp(-2 * eps), NAN, false};
}

static sides c1_values(void)
{
    const double beta = 3, s = 1, h = 1;
    return (sides){s, beta * h, beta * s, !(h <= s)};
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
    return (sides){v[0] * weights, sum, l1, false};
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
    return (sides){4 * a, expm1(2 * a), NAN, !(a < 1)};
}

/* Both scores off by `off`, against one another; the rows themselves have not moved. The beta of
 * the values, another row of the errata, is granted. */
static sides c1_feed_forward(void)
{
    const double beta = 3, s = 1, off = .1, h[] = {0, 1, -1};
    return (sides){4 * beta * s * off, plain_row(beta, h, off) - plain_row(beta, h, -off),
                   beta * beta * beta * s * 2 * pare_tanh_up(off / 2), false};
}

/* The recursion e' = c1 e + c2 eps of three layers, in units of eps. How c1 and c2 are exchanged in
 * print leaves three readings: the largest counts. */
static sides c1_sum(void)
{
    const double c1 = 3, c2 = 2;
    double is = 0, first = 0, exchanged = 0, both = 0;
    for (int l = 0; l < 3; l++) is = c1 * is + c2;
    for (int i = 1; i < 3; i++) first += pow(c1, i) * c2;
    for (int i = 0; i < 3; i++) exchanged += pow(c2, i) * c1;
    for (int i = 1; i < 3; i++) both += pow(c2, i) * c1;
    return (sides){fmax(first, fmax(exchanged, both)), is, c2 * (pow(c1, 3) - 1) / (c1 - 1), false};
}

/* ---- Theorem 4.2: C.3 ------------------------------------------------------------------------ */

/* Rows 0, 1, -1, all moved by e. */
static sides c3_last_line(void)
{
    const double beta = 4, e = 1e-4, s = 1 + e, h[] = {0, 1, -1}, g[] = {e, 1 + e, -1 + e};
    const double before = plain_row(beta, h, 0), after = plain_row(beta, g, 0);
    return (sides){pare_lowrank_printed(beta, s, 1, e), fabs(after - before),
                   pare_lowrank_bound(pare_ub_exact(beta), pare_ub_exact(s), 1, pare_ub_exact(e)).v,
                   !(fabs(g[1]) <= s && fabs(before) <= s && fabs(after) <= s)};
}

/* ---- projections ----------------------------------------------------------------------------- */

/* Shares of 400 Gaussian maps of as many dimensions as the lemma asks for that keep the product of
 * two unit vectors with product `cosine` up to a factor 1 +- eps; up to an additive eps. */
typedef struct kept_share {
    double times, plus;
} kept_share;

static kept_share kept_products(double cosine, double eps, double delta)
{
    enum { DRAWS = 400 };
    const size_t d = pare_jl_dim(1, eps, delta);
    const double sine = sqrt(1 - cosine * cosine);
    pare_rng r = pare_rng_at(32, 0);
    size_t times = 0, plus = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        double product = 0;
        for (size_t k = 0; k < d; k++) {
            const double u = pare_rng_normal(&r), v = pare_rng_normal(&r);
            product += u * (cosine * u + sine * v) / (double)d;
        }
        times += product >= (1 - eps) * cosine && product <= (1 + eps) * cosine;
        plus += fabs(product - cosine) <= eps;
    }
    return (kept_share){(double)times / DRAWS, (double)plus / DRAWS};
}

static sides corollary_3_2_reversed(void)
{
    const double delta = .01;
    return (sides){delta, kept_products(1, .4, delta).times, NAN, false};
}

static sides corollary_3_2_factor(void)
{
    const double delta = .01;
    const kept_share k = kept_products(0, .4, delta);
    return (sides){1 - delta, k.times, k.plus, false};
}

/* M = 0. */
static sides lemma_3_1(void)
{
    const double x = 1, mx = 0, eps = .1;
    return (sides){eps * x * x, mx * mx - x * x, fabs(mx * mx - x * x), false};
}

/* ---- rows, columns, clusters ----------------------------------------------------------------- */

static sides proposition_4_3(void)
{
    const double residual[] = {1, 0}; /* Ax - h; S is the second row */
    return (sides){fabs(residual[1]), hypot(residual[0], residual[1]), NAN, false};
}

/* H = 11'/sqrt(D) + eps I with D = 100, the first row for all: the first column. */
static sides c3_1(void)
{
    const double wide = 100, eps = .01, one = 1 / sqrt(wide);
    double off = 0;
    for (size_t i = 1; i < 100; i++) off += (one + eps - one) * (one + eps - one);
    const double column = sqrt(off);
    return (sides){eps * wide, column, eps * sqrt(wide - 1), false};
}

static sides lemma_c4(void)
{
    const double eta = 2, v = 2;
    return (sides){eta, v * v, eta * eta, !(v <= eta)};
}

static sides lemma_c4_sign(void)
{
    const double t = .1, product = 1 * -1;
    return (sides){exp(t) * product, product, NAN, false};
}

/* relu(4 c.x / |c|^2 - bias) at x = c must be 1. */
static sides c5(void)
{
    const double c = 2, on = 4 * c * c / (c * c);
    return (sides){1, fmax(0, on - 3 * c * c), fmax(0, on - 3), !(c > 0)};
}

static sides lemma_c6(void)
{
    const double wv = 2, x = 1, gram = wv * wv * x, root = sqrt(wv * wv) * x;
    return (sides){wv * x * wv * x, gram * gram, root * root, false};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {PAPER, "Corollary 3.2", "Pr((1 - eps) x.y <= Mx.My <= (1 + eps) x.y) < delta",
     "x = y, eps = .4, delta = .01, d of the lemma: share of 400 draws", ">= 1 - delta is meant",
     "width_corollary_3_2_has_its_probability_reversed", MISPRINT, AT_MOST,
     .hand = corollary_3_2_reversed},
    {PAPER, "Corollary 3.2", "read with >= 1 - delta: products are kept up to a factor 1 +- eps",
     "orthogonal vectors, eps = .4, delta = .01: share of 400 draws",
     "up to an additive eps |x||y|", "width_corollary_3_2_is_not_multiplicative", MISPRINT,
     AT_LEAST, .hand = corollary_3_2_factor},
    {PAPER, "Table 3", "Tolokers has 10 classes", "the file's labels: pare repro width --data",
     "2 classes", "tolokers_has_two_classes", MISPRINT, EQUAL, .at = {10}},
    {PAPER, "Table 3", "Photo: 7,487 nodes have 238,162 edges",
     "the file's largest component: pare repro width --data",
     "238,086; 238,162 are the edges of all 7,650 nodes", "photo_edges_are_those_of_all_nodes",
     MISPRINT, EQUAL, .at = {238162}},
    {PAPER, "Theorem 3.3, proof",
     "constants c1 = b^3 + 8 b a + 4 b^2 sqrt(a), c2 = 4 b^2 (a sqrt(a) + 2 a + sqrt(a)): a "
     "map that keeps products up to eps moves the rows of one layer by c2 eps",
     "b = 4, a = 1, eps = 1e-4, keys orthogonal to their query",
     "c2 = b^5 sqrt(a) (sqrt(a) + 1)^2 and c1 = b^3 + b^5 sqrt(a) (2 sqrt(a) + 1); pare_jl_bound",
     "width_theorem_3_3_constants_are_too_small", STEP_FALSE, AT_MOST, .hand = theorem_3_3},
    {PAPER, "C.1", "|q.k - q'.k'| <= 2 sqrt(alpha) beta e + (beta e)^2",
     "one dimension, beta = 3, alpha = 1, a row 1 that moved by e = .1",
     "beta^2 (2 sqrt(alpha) e + e^2)", "width_c1_drops_a_beta", STEP_FALSE, AT_MOST,
     .hand = c1_scores},
    {PAPER, "C.1", "exp(2e) < 1 + 2e", "e = .1", "the softmax lemma with 2 tanh(w/2)",
     "width_c1_exponential_inequalities_point_the_wrong_way", STEP_FALSE, AT_MOST,
     .hand = c1_above},
    {PAPER, "C.1", "exp(-2e) > 1 - e", "e = .1", "the softmax lemma with 2 tanh(w/2)",
     "width_c1_lower_exponential_points_the_wrong_way", STEP_FALSE, AT_LEAST, .hand = c1_below},
    {PAPER, "C.1", "e^(2a) - 1 <= 4a for a < 1", "a = .9",
     "2a <= 1.25; ours is 2 tanh(a/2) <= a, always", "width_c1_condition_is_too_weak", STEP_FALSE,
     AT_MOST, .hand = c1_condition},
    {PAPER, "C.1, C.3", "values are at most sqrt(alpha)", "one dimension, beta = 3",
     "beta sqrt(alpha)", "width_c1_values_grow_by_beta", STEP_FALSE, AT_MOST, .hand = c1_values},
    {PAPER, "C.1, C.3", "sum_j (a_j - a'_j) v_j = v_j sum_j (a_j - a'_j)",
     "a = (1, 0), a' = (0, 1), v = (1, -1)", "the inequality that follows it",
     "width_c1_pulls_an_index_out_of_its_sum", STEP_FALSE, EQUAL, .hand = c1_index},
    {PAPER, "C.1", "the terms with the error of the scores escape the feed-forward part",
     "beta = 3, rows 1 and -1, scores off by .1", "beta^2 times all of them",
     "width_c1_forgets_the_feed_forward_part", STEP_FALSE, AT_MOST, .hand = c1_feed_forward},
    {PAPER, "C.1, last line", "the sum begins at i = 1 and exchanges c1 and c2: errors over eps",
     "c1 = 3, c2 = 2, three layers, the largest reading", "c2 (c1^L - 1)/(c1 - 1)",
     "width_c1_sum_misses_its_first_term", STEP_FALSE, AT_MOST, .hand = c1_sum},
    {PAPER, "C.3, last line",
     "rows e apart are beta eps + beta^3 (1 + (8 alpha + beta sqrt(alpha))) e apart behind a layer",
     "one dimension, beta = 4, rows 0, 1, -1 moved by e = eps = 1e-4",
     "pare_lowrank_bound; on the way 4 beta sqrt(alpha) became beta sqrt(alpha)",
     "width_c3_last_line_is_exceeded", STEP_FALSE, AT_MOST, .hand = c3_last_line},
    {PAPER, "Proposition 4.3, proof", "|Ax - h| = |SAx - Sh|", "a residual outside the chosen rows",
     "|Ax - h| <= sqrt(1 + |Q_S^+|^2) |r| for every node",
     "width_proposition_4_3_residuals_hide_outside_the_rows", STEP_FALSE, EQUAL,
     .hand = proposition_4_3},
    {PAPER, "Lemma C.4, proof", "v.v' <= eta for |v|, |v'| <= eta", "eta = 2", "eta^2",
     "width_lemma_c4_products_are_squares", STEP_FALSE, AT_MOST, .hand = lemma_c4},
    {PAPER, "Lemma C.4, proof", "a product of pooled rows is at most e^t times itself",
     "values 1 and -1, t = .1",
     "the change of the weights and of the products, each with its own term",
     "width_lemma_c4_multiplies_what_may_be_negative", STEP_FALSE, AT_MOST, .hand = lemma_c4_sign},
    {PAPER, "C.5", "with the bias -3|c|^2 the selector is 1 at its own center", "|c| = 2",
     "bias -3", "width_c5_bias_must_not_be_scaled", STEP_FALSE, EQUAL, .hand = c5},
    {PAPER, "Lemma C.6", "Wv' = U'Wv'Wv U keeps the products of values", "Wv = 2, one dimension",
     "an R with R'R = U'Wv'Wv U does", "width_lemma_c6_gram_matrix_is_squared", STEP_FALSE, EQUAL,
     .hand = lemma_c6},
    {PAPER, "C.3.1", "one row for all errs by eps D", "D = 100, eps = .01, euclidean norm",
     "eps sqrt(D - 1); about eps D is the sum of the entries",
     "width_c3_1_prints_the_sum_of_the_entries", IMPRECISE, EQUAL, .hand = c3_1},
    {PAPER, "Lemma 3.1", "|Mx|^2 - |x|^2 <= eps |x|^2, without the outer bars",
     "M = 0, eps = .1: it holds", "true, and one tail only; the proofs use both",
     "width_lemma_3_1_has_one_tail", IMPRECISE, AT_MOST, .hand = lemma_3_1, .stands = true},
};

const errata errata_width = {list, sizeof list / sizeof *list};
