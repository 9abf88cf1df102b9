/* errata_depth_lemmas.c - the errata of the facts and lemmas of Rank collapse 2025, computed. Those
 * of its theorems are in errata_depth.c. */
#include "study_errata.h"
#include "attention_nets.h"
#include <math.h>
#include <pare/depth.h>
#include <pare/ticket.h>

#define PAPER "Rank collapse 2025"

/* Lemma T: total variation for scores that change by this range. */
static double softmax_change(double range)
{
    return pare_softmax_perturbation(pare_ub_of(range)).v;
}

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
                   largest(a, 4) * pare_norm_max_col(&one).v, false};
}

static sides fact_3_3_3(void)
{
    const double a = 1, b[] = {1, 1};
    return (sides){fabs(a) * largest(b, 2), fabs(a * b[0]) + fabs(a * b[1]),
                   2 * fabs(a) * largest(b, 2), false};
}

static pare_status lemma_4_1(sides *out, const erratum *e, pare_err *err)
{
    const double eps = .25;
    double a[] = {-8 - eps, 8 - eps, eps}, b[] = {-8, 8, 0}, moved[3], apart = 0;
    pare_mat ma = pare_mat_of(a, 3, 1), mb = pare_mat_of(b, 3, 1);
    (void)e;
    for (size_t i = 0; i < 3; i++) apart = fmax(apart, fabs(a[i] - b[i]));
    if (pare_res(&ma, NULL, &ma) || pare_res(&mb, NULL, &mb))
        return pare_fail(err, PARE_ERR_NONFINITE, "a midrange is not finite");
    for (size_t i = 0; i < 3; i++) moved[i] = a[i] - b[i];
    *out = (sides){apart, largest(moved, 3), 2 * apart, false};
    return PARE_OK;
}

/* Scores score x_i x_j of rows with equal entries x_i. */
static void flat_softmax(double *p, const double *x, size_t n, size_t i, double score)
{
    double a[8];
    for (size_t j = 0; j < n; j++) a[j] = score * x[i] * x[j];
    softmax_of(p, a, n);
}

/* Two rows that leave the same largest entry: how far apart are they? */
static sides definition_3_4(void)
{
    const double z[] = {-1, -.5, 1, .5}, shift = .4;
    const double moved[] = {z[0], z[1] - shift, z[2], z[3] - shift};
    return (sides){0, largest(moved, 4) <= largest(z, 4) ? shift : 0, NAN, false};
}

/* Lemmas B.2 and D.4 bound the largest change of a weight, which is true; here it is exact. */
static sides lemma_c1_product(void)
{
    const double eps = .7, a[] = {-eps, 0}, b[] = {eps, 0}, v[] = {1, -1};
    double p[2], q[2];
    softmax_of(p, a, 2);
    softmax_of(q, b, 2);
    const double moved[] = {p[0] - q[0], p[1] - q[1]};
    return (sides){largest(moved, 2) * largest(v, 2), fabs(moved[0] * v[0] + moved[1] * v[1]),
                   softmax_change(2 * eps) * (v[0] - v[1]), false};
}

/* X moves by eps, the scores by (50 + eps) eps against one another. */
static sides lemma_c1_move(void)
{
    const double eps = .1, x[] = {50, 50}, y[] = {50 + eps, 50};
    double p[2], q[2];
    flat_softmax(p, x, 2, 0, 1);
    flat_softmax(q, y, 2, 0, 1);
    return (sides){2 * expm1(eps), fabs(p[0] - q[0]), softmax_change((50 + eps) * eps), false};
}

static pare_status lemma_5_2(sides *out, const erratum *e, pare_err *err)
{
    const double x[] = {4, 5, 6.5};
    double r[] = {4, 5, 6.5}, worst = 0;
    pare_mat res = pare_mat_of(r, 3, 1);
    (void)e;
    if (pare_res(&res, NULL, &res))
        return pare_fail(err, PARE_ERR_NONFINITE, "a midrange is not finite");
    for (size_t i = 0; i < 3; i++) {
        double p[3], q[3];
        flat_softmax(p, x, 3, i, 1);
        flat_softmax(q, r, 3, i, 1);
        worst = fmax(worst, variation_of(p, q, 3));
    }
    *out = (sides){0, worst, NAN, false};
    return PARE_OK;
}

/* What pare sees of one head without a skip, all of whose weights are `w`, on the rows -x, -x, x, x
 * of `d` equal entries each. */
