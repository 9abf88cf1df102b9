/* The ticket paper's errata, computed. Some of its statements hold and are merely loose: their rows
 * say so. */
#include "repro_errata.h"
#include <pare/subset.h>
#include <math.h>

/* x = ones(7), E = ones(7, 7), whose norm is 7. */
static sides alpha_undefined(void)
{
    enum { D = 7 };
    double sum = 0, length = 0;
    for (size_t i = 0; i < D; i++) {
        length += 1;
        for (size_t j = 0; j < D; j++) sum += 1;
    }
    return (sides){1 * D, sum, length * D};
}

/* How many different numbers x_0 e x_k has. */
static sides lemma_5(void)
{
    const double x[5] = {1, 2, 3, 4, 5}, eps = .1;
    double different = 1;
    for (size_t k = 1; k < 5; k++) different += x[0] * eps * x[k] != x[0] * eps * x[k - 1];
    return (sides){1, different, 5};
}

/* Largest change of a softmax mean of values +-1 when logits change by at most eps: the extreme
 * case has two masses that move against each other. */
static sides lemma_8(void)
{
    const double eps = .5, d1 = 16, alpha = 1;
    double most = 0;
    for (double l = -4; l <= 4; l += .05) {
        const double a[] = {l, 0}, b[] = {l + eps, -eps};
        double p[2], q[2];
        softmax_of(p, a, 2);
        softmax_of(q, b, 2);
        most = fmax(most, alpha * fabs((p[0] - p[1]) - (q[0] - q[1])));
    }
    return (sides){sqrt(d1) * alpha * expm1(2 * eps), most, 2 * alpha * tanh(eps / 2)};
}

/* Largest product of two weights of U[-b, b] over sqrt(n_K). */
static sides a3_range(void)
{
    const double d_k = 8, n_k = 64;
    return (sides){1, pow(d_k, .5) / sqrt(n_k), pow(n_k, .5) / sqrt(n_k)};
}

/* n / d1 products of b^2, over sqrt(n): the most that masks can reach, for any n. */
static double most_reach(double exponent, double d1)
{
    double most = 0;
    for (double n = 4; n < 1e7; n *= 3) most = fmax(most, n / d1 * pow(n, 2 * exponent) / sqrt(n));
    return most;
}

static sides exponent(void)
{
    return (sides){.6, most_reach(-.25, 2), most_reach(.25, 2)};
}

static sides xavier(void)
{
    const double n = 1e4, d1 = 2;
    return (sides){.6, n / d1 * (6 / (2 + n)) / sqrt(n), n / d1};
}

static sides a3_union(void)
{
    const double eps = .1, h = 2, alpha = 3, d = 9, all = 8 * h * alpha * alpha * alpha;
    const double each = eps / (all * pow(d, 1.5));
    return (sides){eps / (all * sqrt(d)), d * d * each, eps * sqrt(d) / all};
}

static sides lemma_12(void)
{
    const double g = 1, alpha = 2, eps = .5, moved = alpha + eps;
    return (sides){g * eps * 2 * alpha, g * moved * moved - g * alpha * alpha,
                   g * eps * (2 * alpha + eps)};
}

/* Two tokens of the plane through a block whose matrices are all the identity, H = 2: the first
 * row. */
static void identity_block(double y[2], const double x[4])
{
    double p[2];
    const double a[] = {x[0] * x[0] + x[1] * x[1], x[0] * x[2] + x[1] * x[3]};
    softmax_of(p, a, 2);
    for (size_t c = 0; c < 2; c++) y[c] = 2 * (x[c] + 2 * (p[0] * x[c] + p[1] * x[2 + c]));
}

static sides lemma_13(void)
{
    sides out = {NAN, NAN, NAN};
    const double h = 2, alpha = 2, delta = .01;
    pare_rng r = pare_rng_at(0, 3);
    out.is = 0;
    for (int i = 0; i < 3000; i++) {
        double x[4], t[4], y[2], z[2];
        for (size_t k = 0; k < 2; k++) {
            const double u = 6.283185307179586 * pare_rng_uniform(&r),
                         v = 6.283185307179586 * pare_rng_uniform(&r);
            x[2 * k] = (alpha - delta) * cos(u), x[2 * k + 1] = (alpha - delta) * sin(u);
            t[2 * k] = x[2 * k] + delta * cos(v), t[2 * k + 1] = x[2 * k + 1] + delta * sin(v);
        }
        identity_block(y, x);
        identity_block(z, t);
        out.is = fmax(out.is, hypot(y[0] - z[0], y[1] - z[1]));
    }
    out.holds =
        4 * h * alpha * alpha * delta + 2 * h * alpha * delta * delta + 2 * h * delta + 2 * delta;
    out.printed = out.holds / 2;
    return out;
}

/* A pair of ReLU layers and one whose weights are off by a tenth: what the error grows by when the
 * input is ten times as long. */
static sides theorem_10(void)
{
    const double eps = 1;
    double off[2];
    for (size_t i = 0; i < 2; i++) {
        const double x = i ? 10 : 1, hidden[] = {fmax(0, .5 * x), fmax(0, -.7 * x)},
                     moved[] = {fmax(0, .6 * x), fmax(0, -.6 * x)};
        off[i] = fabs((.8 * hidden[0] - .4 * hidden[1]) - (.7 * moved[0] - .5 * moved[1]));
    }
    return (sides){expm1(10 * eps / 2) / expm1(eps / 2), off[1] / off[0], 10};
}

