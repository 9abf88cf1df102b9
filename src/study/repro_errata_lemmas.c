/* The errata of the depth paper's facts and lemmas, computed by hand: a few numbers each. */
#include "repro_errata.h"
#include <math.h>
#include <pare/linalg.h>

static double largest(const double *x, size_t n)
{
    double m = 0;
    for (size_t i = 0; i < n; i++) m = fmax(m, fabs(x[i]));
    return m;
}

static sides fact_3_3_2(void)
{
    double a[] = {1, 1, 1, 1}, c[4];
    pare_mat product = pare_mat_of(c, 2, 2);
    const pare_mat ones = pare_mat_of(a, 2, 2);
    const pare_weight one = {PARE_F64, 2, 2, a};
    pare_gemm(&product, 1, &ones, false, &ones, false, 0);
    return (sides){largest(a, 4) * largest(a, 4), largest(c, 4),
                   largest(a, 4) * pare_norm_max_col(&one).v};
}

static sides fact_3_3_3(void)
{
    const double a = 1, b[] = {1, 1};
    return (sides){fabs(a) * largest(b, 2), fabs(a * b[0]) + fabs(a * b[1]),
                   2 * fabs(a) * largest(b, 2)};
}

/* One column without its midrange, entry i. */
static double res_at(const double *x, size_t n, size_t i)
{
    double low = x[0], high = x[0];
    for (size_t k = 1; k < n; k++) low = fmin(low, x[k]), high = fmax(high, x[k]);
    return x[i] - (low + high) / 2;
}

static sides lemma_4_1(void)
{
    const double eps = .25, a[] = {-8 - eps, 8 - eps, eps}, b[] = {-8, 8, 0};
    double apart = 0, moved = 0;
    for (size_t i = 0; i < 3; i++) {
        apart = fmax(apart, fabs(a[i] - b[i]));
        moved = fmax(moved, fabs(res_at(a, 3, i) - res_at(b, 3, i)));
    }
    return (sides){apart, moved, 2 * apart};
}

/* Two rows that leave the same largest entry: how far apart are they? */
static sides definition_3_4(void)
{
    const double z[] = {-1, -.5, 1, .5}, shift = .4;
    const double moved[] = {z[0], z[1] - shift, z[2], z[3] - shift};
    return (sides){0, largest(moved, 4) <= largest(z, 4) ? shift : 0, NAN};
}

static sides lemma_c1(void)
{
    const double eps = .7, a[] = {-eps, 0}, b[] = {eps, 0}, v[] = {1, -1};
    double p[2], q[2];
    softmax_of(p, a, 2);
    softmax_of(q, b, 2);
    const double moved[] = {p[0] - q[0], p[1] - q[1]};
    return (sides){largest(moved, 2) * largest(v, 2), fabs(moved[0] * v[0] + moved[1] * v[1]),
                   tanh(2 * eps / 4) * (v[0] - v[1])};
}

/* Scores score x_i x_j of rows with equal entries x_i. */
static void flat_softmax(double *p, const double *x, size_t n, size_t i, double score)
{
    double a[8];
    for (size_t j = 0; j < n; j++) a[j] = score * x[i] * x[j];
    softmax_of(p, a, n);
}

/* X moves by eps, the scores by (50 + eps) eps against one another. */
static sides lemma_c1_move(void)
{
    const double eps = .1, x[] = {50, 50}, y[] = {50 + eps, 50};
    double p[2], q[2];
    flat_softmax(p, x, 2, 0, 1);
    flat_softmax(q, y, 2, 0, 1);
    return (sides){2 * expm1(eps), fabs(p[0] - q[0]), tanh((50 + eps) * eps / 4)};
}

static sides lemma_5_1(void)
{
    const double d = 6, w = .05, x[] = {-.3, -.3, .3, .3}, score = w * w * d * d * d;
    double y[4], theta = 0, res = 0;
    for (size_t i = 0; i < 4; i++) {
        double p[4];
        flat_softmax(p, x, 4, i, score);
        y[i] = 0;
        for (size_t j = 0; j < 4; j++) y[i] += p[j] * x[j] * w * d;
        theta = fmax(theta, 2 * score * fabs(x[i]) * .3);
    }
    for (size_t i = 0; i < 4; i++) res = fmax(res, fabs(res_at(y, 4, i)));
    return (sides){expm1(theta) * w * .3, res, tanh(theta / 2) * w * d * .3};
}

static sides lemma_b4(void)
{
    const double eta = .05, beta = .5, r = 1.2, d = 6;
    const double most = beta * (d * eta * eta) * (d * r) * (d * r); /* an entry of R W R' */
    return (sides){beta * eta * eta * r * r, 2 * most, 2 * beta * d * d * d * eta * eta * r * r};
}

static sides lemma_5_2(void)
{
    const double x[] = {4, 5, 6.5};
    double r[3], worst = 0;
    for (size_t i = 0; i < 3; i++) r[i] = res_at(x, 3, i);
    for (size_t i = 0; i < 3; i++) {
        double p[3], q[3];
        flat_softmax(p, x, 3, i, 1);
        flat_softmax(q, r, 3, i, 1);
        worst = fmax(worst, variation_of(p, q, 3));
    }
    return (sides){0, worst, NAN};
}