static pare_status flat_head(pare_head_stats *out, size_t d, double w, double scale, double x,
                             pare_err *err)
{
    const san_shape shape = {.layers = 1,
                             .heads = 1,
                             .dim = d,
                             .scale = scale,
                             .size = w,
                             .draw = SAN_SAME,
                             .no_skip = true};
    pare_rng rng = pare_rng_at(0, 0);
    pare_model *m = NULL;
    pare_attention_stats seen = {0};
    pare_arena *const a = pare_arena_new();
    double *const rows = a ? pare_alloc(a, 4 * d, sizeof *rows) : NULL;
    for (size_t i = 0; rows && i < 4 * d; i++) rows[i] = i < 2 * d ? -x : x;
    pare_input in = {.batch = 1, .tokens = 4, .width = d, .x = rows};
    const pare_inputs set = {1, &in};
    pare_status st = rows ? san_new(&m, &shape, &rng, err) : pare_no_memory(err);
    if (!st)
        st = pare_depth_attention_stats(
            &seen, a, m, &(pare_input_split){.fit = &set, .heldout = &set}, NULL, err);
    if (!st) *out = seen.heads[0];
    pare_model_free(m);
    pare_arena_free(a);
    return st;
}

/* at: d, all weights, |Res X|. |Res SAtt| over |Res X|. */
static pare_status lemma_5_1(sides *out, const erratum *e, pare_err *err)
{
    pare_head_stats h = {0};
    const pare_status st = flat_head(&h, (size_t)e->at[0], e->at[1], 1, e->at[2], err);
    if (!st) *out = (sides){h.k_paper, h.k_seen, h.k_sound, false};
    return st;
}

/* at: d, eta, |Res X|, beta. */
static pare_status lemma_b4(sides *out, const erratum *e, pare_err *err)
{
    const double d = e->at[0], eta = e->at[1], r = e->at[2], beta = e->at[3];
    const double printed = beta * eta * eta * r * r;
    pare_head_stats h = {0};
    const pare_status st = flat_head(&h, (size_t)d, eta, beta, r, err);
    if (!st) *out = (sides){printed, h.theta, 2 * d * d * d * printed, !(h.eta <= eta)};
    return st;
}

static sides lemma_d5(void)
{
    const double b[] = {.01, -.01}, sum[] = {2.01, -.01}; /* a = (2, 0) */
    double p[2], q[2];
    softmax_of(p, sum, 2);
    softmax_of(q, b, 2);
    return (sides){4 * largest(b, 2), fabs(p[0] - q[0]), NAN, !(largest(b, 2) <= 1)};
}

static sides lemma_d6(void)
{
    const double w = 1e-4, step = 1e-3, d = 8, x[] = {1, -1}, y[] = {1 + step, -1 - step};
    double p[2], q[2];
    flat_softmax(p, x, 2, 0, w * d * d);
    flat_softmax(q, y, 2, 0, w * d * d);
    const double range = w * d * d * (step * 2 + (1 + step) * 2 * step); /* Lemma P */
    return (sides){12 * w * step, fabs(p[0] - q[0]), softmax_change(range), !(step <= 2)};
}

/* No scores, one token: attention multiplies by eta. The largest eps of the theorem is taken. */
static sides lemma_d7(void)
{
    const double eta = .05, phi0 = 2, x = 2, y = -2;
    const pare_collapse_printed p = pare_collapse_paper(eta, phi0, 1, 1);
    return (sides){p.c, fabs(eta * x - eta * y), eta * fabs(x - y),
                   !(p.holds && fabs(x) <= phi0 && fabs(y) <= phi0)};
}

static sides d7_arithmetic(void)
{
    const double eta = .05, x = 2, eps = 2 * eta * x;
    return (sides){3 * eta * (eps * eps + 1), 12 * x * x * eta * eta * eta + eta,
                   3 * eta * (eps * eps + 1 / 3.0), false};
}