/* Share of draws of n products in which no subset comes within .01 of the target. */
static pare_status missed(double *out, pare_rng *r, size_t n, double target, pare_err *err)
{
    enum { DRAWS = 400 };
    size_t bad = 0;
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < DRAWS; i++) {
        int64_t x[16];
        uint64_t mask;
        pare_subset best = {0, PARE_SUBSET_FOUND};
        for (size_t k = 0; k < n; k++)
            x[k] = llrint((2 * pare_rng_uniform(r) - 1) * (2 * pare_rng_uniform(r) - 1) * 0x1p48);
        st = pare_subset_sum(&best, &mask, x, n, llrint(target * 0x1p48), NULL, err);
        bad += fabs((double)best.error) > .01 * 0x1p48;
    }
    *out = (double)bad / DRAWS;
    return st;
}

static pare_status lemma_4(sides *out, const erratum *e, pare_err *err)
{
    pare_rng r = pare_rng_at(7, 7);
    (void)e;
    const pare_status st = missed(&out->printed, &r, 12, .5, err);
    return st ? st : missed(&out->is, &r, 12, 1, err);
}

/* Three heads with V = I on tokens of length 2 in four dimensions: all see the same token. */
static sides attention_size(void)
{
    const double h = 3, alpha = 2, d1 = 4, omega = 1, weights[] = {.25, .75};
    return (sides){h * alpha * sqrt(d1), h * (weights[0] + weights[1]) * alpha, h * alpha * omega};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {"alpha", "read as a bound on entries: |x E x| <= alpha^2 |E|", "x = 1, E = 1 in dimension 7",
     "alpha bounds the euclidean length of every token",
     "ticket_alpha_must_bound_the_length_not_the_entries", AT_MOST, .hand = alpha_undefined},
    {"Lemmas 4 and 7", "12 items miss a target of 1 no more often than one of 1/2",
     "400 draws of 12 products, within .01", "the reach is part of the constant (Lemma S)",
     "ticket_lemma_4_must_reach_one_not_a_half", AT_MOST, .look = lemma_4},
    {"Lemmas 5 and 8", "the error of the logits has d1 entries", "d1 = 1, five tokens",
     "one entry for each key", "ticket_lemma_5_errors_have_one_entry_for_each_key", EQUAL,
     .hand = lemma_5},
    {"Lemma 8", "sqrt(d1) alpha (e^(2 eps) - 1) for eps <= 1/2", "d1 = 16, eps = .5, two keys",
     "2 alpha tanh(eps / 2): neither root nor condition; as printed it is only loose",
     "ticket_lemma_8_needs_neither_root_nor_condition", AT_MOST, .hand = lemma_8},
    {"A.3, step 1", "from U[-d_K^(1/4), d_K^(1/4)] products fill [-1, 1]", "d_K = 8, n_K = 64",
     "n_K^(1/4): the logits are divided by sqrt(n_K)", "ticket_a3_source_range_is_by_n_k_not_d_k",
     EQUAL, .hand = a3_range},
    {"4.1", "from U[-n_K^(-1/4), n_K^(-1/4)] an entry of .6 is reached", "d1 = 2, any n_K to 10^7",
     "n_K^(1/4)", "ticket_4_1_exponent_makes_targets_unreachable", AT_LEAST, .hand = exponent},
    {"B.1", "from a Xavier source an entry of .6 is reached", "d1 = 2, n_K = 10^4", "n_K^(1/4)",
     "ticket_4_1_exponent_makes_targets_unreachable", AT_LEAST, .hand = xavier},
    {"A.3", "some entry of QK is missed with probability eps / (8 H alpha^3 sqrt(d1)) at most",
     "d1 = 9, H = 2, alpha = 3, eps = .1: the union over its entries",
     "eps sqrt(d1) / (8 H alpha^3); the sum is still below eps",
     "ticket_a3_union_over_entries_is_printed_upside_down", AT_MOST, .hand = a3_union},
    {"Lemma 12",
     "a token that moved by eps is still at most alpha long: logits move by 2 alpha eps",
     "d = 1, alpha = 2, eps = .5", "|G| eps (2 alpha + eps)",
     "ticket_lemma_12_forgets_that_the_token_moved", AT_MOST, .hand = lemma_12},
    {"Lemma 13", "half of what its own proof gives",
     "3,000 pairs of tokens .01 apart, H = 2, alpha = 2: none known",
     "4 H alpha^2 d + 2 H alpha d^2 + 2 H d + 2 d for norms 1; as printed it holds here too",
     "ticket_lemma_13_blocks_move_by_what_holds", AT_MOST, .hand = lemma_13},
    {"Theorem 10", "alpha stands in an exponential: by what the error grows",
     "two ReLU layers, ten times the input", "the error is proportional to alpha; it is only loose",
     "ticket_theorem_10_is_proportional_to_alpha", AT_MOST, .hand = theorem_10},
    {"size of attention", "|Attn| <= H alpha sqrt(d1)", "H = 3, alpha = 2, d1 = 4, V = I",
     "H alpha omega, omega = max |V_h|; as printed it is only loose",
     "ticket_attention_is_at_most_alpha_omega", AT_MOST, .hand = attention_size},
};

const errata errata_ticket = {list, sizeof list / sizeof *list};
