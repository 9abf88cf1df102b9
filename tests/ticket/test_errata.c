/* docs/errata.md, tickets: what is wrong, as printed, in Otsuka 2025, strong lottery tickets in
 * attention. Each test is the counter-example, or the arithmetic that the text has wrong; beside it
 * stands what holds. */
#include "ticket_pairs.h"
#include <pare/subset.h>

/* alpha is never defined. Read as a bound on entries, |x^T E x'| <= alpha^2 |E| is false. */
static void ticket_alpha_must_bound_the_length_not_the_entries(void **state)
{
    enum { D = 7 };
    double x[D], sum = 0;
    (void)state;
    for (size_t i = 0; i < D; i++) x[i] = 1; /* entries at most 1 */
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < D; j++) sum += x[i] * x[j]; /* E = ones, |E| = D */
    assert_true(sum == D * D && sum > 1 * D);              /* wrong by d1 */
    assert_true(sum <= D * D * 1.0);                       /* alpha = |x| = sqrt(D): alpha^2 |E| */
}

/* Lemmas 5 and 8 type the error of the logits as a vector of d1 entries; it has one for each key.
 */
static void ticket_lemma_5_errors_have_one_entry_for_each_key(void **state)
{
    const double x[5] = {1, 2, 3, 4, 5}, e = .1; /* d1 = 1, T = 5 */
    (void)state;
    for (size_t k = 1; k < 5; k++) assert_true(x[0] * e * x[k] != x[0] * e * x[k - 1]);
}

static double moved(const double *l, const double *e, const double *y, size_t n)
{
    double a = 0, b = 0, p = 0, q = 0;
    for (size_t k = 0; k < n; k++) {
        a += exp(l[k]), b += exp(l[k] + e[k]);
        p += exp(l[k]) * y[k], q += exp(l[k] + e[k]) * y[k];
    }
    return fabs(p / a - q / b);
}

/* Lemma 8: sqrt(d1) alpha (e^(2 eps) - 1) for eps <= 1/2. Without the root, without the condition,
 * and with half the constant for small eps it is still true, and then it is tight. */
static void ticket_lemma_8_needs_neither_root_nor_condition(void **state)
{
    pare_rng r = pare_rng_at(6, 2);
    double tightest = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        double l[4], e[4], y[4], eps = 0, alpha = 0;
        const double size = exp(3 * pare_rng_normal(&r));
        for (size_t k = 0; k < 4; k++) {
            l[k] = 2 * pare_rng_normal(&r), e[k] = fmin(size, 50) * (2 * pare_rng_uniform(&r) - 1);
            y[k] = pare_rng_below(&r, 2) ? 1 : -1;
            eps = fmax(eps, fabs(e[k])), alpha = fmax(alpha, fabs(y[k]));
        }
        const double holds = 2 * alpha * tanh(eps / 2); /* <= alpha eps, and <= 2 alpha */
        assert_le(moved(l, e, y, 4), holds * (1 + 1e-12) + 1e-15);
        assert_true(holds <= 4 * alpha * expm1(2 * eps)); /* the printed one, at d1 = 16 */
        tightest = fmax(tightest, moved(l, e, y, 4) / holds);
    }
    assert_true(tightest > .95);
}

/* The source is drawn from U[-b, b] and its logits are divided by sqrt(n_K). What any choice of
 * masks can reach: at most n_K / d1 products of b^2 each. */
static double most_reach(double b, double n_k, double d1)
{
    return n_k / d1 * b * b / sqrt(n_k);
}

/* A.3, step 1: b = d_K^(1/4). Then the products are U[-1,1]^2 only for n_K = d_K. */
static void ticket_a3_source_range_is_by_n_k_not_d_k(void **state)
{
    (void)state;
    for (double n = 64; n < 1e5; n *= 4) {
        const double printed = pow(8, .25), ours = pow(n, .25);
        assert_near(ours * ours / sqrt(n), 1, 1e-12);
        assert_true(printed * printed / sqrt(n) < .36);
    }
}

/* 4.1: b = n_K^(-1/4). Then no number of units reaches an entry above 1 / d1. */
static void ticket_4_1_exponent_makes_targets_unreachable(void **state)
{
    (void)state;
    for (double n = 4; n < 1e7; n *= 3) {
        assert_true(most_reach(pow(n, -.25), n, 2) <= .5 + 1e-12);       /* a target of .6: never */
        assert_true(most_reach(sqrt(6 / (2 + n)), n, 2) <= 3 / sqrt(n)); /* Xavier: ever less */
        assert_near(most_reach(pow(n, .25), n, 2), n / 2, 1e-6 * n);
    }
}