static sides lemma_d5(void)
{
    sides out = {NAN, NAN, NAN};
    const double a[] = {2, 0}, b[] = {.01, -.01}, sum[] = {2.01, -.01};
    double p[2], q[2];
    softmax_of(p, sum, 2);
    softmax_of(q, b, 2);
    out.printed = 4 * largest(b, 2);
    out.is = fabs(p[0] - q[0]);
    softmax_of(q, a, 2);
    out.holds = fabs(p[0] - q[0]);
    return out;
}

static sides lemma_d6(void)
{
    const double w = 1e-4, step = 1e-3, d = 8, x[] = {1, -1}, y[] = {1 + step, -1 - step};
    double p[2], q[2];
    flat_softmax(p, x, 2, 0, w * d * d);
    flat_softmax(q, y, 2, 0, w * d * d);
    const double range = w * d * d * (step * 2 + (1 + step) * 2 * step);
    return (sides){12 * w * step, fabs(p[0] - q[0]), tanh(range / 4)};
}

static sides lemma_d7(void)
{
    const double eta = .1, x = 2, y = -1; /* no scores, one token */
    return (sides){eta, fabs(eta * x - eta * y), eta * fabs(x - y)};
}

static sides remark_d3(void)
{
    double m[3][4] = {{1, 1, 0, 0}, {1, 0, 1, 0}, {2, 1, 1, 0}}, norm[3];
    for (size_t i = 0; i < 3; i++) {
        const double *const v = m[i];
        const double rows = fmax(v[0] + v[1], v[2] + v[3]), cols = fmax(v[0] + v[2], v[1] + v[3]);
        norm[i] = sqrt(rows * cols);
    }
    return (sides){norm[0] + norm[1], norm[2], NAN};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {"Fact 3.3 (2)", "max-entry norms: |AB| <= |A||B|", "A = B = ones(2,2)",
     "|A| times the largest column sum of |B|",
     "depth_fact_3_3_max_entry_norm_is_not_submultiplicative", AT_MOST, .hand = fact_3_3_2},
    {"Fact 3.3 (3)", "sums of entries: |AB| <= |A| |B|_max", "A = [1], B = [1 1]",
     "times the number of columns of B", "depth_fact_3_3_entrywise_sum_needs_the_number_of_columns",
     AT_MOST, .hand = fact_3_3_3},
    {"Definition 3.4", "the row that is taken away is the only one: others are 0 away",
     "columns (-1, 1) and (-.5, .5)", "the midrange in every column",
     "depth_definition_3_4_has_many_minimisers", AT_MOST, .hand = definition_3_4},
    {"Lemma 4.1", "|Res(A) - Res(B)| <= |A - B|", "A = (-8.25, 7.75, .25), B = (-8, 8, 0)",
     "2 |A - B|, which is met", "res_moves_by_two_eps_not_one", AT_MOST, .hand = lemma_4_1},
    {"Lemma 5.1", "|Res SAtt| <= (e^theta - 1)|Wv||Res X|", "d = 6, all weights .05",
     "tanh(theta / 2) times the largest column sum, met here",
     "depth_lemma_5_1_is_false_by_the_width", AT_MOST, .hand = lemma_5_1},
    {"Lemma 5.2, C.1", "attention does not see a shift of X: total variation 0",
     "X = (4, 5, 6.5), width 1", "keys may be shifted, queries not",
     "depth_lemma_5_2_scores_see_the_shift", AT_MOST, .hand = lemma_5_2},
    {"Lemma B.2, Corollary D.4, Lemma C.1 (2)", "|(P - P') V| <= |P - P'|_max |V|_max",
     "logits (-.7, 0) and (.7, 0), V = (1, -1)", "total variation times the diameter of V",
     "depth_lemma_c1_needs_the_sum_of_weights_not_the_largest", AT_MOST, .hand = lemma_c1},
    {"Lemma C.1", "a move of X by eps moves the weights by at most 2(e^eps - 1)",
     "tokens (50, 50) and (50.1, 50), width 1",
     "scores are products: they move by |X| eps and more",
     "depth_lemma_c1_takes_the_move_of_x_for_that_of_the_scores", AT_MOST, .hand = lemma_c1_move},
    {"Lemma B.4", "theta <= beta eta^2 |Res X|^2", "d = 6, all weights eta", "2 d^3 times that",
     "depth_lemma_b4_misses_the_cube_of_the_width", AT_MOST, .hand = lemma_b4},
    {"Lemma D.5", "|softmax(a + b) - softmax(b)| <= 4|b|", "a = (2, 0), b = (.01, -.01)",
     "softmax(a) in the place of softmax(b), then |b| / 2",
     "depth_lemma_d5_compares_with_the_wrong_softmax", AT_MOST, .hand = lemma_d5},
    {"Lemma D.6", "|softm(X) - softm(Y)| <= 12|X||W||X - Y|", "d = 8, all weights equal",
     "tanh of a quarter of the range of the change of scores", "depth_lemma_d6_misses_the_width",
     AT_MOST, .hand = lemma_d6},
    {"Lemma D.7", "|SAtt(X) - SAtt(Y)| <= K2, without |X - Y|", "Wq = 0, Wv = .1, tokens 2 and -1",
     "K2 |X - Y|", "depth_lemma_d7_drops_the_distance", AT_MOST, .hand = lemma_d7},
    {"Remark D.3", "the composite norm of Dong et al. has a triangle inequality",
     "[1 1; 0 0] + [1 0; 1 0]", "it is made of induced norms and is none",
     "depth_remark_d3_composite_norm_has_no_triangle_inequality", AT_MOST, .hand = remark_d3},
};

const errata errata_lemmas = {list, sizeof list / sizeof *list};
