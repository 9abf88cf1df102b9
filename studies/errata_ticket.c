/* errata_ticket.c - the errata of Otsuka 2025, computed. Some of its statements hold and are merely
 * loose: their rows say so. */
#include "study_errata.h"
#include <pare/ticket.h>
#include <math.h>

#define PAPER "Otsuka 2025"

/* How many different numbers x_0 e x_k has. */
static sides lemma_5(void)
{
    const double x[5] = {1, 2, 3, 4, 5}, eps = .1;
    double different = 1;
    for (size_t k = 1; k < 5; k++) different += x[0] * eps * x[k] != x[0] * eps * x[k - 1];
    return (sides){1, different, 5, false};
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
    return (sides){sqrt(d1) * alpha * expm1(2 * eps), most,
                   2 * alpha * pare_softmax_perturbation(pare_ub_of(2 * eps)).v, !(eps <= .5)};
}

/* Largest product of two weights of U[-b, b] over sqrt(n_K). */
static sides a3_range(void)
{
    const double d_k = 8, n_k = 64;
    return (sides){1, pow(d_k, .5) / sqrt(n_k), pow(n_k, .5) / sqrt(n_k), false};
}

/* The most that masks of the paper's construction can reach, in which a hidden unit serves one of
 * d1 inputs: n / d1 products of b^2, divided by sqrt(n). */
static double reach(double n, double b, double d1)
{
    return n / d1 * b * b / sqrt(n);
}

static sides exponent(void)
{
    const double d1 = 2;
    double most = 0, needed = INFINITY;
    for (double n = 2; n <= 4096; n += 2) {
        most = fmax(most, reach(n, pow(n, -.25), d1));
        needed = fmin(needed, reach(n, pow(n, .25), d1));
    }
    return (sides){.6, most, needed, false};
}

/* b = sqrt(6 / (d1 + n_K)): the first even n_K from which an entry of .6 is out of reach. Holds:
 * the last with which it is within reach. */
static sides xavier(void)
{
    const double d1 = 2;
    double last = 0;
    for (double n = 2; n <= 4096; n += 2)
        if (reach(n, sqrt(6 / (d1 + n)), d1) >= .6) last = n;
    return (sides){.6, reach(last + 2, sqrt(6 / (d1 + last + 2)), d1), last, false};
}

static sides a3_union(void)
{
    const double eps = .1, h = 2, alpha = 3, d = 9, all = 8 * h * alpha * alpha * alpha;
    const double each = eps / (all * pow(d, 1.5));
    return (sides){eps / (all * sqrt(d)), d * d * each, eps * sqrt(d) / all, !(alpha >= sqrt(d))};
}

static sides lemma_12(void)
{
    const double g = 1, alpha = 2, eps = .5, x = alpha, moved = x + eps;
    return (sides){g * eps * 2 * alpha, g * moved * moved - g * x * x, g * eps * (2 * alpha + eps),
                   !(x <= alpha && g <= 1)};
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
    sides out = {.is = 0};
    const double h = 2, alpha = 2, delta = .01;
    pare_rng r = pare_rng_at(0, 3);
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
    return (sides){expm1(10 * eps / 2) / expm1(eps / 2), off[1] / off[0], 10, false};
}

/* Three heads with V = I on tokens of length 2 in four dimensions: all see the same token. */
static sides attention_size(void)
{
    const double h = 3, alpha = 2, d1 = 4, omega = 1, weights[] = {.25, .75};
    return (sides){h * alpha * sqrt(d1), h * (weights[0] + weights[1]) * alpha, h * alpha * omega,
                   false};
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {PAPER, "4.1", "from U[-n_K^(-1/4), n_K^(-1/4)] an entry of .6 comes within reach as n_K grows",
     "d1 = 2, every even n_K to 4,096, the largest products there are",
     "n_K^(1/4), as in 3.1 and 4.3: the exponent has the wrong sign",
     "ticket_4_1_exponent_makes_targets_unreachable", MISPRINT, AT_LEAST, .hand = exponent},
    {PAPER, "A.3, step 1", "from U[-d_K^(1/4), d_K^(1/4)] products fill [-1, 1]",
     "d_K = 8, n_K = 64", "n_K^(1/4): the logits are divided by sqrt(n_K)",
     "ticket_a3_source_range_is_by_n_k_not_d_k", STEP_FALSE, EQUAL, .hand = a3_range},
    {PAPER, "A.3", "some entry of QK is missed with probability eps / (8 H alpha^3 sqrt(d1))",
     "d1 = 9, H = 2, alpha = 3, eps = .1: the union over its entries",
     "eps sqrt(d1) / (8 H alpha^3); the sum over all heads is still below eps",
     "ticket_a3_union_over_entries_is_printed_upside_down", STEP_FALSE, AT_MOST, .hand = a3_union},
    {PAPER, "Lemma 12",
     "a token that moved by eps is still at most alpha long: logits move by 2 alpha eps",
     "d = 1, alpha = 2, eps = .5", "|G| eps (2 alpha + eps)",
     "ticket_lemma_12_forgets_that_the_token_moved", STEP_FALSE, AT_MOST, .hand = lemma_12},
    {PAPER, "Lemma 13", "half of what its own proof gives; Theorem 14 uses it so",
     "3,000 pairs of tokens .01 apart, H = 2, alpha = 2: no counter-example",
     "4 H alpha^2 d + 2 H alpha d^2 + 2 H d + 2 d for norms 1; for d1 >= 2 and alpha >= sqrt(d1) "
     "the printed Theorem 14 is above it",
     "ticket_lemma_13_blocks_move_by_what_holds", STEP_FALSE, AT_MOST, .hand = lemma_13,
     .stands = true},
    {PAPER, "B.1", "from a Xavier source an entry of .6 is within reach (as quoted)",
     "d1 = 2, n_K = 22, the largest products there are",
     "within reach up to n_K = 20, then falling as 3 / sqrt(n_K); the source of 3.1 is n_K^(1/4)",
     "ticket_b1_xavier_reach_ends_at_twenty_units", IMPRECISE, AT_LEAST, .hand = xavier},
    {PAPER, "Lemmas 5 and 8", "the error of the logits has d1 entries", "d1 = 1, five tokens",
     "one entry for each key", "ticket_lemma_5_errors_have_one_entry_for_each_key", IMPRECISE,
     EQUAL, .hand = lemma_5},
    {PAPER, "Lemma 8", "sqrt(d1) alpha (e^(2 eps) - 1) for eps <= 1/2",
     "d1 = 16, eps = .5, two keys: it holds", "2 alpha tanh(eps / 2): neither root nor condition",
     "ticket_lemma_8_needs_neither_root_nor_condition", IMPRECISE, AT_MOST, .hand = lemma_8,
     .stands = true},
    {PAPER, "Theorem 10", "alpha stands in an exponential: by what the error grows",
     "two ReLU layers, ten times the input: it holds",
     "proportional to alpha. The layer 2L - 1 is printed twice",
     "ticket_theorem_10_is_proportional_to_alpha", IMPRECISE, AT_MOST, .hand = theorem_10,
     .stands = true},
    {PAPER, "Size of attention", "|Attn| <= H alpha sqrt(d1)",
     "H = 3, alpha = 2, d1 = 4, V = I: it holds", "H alpha omega, omega = max |V_h|",
     "ticket_attention_is_at_most_alpha_omega", IMPRECISE, AT_MOST, .hand = attention_size,
     .stands = true},
};

const errata errata_ticket = {list, sizeof list / sizeof *list};