/* A.3: the probability that some entry of QK is missed. d1^2 entries of eps / (8 H alpha^3
 * d1^1.5) each: sqrt(d1) is in the numerator, and there are H heads. */
static void ticket_a3_union_over_entries_is_printed_upside_down(void **state)
{
    const double eps = .1, h = 2, alpha = 3, d = 9;
    const double each = eps / (8 * h * alpha * alpha * alpha * pow(d, 1.5));
    (void)state;
    assert_near(each * d * d, eps * sqrt(d) / (8 * h * alpha * alpha * alpha), 1e-15);
    assert_true(each * d * d > 8.9 * eps / (8 * h * alpha * alpha * alpha * sqrt(d)));
    /* harmless: over all heads, with VO, it is below eps where alpha >= sqrt(d1) */
    assert_true(h * each * d * d + eps * sqrt(d) / (2 * alpha) <= eps);
}

/* Lemma 12 takes |x'| <= alpha for a token that was moved by eps. */
static void ticket_lemma_12_forgets_that_the_token_moved(void **state)
{
    const double g = 1, alpha = 2, eps = .5, x = alpha, moved_to = alpha + eps;
    const double change = g * moved_to * moved_to - g * x * x;
    (void)state;
    assert_true(change > g * eps * 2 * alpha); /* with |x'| <= alpha */
    assert_near(change, g * eps * (2 * alpha + eps), 1e-12);
}

/* Lemma 13 drops a factor 2 of its own proof. What a block does to tokens that differ by delta when
 * all norms are 1: 4 H alpha^2 delta + 2 H alpha delta^2 + 2 H delta + 2 delta. */
static void ticket_lemma_13_blocks_move_by_what_holds(void **state)
{
    pare_err err = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        const double alpha = 2, delta = .01, id[4] = {1, 0, 0, 1};
        double y[4], z[4];
        pare_rng r = pare_rng_at(seed, 3);
        const pair_shape s = {
            .d1 = 2, .d2 = 2, .heads = 2, .dk = 2, .blocks = 1, .size = 1, .skip = true};
        pare_model *const f = pair_target(&r, &s);
        pare_attn *const at = &f->blocks[0].attn;
        double q[8], w[8], o[8];
        for (size_t i = 0; i < 8; i++) q[i] = w[i] = id[i % 4], o[i] = id[i / 4 * 2 + i % 2];
        for (size_t h = 0; h < 2; h++) at->heads[h].scale = 1;
        at->wq.data = at->wk.data = q, at->wv.data = w, at->wo.data = o;
        pare_dense layer = {{PARE_F64, 2, 2, id}, {0}};
        f->blocks[0].ffn = (pare_ffn){.kind = PARE_FFN_MLP,
                                      .din = 2,
                                      .dout = 2,
                                      .nlayers = 1,
                                      .layers = &layer,
                                      .skip = {PARE_SKIP_IDENTITY, {0}}};
        double x[4], t[4];
        pair_rows(x, &r, 2, 2, alpha - delta);
        pair_rows(t, &r, 2, 2, delta);
        for (size_t i = 0; i < 4; i++) t[i] += x[i];
        const pare_input a = {.batch = 1, .tokens = 2, .width = 2, .x = x},
                         b = {.batch = 1, .tokens = 2, .width = 2, .x = t};
        assert_ok(pare_forward_f64(y, f, &a, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f64(z, f, &b, NULL, NULL, &err), &err);
        const double far = hypot(y[0] - z[0], y[1] - z[1]);
        assert_le(far,
                  8 * alpha * alpha * delta + 4 * alpha * delta * delta + 4 * delta + 2 * delta);
        pare_model_free(f);
    }
}

/* Theorem 10 has alpha in an exponential; ReLU layers without biases are homogeneous, so the bound
 * is proportional to it. */