/* [1 1; 0 0]: the sum of its entries; the root of largest column sum times largest row sum. */
static sides remark_d3(void)
{
    const double v[] = {1, 1, 0, 0};
    const double rows = fmax(v[0] + v[1], v[2] + v[3]), cols = fmax(v[0] + v[2], v[1] + v[3]);
    return (sides){v[0] + v[1] + v[2] + v[3], sqrt(rows * cols), NAN, false};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {PAPER, "Fact 3.3 (2)", "max-entry norms: |AB| <= |A||B|", "A = B = ones(2,2)",
     "|A| times the largest column sum of |B|",
     "depth_fact_3_3_max_entry_norm_is_not_submultiplicative", MISPRINT, AT_MOST,
     .hand = fact_3_3_2},
    {PAPER, "Fact 3.3 (3)", "sums of entries: |AB| <= |A| |B|_max", "A = [1], B = [1 1]",
     "times the number of columns of B", "depth_fact_3_3_entrywise_sum_needs_the_number_of_columns",
     MISPRINT, AT_MOST, .hand = fact_3_3_3},
    {PAPER, "Lemma 4.1", "|Res(A) - Res(B)| <= |A - B|", "A = (-8.25, 7.75, .25), B = (-8, 8, 0)",
     "2 |A - B|, which is met", "depth_lemma_4_1_res_moves_by_twice_as_much", MISPRINT, AT_MOST,
     .evaluate = lemma_4_1},
    {PAPER, "Lemma 5.1", "|Res SAtt| <= (e^theta - 1)|Wv||Res X|",
     "d = 6, all weights .05, |Res X| = .3: over |Res X|",
     "tanh(theta / 2) times the largest column sum, met here",
     "depth_lemma_5_1_is_false_by_the_width", MISPRINT, AT_MOST, .evaluate = lemma_5_1,
     .at = {6, .05, .3}},
    {PAPER, "Lemma B.4", "theta <= beta eta^2 |Res X|^2",
     "d = 6, all weights eta = .05, beta = .5, |Res X| = 1.2", "2 d^3 times that, met here",
     "depth_lemma_b4_misses_the_cube_of_the_width", MISPRINT, AT_MOST, .evaluate = lemma_b4,
     .at = {6, .05, 1.2, .5}},
    {PAPER, "Lemma D.5", "|softmax(a + b) - softmax(b)| <= 4|b|", "a = (2, 0), b = (.01, -.01)",
     "softmax(a) in the place of softmax(b), then |b| / 2",
     "depth_lemma_d5_compares_with_the_wrong_softmax", MISPRINT, AT_MOST, .hand = lemma_d5},
    {PAPER, "Lemma D.6", "|softm(X) - softm(Y)| <= 12|X||W||X - Y|", "d = 8, all weights equal",
     "tanh of a quarter of the range of the change of scores (Lemma P); |Y| <= 3|X| makes 12 a 16",
     "depth_lemma_d6_misses_the_width", MISPRINT, AT_MOST, .hand = lemma_d6},
    {PAPER, "Lemma D.7", "|SAtt(X) - SAtt(Y)| <= 3 eta (eps^2 + 1), without |X - Y|",
     "Wq = 0, Wv = eta = .05, tokens 2 and -2; every hypothesis of Theorem D.1 holds",
     "with the factor |X - Y|", "depth_lemma_d7_drops_the_distance", MISPRINT, AT_MOST,
     .hand = lemma_d7},
    {PAPER, "Lemma D.7, proof", "12 |X|^2 eta^3 + eta = 3 eta (eps^2 + 1), eps = 2 eta |X|",
     "|X| = 2, eta = .05", "3 eta (eps^2 + 1/3); as <= it is true",
     "depth_lemma_d7_arithmetic_is_off", STEP_FALSE, EQUAL, .hand = d7_arithmetic},
    {PAPER, "Lemmas 5.2 and C.1, proof", "attention does not see a shift of X: total variation 0",
     "X = (4, 5, 6.5), width 1", "keys may be shifted, queries not (Lemma P)",
     "depth_lemma_5_2_scores_see_the_shift", STEP_FALSE, AT_MOST, .evaluate = lemma_5_2},
    {PAPER, "Lemma C.1 (2), proof",
     "Lemma B.2 and Corollary D.4, both true, are used for |(P - P') V| <= |P - P'|_max |V|_max",
     "logits (-.7, 0) and (.7, 0), V = (1, -1)", "total variation times the diameter of V",
     "depth_lemma_c1_needs_the_sum_of_weights_not_the_largest", STEP_FALSE, AT_MOST,
     .hand = lemma_c1_product},
    {PAPER, "Lemma C.1, proof", "a move of X by eps moves the weights by at most 2(e^eps - 1)",
     "tokens (50, 50) and (50.1, 50), width 1",
     "scores are products: they move by |X| eps and more (Lemma P)",
     "depth_lemma_c1_takes_the_move_of_x_for_that_of_the_scores", STEP_FALSE, AT_MOST,
     .hand = lemma_c1_move},
    {PAPER, "Definition 3.4", "the row that is taken away: others that serve are 0 away",
     "columns (-1, 1) and (-.5, .5)",
     "the minimum is unique in the widest column only; take the midrange in every column",
     "depth_definition_3_4_has_many_minimizers", IMPRECISE, AT_MOST, .hand = definition_3_4},
    {PAPER, "Remark D.3", "the norm of Dong et al. is the sum of the entries (as quoted)",
     "[1 1; 0 0]", "the root of largest column sum times largest row sum",
     "depth_remark_d3_norm_is_not_the_sum_of_entries", IMPRECISE, EQUAL, .hand = remark_d3},
};

const errata errata_lemmas = {list, sizeof list / sizeof *list};