static void ticket_theorem_10_is_proportional_to_alpha(void **state)
{
    pare_err err = {0};
    pare_rng r = pare_rng_at(5, 5);
    const pair_shape s = {.d1 = 3, .d2 = 3, .heads = 1, .dk = 1, .blocks = 1, .size = .5};
    pare_model *const f = pair_target(&r, &s);
    pare_dense layers[2] = {{pair_weight(f, &r, 4, 3, PAIR_GAUSS, .5), {0}},
                            {pair_weight(f, &r, 3, 4, PAIR_GAUSS, .5), {0}}};
    f->blocks[0].attn = (pare_attn){0};
    f->blocks[0].ffn = (pare_ffn){.kind = PARE_FFN_MLP,
                                  .din = 3,
                                  .dout = 3,
                                  .nlayers = 2,
                                  .layers = layers,
                                  .act = PARE_ACT_RELU};
    pare_model *const g = pair_ticket(f, 1, .01, 1, false);
    pare_ticket_bound one, ten;
    (void)state;
    assert_ok(pare_ticket_bound_free(&one, f, g, 1, NULL, &err), &err);
    assert_ok(pare_ticket_bound_free(&ten, f, g, 10, NULL, &err), &err);
    assert_true(one.outputs.v > 0);
    assert_near(ten.outputs.v / one.outputs.v, 10, 1e-9);
    pare_model_free(g);
    pare_model_free(f);
}

/* Share of draws of n products in which no subset comes within .01 of the target. */
static double missed(pare_rng *r, size_t n, double target)
{
    enum { DRAWS = 400 };
    pare_err err = {0};
    size_t bad = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        int64_t x[16];
        uint64_t mask;
        pare_subset best;
        for (size_t k = 0; k < n; k++)
            x[k] = llrint((2 * pare_rng_uniform(r) - 1) * (2 * pare_rng_uniform(r) - 1) * 0x1p48);
        assert_ok(pare_subset_sum(&best, &mask, x, n, llrint(target * 0x1p48), NULL, &err), &err);
        bad += fabs((double)best.error) > .01 * 0x1p48;
    }
    return (double)bad / DRAWS;
}

/* Lemmas 4 and 7 ask for C log(1 / eta) items with a C that serves targets in [-1/2, 1/2]; merged
 * entries reach 1. At 12 items that is out of reach five times as often. */
static void ticket_lemma_4_must_reach_one_not_a_half(void **state)
{
    pare_rng r = pare_rng_at(7, 7);
    (void)state;
    const double half = missed(&r, 12, .5), whole = missed(&r, 12, 1);
    assert_true(half < .12 && whole > .18 && whole > 2 * half);
}

/* |Attn| <= H alpha sqrt(d1): rows of weights sum to 1, so it is H alpha omega. */
static void ticket_attention_is_at_most_alpha_omega(void **state)
{
    pare_err err = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        pare_rng r = pare_rng_at(seed, 8);
        const pair_shape s = {.d1 = 4, .d2 = 4, .heads = 3, .dk = 2, .blocks = 1, .size = 1};
        pare_model *const f = pair_target(&r, &s), *const g = pair_ticket(f, 1, 0, 1, false);
        pare_ticket_layer b;
        double x[24], y[24];
        pair_rows(x, &r, 6, 4, 2);
        const pare_input in = {.batch = 1, .tokens = 6, .width = 4, .x = x};
        assert_ok(pare_forward_f64(y, f, &in, NULL, NULL, &err), &err);
        assert_ok(pare_ticket_layer_bound(&b, f, g, 0, 2, NULL, &err), &err);
        for (size_t i = 0; i < 6; i++) {
            const double *const row = y + 4 * i;
            assert_le(sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2] + row[3] * row[3]),
                      3 * 2 * b.largest_vo);
        }
        pare_model_free(g);
        pare_model_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticket_alpha_must_bound_the_length_not_the_entries),
        cmocka_unit_test(ticket_lemma_5_errors_have_one_entry_for_each_key),
        cmocka_unit_test(ticket_lemma_8_needs_neither_root_nor_condition),
        cmocka_unit_test(ticket_a3_source_range_is_by_n_k_not_d_k),
        cmocka_unit_test(ticket_4_1_exponent_makes_targets_unreachable),
        cmocka_unit_test(ticket_a3_union_over_entries_is_printed_upside_down),
        cmocka_unit_test(ticket_lemma_12_forgets_that_the_token_moved),
        cmocka_unit_test(ticket_lemma_13_blocks_move_by_what_holds),
        cmocka_unit_test(ticket_theorem_10_is_proportional_to_alpha),
        cmocka_unit_test(ticket_lemma_4_must_reach_one_not_a_half),
        cmocka_unit_test(ticket_attention_is_at_most_alpha_omega),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
